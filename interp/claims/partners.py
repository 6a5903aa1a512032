"""Who stands in for a head? What pairs of heads, ablated together, say of each of the two.

A head whose ablation costs nothing may have another one that does the same: the task then needs either, and neither
alone. Two heads **stand in for each other** if

1. ablating both is a drop, shown as any effect is;
2. so is what it costs beyond the two one by one, the interaction.

A claim needs both. They are shown **not** to where either is absent, or a rise; else that is undecided. Which pairs are
tested is chosen by attention and probes, never by an effect. What that says of one head:

- **partners**: they stand in for each other, and neither is missed alone: its effect is shown to be none.
- A head may also stand in for one that is missed alone; then it is no partner, but a verdict that the head does
  nothing says so. It says as well where the head was not ablated with others that could do the task's work.
- **doubtful**: heads of which it is undecided whether they stand in for it.

McGrath et al. (2023), "The Hydra effect"; Wang et al. (2023), "Interpretability in the wild" (backup heads).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from interp.claims.claim import claim
from interp.claims.effects import against_base

PAIR = ("first", "second")
PAIR_COLUMNS = (
    *("task", *PAIR, "effect", "effect_low", "effect_high", "interaction", "interaction_low", "interaction_high"),
    *("p_adjusted", "minimum", "stand_in"),
)
"""Of ``standing_in``."""
PARTNER_COLUMNS = ("partners", "pair_effect", "pair_low", "pair_high")
"""Of ``partners``, in a report."""
DOUBT_COLUMNS = ("caveat", "doubtful", "doubtful_interaction", "doubtful_se")
"""Of ``partners``, for the verdict only."""
UNPAIRED = "it was not ablated together with others that could do the work"


def could(frame: pd.DataFrame) -> pd.Series:
    """Row by row, whether a head could do the task's work: it looks at the related word, or carries the feature."""
    return (frame["attention_state"] == "shown") | (frame["representation"] == "carried")


def candidates(frame: pd.DataFrame, most: int) -> list[tuple[int, int]]:
    """The heads of one task that could do its work: what looks at the related word, then what carries the feature.

    Of either kind, those that do it most come first.

    Args:
        frame: One task's rows, with ``attention_state``, ``effect_state`` and ``representation``.
        most: How many at most.
    """
    found = frame[could(frame)]
    looks = found["attention_state"] == "shown"
    order = found.assign(first=~looks, size=-found["excess"].where(looks, found["probe_excess"]))
    best = order.sort_values(["first", "size", "layer", "head"]).head(most)
    return sorted((int(layer), int(head)) for layer, head in zip(best["layer"], best["head"], strict=True))


def standing_in(found: Mapping[str, pd.DataFrame], *, minimum_effect: float, alpha: float, seed: int) -> pd.DataFrame:
    """Which pairs stand in for each other, of all tasks.

    Args:
        found: By task, the effects and interactions of its pairs, one row per pair and example
            (``PairwiseResult.frame``); empty where there are none.
        minimum_effect: As a share of the base run's metric.
        alpha: Chance of any false claim that two heads stand in for each other, over all pairs and tasks.
        seed: Of the resamples.

    Returns:
        One row per task and pair; columns as in ``PAIR_COLUMNS``: what ablating both does, and what of it is more than
        the two one by one, with their intervals; ``p_adjusted``, the larger of the two; the minimum in the metric's
        units; and ``stand_in``: ``yes``, ``no`` or ``undecided``. Then what ``partners`` needs to say how many units
        would decide.
    """
    there = {task: frame for task, frame in found.items() if not frame.empty}
    if not there:
        return pd.DataFrame(columns=[*PAIR_COLUMNS, "interaction_standard_error"])
    parts = []
    tested = {
        column: claim(
            [against_base(frame, column, PAIR, minimum_effect) for frame in there.values()], alpha=alpha, seed=seed
        )
        for column in ("effect", "interaction")
    }
    for task, both, more in zip(there, tested["effect"], tested["interaction"], strict=True):
        states = list(zip(both.states(alpha), more.states(alpha), strict=True))
        rows = both.frame("effect").join(more.frame("interaction"))
        parts.append(
            rows.assign(
                task=task,
                p_adjusted=np.maximum(both.p_adjusted, more.p_adjusted),
                minimum=both.minimum,
                stand_in=[_stand_in(each) for each in states],
            ).reset_index()
        )
    return pd.concat(parts, ignore_index=True)[[*PAIR_COLUMNS, "interaction_standard_error"]]


def _stand_in(states: tuple[str, str]) -> str:
    """Of the states of the two together, and of the interaction."""
    if states == ("drop", "drop"):
        return "yes"
    return "no" if {"none", "rise"} & set(states) else "undecided"


def partners(frame: pd.DataFrame, pairs: pd.DataFrame, taken: Mapping[str, Sequence[tuple[int, int]]]) -> pd.DataFrame:
    """Who stands in for each head, and what it costs to ablate both.

    Args:
        frame: One row per layer, head and task, with the states of the evidence.
        pairs: As of ``standing_in``.
        taken: By task, the heads whose pairs were ablated.

    Returns:
        Row by row ``partners``, separated by spaces, the one whose interaction with this head is largest first (empty
        where there is none); and of the first of them ``pair_effect``, with its interval ``pair_low``, ``pair_high``.
        Then ``caveat``, a clause; ``doubtful``, as ``partners``; and of the first of them the interaction and its
        standard error.
    """
    named = frame.assign(name=[f"{row.layer}.{row.head}" for row in frame.itertuples()])
    missed = {(row.task, row.name) for row in named[named["effect_state"] != "none"].itertuples(index=False)}
    unpaired = _unpaired(named, taken)
    by_head = _by_head(pairs)
    rows = []
    for task, name, alone in zip(named["task"], named["name"], unpaired, strict=True):
        own = by_head.get((task, name), pairs.head(0))
        both = own[own["stand_in"] == "yes"]
        needed = np.array([(task, other) in missed for other in both["second"]], dtype=bool)
        doubts = own[own["stand_in"] == "undecided"]
        caveat = UNPAIRED if alone else _behind(list(both.loc[needed, "second"]))
        rows.append((*_first(both[~needed]), caveat, " ".join(doubts["second"]), *_doubt(doubts)))
    return pd.DataFrame(rows, columns=[*PARTNER_COLUMNS, *DOUBT_COLUMNS], index=frame.index)


def _unpaired(frame: pd.DataFrame, taken: Mapping[str, Sequence[tuple[int, int]]]) -> pd.Series:
    """Who could do the work, and was not ablated with others that could."""
    there = {(task, f"{layer}.{head}") for task, heads in taken.items() if len(heads) > 1 for layer, head in heads}
    able = could(frame)
    crowd = frame[able].groupby("task").size()
    cells = zip(frame["task"], frame["name"], strict=True)
    left_out = [crowd.get(task, 0) > 1 and (task, name) not in there for task, name in cells]
    return able & pd.Series(left_out, index=frame.index, dtype=bool)


def _by_head(pairs: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Every pair under either head, which is then ``first``; the largest interactions first."""
    turned = pairs.rename(columns=dict(zip(PAIR, PAIR[::-1], strict=True)))
    both = pd.concat([pairs, turned], ignore_index=True).sort_values(["interaction", "second"], kind="stable")
    return {(str(task), str(name)): own for (task, name), own in both.groupby(["task", "first"], sort=False)}


def _first(both: pd.DataFrame) -> tuple[str, float, float, float]:
    if both.empty:
        return "", np.nan, np.nan, np.nan
    costs = both[["effect", "effect_low", "effect_high"]].iloc[0]
    return " ".join(both["second"]), float(costs.iloc[0]), float(costs.iloc[1]), float(costs.iloc[2])


def _behind(needed: Sequence[str]) -> str:
    if not needed:
        return ""
    return f"it stands in for {', '.join(needed)} when that is ablated"


def _doubt(doubts: pd.DataFrame) -> tuple[float, float]:
    """Interaction and standard error of the widest."""
    if doubts.empty:
        return np.nan, np.nan
    row = doubts.iloc[0]
    return float(row["interaction"]), float(row["interaction_standard_error"])
