"""What a head's card says in plain words: numbers with every claim, and no claim without them.

1. Across the tasks: the verdicts, and what each task loses without the head, as a share of what the whole model does.
2. Per task: the verdict's sentence; whether it rests on what replaces the head; at which word the task needs what the
   head writes; who writes what it reads, and who reads what it writes.
3. Further: effects by kind of ablation, halves, what is taken out where it reads, and what was not measured, and why.

The sentences are templates of ``reading.toml``.
"""

from typing import Any

import numpy as np
import pandas as pd

from interp.report.card_tables import position, spoken, unit_of
from interp.report.heads_frames import FINDINGS, VERDICTS
from interp.report.heads_sentences import head_sentence, place_note, reason_of, unused_sentence
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
    return [_verdict(card), *_conclusions(card), *_by_word(card), *paths]


def further(card: Any) -> list[str]:
    """The numbers behind the findings of a card of one task, and what was not measured."""
    reasons = card.left_out.groupby("reason", sort=False)["part"].agg(list)
    missing = [
        _say("left out", parts=listed([PARTS[each] for each in parts]), reason=reason)
        for reason, parts in reasons.items()
    ]
    return [*_effects(card), *_alike(card.agreement), *_halves(card), *_taken_out(card), *missing]


def baseline_note(card: Any) -> str:
    """What a baseline such as ``position 9`` is, of a card of one task; empty where no sentence names one."""
    return place_note([_verdict(card)])


def _verdict(card: Any) -> str:
    """The dossier's own sentence, or, where it has none for a head by itself, the verdict's meaning with the effect."""
    row = card.verdicts.iloc[0]
    if row["verdict"] in FINDINGS:
        return head_sentence(row)
    if row["verdict"] == "encodes, unused":
        return unused_sentence(card.verdicts)[0]
    verdict, reason = VERDICTS[row["verdict"]], reason_of(row)
    effects = {
        name: estimate(*row[[name, f"{name}_low", f"{name}_high"]], unit=unit_of(card), n_clusters=row["n_clusters"])
        for name in ("effect", "mean_effect")
    }
    return _say(
        "verdict",
        task=card.tasks["task"].iloc[0],
        verdict=verdict.name,
        meaning=verdict.meaning,
        because=f" ({reason})" if reason else "",
        mean=spoken(str(row["mean_replacement"])),
        minimum=size(row["min_effect"]),
        needed=f"; about {row['n_to_decide']:.0f} units would decide" if np.isfinite(row["n_to_decide"]) else "",
        **effects,
    )


def _ablated(card: Any) -> pd.DataFrame:
    """The kinds of ablation that were not refused."""
    found: pd.DataFrame = card.replacements[card.replacements["effect"].notna()]
    return found


def _conclusions(card: Any) -> list[str]:
    """Whether all kinds of ablation conclude the same, and the head's place by its drop."""
    known = _ablated(card)
    if known.empty:
        return []
    by_state = known.groupby("state", sort=False)["replacement"].agg(lambda each: listed([spoken(one) for one in each]))
    parts = "; ".join(f"{STATES[str(state)]} by {kinds}" for state, kinds in by_state.items())
    same = _say("the same", n=len(known), state=STATES[str(by_state.index[0])])
    said = same if len(by_state) == 1 else _say("not the same", parts=parts)
    first, last = int(known["rank"].min()), int(known["rank"].max())
    place = f"{first}" if first == last else f"{first} to {last}"
    return [f"{said} {_say('rank', place=place, n=int(known['n_heads'].iloc[0]))}"]


def _effects(card: Any) -> list[str]:
    """What each kind of ablation does, and which are refused."""
    known, refused = _ablated(card), card.replacements[card.replacements["effect"].isna()]
    if known.empty:
        return []
    numbers = known[["replacement", "effect", "low", "high"]].itertuples(index=False, name=None)
    parts = [f"{spoken(kind)} {estimate(*ends, unit=unit_of(card))}" for kind, *ends in numbers]
    reasons = zip(refused["replacement"], refused["reason"], strict=True)
    return [
        _say("effects", units=counted(int(known["n_units"].iloc[0]), "unit"), parts="; ".join(parts)),
        *(_say("refused", kind=spoken(kind), reason=reason) for kind, reason in reasons),
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
            numbers=" and ".join(size(each) for each in rows["estimate"]),
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
    feature, n_units = card.verdicts["feature"].iloc[0], card.feature["n_units"].astype(int)
    fewest, most = n_units.min(), n_units.max()
    numbers = card.feature[["what", "effect", "low", "high"]].itertuples(index=False, name=None)
    # The feature's name is data, and may hold braces.
    parts = [
        f"{TAKEN_OUT[what].replace('{feature}', str(feature))} {change(*ends, unit=unit_of(card))}"
        for what, *ends in numbers
    ]
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
    share = {"share": _path_share(best), "together": _path_share(together)}
    idle = [position(each) for each in alone.loc[alone["n_changed"] == 0, "position"]]
    found = [_say("brings back", position=position(best["position"]), **share)]
    return [*found, _say("idle", positions=listed(idle))] if idle else found


def _paths(paths: pd.DataFrame, which: str) -> list[str]:
    """The largest direct paths into the head or from it."""
    known = paths.dropna(subset="normalised")
    if known.empty:
        return []
    large = known[known["normalised"].abs() >= LEAST]
    shown = known.head(1) if large.empty else large.head(_MOST)
    parts = listed([f"{_end(row, which)} {_path_share(row)}" for _, row in shown.iterrows()])
    more = f", and {len(large) - _MOST} more" if len(large) > _MOST else ""
    about = {"paths": counted(len(known), "direct path"), "which": which, "n_units": int(known["n_units"].max())}
    return [_say("no path" if large.empty else "paths", **about, least=LEAST, parts=parts + more)]


def _end(row: pd.Series, which: str) -> str:
    """The path's other end."""
    if which == "into it":
        return f"{_component(row['sender'])} by {READS[row['reads']]}"
    if row["reads"] in READS:
        return f"{_component(row['receiver'].rsplit('.', 1)[0])} by {READS[row['reads']]}"
    return _component(row["receiver"])


def _path_share(row: pd.Series) -> str:
    return estimate(row["normalised"], row["normalised_low"], row["normalised_high"])


def _component(name: str) -> str:
    """Who sends or receives: ``the embeddings``, ``MLP 2``, ``head 1.3``, ``the logits``."""
    if name in ("embed", "logits"):
        return {"embed": "the embeddings", "logits": "the logits"}[name]
    kind, _, rest = name.partition(".")
    return f"MLP {rest}" if kind == "mlp" else f"head {name}"
