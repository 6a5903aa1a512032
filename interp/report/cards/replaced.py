"""Does a head's verdict rest on what is put in its place? In plain words."""

import pandas as pd

from interp.report.amounts import counted, estimate, listed
from interp.report.cards.frames import Shown
from interp.report.cards.words import STATES, kind
from interp.report.metrics import UNITS


def replacement_sentences(card: Shown) -> list[str]:
    """What each kind of ablation does, whether they conclude the same, and how alike they order all heads."""
    measured = card.replacements[card.replacements["effect"].notna()]
    if measured.empty:
        return []
    unit = UNITS.get(card.verdicts["metric"].iloc[0], card.verdicts["metric"].iloc[0])
    effects = "; ".join(f"{kind(row['kind'])} {_effect(row, unit)}" for _, row in measured.iterrows())
    units = counted(int(measured["n_units"].iloc[0]), "unit")
    found = [f"{_conclusions(measured)} Effects, all on the same {units}: {effects}. {_ranks(measured)}"]
    found += [
        f"Ablation by {kind(row['kind'])} is refused: {row['reason']}."
        for _, row in card.replacements[card.replacements["effect"].isna()].iterrows()
    ]
    return found + _alike(card.agreement)


def _effect(row: pd.Series, unit: str) -> str:
    return estimate(row["effect"], row["low"], row["high"], unit)


def _conclusions(measured: pd.DataFrame) -> str:
    by_state = measured.groupby("state", sort=False)["kind"].agg(lambda each: listed([kind(one) for one in each]))
    if len(by_state) == 1:
        return f"All {len(measured)} kinds of ablation conclude the same: {STATES[by_state.index[0]]}."
    parts = "; ".join(f"{STATES[str(state)]} by {kinds}" for state, kinds in by_state.items())
    return f"The kinds of ablation do not conclude the same: {parts}."


def _ranks(measured: pd.DataFrame) -> str:
    first, last = int(measured["rank"].min()), int(measured["rank"].max())
    place = f"{first}" if first == last else f"{first} to {last}"
    return f"By its drop it is number {place} of {int(measured['n_heads'].iloc[0])} heads."


def _alike(agreement: pd.DataFrame) -> list[str]:
    known = agreement.dropna(subset="kendall").sort_values("kendall", kind="stable")
    if known.empty:
        return []
    ends = [known.iloc[0]] if len(known) == 1 else [known.iloc[0], known.iloc[-1]]
    parts = [f"{row['kendall']:.2f} ({kind(row['first'])} and {kind(row['second'])})" for row in ends]
    return [f"How alike two kinds order all heads of the model, by Kendall's τ: {' to '.join(parts)}."]
