"""What a head's card says in plain words: numbers with every claim, and no claim without them.

1. Across the tasks: the verdicts, and what each task loses without the head, as a share of what the whole model does.
2. Per task: the verdict's sentence; whether it rests on what replaces the head; at which word the task needs what the
   head writes; who writes what it reads, and who reads what it writes.
3. Further: effects by kind of ablation, halves, what is taken out where it reads, and what was not measured, and why.
"""

import re
from typing import Any

import numpy as np
import pandas as pd

from interp.report.card_tables import position, spoken, unit_of
from interp.report.heads_frames import FINDINGS, VERDICTS
from interp.report.heads_sentences import head_sentence, reason_of, unused_sentence
from interp.report.words import bounded, change, counted, estimate, listed, size

READS = {"q": "its queries", "k": "its keys", "v": "its values"}
PARTS = {
    "replacements": "ablation under every replacement",
    "agreement": "agreement of the replacements",
    "positions": "patching by word",
    "feeds": "direct paths into the head",
    "readers": "direct paths from the head",
    "feature": "what is taken out where it reads",
    "circuits": "circuits",
}
TAKEN_OUT = {
    "values at the related word": "putting the mean in place of its values at the related word",
    "feature": "erasing {feature} from what it writes",
    "random directions": "erasing as many random directions",
}
"""Of what is taken out of a head at one place; the feature has a name of its own."""
STATES = {"drop": "a drop", "rise": "a rise", "none": "an effect below the minimum", "undecided": "undecided"}
"""Of the effect under one replacement."""
LEAST = 0.05
"""The smallest share of the answer that a sentence names."""
_MOST = 4


def across_tasks(card: Any) -> list[str]:
    """What the head is to each task, and how much it copies; the card's tasks are named for readers."""
    return [_verdicts(card), *_shares(card), *_copying(card)]


def findings(card: Any) -> list[str]:
    """What was found on a card of one task, the verdict first."""
    return [_verdict(card), *_conclusions(card), *_by_word(card), *path_sentences(card)]


def further(card: Any) -> list[str]:
    """The numbers behind the findings of a card of one task, and what was not measured."""
    return [*_effects(card), *_halves(card), *_taken_out(card), *_missing(card)]


def baseline_note(card: Any) -> str:
    """What a baseline such as ``position 9`` is, of a card of one task; empty where no sentence names one."""
    found = re.search(r"position (\d+)", str(card.verdicts["baseline"].iloc[0]))
    if found is None or found[0] not in _verdict(card):
        return ""
    return (
        f"“{found[0]}” is a place in the prompt, counted from 0: the attention of a head that always looks there. The "
        "best such rule is chosen over all prompts of the task; those that are shorter have nothing there."
    )


def _verdicts(card: Any) -> str:
    tasks = card.verdicts.groupby("verdict", sort=False)["task"].agg(list)
    parts = [f"{VERDICTS[name].symbol} {name}: {listed(tasks[name])}" for name in VERDICTS if name in tasks]
    return f"Head {card.name}: {'; '.join(parts)}."


def _shares(card: Any) -> list[str]:
    known = card.shares.dropna(subset="share").sort_values("share", kind="stable")
    parts = [f"{row.task} {bounded(-row.share, -row.share_high, -row.share_low)}" for row in known.itertuples()]
    if not parts:
        return []
    least = card.shares["minimum"].iloc[0]
    return [
        f"What resampling it costs, as a share of what the whole model does (1 is all of it; it counts from {least:g} "
        f"on): {'; '.join(parts)}."
    ]


def _copying(card: Any) -> list[str]:
    if pd.isna(card.copying):
        return []
    return [
        f"Copying score of its weights: {card.copying:.2f} (1: makes likelier whatever it attends to; -1: less likely)."
    ]


def _verdict(card: Any) -> str:
    """The dossier's own sentence, or, where it has none for a head by itself, the verdict's meaning with the effect."""
    row, task = card.verdicts.iloc[0], card.tasks["task"].iloc[0]
    if row["verdict"] in FINDINGS:
        return head_sentence(row)
    if row["verdict"] == "encodes, unused":
        return unused_sentence(card.verdicts)[0]
    verdict, reason, unit = VERDICTS[row["verdict"]], reason_of(row), unit_of(card)
    mean, because = spoken(str(row["mean_replacement"])), f" ({reason})" if reason else ""
    needed = f"; about {row['n_to_decide']:.0f} units would decide" if np.isfinite(row["n_to_decide"]) else ""
    return (
        f"Verdict on {task}: “{verdict.name}”, {verdict.meaning}{because}. The effect of resampling it is "
        f"{estimate(row['effect'], row['effect_low'], row['effect_high'], unit)}, of its {mean} in its place "
        f"{estimate(row['mean_effect'], row['mean_effect_low'], row['mean_effect_high'], unit)}; an effect counts from "
        f"{size(row['min_effect'])} on{needed}."
    )


def _conclusions(card: Any) -> list[str]:
    """Whether all kinds of ablation conclude the same, and the head's place by its drop."""
    known = _ablated(card)
    if known.empty:
        return []
    by_state = known.groupby("state", sort=False)["replacement"].agg(lambda each: listed([spoken(one) for one in each]))
    if len(by_state) == 1:
        said = f"All {len(known)} kinds of ablation conclude the same: {STATES[by_state.index[0]]}."
    else:
        parts = "; ".join(f"{STATES[str(state)]} by {kinds}" for state, kinds in by_state.items())
        said = f"The kinds of ablation do not conclude the same: {parts}."
    first, last = int(known["rank"].min()), int(known["rank"].max())
    place = f"{first}" if first == last else f"{first} to {last}"
    return [f"{said} By its drop it is number {place} of {int(known['n_heads'].iloc[0])} heads."]


def _effects(card: Any) -> list[str]:
    """What each kind of ablation does, which are refused, and how alike they order all heads."""
    known, unit = _ablated(card), unit_of(card)
    if known.empty:
        return []
    effects = "; ".join(
        f"{spoken(row['replacement'])} {estimate(row['effect'], row['low'], row['high'], unit)}"
        for _, row in known.iterrows()
    )
    found = [f"Effects of ablation, all on the same {counted(int(known['n_units'].iloc[0]), 'unit')}: {effects}."]
    refused = card.replacements[card.replacements["effect"].isna()]
    found += [
        f"Ablation by {spoken(kind)} is refused: {reason}."
        for kind, reason in zip(refused["replacement"], refused["reason"], strict=True)
    ]
    return found + _alike(card.agreement)


def _ablated(card: Any) -> pd.DataFrame:
    """The kinds of ablation that were not refused."""
    found: pd.DataFrame = card.replacements[card.replacements["effect"].notna()]
    return found


def _alike(agreement: pd.DataFrame) -> list[str]:
    known = agreement.dropna(subset="kendall").sort_values("kendall", kind="stable")
    if known.empty:
        return []
    ends = [known.iloc[0]] if len(known) == 1 else [known.iloc[0], known.iloc[-1]]
    parts = [f"{row['kendall']:.2f} ({spoken(row['first'])} and {spoken(row['second'])})" for row in ends]
    return [f"How alike two kinds order all heads of the model, by Kendall's τ: {' to '.join(parts)}."]


def _halves(card: Any) -> list[str]:
    parts = []
    for evidence, rows in card.halves.groupby("evidence", sort=False):
        numbers = " and ".join(size(each) for each in rows["estimate"])
        passed = {0: "neither passes", 1: "one of them passes", 2: "both pass"}[int(rows["passes"].sum())]
        name = "attention above the baseline" if evidence == "attention" else "the effect of resampling"
        parts.append(f"{name} is {numbers} (it counts from {size(rows['minimum'].iloc[0])} on): {passed}")
    return [f"In two random halves of the clusters (the same data again), {'; '.join(parts)}."] if parts else []


def _taken_out(card: Any) -> list[str]:
    """What the task loses without what the head holds at one place."""
    if card.feature.empty:
        return []
    row, unit, n_units = card.verdicts.iloc[0], unit_of(card), sorted({int(each) for each in card.feature["n_units"]})
    named = card.feature["what"].map(TAKEN_OUT).str.replace("{feature}", str(row["feature"]))
    does = [change(each["effect"], each["low"], each["high"], unit) for _, each in card.feature.iterrows()]
    parts = [" ".join(each) for each in zip(named, does, strict=True)]
    units = counted(n_units[-1], "unit") if len(n_units) == 1 else f"{n_units[0]} to {n_units[-1]} units"
    return [f"Taken out where it reads, on {units}: {'; '.join(parts)}."]


def _by_word(card: Any) -> list[str]:
    if card.positions.empty:
        return []
    if card.positions["normalised"].isna().all():
        return ["The clean and the corrupted run are not shown to differ, so patching has nothing to bring back."]
    alone = card.positions[card.positions["position"] != "all"]
    best = alone.loc[alone["normalised"].abs().idxmax()]
    together = card.positions[card.positions["position"] == "all"].iloc[0]
    found = [
        f"Patched from the clean run into the corrupted one, what it writes at {position(best['position'])} brings "
        f"back {_path_share(best)} of the answer, at all words together {_path_share(together)}."
    ]
    idle = [position(each) for each in alone.loc[alone["n_changed"] == 0, "position"]]
    if idle:
        found.append(f"What it writes at {listed(idle)} is the same in both runs there, or cannot reach the answer.")
    return found


def path_sentences(card: Any) -> list[str]:
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
        return [
            f"{begin}, none carries {LEAST} of the answer; the largest is {_end(first, which)} {_path_share(first)}."
        ]
    parts = [f"{_end(row, which)} {_path_share(row)}" for _, row in large.head(_MOST).iterrows()]
    more = f", and {len(large) - _MOST} more" if len(large) > _MOST else ""
    return [f"{begin}, these carry at least {LEAST} of the answer: {listed(parts)}{more}."]


def _end(row: pd.Series, which: str) -> str:
    """The path's other end."""
    if which == "into it":
        return f"{_component(row['sender'])} by {READS[row['reads']]}"
    if row["reads"] in READS:
        return f"{_component(row['receiver'].rsplit('.', 1)[0])} by {READS[row['reads']]}"
    return _component(row["receiver"])


def _path_share(row: pd.Series) -> str:
    return bounded(row["normalised"], row["normalised_low"], row["normalised_high"])


def _component(name: str) -> str:
    """Who sends or receives: ``the embeddings``, ``MLP 2``, ``head 1.3``, ``the logits``."""
    if name in ("embed", "logits"):
        return {"embed": "the embeddings", "logits": "the logits"}[name]
    kind, _, rest = name.partition(".")
    return f"MLP {rest}" if kind == "mlp" else f"head {name}"


def _missing(card: Any) -> list[str]:
    reasons = card.left_out.groupby("reason", sort=False)["part"].agg(list)
    return [f"Not measured: {listed([PARTS[each] for each in parts])} ({reason})." for reason, parts in reasons.items()]
