"""How much is run at once? As much as a memory budget holds; the plan is a function of what was asked."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import torch

from interp.errors import InputError
from interp.interventions.engine.base import OFFLOADED_TO
from interp.interventions.engine.chunk import STAGE_OF
from interp.interventions.given_numbers import whole_number
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import MetricName
from interp.interventions.rows import BATCH_SIZE, Row
from interp.model.devices import place_of
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer

GIB = 2**30
DEFAULT_BUDGET = {"cpu": GIB, "cuda": 4 * GIB}
"""Bytes beside the model's weights, by device type."""

TOKENS_AT_ONCE = {"cpu": 2048, "cuda": 2**17}
"""What is packed at most, by device type: what makes products efficient, and on a CPU stays in its caches."""
CHUNK_FLOPS, LEAST_AT_ONCE = 2 * 10**13, 4096
"""On a GPU, operations that are packed at most, about, and tokens that are whatever the model: what is a second's work
comes apart, so that several share it."""

EXTRA_OF_STAGE: dict[int, tuple[str, ...]] = {0: (), 1: ("z",), 2: ("resid_mid",), 3: ("resid_mid", "mlp_out")}
EXTRA_WITHOUT_MLP: dict[int, tuple[str, ...]] = {0: (), 1: ("z",), 3: ("resid_post",)}


def entry_sites(model: HookedTransformer, interventions: Iterable[Intervention]) -> set[Site]:
    """What the base run has to keep for trajectories that begin at `interventions`."""
    extra = EXTRA_OF_STAGE if model.config.d_mlp else EXTRA_WITHOUT_MLP
    return {Site(name, each.site.layer) for each in interventions for name in extra[STAGE_OF[each.site.name]]}


def kind_of(device: torch.device) -> str:
    """Which of the defaults are a device's: all but ``cuda`` share those of ``cpu``."""
    return "cuda" if device.type == "cuda" else "cpu"


def tokens_at_once(config: Any, device: torch.device) -> int:
    """How many tokens are packed at most, of a model of this shape."""
    kind = kind_of(device)
    if kind == "cpu":
        return TOKENS_AT_ONCE[kind]
    return int(min(TOKENS_AT_ONCE[kind], max(LEAST_AT_ONCE, CHUNK_FLOPS // flops_of_token(config))))


def flops_of_token(config: Any) -> int:
    """Operations of a token, about: in blocks with MLPs of the usual width."""
    return 24 * int(config.n_layers) * int(config.d_model) ** 2


def budget_of(device: torch.device, asked: object) -> int:
    """The bytes that are asked for, or where that is None the default of the device.

    Raises:
        InputError: Something else than a number of bytes.
    """
    if asked is None:
        return DEFAULT_BUDGET[kind_of(device)]
    return whole_number("memory budget", asked, expected="a number of bytes from 1")


class Sizes:
    """Bytes that a sweep takes, row by row.

    Attributes:
        budget: Bytes that it may take.
        tokens_at_once: Tokens that are packed together, unless one cell has more.
        offloaded: Whether the base run's layers wait in the host's memory, because the budget does not hold them.
    """

    def __init__(
        self, model: HookedTransformer, metric: MetricName, interventions: Sequence[Intervention], budget: int | None
    ):
        self._model, self._metric = model, metric
        weight = model.W_E
        self._item = weight.element_size()
        self.budget = budget_of(weight.device, budget)
        self.tokens_at_once = tokens_at_once(model.config, weight.device)
        layers = [each.site.layer or 0 for each in interventions]
        self._n_kept_layers = model.config.n_layers - min(layers, default=0)
        self._extra = entry_sites(model, interventions)
        self._edited = {(each.site.name, self._held(each)): each.site for each in interventions}
        self.offloaded = False
        self._device = weight.device
        self._source = [site for keeps in {each.replacement.keeps for each in interventions} for site in keeps]

    def base(self, row: Row) -> int:
        """What the base run keeps of a row, with the activations that are patched in."""
        config, length = self._model.config, len(row.tokens)
        inner = config.n_heads * config.d_head
        extra = Counter[int | None]()
        for site in self._extra:
            extra[site.layer] += inner if site.name == "z" else config.d_model
        # Off-loaded, the device has what one layer reads, and what the next one begins with.
        n_layers = min(2, self._n_kept_layers) if self.offloaded else self._n_kept_layers
        per_token = n_layers * (config.d_model + 3 * inner)
        per_token += max(extra.values(), default=0) if self.offloaded else extra.total()
        per_token += sum(width(site, config, length) for site in self._source)
        # A layer whose inputs are split by head holds some copies more while it runs.
        split = (width(site, config, length) for site in self._source if {"head", "d_model"} <= set(site.axes))
        per_token += 4 * max(split, default=0)
        return self._item * (length * per_token) + self._predictions(row)

    def trajectory(self, row: Row, n_tokens: int) -> int:
        """What one row under one cell takes while a layer computes `n_tokens` of its positions."""
        config = self._model.config
        inner = config.n_heads * config.d_head
        per_token = max(2 * config.d_model + 2 * config.d_mlp, 3 * config.d_model + 6 * inner)
        keys_and_values = 2 * inner * len(row.tokens)
        edited = max(
            (held * width(site, config, len(row.tokens)) for (_, held), site in self._edited.items()), default=0
        )
        return self._item * (n_tokens * int(per_token + edited) + keys_and_values) + self._predictions(row)

    def _held(self, each: Intervention) -> float:
        """What is held of a site's activation: of the part that is replaced what was there, the values, both anew."""
        share = 1.0 if each.units is None else len(each.units) / self._model.config.d_mlp
        if each.heads is not None:
            share = len(each.heads) / self._model.config.n_heads
        return (3 + each.replacement.breadth) * share

    def fit(self, rows: Sequence[Row]) -> None:
        """Have the base run off-loaded where the budget does not hold one cell on one row with it.

        Raises:
            InputError: The budget is too small all the same; it says how many bytes that takes.
        """
        if self._one_cell(self.largest(rows)) > self.budget and self._device.type in OFFLOADED_TO:
            self.offloaded = True
        row = self.largest(rows)
        needed = self._one_cell(row)
        if needed > self.budget:
            raise InputError(
                f"memory budget: one cell on one row of {len(row.tokens)} tokens takes {needed:,} bytes, "
                f"got a budget of {self.budget:,}; give at least the former"
            )

    def largest(self, rows: Sequence[Row]) -> Row:
        """The row that takes most."""
        return max(rows, key=self._one_cell)

    def rows_at_once(self, rows: Sequence[Row]) -> int:
        """How many rows of equal length are run together: what one cell packs, and half of the budget at most."""
        row = self.largest(rows)
        at_once = self.tokens_at_once // len(row.tokens)
        return max(1, min(at_once, self.budget // (2 * self.base(row)), self.budget // self._one_cell(row)))

    def _one_cell(self, row: Row) -> int:
        return self.base(row) + self.trajectory(row, len(row.tokens))

    def _predictions(self, row: Row) -> int:
        """Logits over the whole vocabulary, where the metric reads them."""
        if self._metric == "logit_difference":
            return 0
        return 3 * (1 + len(row.continuation)) * self._model.config.d_vocab * max(self._item, 4)


def width(site: Site, config: Any, length: int) -> int:
    """How many numbers a site has at one position of `length`."""
    sizes = {"head": "n_heads", "d_head": "d_head", "d_model": "d_model", "d_mlp": "d_mlp"}
    known = {axis: getattr(config, sizes[axis]) for axis in site.axes if axis in sizes}
    return prod(length if axis == "key_pos" else known.get(axis, 1) for axis in site.axes)


def rows_in_one_run(
    model: Any, rows: Sequence[Row], sites: Iterable[Site], memory_budget: int | None, *, logits: bool = False
) -> int:
    """How many rows a plain run of the model may have, so that what is kept of it fits into the budget.

    Args:
        model: Follows TransformerLens' protocol.
        rows: Those that are going to be run.
        sites: What is kept.
        memory_budget: Bytes; None for the device's default.
        logits: Whether the run goes on to the logits of all positions.
    """
    config, (device, dtype) = model.cfg, place_of(model)
    budget = budget_of(device, memory_budget)
    length = max(len(row.tokens) for row in rows)
    d_mlp = getattr(config, "d_mlp", None) or 0  # models of attention alone have none
    running = 4 * d_mlp + 8 * config.d_model + (2 * config.d_vocab if logits else 0)
    widths = [width(site, config, length) for site in sites]
    per_token = running + sum(widths) + max(widths, default=0)  # whoever reads a site copies it
    return max(1, min(BATCH_SIZE, budget // (dtype.itemsize * length * per_token)))


class NoRoomError(InputError):
    """A batch on which memory does not hold the unchanged run, or one cell."""


NO_MEMORY = ("allocate memory", "could not create a primitive", "could not create a memory object")
"""What PyTorch's allocator says, and oneDNN, whose products take memory of their own."""


def out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on whatever device."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(each in str(error) for each in NO_MEMORY)
    )
