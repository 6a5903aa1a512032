"""Who writes what a head reads, and who reads what it writes? In plain words."""

import pandas as pd

from interp.report.amounts import bounded, counted, listed
from interp.report.cards.frames import Shown
from interp.report.cards.words import READS, component

LEAST = 0.05
"""The smallest share of the answer that a sentence names."""
_MOST = 4


def path_sentences(card: Shown) -> list[str]:
    """The largest direct paths into the head and from it."""
    return [*_sentence(card.feeds, "into it"), *_sentence(card.readers, "from it")]


def _sentence(paths: pd.DataFrame, which: str) -> list[str]:
    known = paths.dropna(subset="normalised")
    if known.empty:
        return []
    large = known[known["normalised"].abs() >= LEAST]
    begin = f"Of {counted(len(known), 'direct path')} {which} ({int(known['n_units'].max())} units)"
    if large.empty:
        first = known.iloc[0]
        return [f"{begin}, none carries {LEAST} of the answer; the largest is {_end(first, which)} {_share(first)}."]
    parts = [f"{_end(row, which)} {_share(row)}" for _, row in large.head(_MOST).iterrows()]
    more = f", and {len(large) - _MOST} more" if len(large) > _MOST else ""
    return [f"{begin}, these carry at least {LEAST} of the answer: {listed(parts)}{more}."]


def _end(row: pd.Series, which: str) -> str:
    """The path's other end."""
    if which == "into it":
        return f"{component(row['sender'])} by {READS[row['reads']]}"
    if row["reads"] in READS:
        return f"{component(row['receiver'].rsplit('.', 1)[0])} by {READS[row['reads']]}"
    return component(row["receiver"])


def _share(row: pd.Series) -> str:
    return bounded(row["normalised"], row["normalised_low"], row["normalised_high"])
