"""Which units give replacement values and baselines? Never those that are scored with them.

1. Reference pairs from a separate split serve all units; one whose rows a scored unit has too is left out.
2. Without any, the units serve each other in two halves, each cluster in one of them.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from interp.errors import TaskError
from interp.tasks.digest import digest
from interp.tasks.task import Metric, Unit


def unscored(name: str, metric: Metric, references: Sequence[Unit], units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The references without those that share a row of the model's input with a scored unit.

    Args:
        name: Of the task, for the message.
        metric: Of the task: what is run are prompts for a logit difference, whole sentences otherwise.
        references: What values and baselines are to come from.
        units: What is scored.

    Raises:
        TaskError: None is left.
    """
    scored = {row for unit in units for row in _rows(unit, metric)}
    left = tuple(unit for unit in references if scored.isdisjoint(_rows(unit, metric)))
    if not left:
        raise TaskError(
            f"{name}: every one of the {len(references)} reference pairs has a prompt or sentence that is scored; "
            "give others, or leave `references` out and the pairs serve each other in two halves"
        )
    return left


def _rows(unit: Unit, metric: Metric) -> set[tuple[int, ...]]:
    return {each.prompt + end for each in unit.examples for end in each.continuations(metric)}


def halves(units: Sequence[Unit]) -> tuple[list[Unit], tuple[tuple[Unit, ...], ...]]:
    """Split the units in two, as evenly as their clusters allow; each half serves the other one.

    A cluster (a lexical draw) stands on one side only, so that no unit is measured against its own words; a single
    cluster is split all the same. The largest are dealt out first, equal ones in the order of their hashes.
    """
    groups = [unit.cluster for unit in units]
    if len(set(groups)) == 1:
        groups = [digest([[unit]]) for unit in units]
    half = deal(Counter(groups))
    folded = [replace(unit, fold=half[group]) for unit, group in zip(units, groups, strict=True)]
    return folded, tuple(tuple(unit for unit in folded if unit.fold == 1 - served) for served in (0, 1))


def deal(sizes: Mapping[str, int]) -> dict[str, int]:
    """Which half, 0 or 1, each name goes to: the largest first, each to the smaller half; equal ones by hash."""
    half: dict[str, int] = {}
    totals = [0, 0]
    for name in sorted(sizes, key=lambda each: (-sizes[each], hashlib.sha256(each.encode()).hexdigest())):
        half[name] = int(totals[1] < totals[0])
        totals[half[name]] += sizes[name]
    return half
