"""What has to be computed, and how much at once: as much as a memory budget holds, as a function of the request.

A *trajectory* is one row under one cell and draw. Trajectories of a cell are bundled where the same positions are
replaced. Rows that begin with the same tokens, and get the same replacements there, share that beginning: it belongs
to one of them, its owner, and is computed once.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.arguments import whole_number
from interp.errors import InputError, InterpError
from interp.interventions.engine.base_run import OFFLOADED_TO
from interp.interventions.intervention import Intervention, changed_positions
from interp.interventions.metrics import COLUMNS_ALONE, AnyMetric
from interp.interventions.rows import BATCH_SIZE, Batch, Row, batches
from interp.model.config import TransformerConfig
from interp.model.devices import place_of
from interp.model.sites import Site
from interp.residual.collecting import read

Interventions = Sequence[Intervention]

STAGES = (
    ("resid_pre", "q_input", "k_input", "v_input", "q", "k", "v", "pattern"),
    ("z", "result", "attn_out"),
    ("resid_mid", "mlp_in", "mlp_pre", "mlp_post"),
    ("mlp_out", "resid_post"),
)
"""Where a trajectory can begin within a layer: before the attention, before it writes, before and after the MLP."""
STAGE_OF = {name: number for number, names in enumerate(STAGES) for name in names}


@dataclass(frozen=True)
class RowClass:
    """Rows of a batch that a cell treats alike."""

    rows: Int[np.ndarray, " row"]  # their numbers in the batch
    positions: tuple[tuple[int, ...], ...]  # those that each intervention changes
    own: int  # the first position that is the row's own; earlier ones belong to other rows of the cell


@dataclass(frozen=True)
class RowClasses:
    """All rows of a batch that a cell changes."""

    classes: tuple[RowClass, ...]  # by what is changed
    # by row and position, the row that the position is computed in; None where nothing is shared
    owner: Int[np.ndarray, "batch pos"] | None
    causal: bool  # whether only what follows a change can change

    @property
    def n_rows(self) -> int:
        """How many rows are changed."""
        return sum(len(each.rows) for each in self.classes)

    def n_tokens(self, length: int) -> int:
        """How many positions of rows of this length are computed, once all that can change are."""
        if not self.causal:
            return self.n_rows * length
        starts = (max(each.own, min(min(one) for one in each.positions if one)) for each in self.classes)
        return sum(len(each.rows) * (length - start) for each, start in zip(self.classes, starts, strict=True))


class Classifier:
    """Sorts a batch's rows into classes, once for every way to choose positions."""

    def __init__(self, batch: Batch, *, causal: bool):
        self._batch, self._causal = batch, causal
        self._known: dict[Hashable, RowClasses] = {}

    def classes(self, interventions: Interventions, draw: int) -> RowClasses:
        """The rows that `interventions` change."""
        kinds = tuple((each.places, id(each.replacement)) for each in interventions)
        key = (kinds, draw if any(each.replacement.draws > 1 for each in interventions) else 0)
        if key not in self._known:
            self._known[key] = self._classify(interventions, draw)
        return self._known[key]

    def _classify(self, interventions: Interventions, draw: int) -> RowClasses:
        rows = self._batch.rows
        changes = [changed_positions(interventions, row, causal=self._causal) for row in rows]
        changed = [number for number, positions in enumerate(changes) if any(positions)]
        owner = self._owners(interventions, draw, changed, changes) if self._causal else None
        found: dict[Hashable, list[int]] = {}
        for number in changed:
            own = 0 if owner is None else int((owner[number] == number).argmax())
            found.setdefault((changes[number], own), []).append(number)
        classes = tuple(RowClass(np.array(rows), *key) for key, rows in found.items())
        return RowClasses(classes, owner, self._causal)

    def _owners(
        self, interventions: Interventions, draw: int, changed: Sequence[int], changes: Sequence[Hashable]
    ) -> Int[np.ndarray, "batch pos"] | None:
        """Who computes what: of rows that begin alike, the first in alphabetical order."""
        owner = np.repeat(np.arange(len(self._batch.rows))[:, None], self._batch.length, axis=1)
        groups: dict[Hashable, list[int]] = {}
        for number in changed:
            row = self._batch.rows[number]
            alike = tuple(each.replacement.group(row, draw % each.replacement.draws) for each in interventions)
            if None not in alike and len(row.tokens) == len(row.source_tokens):
                groups.setdefault((alike, changes[number]), []).append(number)
        from_source = any(each.replacement.from_source for each in interventions)
        shared = False
        for group in groups.values():
            ordered = sorted((_text(self._batch.rows[each], from_source), each) for each in group)
            for (text, before), (other, number) in pairwise(ordered):
                # All but the last token, which stays a row's own.
                pairs = enumerate(zip(text[:-1], other[:-1], strict=True))
                begin = next((at for at, (a, b) in pairs if a != b), len(text) - 1)
                owner[number, :begin] = owner[before, :begin]
                shared |= begin > 0
        return owner if shared else None


def _text(row: Row, from_source: bool) -> tuple[tuple[int, int], ...]:
    """What a row reads, token by token, with what its source reads."""
    return tuple(zip(row.tokens, row.source_tokens if from_source else row.tokens, strict=True))


GIB = 2**30
DEFAULT_BUDGET = {"cpu": GIB, "cuda": 4 * GIB}
"""Bytes beside the model's weights, by device type; of a GPU, where that is less, half of what is free there."""
STEP = 2**28
"""That half is a multiple of this, so that it stays the same where little else changes."""

TOKENS_AT_ONCE = {"cpu": 2048, "cuda": 2**17}
"""What is packed at most, by device type: what makes products efficient, and on a CPU stays in its caches."""
CHUNK_FLOPS, LEAST_AT_ONCE = 2 * 10**13, 4096
"""On a GPU, operations that are packed at most, about, and tokens that are whatever the model: what is a second's work
comes apart, so that several share it."""

EXTRA_OF_STAGE: dict[int, tuple[str, ...]] = {0: (), 1: ("z",), 2: ("resid_mid",), 3: ("resid_mid", "mlp_out")}
EXTRA_WITHOUT_MLP: dict[int, tuple[str, ...]] = {0: (), 1: ("z",), 3: ("resid_post",)}


def entry_sites(config: TransformerConfig, interventions: Iterable[Intervention]) -> set[Site]:
    """What the base run has to keep for trajectories that begin at `interventions`."""
    extra = EXTRA_OF_STAGE if config.d_mlp else EXTRA_WITHOUT_MLP
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
    """The bytes that are asked for, or where that is None the default of the device."""
    if asked is None and device.type == "cuda" and torch.cuda.is_available():
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        half = (torch.cuda.mem_get_info(device)[0] + unused) // 2
        return max(STEP, min(DEFAULT_BUDGET["cuda"], half // STEP * STEP))
    if asked is None:
        return DEFAULT_BUDGET[kind_of(device)]
    return whole_number("memory budget", asked, expected="a number of bytes from 1")


class Sizes:
    """Bytes that a sweep takes, row by row, of a `budget`, at a `place`: a model's device and dtype.

    ``tokens_at_once`` are packed together, unless one cell has more. ``offloaded`` is whether the base run's layers
    wait in the host's memory, because the budget does not hold them.
    """

    def __init__(
        self,
        config: TransformerConfig,
        place: tuple[torch.device, torch.dtype],
        metric: AnyMetric,
        interventions: Sequence[Intervention],
        budget: int | None,
    ):
        self._config, self._metric = config, metric
        self._device, dtype = place
        self._item = dtype.itemsize
        self.budget = budget_of(self._device, budget)
        self.tokens_at_once = tokens_at_once(config, self._device)
        layers = [each.site.layer or 0 for each in interventions]
        self._n_kept_layers = config.n_layers - min(layers, default=0)
        self._extra = entry_sites(config, interventions)
        self._edited = {(each.site.name, self._held(each)): each.site for each in interventions}
        self.offloaded = False
        self._source = [site for keeps in {each.replacement.keeps for each in interventions} for site in keeps]

    def base(self, row: Row) -> int:
        """What the base run keeps of a row, with the activations that are patched in."""
        config, length = self._config, len(row.tokens)
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
        config, length = self._config, len(row.tokens)
        inner = config.n_heads * config.d_head
        per_token = max(2 * config.d_model + 2 * config.d_mlp, 3 * config.d_model + 6 * inner)
        keys_and_values = 2 * inner * length
        edited = max((held * width(site, config, length) for (_, held), site in self._edited.items()), default=0)
        return self._item * (n_tokens * int(per_token + edited) + keys_and_values) + self._predictions(row)

    def _held(self, each: Intervention) -> float:
        """What is held of a site's activation: of the part that is replaced what was there, the values, both anew."""
        share = 1.0 if each.units is None else len(each.units) / self._config.d_mlp
        if each.heads is not None:
            share = len(each.heads) / self._config.n_heads
        wide = max(self._item, 4) / self._item if each.site.name == "pattern" else 1.0  # whose scores have 32 bits
        return (3 + each.replacement.breadth) * share * wide

    def fit(self, rows: Sequence[Row]) -> None:
        """Have the base run off-loaded where the budget does not hold one cell on one row with it."""
        if self.one_cell(self.largest(rows)) > self.budget and self._device.type in OFFLOADED_TO:
            self.offloaded = True
        row = self.largest(rows)  # which may be another one now
        if (needed := self.one_cell(row)) > self.budget:
            raise InputError(
                f"memory budget: one cell on one row of {len(row.tokens)} tokens takes {needed:,} bytes, "
                f"got a budget of {self.budget:,}; give at least the former"
            )

    def largest(self, rows: Sequence[Row]) -> Row:
        """The row that takes most."""
        return max(rows, key=self.one_cell)

    def rows_at_once(self, rows: Sequence[Row]) -> int:
        """How many rows of equal length are run together: what one cell packs, and half of the budget at most."""
        row = self.largest(rows)
        at_once = self.tokens_at_once // len(row.tokens)
        return max(1, min(at_once, self.budget // (2 * self.base(row)), self.budget // self.one_cell(row)))

    def one_cell(self, row: Row) -> int:
        """What one cell on one row takes, with its base run."""
        return self.base(row) + self.trajectory(row, len(row.tokens))

    def _predictions(self, row: Row) -> int:
        """Logits over the whole vocabulary, where the metric reads them, or of sets of answers."""
        if self._metric in COLUMNS_ALONE:
            n_answers = len(row.encoded.rights) + len(row.encoded.wrongs)
            return 3 * n_answers * max(self._item, 4) if n_answers > 2 else 0
        return 3 * (1 + len(row.continuation)) * self._config.d_vocab * max(self._item, 4)


def width(site: Site, config: Any, length: int) -> int:
    """How many numbers a site has at one position of `length`."""
    sizes = {"head": "n_heads", "d_head": "d_head", "d_model": "d_model", "d_mlp": "d_mlp"}
    known = {axis: getattr(config, sizes[axis]) for axis in site.axes if axis in sizes}
    return prod(length if axis == "key_pos" else known.get(axis, 1) for axis in site.axes)


def rows_in_one_run(
    model: Any, rows: Sequence[Row], sites: Iterable[Site], memory_budget: int | None, *, logits: bool = False
) -> int:
    """How many rows a plain run of the model may have, so that what is kept of it fits into the budget."""
    config, (device, dtype) = model.cfg, place_of(model)
    budget = budget_of(device, memory_budget)
    length = max(len(row.tokens) for row in rows)
    d_mlp = getattr(config, "d_mlp", None) or 0  # models of attention alone have none
    running = 4 * d_mlp + 8 * config.d_model + (2 * config.d_vocab if logits else 0)
    widths = [width(site, config, length) for site in sites]
    per_token = running + sum(widths) + max(widths, default=0)  # whoever reads a site copies it
    return max(1, min(BATCH_SIZE, budget // (dtype.itemsize * length * per_token)))


def activations_of(
    model: Any, rows: Sequence[Row], sites: Sequence[Site], memory_budget: int | None = None
) -> Iterator[tuple[Batch, dict[Site, Float[Tensor, "batch ..."]]]]:
    """Run the rows once and give the activations at the sites, in batches that the budget holds."""
    for batch in batches(model, rows, size=rows_in_one_run(model, rows, sites, memory_budget)):
        cache = read(model, batch.tokens, [site.hook_name for site in sites])
        yield batch, {site: cache[site.hook_name] for site in sites}


class NoRoomError(InterpError):
    """A batch on which memory does not hold the unchanged run, or one cell; asked again, it may."""


NO_MEMORY = (
    *("allocate memory", "could not create a primitive", "could not create a memory object"),
    *("error: out of memory", "_STATUS_ALLOC_FAILED", "_STATUS_ALLOCATION_FAILED"),
)
"""What PyTorch's allocator of the host's memory says, and oneDNN, CUDA and its libraries, which take some of their own.
"""


def out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on whatever device."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(each in str(error) for each in NO_MEMORY)
    )
