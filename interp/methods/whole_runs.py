"""What would whole runs take here? Seconds and memory of ``ablate``, ``patch``, ``probe`` and ``heads``, by stage.

1. Four layers of the model's shape, with random weights, run some of the task's own prompts, plainly and in a sweep:
   that is what this machine does in a second, measured now. The probes of one head are fitted likewise, to random
   numbers.
2. Operations follow from the config, the prompts and the reference examples, as in ``plan.py``. Prompts that begin
   alike share that beginning where means take a head's place.
3. What only the run itself shows is assumed: a share ``STAYING`` of the heads is still open after the first look, and a
   share ``FOUND`` looks and matters on a task, so that it has a card and is ablated together with the others.
"""

import itertools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from timeit import repeat, timeit

import numpy as np
import pandas as pd
import torch

from interp.interventions.engine.plan import DEFAULT_BUDGET, activations_of
from interp.interventions.intervention import Cell, Intervention
from interp.interventions.reference_set import reference_rows
from interp.interventions.replacement import Zero
from interp.interventions.rows import Row, task_rows
from interp.interventions.sweep import Sweep
from interp.methods.ablation_looks import look_sizes
from interp.methods.card_patching import MANY_PATHS, MOST_PATHS
from interp.methods.plan import head_sweep_flops
from interp.methods.probes.data import labelled
from interp.methods.probes.scores import AT_ONCE, Measuring
from interp.methods.replacements_compared import REPLACEMENTS
from interp.methods.representation import can_be_probed
from interp.model import presets
from interp.model.config import TransformerConfig
from interp.model.devices import resolve_dtype
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.options import CardOptions, HeadsOptions, ProbeOptions
from interp.tasks.passages import passage_index, task_passages
from interp.tasks.task import Task

STAYING, FOUND = 0.25, 0.08
"""Shares of the heads: as above."""
GRADIENT = 5
"""Plain passes that a forward and a backward pass with all activations, and half a run of donors, take."""
WORDS = 5
"""Kinds of positions at which a card patches."""
LOADED = 2.5 * 10**8
"""Bytes of weights that are read and hashed in a second."""
PAGE_SECONDS, DOSSIER_SECONDS, CARD_SECONDS = 3.0, 5.0, 1.0
"""What a result's page takes, with its pictures, that of a dossier, and one card's."""
SWEEP_SECONDS = 0.3
SWEEPS = {"first look": 2, "exchange": 1, "sets": 1, "cards": 5}
"""What a sweep takes however small it is, with its audit and its tables, and how many a stage has."""
LIBRARIES, PROBES_BYTES, HEADS_BYTES = 0.65 * 10**9, 0.15 * 10**9, 0.3 * 10**9
"""Of the interpreter and its libraries; of the fits of probes; and of these, the tables and pictures of a dossier."""
DEPTH, TRIED, READ = 4, 10**11, 256
"""Layers and operations of the sweep that is timed, about, and prompts of the plain passes."""


@dataclass(frozen=True)
class _Pace:
    """Operations a second, of plain passes and of sweeps."""

    plain: float
    sweep: float


@dataclass(frozen=True)
class _Prompts:
    """How many prompts there are, of how many tokens on the average."""

    n: int
    n_tokens: int
    shared: float = 1.0  # the share of the work that is left where beginnings are computed once

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "_Prompts":
        texts = [row.tokens for row in rows]
        n = sum(map(len, texts))
        beginnings = {text[:end] for text in texts for end in range(1, len(text))}
        left = (len(beginnings) + len(texts)) / max(1, n)
        return cls(len(texts), max(1, round(n / max(1, len(texts)))), (1 + left) / 2)  # shares cost about half of it

    def plain(self, config: TransformerConfig) -> float:
        """Operations of one pass through all layers."""
        return self.n * config.n_layers * presets.block_flops(config, self.n_tokens, self.n_tokens)

    def sweep(self, config: TransformerConfig) -> float:
        """Operations of ablating every head once."""
        return float(head_sweep_flops(config, 1, self.n_tokens)) * self.n


def _pace(config: TransformerConfig, task: Task, dtype: str) -> _Pace:
    """What this machine does in a second: measured now, on a few layers of the model and prompts of the task."""
    depth = min(DEPTH, config.n_layers)
    local = None if config.local_layers is None else tuple(each for each in config.local_layers if each < depth)
    small = replace(config, n_layers=depth, local_layers=local or None)
    model = HookedTransformer(small).to(resolve_dtype(dtype)).eval()
    rows, layers = reference_rows(task), range(depth)
    each = _Prompts.of(rows).sweep(small) / len(rows)
    n_units = int(np.clip(TRIED / each, 16, 512)) // 2
    units = list(itertools.chain.from_iterable(task.references))[:n_units]
    some = replace(task, units=tuple(replace(unit, fold=0) for unit in units))
    alone = [_zeroed(layer, head) for layer in layers for head in range(config.n_heads)]
    paired = [_zeroed(layer, head, (head + 1) % config.n_heads) for layer in layers for head in range(config.n_heads)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a head by itself is its own pair
        # What every sweep begins and ends with is in both; the first of all warms up.
        _, one, two = (
            timeit(lambda cells=cells: Sweep(cells).run(model, some), number=1)
            for cells in (alone, alone, alone + paired)
        )
    prompts, read = _Prompts.of(task_rows(some.metric, some.units)), rows[:READ]
    plain = min(repeat(lambda: _run_plainly(model, read), number=1, repeat=2))
    return _Pace(
        _Prompts.of(read).plain(small) / plain, prompts.shared * prompts.sweep(small) / max(two - one, 0.2 * one)
    )


def _zeroed(layer: int, *heads: int) -> Cell:
    return Cell({"heads": f"{layer}: {heads}"}, (Intervention(Site("z", layer), Zero(), heads=tuple(set(heads))),))


def _run_plainly(model: HookedTransformer, rows: Sequence[Row]) -> None:
    for _ in activations_of(model, rows, [Site("z", layer) for layer in range(model.config.n_layers)], None):
        pass


def _probe_seconds(config: TransformerConfig, task: Task, options: ProbeOptions) -> float:
    """Seconds of all probes of one head and of its controls, fitted now to random numbers, as of a layer's heads."""
    marked = labelled(passage_index(list(task_passages(task, options.at))), str(task.feature))
    generator = torch.Generator().manual_seed(0)
    n_heads = min(AT_ONCE, config.n_heads)
    x, twin = (torch.randn(n_heads, len(marked.words), config.d_head, generator=generator) for _ in range(2))
    return timeit(lambda: list(Measuring(marked, options, torch.device("cpu")).cells(x, twin)), number=1) / n_heads


Stages = dict[str, float]


def whole_runs(
    config: TransformerConfig,
    tasks: Sequence[Task],
    *,
    started: float = 0.0,
    dtype: str = "float32",
    processes: int = 1,
    options: HeadsOptions | None = None,
) -> pd.DataFrame:
    """What whole runs on some tasks would take on this machine's CPU.

    Args:
        config: The model.
        tasks: As drawn; ``heads`` is one run on all of them, the others are one run on each.
        started: Seconds that it took to begin and to draw the tasks, which every run does.
        dtype: Of weights and activations.
        processes: Among which ``heads`` divides the tasks.
        options: What ``heads`` is asked; None for what it is asked by default.

    Returns:
        One row a run, task and stage: ``run``, ``task``, ``stage``, ``seconds`` (with so many processes), and
        ``gigabytes``, the most that each process of the whole run holds.

    Examples:
        >>> from interp.methods.whole_runs import whole_runs
        >>> model = interp.load_model()
        >>> task = interp.load_task("agreement", tokenizer=model.tokenizer, n=40)
        >>> whole_runs(model.config, [task])["run"].unique().tolist()
        ['ablate', 'patch', 'probe', 'heads']
    """
    asked, rows = options or HeadsOptions(), []
    weights = presets.weight_bytes(config, resolve_dtype(dtype))
    begin = {"begin": started + weights / LOADED}
    at_once, speed = len(tasks) / -(-len(tasks) // min(processes, len(tasks))), _pace(config, tasks[0], dtype)
    for task in tasks:
        own, references = _Prompts.of(task_rows(task.metric, task.units)), _Prompts.of(reference_rows(task))
        needed = config.n_layers * references.n * references.n_tokens * config.n_heads * config.d_head * 4
        swept = min(needed, DEFAULT_BUDGET["cpu"])
        runs = {
            "ablate": (_ablate(config, own, references, speed), swept),
            "patch": (_patch(config, task, own, speed), 0),
            "probe": (_probe(config, task, own, speed, ProbeOptions()), PROBES_BYTES),
            "heads": (_heads(config, task, own, references, speed, asked), swept + HEADS_BYTES),
        }
        for run, (stages, held) in runs.items():
            memory = LIBRARIES + max(2 * weights, weights + held)
            if run == "heads":
                stages = {name: seconds / at_once for name, seconds in stages.items()}
            elif stages:
                stages = {**begin, **stages, "page": PAGE_SECONDS}
            rows += [(run, task.name, name, seconds, memory / 1e9) for name, seconds in stages.items()]
    rows += [("heads", "", name, seconds, np.nan) for name, seconds in {**begin, "page": DOSSIER_SECONDS}.items()]
    found = pd.DataFrame(rows, columns=["run", "task", "stage", "seconds", "gigabytes"])
    found["gigabytes"] = found.groupby("run")["gigabytes"].transform("max")
    order = found["run"].map(["ablate", "patch", "probe", "heads"].index)
    return found.iloc[order.argsort(kind="stable")].reset_index(drop=True)


def _ablate(config: TransformerConfig, own: _Prompts, references: _Prompts, speed: _Pace) -> Stages:
    passes = references.plain(config) + own.plain(config)
    return {"references": passes / speed.plain, "sweep": own.shared * own.sweep(config) / speed.sweep}


def _patch(config: TransformerConfig, task: Task, own: _Prompts, speed: _Pace) -> Stages:
    return {
        "runs": 2 * own.plain(config) / speed.plain,
        "sweep": _apart(task) * own.shared * own.sweep(config) / speed.sweep,
    }


def _apart(task: Task) -> float:
    """The share of the tokens from which on the two prompts of a unit can differ."""
    shares = []
    for unit in task.units:
        one, *others = (each.prompt for each in unit.examples)
        for each in others:
            pairs = enumerate(zip(one, each, strict=False))
            shares.append(1 - next((at for at, (a, b) in pairs if a != b), len(one)) / len(one))
    return float(np.mean(shares)) if shares else 1.0


def _probe(config: TransformerConfig, task: Task, own: _Prompts, speed: _Pace, options: ProbeOptions) -> Stages:
    if task.feature is None or not can_be_probed(task, task.feature):
        return {}
    n_heads = config.n_layers * config.n_heads
    fits = n_heads * _probe_seconds(config, task, options)
    return {"activations": 2 * own.plain(config) / speed.plain, "probes": fits}


def _heads(
    config: TransformerConfig, task: Task, own: _Prompts, references: _Prompts, speed: _Pace, asked: HeadsOptions
) -> Stages:
    n_heads = config.n_layers * config.n_heads
    found = max(1, round(FOUND * n_heads))
    passes, base, sweep = references.plain(config), own.plain(config), own.sweep(config)
    sizes = look_sizes(task, asked)
    first, every = sizes[0] / len(task.units), sizes[-1] / len(task.units)
    predicted = first < 1  # of all units, by one forward and backward pass, and a run of their donors
    both = sweep * ((1 + _apart(task)) / 2 + own.shared) / speed.sweep  # a unit's examples share their donor
    stages = {
        "attention": (passes + 2 * base + predicted * GRADIENT * base) / speed.plain,
        "first look": 2 * first * base / speed.plain + first * both,
        "later looks": (every - first) * (2 * base / speed.plain + STAYING * both),
        "exchange": 3 * base / speed.plain + found / n_heads * sweep / speed.sweep,
    }
    if asked.probes:
        fewer = ProbeOptions(description_lengths=False, permuted_labels=False)
        stages |= _probe(config, task, own, speed, fewer)
    if asked.max_group:
        cells = 2 + 2 * min(found, asked.max_group)
        stages["sets"] = every * (2 * base / speed.plain + cells / n_heads * sweep / speed.sweep)
    some = min(1.0, CardOptions.max_units / len(task.units))
    patched = found * (len(REPLACEMENTS) + WORDS + _n_paths(config))
    read, swept = (passes + some * 6 * base) / speed.plain, some * patched / n_heads * sweep / speed.sweep
    stages["cards"] = read + swept + found * CARD_SECONDS
    return {name: seconds + SWEEP_SECONDS * SWEEPS.get(name, 0) for name, seconds in stages.items()}


def _n_paths(config: TransformerConfig) -> float:
    """How many direct paths into and from a head in the middle a card patches."""
    before, mlp = (config.n_layers - 1) / 2, config.d_mlp > 0
    into = 3 * (1 + before * (config.n_heads + mlp))
    out = before * (config.n_heads + 2 * config.kv_heads + mlp) + mlp + 1
    return sum(each if each <= MANY_PATHS else MOST_PATHS for each in (into, out))
