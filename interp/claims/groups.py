"""Heads that stand in for each other: ablated together, because none is missed by itself.

A head whose ablation costs nothing may have others that do the same: the task then needs one of them, and none alone.
Candidates look at the related word, or carry its feature; an effect is no criterion. Those that are not missed by
themselves are ablated together. Heads are a **group that stands in for each other** if

1. ablating all of them is a drop, shown under both replacements as any effect is;
2. so is ablating each one of them, where the others are gone: its **share**.

A claim needs all four. It is shown *not* to hold of a head where any of the four is absent, or a rise; else it is
undecided. Heads that are shown to be no members leave, and the rest is measured again, as long as it has at least two
heads, one of them a shown member. So where a head has partners, the named set (``group``) is the set that was ablated;
for some in it, membership may be undecided. Each time is a test of its own: p is doubled at the first, and once more
at each that follows, so that sets given beforehand would share alpha (a half, a quarter, ...). These sets are chosen on
the same items, so that is no proof; how often a set is named falsely is measured (``interp/calibration``).

For one head this gives

- **partners**: the others of its group, of a head whose mean in its place costs less than the minimum. (Another
  example's answer in its place may well cost more: it contradicts the others.)
- **doubtful**: heads of which it is undecided whether they and this one stand in for each other.
- a **caveat** for a verdict that the head does nothing: the task needs it when the others and those that are missed by
  themselves are gone, too; or the task needs it or others, though no one of them; or it was not ablated with others
  that could do the work.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.claim import claims_of_tasks
from interp.claims.effects import against_base
from interp.claims.rules import Evidence

KINDS = ("together", "mean_together", "share", "mean_share", "backup", "mean_backup")
"""Effects by resample and by mean: of the whole set; of a head where the others of the set are gone; and of a head
where those that are missed by themselves are gone as well."""
GROUP_COLUMNS = (
    *("task", "heads", "missed", "head", "member"),
    *(f"{kind}{end}" for kind in KINDS for end in ("", "_low", "_high", "_p_adjusted", "_p_absent")),
    "minimum",
)
"""Of ``judged_groups``, in a report."""
PARTNER_COLUMNS = (
    *("partners", "group", "group_effect", "group_low", "group_high"),
    *("group_share", "group_share_low", "group_share_high", "group_p_adjusted"),
)
"""Of ``partners``, in a report."""
DOUBT = ("doubtful_effect", "doubtful_se", "doubtful_critical", "doubtful_n_units", "doubtful_n_clusters")
DOUBT_COLUMNS = ("member", "caveat", "doubtful", *DOUBT)
"""Of ``partners``, for the verdict only."""
_UNMISSED = ("none", "undecided")
ALONE = "it was not ablated together with others that could do the work"


def could(frame: pd.DataFrame) -> pd.Series:
    """Whether a head could do the task's work, row by row: it looks at the related word, or carries the feature."""
    return (frame["attention_state"] == "shown") | (frame["representation"] == "carried")


def candidates(frame: pd.DataFrame, most: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The heads of one task that could do its work and are not missed by themselves; and those that look and are.

    Of the former there are at `most` so many: heads that look at the related word before heads that carry the feature,
    the strongest first. Whether a head is missed is judged with the mean in its place, which contradicts no other head.
    """
    found = frame[could(frame)]
    looks = found["attention_state"] == "shown"
    order = found.assign(first=~looks, size=-found["excess"].where(looks, found["probe_excess"]))
    unmissed = order[order["mean_state"].isin(_UNMISSED)]
    best = unmissed.sort_values(["first", "size", "layer", "head"]).head(most)
    return _heads(best), _heads(found[looks & (found["mean_state"] == "drop")])


def _heads(rows: pd.DataFrame) -> list[tuple[int, int]]:
    return sorted((int(layer), int(head)) for layer, head in zip(rows["layer"], rows["head"], strict=True))


def judged_groups(
    found: Mapping[str, pd.DataFrame], *, min_effect: float, alpha: float, seed: int, step: int = 1
) -> pd.DataFrame:
    """Judge who is a member, of the sets of all tasks; `found` is what ``ablated_together`` measured, by task.

    Args:
        found: By task, what ``ablated_together`` measured; empty where there was no set.
        min_effect: As a share of the base run's metric.
        alpha: Chance of any false claim that a head is a member, over all heads, tasks and steps.
        seed: Of the resamples.
        step: How often sets have been measured, this time included.

    Returns:
        One row per task and head of a set; columns as in ``GROUP_COLUMNS``, and of every kind what ``Claims.frame``
        has. ``member`` is ``yes``, ``no`` or ``undecided``; ``minimum`` is in the metric's units.
    """
    there = {task: frame for task, frame in found.items() if not frame.empty}
    names = ["heads", "missed", "head"]
    rows = [each[names].drop_duplicates().assign(task=task) for task, each in there.items()]
    frame = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=[*names, "task"])
    for kind in KINDS:
        own = {task: each for task, each in there.items() if each[kind].notna().any()}
        whole = kind.endswith("together")  # the same of all heads of a set
        if whole:
            own = {task: each[each["head"] == each["head"].iloc[0]] for task, each in own.items()}
        tables = {task: against_base(each, kind, ["head"], min_effect) for task, each in own.items()}
        tests = claims_of_tasks(kind, tables, {"head": object}, alpha=alpha / 2**step, seed=seed)
        adjusted = [f"{kind}_p_adjusted", f"{kind}_p_absent"]
        tests[adjusted] = np.minimum(1.0, 2**step * tests[adjusted])
        frame = frame.merge(tests.drop(columns="head") if whole else tests, how="left")
    minimum = frame[[f"{kind}_minimum" for kind in KINDS]].bfill(axis=1).iloc[:, 0]
    return frame.assign(member=[_member(row, alpha) for row in frame.to_dict("records")], minimum=minimum)


def _state(row: Mapping[str, Any], kind: str, alpha: float) -> str:
    return Evidence.of(row, kind).exchange(alpha)


def _member(row: Mapping[str, Any], alpha: float) -> str:
    """By the states of all together and of the share, each under both replacements."""
    states = {_state(row, kind, alpha) for kind in KINDS[:4]}
    if states == {"drop"}:
        return "yes"
    return "no" if {"none", "rise", "not testable"} & states else "undecided"


def remaining(groups: pd.DataFrame, task: str) -> list[tuple[int, int]] | None:
    """The heads of a task's set that are to be measured again, without those that left; None where nobody did."""
    own = groups[groups["task"] == task]
    stay = own[own["member"] != "no"]
    if len(stay) in (0, 1, len(own)) or not (stay["member"] == "yes").any():
        return None
    return [(int(layer), int(head)) for layer, head in stay["head"].str.split(".")]


def partners(frame: pd.DataFrame, groups: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Who stands in for each head, what it costs to ablate them all, and what it is worth when the others are gone.

    `groups` is as of ``judged_groups``, with the set that every head was in last.

    Returns:
        Row by row the columns of ``PARTNER_COLUMNS`` and ``DOUBT_COLUMNS``: ``partners``, separated by spaces, and
        ``group``, the set that was ablated, such as ``1.1+2.2`` (empty where there is none); the effect of the set's
        means in their places, the head's share, with intervals, and the largest p of what that rests on. Then
        ``member``, as of ``judged_groups`` (empty where it was not ablated together with others); ``caveat``, a clause;
        ``doubtful``, as ``partners``; and the effect that is undecided, with its standard error, how many of these its
        test asks for, and on how many units and clusters it was measured.
    """
    rows = {(row["task"], row["head"]): row for row in groups.to_dict("records")}
    members = {task: list(own.loc[own["member"] == "yes", "head"]) for task, own in groups.groupby("task")}
    able = could(frame) & frame["mean_state"].isin(_UNMISSED)
    as_others = able & (able.groupby(frame["task"]).transform("sum") > 1)
    found = []
    for each, is_one_of_several in zip(frame.to_dict("records"), as_others, strict=True):
        task, name = each["task"], f"{each['layer']}.{each['head']}"
        row = rows.get((task, name))
        said: dict[str, Any] = {"caveat": ALONE} if row is None and is_one_of_several else {}
        member = "" if row is None else row["member"]
        if row is not None and each["mean_state"] == "none":
            others = [other for other in members[task] if other != name]
            if member == "yes" and others:
                said = _group(row, others)
            elif member == "undecided":
                said = _doubt(row, alpha)
            else:
                said = {"caveat": _caveat(row, len(members[task]) > 1, alpha)}
        found.append({"member": member, **said})
    texts = dict.fromkeys(("partners", "group", "caveat", "doubtful"), "")
    return pd.DataFrame(
        [{**texts, **each} for each in found], columns=[*PARTNER_COLUMNS, *DOUBT_COLUMNS], index=frame.index
    )


def _group(row: Mapping[str, Any], others: Sequence[str]) -> dict[str, Any]:
    effect, share = ([row[f"{kind}{end}"] for end in ("", "_low", "_high")] for kind in ("mean_together", "mean_share"))
    largest = max(row[f"{kind}_p_adjusted"] for kind in KINDS[:4])
    return dict(zip(PARTNER_COLUMNS, (" ".join(others), row["heads"], *effect, *share, largest), strict=True))


def _others(row: Mapping[str, Any]) -> list[str]:
    return [each for each in str(row["heads"]).split("+") if each != row["head"]]


def _doubt(row: Mapping[str, Any], alpha: float) -> dict[str, Any]:
    """The undecided kind of evidence of a head that may be a member; a share comes before the whole set."""
    kind = next(each for each in KINDS[3::-1] if _state(row, each, alpha) == "undecided")
    about = (kind, *(f"{kind}_{name}" for name in ("standard_error", "critical", "n_units", "n_clusters")))
    return {
        "doubtful": " ".join(_others(row)),
        **{name: row[column] for name, column in zip(DOUBT, about, strict=True)},
    }


def _caveat(row: Mapping[str, Any], explained: bool, alpha: float) -> str:
    """What ablating heads together adds for a head that is no member; `explained` if others are a group."""
    states = {kind: _state(row, kind, alpha) for kind in KINDS}
    if states["backup"] == states["mean_backup"] == "drop" and row["member"] != "yes":
        gone = [*str(row["missed"]).split("+"), *_others(row)]
        return f"the task needs it where {' and '.join(gone)} {'is' if len(gone) == 1 else 'are'} ablated"
    if states["together"] == states["mean_together"] == "drop" and not explained:
        return f"the task needs it or {' or '.join(_others(row))}: ablated together, they cost it"
    return ""
