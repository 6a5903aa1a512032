"""What is this head, in plain words? Numbers with every claim, and no claim without them.

1. Across the tasks: what each loses without the head, as a share of what the whole model does.
2. Per task: the verdict's sentence; whether it rests on what replaces the head, or on half of the items; what the task
   loses without its values at the related word, or the feature; at which word it needs what the head writes; who writes
   what it reads, and who reads what it writes; what its weights say.
3. What was not measured, and why.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from interp.report.amounts import bounded, change, counted, estimate, listed, size
from interp.report.cards.frames import CardFrames, Shown, as_dossier, shown
from interp.report.cards.paths import path_sentences
from interp.report.cards.replaced import replacement_sentences
from interp.report.cards.words import PARTS, TAKEN_OUT, position, quoted
from interp.report.metrics import UNITS
from interp.report.sentences import reason_of, summarise
from interp.report.verdicts import VERDICTS

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
        f"{size(row['minimum_effect'])} on{needed}."
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
