"""Places, positions and activations of a feature that is to be erased, and steering.

A *place* is a part of a site that an eraser maps, one vector at each position: one head's, or all of it. A *reading* is
the activation at one position of one prompt, of the reference sets or of the scored units; its label is the example's
value of the feature.

Steering adds the difference of the classes' means, ``x + strength * (mean of the other class - mean of its own)``: of
two classes the other; of more, the class of the unit's other example. Turner et al. (2023), "Activation addition";
Marks & Tegmark (2023), "The geometry of truth".
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.arguments import numbers_below
from interp.errors import InputError, suggest
from interp.interventions.engine.plan import activations_of
from interp.interventions.intervention import Cell, Intervention, Positions
from interp.interventions.reference_set import reference_rows
from interp.interventions.replacement import Add, Replacement
from interp.interventions.rows import Batch, Row, task_rows
from interp.methods.ablation import Head, Part, choose_components
from interp.model.devices import sent
from interp.model.sites import Site, require_sites
from interp.model.weights import hash_of_tensors
from interp.options import ErasedAt
from interp.tasks.task import EncodedExample, Task, Unit

SITES = ("z", "resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
"""Where erasers are fitted: what heads hold, the stream, and what layers write to it."""


def labels_of(place: Part) -> dict[str, Hashable]:
    """What the cell of a place is called: ``layer`` and, where it is of one head, ``head``."""
    labels: dict[str, Hashable] = {"layer": place.site.layer}
    return labels if place.heads is None else {**labels, "head": place.heads[0]}


def cell_of(method: str, place: Part, replacement: Replacement, positions: Positions) -> Cell:
    """The cell in which `replacement` changes the vectors of a place."""
    change = Intervention(place.site, replacement, heads=place.heads, positions=positions)
    return Cell({"method": method, **labels_of(place)}, (change,))


def choose_places(
    model: Any, site: str, heads: Sequence[Head] | None = None, layers: Sequence[int] | None = None
) -> list[Part]:
    """The places that are meant, in the model's order."""
    if site not in SITES:
        raise InputError(f"erase: no eraser is fitted at site {site!r}; {suggest(str(site), SITES)}")
    if site == "z":
        return [part for each in choose_components(model, heads=heads, layers=layers) for part in each.parts]
    if heads is not None:
        raise InputError(f"heads: site {site!r} has none, got {heads!r}; leave them out, or give site='z'")
    n = model.cfg.n_layers
    chosen = range(n) if layers is None else sorted(numbers_below(n, "layers", layers))
    sites = [Site(site, layer) for layer in chosen]
    require_sites(model, sites, SITES)
    return [Part(each) for each in sites]


def positions_at(at: ErasedAt, encoded: EncodedExample) -> tuple[int, ...]:
    """The positions of a prompt that are meant; none where it has no related word."""
    if at == "all":
        return tuple(range(len(encoded.prompt)))
    if at == "related":
        return tuple(each for each in encoded.related if each < len(encoded.prompt))
    return (encoded.looking,)


def task_positions(at: ErasedAt, task: Task) -> dict[int, tuple[int, ...]]:
    """The positions of every example of a task, by its number."""
    if at not in get_args(ErasedAt):
        raise InputError(f"at: no kind of position is called {at!r}; {suggest(str(at), get_args(ErasedAt))}")
    found = {number: positions_at(at, each) for number, each in enumerate(task.examples)}
    if not any(found.values()):
        raise InputError(
            f"at={at!r}: none of the {len(found)} prompts of task {task.name!r} holds a tagged related word; "
            "use at='query' or at='all'"
        )
    return found


@dataclass(frozen=True)
class Readings:
    """Activations by site, in the model's dtype, on the CPU; and of every reading its class, example and so on.

    A reading's fold is the reference set that it is in, or that serves it; its cluster is its lexical draw.
    """

    activations: Mapping[Site, Float[Tensor, "reading ..."]]
    labels: np.ndarray
    example: Int[np.ndarray, " reading"]
    fold: Int[np.ndarray, " reading"]
    cluster: np.ndarray

    @property
    def folds(self) -> list[int]:
        """All folds."""
        return sorted(set(self.fold.tolist()))

    def of(self, fold: int) -> Bool[np.ndarray, " reading"]:
        """Which readings are of a fold."""
        return self.fold == fold

    def at(self, place: Part) -> Float[Tensor, "reading d"]:
        """The vectors at a place, as the model computed them."""
        found = self.activations[place.site]
        return found if place.heads is None else found[:, place.heads[0]]


def reference_readings(
    model: Any, task: Task, feature: str, at: ErasedAt, sites: Sequence[Site], memory_budget: int | None = None
) -> Readings:
    """Readings of the reference sets: of the examples that have the feature and the position."""
    rows = reference_rows(task)
    known = sorted({name for row in rows for name in row.encoded.example.features})
    if feature not in known:
        listed = f"these have {', '.join(map(repr, known))}" if known else "these have none; give them features"
        near = f"; {suggest(str(feature), known)}" if known else ""
        raise InputError(f"feature {feature!r}: no reference example of task {task.name!r} has it; {listed}{near}")
    chosen = [row for row in rows if feature in row.encoded.example.features and positions_at(at, row.encoded)]
    for fold in sorted({row.fold for row in rows}):
        _require_classes([row for row in chosen if row.fold == fold], feature, task.name)
    units = [unit for fold in sorted({row.fold for row in rows}) for unit in task.references[fold]]
    return _read(model, chosen, units, feature, at, sites, memory_budget)


def scored_readings(
    model: Any, task: Task, feature: str, at: ErasedAt, sites: Sequence[Site], memory_budget: int | None = None
) -> Readings | None:
    """Readings of the scored units, as far as they have the feature and the position; None where none has."""
    rows = task_rows(task.metric, task.units)
    chosen = [row for row in rows if feature in row.encoded.example.features and positions_at(at, row.encoded)]
    return _read(model, chosen, task.units, feature, at, sites, memory_budget) if chosen else None


def _require_classes(rows: Sequence[Row], feature: str, task: str) -> None:
    counts = Counter(row.encoded.example.features[feature] for row in rows)
    if len(counts) < 2:
        raise InputError(
            f"feature {feature!r}: expected at least two values among the reference examples of task {task!r}, got "
            f"{', '.join(map(repr, counts)) or 'none'} in {len(rows)} of them; there is nothing to tell apart"
        )
    value, fewest = min(counts.items(), key=lambda each: each[1])
    if fewest < 2:
        raise InputError(
            f"feature {feature!r}: {value!r} has a single reference example in task {task!r}, expected at least two of "
            "each value; give the task more references, or leave out examples with rare values"
        )


def _read(
    model: Any,
    rows: Sequence[Row],
    units: Iterable[Unit],
    feature: str,
    at: ErasedAt,
    sites: Sequence[Site],
    memory_budget: int | None,
) -> Readings:
    """Readings of rows, each of one of the examples of the units."""
    clusters = np.array([unit.cluster for unit in units for _ in unit.examples])
    parts: dict[Site, list[Tensor]] = {site: [] for site in sites}
    read: list[Row] = []
    for batch, by_site in activations_of(model, rows, sites, memory_budget):
        places = [(number, position) for number, row in enumerate(batch.rows) for position in positions_at(at, row.run)]
        number, position = sent(np.array(places), batch.tokens.device).T
        here = [batch.rows[each] for each, _ in places]
        for site, activation in by_site.items():
            found = activation[number, position].cpu()
            _require_finite(site, found, here)
            parts[site].append(found)
        read += here
    labels = np.array([row.encoded.example.features[feature] for row in read])
    example, fold = np.array([(row.example, row.fold) for row in read]).T
    return Readings({site: torch.cat(each) for site, each in parts.items()}, labels, example, fold, clusters[example])


def _require_finite(site: Site, activations: Float[Tensor, "reading ..."], rows: Sequence[Row]) -> None:
    failed = ~activations.isfinite().flatten(1).all(1)
    if bool(failed.any()):
        first = rows[int(failed.nonzero()[0])]
        raise InputError(
            f"{site.hook_name}: the activation is NaN or infinite on {first.run.example.prompt!r}, so that nothing can "
            "be read or erased there; check the weights, or use float32"
        )


Turn = tuple[str, str]
"""The class that an example has, and the one that it is to have."""


def turns(task: Task, feature: str, classes: list[str]) -> list[Turn]:
    """From which class to which every example of a task is steered."""
    found = []
    for unit in task.units:
        values = [each.example.features.get(feature) for each in unit.examples]
        for own, other, each in zip(values, values[::-1], unit.examples, strict=True):
            text = f"steer: {each.example.prompt!r} of task {task.name!r}"
            if own not in classes:
                raise InputError(
                    f"{text} has the {feature} {own!r}, expected one of {', '.join(map(repr, classes))}, whose means "
                    "are known; leave steer, or such examples, out"
                )
            target = next(name for name in classes if name != own) if len(classes) == 2 else other
            if target not in classes or target == own:
                raise InputError(
                    f"{text} has the {feature} {own!r}; of {len(classes)} values, its counterfactual has to say to "
                    f"which other it is steered, got {'none' if unit.counterfactual is None else repr(target)}; leave "
                    "steer out"
                )
            found.append((own, target))
    return found


def steered(tasks: Sequence[Task], feature: str, references: Readings, strength: float) -> list[Add]:
    """For every task, what moves its examples from class to class."""
    means, by_fold = {}, []
    for fold in references.folds:
        by_fold.append(set(references.labels[references.of(fold)].tolist()))
        for label in by_fold[-1]:
            mine = torch.from_numpy(references.of(fold) & (references.labels == label))
            for site, activations in references.activations.items():
                means[fold, site, label] = activations[mine].double().mean(0).to(activations.dtype)
    classes = sorted(set.intersection(*by_fold))
    named = {f"{fold} {site.hook_name} {label}": each for (fold, site, label), each in means.items()}
    told, found = hash_of_tensors(named), []
    for task in tasks:
        turned = turns(task, feature, classes)
        moved = partial(_moved, means, turned, strength)
        found.append(Add(moved, identity=f"steer {told} {turned} by {strength}"))
    return found


def _moved(
    means: Mapping[tuple[int, Site, str], Float[Tensor, "..."]],
    turned: Sequence[Turn],
    strength: float,
    site: Site,
    batch: Batch,
) -> Float[Tensor, "batch 1 ..."]:
    """What steers the rows of a batch: differences of the classes' means (by fold, site and class)."""
    pairs = [(row.fold, *turned[row.example]) for row in batch.rows]
    moved = [means[fold, site, to] - means[fold, site, own] for fold, own, to in pairs]
    return strength * torch.stack(moved)[:, None].to(batch.tokens.device)
