"""Who writes what a head reads, and who reads what it writes? In plain words.

Does a head's verdict rest on what is put in its place? In plain words.

What is this head, in plain words? Numbers with every claim, and no claim without them.

1. Across the tasks: what each loses without the head, as a share of what the whole model does.
2. Per task: the verdict's sentence; whether it rests on what replaces the head, or on half of the items; what the task
   loses without its values at the related word, or the feature; at which word it needs what the head writes; who writes
   what it reads, and who reads what it writes; what its weights say.
3. What was not measured, and why.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from interp.report.card_frames import (
    PARTS,
    READS,
    STATES,
    TAKEN_OUT,
    CardFrames,
    Shown,
    as_dossier,
    component,
    kind,
    position,
    quoted,
    shown,
)
from interp.report.heads_frames import VERDICTS
from interp.report.heads_sentences import reason_of, summarise
from interp.report.words import UNITS, bounded, change, counted, estimate, listed, size

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
        return [
            f"{begin}, none carries {LEAST} of the answer; the largest is {_end(first, which)} {_path_share(first)}."
        ]
    parts = [f"{_end(row, which)} {_path_share(row)}" for _, row in large.head(_MOST).iterrows()]
    more = f", and {len(large) - _MOST} more" if len(large) > _MOST else ""
    return [f"{begin}, these carry at least {LEAST} of the answer: {listed(parts)}{more}."]


def _end(row: pd.Series, which: str) -> str:
    """The path's other end."""
    if which == "into it":
        return f"{component(row['sender'])} by {READS[row['reads']]}"
    if row["reads"] in READS:
        return f"{component(row['receiver'].rsplit('.', 1)[0])} by {READS[row['reads']]}"
    return component(row["receiver"])


def _path_share(row: pd.Series) -> str:
    return bounded(row["normalised"], row["normalised_low"], row["normalised_high"])


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


_SHOWN_WORDS = 2


@dataclass(frozen=True)
class TaskWords:
    """What a card says of one task.

    Attributes:
        task: Its name, for readers.
        verdict: What the head does there.
        further: What else was measured, in reading order.
        weights: What its circuits say.
        left_out: What was not measured, and why.
    """

    task: str
    verdict: str
    further: tuple[str, ...]
    weights: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, in reading order."""
        return (self.verdict, *self.further, *self.weights, *self.left_out)


def across_tasks(card: CardFrames) -> tuple[str, ...]:
    """What the head is to each task, and how much it copies."""
    found = shown(card)
    return (_verdicts(found), *_shares(found), *_copying(found))


def by_task(card: CardFrames) -> tuple[TaskWords, ...]:
    """Put into sentences what was measured of each task, in the order of ``card.tasks``."""
    found = shown(card)
    return tuple(_task_words(found.of(task)) for task in found.measured)


def _verdicts(card: Shown) -> str:
    tasks = card.verdicts.groupby("verdict", sort=False)["task"].agg(list)
    parts = [f"{VERDICTS[name].symbol} {name}: {listed(tasks[name])}" for name in VERDICTS if name in tasks]
    return f"Head {card.name}: {'; '.join(parts)}."


def _shares(card: Shown) -> list[str]:
    known = card.shares.dropna(subset="share").sort_values("share", kind="stable")
    parts = [f"{row.task} {bounded(-row.share, -row.share_high, -row.share_low)}" for row in known.itertuples()]
    if not parts:
        return []
    least = card.shares["minimum"].iloc[0]
    return [
        f"What resampling it costs, as a share of what the whole model does (1 is all of it; it counts from {least:g} "
        f"on): {'; '.join(parts)}."
    ]


def _copying(card: Shown) -> list[str]:
    if pd.isna(card.copying):
        return []
    return [
        f"Copying score of its weights: {card.copying:.2f} (1: makes likelier whatever it attends to; -1: less likely)."
    ]


def _task_words(card: Shown) -> TaskWords:
    return TaskWords(
        task=str(card.tasks["task"].iloc[0]),
        verdict=_verdict(card),
        further=(
            *replacement_sentences(card),
            *_halves(card),
            *_taken_out(card),
            *_by_word(card),
            *path_sentences(card),
        ),
        weights=tuple(_circuits(card)),
        left_out=tuple(_missing(card)),
    )


def _verdict(card: Shown) -> str:
    """The dossier's own sentence, or, where it has none for a head by itself, the verdict's meaning with the effect."""
    (summary,) = summarise(as_dossier(card))
    if summary.findings:
        return " ".join(summary.findings)
    row = card.verdicts.iloc[0]
    verdict, reason = VERDICTS[row["verdict"]], reason_of(row)
    unit = UNITS.get(row["metric"], row["metric"])
    mean, because = str(row["mean_replacement"]).replace("_", " "), f" ({reason})" if reason else ""
    needed = f"; about {row['n_to_decide']:.0f} units would decide" if np.isfinite(row["n_to_decide"]) else ""
    return (
        f"Verdict “{verdict.name}”: {verdict.meaning}{because}. The effect of resampling it is "
        f"{estimate(row['effect'], row['effect_low'], row['effect_high'], unit)}, of its {mean} in its place "
        f"{estimate(row['mean_effect'], row['mean_effect_low'], row['mean_effect_high'], unit)}; an effect counts from "
        f"{size(row['min_effect'])} on{needed}."
    )


def _halves(card: Shown) -> list[str]:
    parts = []
    for evidence, rows in card.halves.groupby("evidence", sort=False):
        numbers = " and ".join(size(each) for each in rows["estimate"])
        passed = {0: "neither passes", 1: "one of them passes", 2: "both pass"}[int(rows["passes"].sum())]
        name = "attention above the baseline" if evidence == "attention" else "the effect of resampling"
        parts.append(f"{name} is {numbers} (it counts from {size(rows['minimum'].iloc[0])} on): {passed}")
    return [f"In two random halves of the clusters (the same data again), {'; '.join(parts)}."] if parts else []


def _taken_out(card: Shown) -> list[str]:
    """What the task loses without what the head holds at one place."""
    if card.feature.empty:
        return []
    row, n_units = card.verdicts.iloc[0], sorted({int(each) for each in card.feature["n_units"]})
    unit = UNITS.get(row["metric"], row["metric"])
    named = card.feature["what"].map(TAKEN_OUT).str.replace("{feature}", str(row["feature"]))
    does = [change(each["effect"], each["low"], each["high"], unit) for _, each in card.feature.iterrows()]
    parts = [" ".join(each) for each in zip(named, does, strict=True)]
    units = counted(n_units[-1], "unit") if len(n_units) == 1 else f"{n_units[0]} to {n_units[-1]} units"
    return [f"Taken out where it reads, on {units}: {'; '.join(parts)}."]


def _by_word(card: Shown) -> list[str]:
    if card.positions.empty:
        return []
    if card.positions["normalised"].isna().all():
        return ["The clean and the corrupted run are not shown to differ, so patching has nothing to bring back."]
    alone = card.positions[card.positions["position"] != "all"]
    best = alone.loc[alone["normalised"].abs().idxmax()]
    together = card.positions[card.positions["position"] == "all"].iloc[0]
    found = [
        f"Patched from the clean run into the corrupted one, what it writes at {position(best['position'])} brings "
        f"back {_share(best)} of the answer, at all words together {_share(together)}."
    ]
    idle = [position(each) for each in alone.loc[alone["n_changed"] == 0, "position"]]
    if idle:
        found.append(f"What it writes at {listed(idle)} is the same in both runs there, or cannot reach the answer.")
    return found


def _circuits(card: Shown) -> list[str]:
    """What the weights say of the commonest words of either role."""
    said: dict[str, list[str]] = {"query": [], "related": []}
    for (role, word), rows in card.circuits.groupby(["role", "word"], sort=False):
        listed_by = rows.groupby("circuit")["text"].agg(lambda each: ", ".join(map(quoted, each)))
        if role == "query":
            said[role].append(f"By its weights alone, from {quoted(word)} it would look for {listed_by['looks for']}.")
        else:
            said[role].append(
                f"By its weights alone, where it attends to {quoted(word)} it would raise {listed_by['raises']}, and "
                f"lower {listed_by['lowers']}."
            )
    return [text for texts in said.values() for text in texts[:_SHOWN_WORDS]]


def _share(row: pd.Series) -> str:
    return bounded(row["normalised"], row["normalised_low"], row["normalised_high"])


def _missing(card: Shown) -> list[str]:
    reasons = card.left_out.groupby("reason", sort=False)["part"].agg(list)
    return [f"Not measured: {listed([PARTS[each] for each in parts])} ({reason})." for reason, parts in reasons.items()]
