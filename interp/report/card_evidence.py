"""What a head's card rests on: its tables, with tasks named for readers, coloured numbers, and sentences.

1. Across the tasks: the verdicts, and what each task loses without the head, as a share of what the whole model does.
2. Per task: the verdict's sentence; whether it rests on what replaces the head; at which word the task needs what the
   head writes; who writes what it reads, and who reads what it writes.
3. Further: effects by kind of ablation, halves, what is removed from what it reads or writes; what was not measured.

Numbers stand with every claim, and there is no claim without them. The sentences are templates of ``page_texts.toml``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from interp.report.heads_frames import VERDICTS, frames_by_task, require_columns, require_verdicts, with_shown_names
from interp.report.heads_sentences import verdict_sentence
from interp.report.heatmap import Cell, Heatmap, Palette, paint, reach
from interp.report.page_texts import texts
from interp.report.words import UNITS, change, counted, decimal, estimate, listed, size

_PATHS = (
    "sender",
    "receiver",
    "reads",
    "normalised",
    "normalised_low",
    "normalised_high",
    "effect",
    "n_units",
    "n_paths",
)
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "shares": ("metric", "base", "effect", "share", "share_low", "share_high", "minimum"),
    "halves": ("evidence", "half", "estimate", "low", "high", "minimum", "passes"),
    "replacements": (
        *("replacement", "effect", "low", "high", "minimum", "state", "share", "share_low", "share_high"),
        *("rank", "n_heads", "n_units", "reason"),
    ),
    "agreement": ("first", "second", "kendall", "low", "high"),
    "positions": ("position", "normalised", "normalised_low", "normalised_high", "n_changed", "n_examples"),
    "feeds": _PATHS,
    "readers": _PATHS,
    "feature": ("what", "effect", "low", "high", "n_units", "n_clusters"),
    "circuits": ("word", "role", "n_examples", "circuit", "place", "text", "score"),
    "groups": (
        *("heads", "missed", "head", "member", "mean_together", "mean_together_low", "mean_together_high"),
        *("mean_share", "mean_share_low", "mean_share_high", "minimum"),
    ),
    "left_out": ("part", "reason"),
}
"""What each table of a card has to have beside ``task``."""
MOST_PATHS, _FEWEST_PATHS = 12, 3
_NOT_TESTABLE = ("—", "not testable, refused (the reason stands with the task), or not measured for this card")
_POSITIONS = {
    "related": "the related word",
    "rest": "the other words",
    "query": "the query",
    "last": "the last token",
    "all": "all words together",
    "BOS": "BOS",
}
"""Of the task's names for positions, those that need words of their own."""


def named(card: Any) -> Any:
    """A ``HeadCard`` with every task named for readers.

    Raises:
        InputError: A table lacks a column, or a verdict is unknown.
    """
    for name, columns in COLUMNS.items():
        require_columns(f"a card's `{name}`", getattr(card, name), ("task", *columns), "interp.methods.head_card")
    require_verdicts("a card's verdicts", card.verdicts)
    return with_shown_names(card)


def of_task(card: Any, task: str) -> Any:
    """The card of one task; `card` and `task` are named for readers."""
    return replace(card, **{name: each[each["task"] == task] for name, each in frames_by_task(card).items()})


def measured(card: Any) -> list[str]:
    """The tasks of which more is known than a dossier says."""
    known = {*card.replacements["task"], *card.left_out["task"]}
    return [task for task in card.tasks["task"] if task in known]


def unit_of(card: Any) -> str:
    """The unit of the metric of a card of one task."""
    metric = str(card.verdicts["metric"].iloc[0])
    return UNITS.get(metric, metric)


def position(name: str) -> str:
    """A position's name in a sentence."""
    return _POSITIONS.get(name, f"the {name}")


def spoken(name: str) -> str:
    """A replacement's name in a sentence."""
    return name.replace("_", " ")


def at_a_glance(card: Any) -> Heatmap:
    """Every task's evidence in a row: attention and probe in excess of their controls, and effects as shares."""
    kinds = list(dict.fromkeys(card.replacements["replacement"]))
    columns = ("verdict", "attention", "probe", *(f"{spoken(each)} ablation" for each in kinds))
    rows = []
    for task in card.tasks["task"]:
        own = of_task(card, task)
        evidence, verdict = own.verdicts.iloc[0], VERDICTS[str(own.verdicts["verdict"].iloc[0])]
        cells = [Cell(verdict.symbol, verdict.name, paint(0.0, "attention").style, f"{task}: {verdict.meaning}")]
        for name, column in (("attention", "excess"), ("probe", "probe_excess")):
            numbers = evidence.reindex([column, f"{column}_low", f"{column}_high"])
            cells.append(_cell(f"{task}, {name} beyond its control", *numbers, palette="attention"))
        shares = own.replacements.set_index("replacement")[["share", "share_low", "share_high"]].reindex(kinds)
        cells += [_cell(f"{task}, {spoken(each)} ablation", *shares.loc[each]) for each in kinds]
        rows.append((task, tuple(cells)))
    missing = any(not cell.measured for _, cells in rows for cell in cells)
    return Heatmap("Task", columns, tuple(rows), (_NOT_TESTABLE,) if missing else ())


def maps_of(card: Any) -> list[tuple[str, Heatmap]]:
    """Of a card of one task, what patching restores and what is removed, each with its caption."""
    acting = card.positions[card.positions["n_changed"] > 0]  # where patching changes anything
    words = [position(each).removeprefix("the ") for each in acting["position"]]
    maps = {
        "What it writes, by word: share restored": _share_map("Patched at", words, acting),
        "Direct paths into it: share restored": by_path(card.feeds),
        "Direct paths from it: share restored": by_path(card.readers),
        "Removed from what the head reads or writes: the effect; a cost is negative": _removed_map(card),
    }
    return [(caption, each) for caption, each in maps.items() if each.rows]


def by_path(paths: pd.DataFrame) -> Heatmap:
    """The largest direct paths of one task."""
    first = paths.head(n_shown(paths))
    return _share_map("Path", path_names(first), first)


def path_names(paths: pd.DataFrame) -> list[str]:
    """From whom to whom each path leads."""
    return [f"{sender} → {receiver}" for sender, receiver in zip(paths["sender"], paths["receiver"], strict=True)]


def n_shown(paths: pd.DataFrame) -> int:
    """How many of the largest paths are worth a row: those that do not read as 0.00, and a few at least."""
    return max(_FEWEST_PATHS, min(MOST_PATHS, int((paths["normalised"].abs() >= 0.005).sum())))


def _share_map(corner: str, names: Sequence[str], rows: pd.DataFrame) -> Heatmap:
    """One column: the share of the answer that each row restores."""
    ends = rows[["normalised", "normalised_low", "normalised_high"]].itertuples(index=False, name=None)
    cells = tuple((name, (_cell(name, *each),)) for name, each in zip(names, ends, strict=True))
    return Heatmap(corner, ("share",), cells, ())


def _removed_map(card: Any) -> Heatmap:
    """Each effect in its colour, and its interval in none."""
    if card.feature.empty:
        return Heatmap("Removed", (), (), ())
    bound, feature = reach(card.feature[["effect", "low", "high"]]), card.verdicts["feature"].iloc[0]
    names = {"feature": f"{feature}, erased", "random directions": "random directions, erased"}
    rows = []
    for row in card.feature.itertuples():
        effect = _cell(row.what, row.effect, row.low, row.high, bound=bound)
        ends = "—" if pd.isna(row.low) else estimate(row.effect, row.low, row.high).partition(" ")[2]
        cells = (effect, Cell(ends, "", paint(0.0, "effect").style, effect.title))
        rows.append((names.get(row.what, row.what), cells))
    return Heatmap("Removed", (f"effect ({unit_of(card)})", "95 % interval"), tuple(rows), ())


def _cell(name: str, *numbers: float, palette: Palette = "effect", bound: float = 1.0) -> Cell:
    """An estimate in its colour, with its interval where one hovers over it."""
    value, low, high = numbers
    if pd.isna(value):
        return Cell("—", "", "", f"{name}: not measured")
    # Rounded before it is painted: what reads as 0.00 has one colour.
    text = decimal(value)
    return Cell(text, "", paint(float(text), palette, bound=bound).style, f"{name}: {estimate(value, low, high)}")


READS, PARTS, REMOVED, STATES = (texts()[f"card {name}"] for name in ("reads", "parts", "removed", "states"))
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
    return [*_effects(card), *_alike(card.agreement), *_halves(card), *_removed(card), *missing]


def _conclusions(card: Any) -> list[str]:
    """Whether all replacements conclude the same, and the head's place by its drop."""
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


def _removed(card: Any) -> list[str]:
    """What the task loses without what the head holds at one place."""
    if card.feature.empty:
        return []
    feature, n_units = str(card.verdicts["feature"].iloc[0]), card.feature["n_units"].astype(int)
    # The feature's name is data, and may hold braces.
    parts = [
        f"{REMOVED[row.what].replace('{feature}', feature)} {change(row.effect, row.low, row.high, unit_of(card))}"
        for row in card.feature.itertuples()
    ]
    fewest, most = n_units.min(), n_units.max()
    units = counted(most, "unit") if fewest == most else f"{fewest} to {most} units"
    return [_say("removed", units=units, parts="; ".join(parts))]


def _by_word(card: Any) -> list[str]:
    if card.positions.empty:
        return []
    if card.positions["normalised"].isna().all():
        return [_say("nothing to restore")]
    whole = card.positions["position"] == "all"
    alone, together = card.positions[~whole], card.positions[whole].iloc[0]
    best = alone.loc[alone["normalised"].abs().idxmax()]
    share = {"share": _share(best), "together": _share(together)}
    found = [_say("restores", position=position(best["position"]), **share)]
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
    n, n_units = int(known["n_paths"].max()), int(known["n_units"].max())
    about = {"paths": counted(n, "direct path"), "which": which, "n_units": n_units}
    said = _say("no path" if large.empty else "paths", **about, least=LEAST, parts=parts + more)
    screened = len(paths) < n
    return [said, _say("screened paths", n=len(paths), which=which)] if screened else [said]


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
