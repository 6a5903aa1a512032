"""What a head's card says in plain words: numbers with every claim, and no claim without them.

1. Across the tasks: the verdicts, and what each task loses without the head, as a share of what the whole model does.
2. Per task: the verdict's sentence; whether it rests on what replaces the head; at which word the task needs what the
   head writes; who writes what it reads, and who reads what it writes.
3. Further: effects by kind of ablation, halves, what is taken out where it reads, and what was not measured, and why.

The sentences are templates of ``reading.toml``.
"""

from typing import Any

import pandas as pd

from interp.report.card_tables import position, spoken, unit_of
from interp.report.heads_frames import VERDICTS
from interp.report.heads_sentences import verdict_sentence
from interp.report.reading import texts
from interp.report.words import change, counted, estimate, listed, size

READS, PARTS, TAKEN_OUT, STATES = (texts()[f"card {name}"] for name in ("reads", "parts", "taken out", "states"))
_PASSED = {0: "neither passes", 1: "one of them passes", 2: "both pass"}
LEAST = 0.05
"""The smallest share of the answer that a sentence names."""
_MOST = 4


def _say(template: str, **known: Any) -> str:
    return str(texts()["card"][template].format(**known))


def across_tasks(card: Any) -> list[str]:
    """What the head is to each task, and how much it copies; the card's tasks are named for readers."""
    tasks = card.verdicts.groupby("verdict", sort=False)["task"].agg(list)
    verdicts = [f"{VERDICTS[name].marked}: {listed(tasks[name])}" for name in VERDICTS if name in tasks]
    found = [f"Head {card.name}: {'; '.join(verdicts)}."]
    known = card.shares.dropna(subset="share").sort_values("share", kind="stable")
    parts = [f"{row.task} {estimate(-row.share, -row.share_high, -row.share_low)}" for row in known.itertuples()]
    if parts:
        found.append(_say("costs", minimum=card.shares["minimum"].iloc[0], parts="; ".join(parts)))
    return found if pd.isna(card.copying) else [*found, _say("copying", score=card.copying)]


def findings(card: Any) -> list[str]:
    """What was found on a card of one task, the verdict first."""
    paths = [*_paths(card.feeds, "into it"), *_paths(card.readers, "from it")]
    return [verdict_sentence(card.verdicts), *_conclusions(card), *_by_word(card), *paths]


def further(card: Any) -> list[str]:
    """The numbers behind the findings of a card of one task, and what was not measured."""
    reasons = card.left_out.groupby("reason", sort=False)["part"].agg(list)
    missing = [
        _say("left out", parts=listed([PARTS[each] for each in parts]), reason=reason)
        for reason, parts in reasons.items()
    ]
    return [*_effects(card), *_alike(card.agreement), *_halves(card), *_taken_out(card), *missing]


def _conclusions(card: Any) -> list[str]:
    """Whether all kinds of ablation conclude the same, and the head's place by its drop."""
    known = card.replacements.dropna(subset="effect")
    if known.empty:
        return []
    kinds = known["replacement"].map(spoken).groupby(known["state"], sort=False).agg(list)
    parts = [f"{STATES[state]} by {listed(names)}" for state, names in kinds.items()]
    same = _say("the same", n=len(known), state=STATES[kinds.index[0]])
    said = same if len(kinds) == 1 else _say("not the same", parts="; ".join(parts))
    first, last = int(known["rank"].min()), int(known["rank"].max())
    place = f"{first}" if first == last else f"{first} to {last}"
    return [f"{said} {_say('rank', place=place, n=int(known['n_heads'].iloc[0]))}"]


def _effects(card: Any) -> list[str]:
    """What each kind of ablation does, and which are refused."""
    is_known = card.replacements["effect"].notna()
    known, refused = card.replacements[is_known], card.replacements[~is_known]
    if known.empty:
        return []
    parts = [
        f"{spoken(row.replacement)} {estimate(row.effect, row.low, row.high, unit_of(card))}"
        for row in known.itertuples()
    ]
    return [
        _say("effects", units=counted(int(known["n_units"].iloc[0]), "unit"), parts="; ".join(parts)),
        *(_say("refused", kind=spoken(row.replacement), reason=row.reason) for row in refused.itertuples()),
    ]


def _alike(agreement: pd.DataFrame) -> list[str]:
    """How alike the kinds order all heads: the least alike and the most."""
    known = agreement.dropna(subset="kendall").sort_values("kendall", kind="stable")
    ends = known.iloc[[0, -1]] if len(known) > 1 else known
    parts = [f"{row.kendall:.2f} ({spoken(row.first)} and {spoken(row.second)})" for row in ends.itertuples()]
    return [_say("alike", parts=" to ".join(parts))] if parts else []


def _halves(card: Any) -> list[str]:
    parts = [
        _say(
            "half",
            what="attention above the baseline" if evidence == "attention" else "the effect of resampling",
            numbers=" and ".join(map(size, rows["estimate"])),
            minimum=size(rows["minimum"].iloc[0]),
            passed=_PASSED[int(rows["passes"].sum())],
        )
        for evidence, rows in card.halves.groupby("evidence", sort=False)
    ]
    return [_say("halves", parts="; ".join(parts))] if parts else []


def _taken_out(card: Any) -> list[str]:
    """What the task loses without what the head holds at one place."""
    if card.feature.empty:
        return []
    feature, n_units = str(card.verdicts["feature"].iloc[0]), card.feature["n_units"].astype(int)
    # The feature's name is data, and may hold braces.
    parts = [
        f"{TAKEN_OUT[row.what].replace('{feature}', feature)} {change(row.effect, row.low, row.high, unit_of(card))}"
        for row in card.feature.itertuples()
    ]
    fewest, most = n_units.min(), n_units.max()
    units = counted(most, "unit") if fewest == most else f"{fewest} to {most} units"
    return [_say("taken out", units=units, parts="; ".join(parts))]


def _by_word(card: Any) -> list[str]:
    if card.positions.empty:
        return []
    if card.positions["normalised"].isna().all():
        return [_say("nothing to bring back")]
    whole = card.positions["position"] == "all"
    alone, together = card.positions[~whole], card.positions[whole].iloc[0]
    best = alone.loc[alone["normalised"].abs().idxmax()]
    share = {"share": _share(best), "together": _share(together)}
    found = [_say("brings back", position=position(best["position"]), **share)]
    idle = [position(each) for each in alone.loc[alone["n_changed"] == 0, "position"]]
    return [*found, _say("idle", positions=listed(idle))] if idle else found


def _paths(paths: pd.DataFrame, which: str) -> list[str]:
    """The largest direct paths into the head or from it."""
    known = paths.dropna(subset="normalised")
    if known.empty:
        return []
    large = known[known["normalised"].abs() >= LEAST]
    shown = known.head(1) if large.empty else large.head(_MOST)
    parts = listed([f"{_end(row, which)} {_share(row)}" for _, row in shown.iterrows()])
    more = f", and {len(large) - _MOST} more" if len(large) > _MOST else ""
    about = {"paths": counted(len(known), "direct path"), "which": which, "n_units": int(known["n_units"].max())}
    return [_say("no path" if large.empty else "paths", **about, least=LEAST, parts=parts + more)]


def _end(row: pd.Series, which: str) -> str:
    """The path's other end: ``the embeddings by its values``, ``MLP 2``, ``head 1.3``, ``the logits``."""
    read = row["reads"] in READS
    name = str(row["sender"] if which == "into it" else row["receiver"])
    if read and which != "into it":
        name = name.rpartition(".")[0]
    kind, _, number = name.partition(".")
    named = {"embed": "the embeddings", "logits": "the logits", "mlp": f"MLP {number}"}.get(kind, f"head {name}")
    return f"{named} by {READS[row['reads']]}" if read else named


def _share(row: pd.Series) -> str:
    return estimate(*row[["normalised", "normalised_low", "normalised_high"]])
