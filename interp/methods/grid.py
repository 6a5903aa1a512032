"""The cells of a sweep: one for every choice along the axes that it is resolved by.

Axes that are not among these are changed together: without ``pos`` all positions, without ``head`` all heads.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

from interp.arguments import named_arguments, numbers_below, require_different, whole_numbers
from interp.errors import InputError, suggest
from interp.interventions.intervention import WRITTEN, Intervention, Positions, heads_at
from interp.interventions.replacement import Patch, Replacement
from interp.interventions.sweep import Cell
from interp.model.sites import SITES, Site, require_sites
from interp.options import Axis, Direction
from interp.tasks.alignment import corresponding, spans
from interp.tasks.task import EncodedExample, Task

SITE_AXIS = {"head": "head", "key": "key_pos", "neuron": "d_mlp"}


@dataclass(frozen=True)
class Grid:
    """What a sweep is resolved by, at one site: the axes in the order of the labels, and layers (None for all)."""

    site: str
    by: tuple[Axis, ...]
    layers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.site not in WRITTEN:
            meant = str(self.site).rpartition("hook_")[2]  # TransformerLens' name of the point
            raise InputError(f"no site that can be changed is called {self.site!r}; {suggest(meant, WRITTEN)}")
        for axis in self.by:
            if SITE_AXIS.get(axis, axis) not in (*SITES[self.site][1], "layer", "pos"):
                raise InputError(f"by: site {self.site!r} has no {axis}; leave it out, or choose another site")
        require_different("by", self.by, "axes")

    def sites(self, model: Any) -> list[Site]:
        """The sites, layer by layer."""
        n = model.cfg.n_layers
        layers = list(range(n)) if self.layers is None else numbers_below(n, "layers", self.layers)
        sites = [Site(self.site, layer) for layer in layers]
        require_sites(model, sites, WRITTEN)
        return sites

    def cells(
        self, model: Any, replacement: Replacement, positions: Sequence[tuple[Hashable, Positions]], n_keys: int = 0
    ) -> list[Cell]:
        """One cell for every choice; `positions` are as of ``label_positions``, of `n_keys` that are attended to."""
        everywhere = self.sites(model)
        axes: dict[str, tuple[str, list[tuple[Hashable, Any]]]] = {
            "layer": ("sites", [(site.layer, [site]) for site in everywhere]),
            "head": ("heads", [(head, (head,)) for head in range(heads_at(self.site, model))]),
            "pos": ("positions", list(positions)),
            "key": ("keys", [(key, (key,)) for key in range(n_keys)]),
            "neuron": ("units", [(each, (each,)) for each in range(model.cfg.d_mlp)] if "neuron" in self.by else []),
        }
        cells = []
        for choice in product(*(axes[axis][1] for axis in self.by)):
            labels: dict[str, Hashable] = {axis: label for axis, (label, _) in zip(self.by, choice, strict=True)}
            chosen = {axes[axis][0]: value for axis, (_, value) in zip(self.by, choice, strict=True)}
            sites = chosen.pop("sites", everywhere)
            cells.append(Cell(labels, tuple(Intervention(site, replacement, **chosen) for site in sites)))
        return cells


def as_grid(site: str, by: Sequence[Axis], layers: Sequence[int] | None) -> Grid:
    """The grid of these axes and layers."""
    if isinstance(by, str) or not isinstance(by, Sequence):
        raise InputError(f"by: expected a tuple of axes such as ('layer', 'head'), got {by!r}")
    return Grid(site, tuple(by), None if layers is None else tuple(whole_numbers("layers", layers)))


def grid_cells(
    model: Any,
    task: Task,
    grid: Grid,
    replacement: Replacement,
    runs: Sequence[EncodedExample],
    sources: Sequence[EncodedExample] | None = None,
) -> list[Cell]:
    """The cells of `grid` on the prompts of a task.

    For every example, `runs` has the one whose prompt is run, and `sources` the one that is patched from, where
    something is.
    """
    positions = label_positions(task, runs, sources) if "pos" in grid.by else []
    lengths = {len(each.prompt) for each in runs}
    if "key" in grid.by and len(lengths) > 1:
        raise InputError(f"key: the prompts of {task.name!r} have different lengths; choose prompts of one length")
    return grid.cells(model, replacement, positions, max(lengths))


@named_arguments
def patch_cells(model: Any, task: Task, grid: Grid, direction: Direction) -> list[Cell]:
    """The cells of a patching sweep."""
    runs, others = (run_examples(task, each) for each in get_args(Direction))
    if direction == "noise":
        runs, others = others, runs
    return grid_cells(model, task, grid, Patch(model, tuple(grid.sites(model))), runs, others)


def run_examples(task: Task, direction: Direction) -> list[EncodedExample]:
    """For every example, the one of its unit whose prompt is run."""
    runs: list[EncodedExample] = []
    for unit in task.units:
        pair = unit.examples
        runs += pair if direction == "noise" or len(pair) == 1 else pair[::-1]
    return runs


def label_positions(
    task: Task, runs: Sequence[EncodedExample], sources: Sequence[EncodedExample] | None = None
) -> list[tuple[Hashable, Positions]]:
    """The positions of a task's prompts, under labels that mean the same in every prompt.

    Where all prompts have the same length, the labels are the positions. Otherwise prompts are aligned by the spans
    that the task gives: ``BOS`` (the special tokens in front), ``related``, the distractors by their roles, ``query``,
    ``last`` and, all together, the ``rest``; a position belongs to the last of these that covers it. A label that a
    prompt does not have is not measured there; nor is a position that corresponds to none of the source's.
    """
    lengths = {len(each.prompt) for each in runs}
    if len(lengths) == 1:
        return [(position, (position,)) for position in range(lengths.pop())]
    without = sum(each.query is None for each in runs)
    if without:
        raise InputError(
            f"pos: the prompts of {task.name!r} have {min(lengths)} to {max(lengths)} tokens, so that a position does "
            f"not mean the same in all, and {without} of {len(runs)} have no tagged relation to align them by; "
            "leave pos out, or choose prompts of one length"
        )
    return role_positions(runs, sources)


def role_positions(
    runs: Sequence[EncodedExample], sources: Sequence[EncodedExample] | None = None
) -> list[tuple[Hashable, Positions]]:
    """As ``label_positions`` of prompts of different lengths, whatever the lengths are."""
    labelled = [_labelled(*both) for both in zip(runs, runs if sources is None else sources, strict=True)]
    names = list(dict.fromkeys(name for each in labelled for name in each))
    ends = {"BOS": -2, "related": -1, "rest": 1, "query": 2, "last": 3}
    names.sort(key=lambda name: ends.get(name, 0))
    return [(name, {number: each.get(name, ()) for number, each in enumerate(labelled)}) for name in names]


def _labelled(encoded: EncodedExample, source: EncodedExample) -> dict[str, tuple[int, ...]]:
    """Which positions of the prompt are called what; each has one name, and corresponds to one of the source."""
    known = {position for position, other in enumerate(corresponding(encoded, source)) if other >= 0}
    name_of = dict.fromkeys(range(len(encoded.prompt)), "rest")
    for name, positions in spans(encoded).items():
        name_of |= dict.fromkeys(positions, name)
    found: dict[str, tuple[int, ...]] = {}
    for name in ("BOS", "related", *encoded.distractors, "rest", "query", "last"):
        positions = tuple(position for position, its in name_of.items() if its == name and position in known)
        if positions:
            found[name] = positions
    return found
