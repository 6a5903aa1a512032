"""What would a model need here? Memory, operations and time of its weights, its cache and a full head ablation.

1. Bytes and operations follow from the config (``model/presets.py``) and from what the engine does: a head's ablation
   begins at its layer, the last layer computes the answer's position only, and prompts come in batches that keep to
   the sweep's default memory budget.
2. Time is operations over what the hardware does in a second, times the share of that which is reached; on a GPU, it is
   at least what the host takes to launch the kernels, which a simulated GPU has counted. Chunk by chunk, as the engine
   puts them together, the larger of the two counts.
3. What does not fit is refused, with what would.

Examples:
    >>> from interp.methods.plan import hardware_called, head_sweep_flops, plan
    >>> from interp.model.presets import preset
    >>> gpt2 = preset("gpt2").config
    >>> sorted(plan(gpt2, hardware_called("a100"), n_prompts=16).seconds)
    ['forward', 'sweep']
    >>> head_sweep_flops(gpt2, n_prompts=2, n_tokens=20) == 2 * head_sweep_flops(gpt2, n_prompts=1, n_tokens=20)
    True
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from timeit import repeat

import torch

from interp.errors import InputError
from interp.interventions.engine.plan import DEFAULT_BUDGET, Sizes
from interp.interventions.intervention import Intervention
from interp.interventions.replacement import Zero
from interp.interventions.rows import BATCH_SIZE, Row
from interp.model import presets
from interp.model.config import TransformerConfig
from interp.model.devices import resolve_dtype
from interp.model.layers import linear
from interp.model.sites import Site
from interp.tasks.example import Example
from interp.tasks.task import EncodedExample

GB = 10**9
SIZE, REPEATS = 1024, 5


@dataclass(frozen=True)
class Hardware:
    """What computes.

    Attributes:
        name: For reports.
        memory: Bytes of one device.
        flops: By dtype, floating-point operations a second of one device, of dense products.
        reached: The share of these that a sweep reaches.
        budget: Bytes beside the weights that a sweep takes there at most, unless one prompt takes more.
        launch: Seconds that the host takes for a kernel; 0 where it computes itself.
    """

    name: str
    memory: int
    flops: dict[str, float]
    reached: float
    budget: int = DEFAULT_BUDGET["cuda"]
    launch: float = 1e-5  # an assumption: what PyTorch takes for one that is launched from Python

    @property
    def device(self) -> torch.device:
        """Whose defaults the engine takes there."""
        return torch.device("cuda" if self.launch else "cpu")

    def seconds(self, dtype: str, flops: int, launches: int) -> float:
        """Of some operations, and of the kernels that they are."""
        return max(flops / (self.flops[dtype] * self.reached), launches * self.launch)


GPU_REACHED = 0.4
"""An assumption, not a measurement: what large products and short prompts reach of a data sheet's peak."""
CPU_REACHED = 0.75
"""Measured of a product's own speed: see benchmarks/RESULTS.md."""
HARDWARE: dict[str, Hardware] = {
    "a100": Hardware("A100 80 GB", 80 * GB, {"bfloat16": 312e12, "float16": 312e12, "float32": 19.5e12}, GPU_REACHED),
    "h100": Hardware("H100 80 GB", 80 * GB, {"bfloat16": 989e12, "float16": 989e12, "float32": 67e12}, GPU_REACHED),
    "h200": Hardware("H200 141 GB", 141 * GB, {"bfloat16": 989e12, "float16": 989e12, "float32": 67e12}, GPU_REACHED),
}
"""Dense products without sparsity, from the vendor's data sheets."""
LAUNCHES = {"block": (14, 16, 16, 29), "rotary": (10, 12, 13, 14), "gated": (2, 0, 2, 0), "grouped": (2, 0, 2, 0)}
"""Kernels of a model that has this: of a forward pass in each layer, and once; of a chunk in each layer, and once."""
BEGUN, ONCE = 22, 85
"""Beside these: in each layer of a chunk that cells begin in, and in a sweep as a whole, with its audit."""


@dataclass(frozen=True)
class Chunk:
    """What the engine runs at once of a head sweep: some heads, each ablated on all prompts of a batch.

    Attributes:
        batch: Its number.
        prompts: In it.
        heads: Layer by layer.
        flops: Operations.
        launches: Kernels, on a GPU.
    """

    batch: int
    prompts: int
    heads: range
    flops: int
    launches: int


@dataclass(frozen=True)
class Plan:
    """What a model would need.

    Attributes:
        parameters: How many.
        bytes: Of ``weights``, of the ``cache`` of keys and values of all prompts, and of what a head ``sweep`` keeps
            beside the weights.
        flops: Of one ``forward`` pass over the prompts, and of a full head ``sweep`` on them.
        launches: The kernels of the same, on a GPU.
        seconds: The same in time.
        hardware: On what.
        devices: How many of these hold the weights.
    """

    parameters: int
    bytes: dict[str, int]
    flops: dict[str, int]
    launches: dict[str, int]
    seconds: dict[str, float]
    hardware: str
    devices: int


def plan(
    config: TransformerConfig,
    hardware: Hardware,
    *,
    devices: int = 1,
    dtype: str = "float32",
    n_prompts: int = 16,
    n_tokens: int = 20,
) -> Plan:
    """What a model would need for a forward pass and a full head ablation.

    Args:
        config: The model.
        hardware: One device of it.
        devices: How many hold the layers between them, one after the other: they add memory and no speed. This package
            computes on one.
        dtype: Of weights and activations.
        n_prompts: Prompts that are ablated on.
        n_tokens: Tokens of each, special tokens included.

    Returns:
        Bytes, operations and seconds.

    Raises:
        InputError: Weights and sweep do not fit, with what would; or the hardware does not do this dtype, or the
            prompts are longer than the context.
    """
    if dtype not in hardware.flops:
        raise InputError(f"dtype: {hardware.name} is known for {', '.join(hardware.flops)}, got {dtype!r}")
    if n_tokens > config.n_ctx:
        raise InputError(f"tokens: the model's context is {config.n_ctx}, got prompts of {n_tokens}")
    held = resolve_dtype(dtype)
    needed = {
        "weights": presets.weight_bytes(config, held),
        "cache": presets.cache_bytes(config, n_prompts, n_tokens, held),
        "sweep": sweep_bytes(config, hardware.budget, n_prompts, n_tokens, held),
    }
    _require_room(config, hardware, devices, dtype, n_prompts=n_prompts, n_tokens=n_tokens)
    chunks = head_sweep_chunks(config, hardware, dtype=dtype, n_prompts=n_prompts, n_tokens=n_tokens)
    n_batches, each_pass = chunks[-1].batch + 1, forward_launches(config)
    base = presets.block_flops(config, n_tokens, n_tokens) * config.n_layers * n_prompts
    flops = {
        "forward": presets.forward_flops(config, n_prompts, n_tokens),
        "sweep": base + sum(each.flops for each in chunks),
    }
    # A base run of each batch, and the audit's.
    around = (n_batches + 1) * each_pass + ONCE
    launches = {"forward": each_pass, "sweep": around + sum(each.launches for each in chunks)}
    seconds = {
        "forward": hardware.seconds(dtype, flops["forward"], each_pass),
        "sweep": hardware.seconds(dtype, base, around)
        + sum(hardware.seconds(dtype, each.flops, each.launches) for each in chunks),
    }
    return Plan(presets.parameter_count(config), needed, flops, launches, seconds, hardware.name, devices)


def forward_launches(config: TransformerConfig) -> int:
    """The kernels that a GPU is told to run in a forward pass."""
    per_layer, once, _, _ = _launches(config)
    return per_layer * config.n_layers + once


def _launches(config: TransformerConfig) -> tuple[int, ...]:
    """Those of ``LAUNCHES``, of all that the model has."""
    has = {"rotary": config.positions == "rotary", "gated": config.gated, "grouped": config.kv_heads < config.n_heads}
    return tuple(map(sum, zip(*(LAUNCHES[name] for name in LAUNCHES if has.get(name, True)), strict=True)))


def head_sweep_chunks(
    config: TransformerConfig, hardware: Hardware, *, dtype: str, n_prompts: int, n_tokens: int
) -> list[Chunk]:
    """What the engine runs, one after the other, to ablate each head once at all positions."""
    heads = [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
    zeroed = [Intervention(Site("z", layer), Zero(), heads=(head,)) for layer, head in heads]
    place = (hardware.device, resolve_dtype(dtype))
    sizes, row = Sizes(config, place, "logit_difference", zeroed, hardware.budget), _row(n_tokens)
    sizes.fit([row])
    rows, (_, _, per_layer, once) = sizes.rows_at_once([row]), _launches(config)
    costs, found = [_head_flops(config, layer, n_tokens) for layer in range(config.n_layers)], list[Chunk]()
    for batch, n in enumerate(_batches(n_prompts, rows)):
        room = (sizes.budget - n * sizes.base(row)) // (n * sizes.trajectory(row, n_tokens))
        at_once = max(1, min(room, sizes.tokens_at_once // (n * n_tokens)))
        for first in range(0, len(heads), at_once):
            chunk = range(first, min(first + at_once, len(heads)))
            layers = [heads[each][0] for each in chunk]
            launches = once + per_layer * (config.n_layers - layers[0]) + BEGUN * len(set(layers))
            found.append(Chunk(batch, n, chunk, n * sum(costs[layer] for layer in layers), launches))
    return found


def _batches(n_prompts: int, at_once: int) -> Iterator[int]:
    """How many prompts are in each: of those that are encoded together, as many as memory holds."""
    for start in range(0, n_prompts, BATCH_SIZE):
        together = min(BATCH_SIZE, n_prompts - start)
        yield from (min(at_once, together - each) for each in range(0, together, at_once))


def _row(n_tokens: int) -> Row:
    """A prompt of so many tokens."""
    example = Example("a prompt", " right", " wrong", None, template="", layout="")
    tokens = EncodedExample(example, (0,) * n_tokens, (0,), (0,), query=None, related=(), distractors={})
    return Row(tokens, example=0, fold=0)


def head_sweep_flops(config: TransformerConfig, n_prompts: int, n_tokens: int) -> int:
    """Operations of ablating each head once, at all positions, as the engine does it, measured at the last position.

    Args:
        config: The model.
        n_prompts: Prompts that are ablated on.
        n_tokens: Tokens of each, special tokens included.

    Returns:
        Floating-point operations, of all heads together.
    """
    whole = presets.block_flops(config, n_tokens, n_tokens)
    cells = sum(_head_flops(config, layer, n_tokens) for layer in range(config.n_layers))
    return n_prompts * (config.n_layers * whole + config.n_heads * cells)


def _head_flops(config: TransformerConfig, layer: int, n_tokens: int) -> int:
    """Of ablating one head of a layer on one prompt, when it has been run without."""
    (write, mlp), last = presets.writing_flops(config), config.n_layers - 1
    if layer == last:
        return write * n_tokens + mlp
    between = (last - layer - 1) * presets.block_flops(config, n_tokens, n_tokens)
    return (write + mlp) * n_tokens + between + presets.block_flops(config, n_tokens, 1)


def sweep_bytes(config: TransformerConfig, budget: int, n_prompts: int, n_tokens: int, dtype: torch.dtype) -> int:
    """What a sweep keeps at once of its base run: each layer's stream, queries, keys, values and ``z``.

    Of all prompts, or of as many as its budget holds, one at least.
    """
    inner, shared = config.n_heads * config.d_head, config.kv_heads * config.d_head
    prompt = config.n_layers * (config.d_model + 2 * inner + 2 * shared) * n_tokens * dtype.itemsize
    return max(prompt, min(n_prompts * prompt, budget))


def this_cpu(threads: int = 1) -> Hardware:
    """This machine's processor: its memory, and the speed of a product of 1,024 x 1,024, measured now."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        flops = {name: _measured(resolve_dtype(name)) for name in ("float64", "float32", "bfloat16")}
    finally:
        torch.set_num_threads(before)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    name = f"this CPU, {threads} thread{'s' * (threads > 1)}"
    return Hardware(name, memory, flops, CPU_REACHED, DEFAULT_BUDGET["cpu"], 0.0)


def _measured(dtype: torch.dtype) -> float:
    x, weight, bias = (torch.ones(shape, dtype=dtype) for shape in ((SIZE, SIZE), (SIZE, SIZE), (SIZE,)))
    return 2 * SIZE**3 / median(repeat(lambda: linear(x, weight, bias), number=1, repeat=REPEATS))


def _require_room(
    config: TransformerConfig, hardware: Hardware, devices: int, dtype: str, *, n_prompts: int, n_tokens: int
) -> None:
    room = devices * hardware.memory

    def total(config: TransformerConfig, dtype: str) -> int:
        held = resolve_dtype(dtype)
        return presets.weight_bytes(config, held) + sweep_bytes(config, hardware.budget, n_prompts, n_tokens, held)

    needed = total(config, dtype)
    if needed <= room:
        return
    would = [f"{name} here" for name in hardware.flops if total(config, name) <= room]
    configs = {name: each.config for name, each in presets.PRESETS.items() if n_tokens <= each.config.n_ctx}
    fitting = [name for name, each in configs.items() if total(each, dtype) <= room]
    if fitting:
        would.append(f"{max(fitting, key=lambda name: presets.parameter_count(configs[name]))} here")
    n = -(-needed // hardware.memory)
    would.append(f"{n} of these together (--devices {n}; this package computes on one)")
    raise InputError(
        f"weights and sweep take {needed / GB:,.1f} GB in {dtype}, expected at most the {room / GB:,.1f} GB of "
        f"{devices} x {hardware.name}; what would fit: {', or '.join(would)}"
    )


def hardware_called(name: str, threads: int = 1) -> Hardware:
    """Known hardware by its name; ``cpu`` is measured.

    Args:
        name: ``cpu``, ``a100``, ``h100`` or ``h200``.
        threads: Of the ``cpu``.

    Returns:
        One device.

    Raises:
        InputError: No hardware is called so.
    """
    if name == "cpu":
        return this_cpu(threads)
    if name not in HARDWARE:
        raise InputError(f"device: expected {', '.join(['cpu', *HARDWARE])} to plan for, got {name!r}")
    return HARDWARE[name]
