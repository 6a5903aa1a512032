"""Who stands in for a head? What pairs of heads, ablated together, say of each of the two.

- **partners**: they stand in for each other, and neither is missed alone: its effect is shown to be none.
- A head may also stand in for one that is missed alone; then it is no partner, but a verdict that the head does
  nothing says so. It says as well where the head was not ablated with others that could do the task's work.
- **doubtful**: heads of which it is undecided whether they stand in for it.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import norm

from interp.methods.components import Head, head_name
from interp.methods.redundancy import PAIR
from interp.methods.standing_in import could

PARTNER_COLUMNS = ("partners", "pair_effect", "pair_low", "pair_high")
"""Of ``partners``, in a report."""
DOUBT_COLUMNS = ("caveat", "doubtful", "doubtful_interaction", "doubtful_se")
"""Of ``partners``, for the verdict only."""
UNPAIRED = "it was not ablated together with others that could do the work"


def partners(frame: pd.DataFrame, pairs: pd.DataFrame, taken: Mapping[str, Sequence[Head]]) -> pd.DataFrame:
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
    named = frame.assign(name=[head_name((int(row.layer), int(row.head))) for row in frame.itertuples()])
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


def _unpaired(frame: pd.DataFrame, taken: Mapping[str, Sequence[Head]]) -> pd.Series:
    """Who could do the work, and was not ablated with others that could."""
    there = {(task, head_name(head)) for task, heads in taken.items() if len(heads) > 1 for head in heads}
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
    return float(row["interaction"]), float((row["interaction_high"] - row["interaction_low"]) / (2 * norm.ppf(0.975)))
