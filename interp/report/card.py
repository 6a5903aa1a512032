"""How does a reader see the card of a head? One self-contained HTML page, as the dossier's.

1. What the head is, across the tasks: a few sentences, and the evidence at a glance.
2. A section a task: what is known in sentences, where it looks, what is taken out where it reads, at which words it
   counts, its direct paths, and what its weights say.
3. All numbers in tables that can be sorted, how to read them, and how they were made, folded away.

Where does a card go? One folder, as the dossier's: written whole or not at all.

What does a notebook show of a card? The head across the tasks, in the page's sentences, and its verdicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from interp.report.attended import AttendingHead, attending_heads, scored
from interp.report.card_figures import card as figure
from interp.report.card_figures import paths_figure, shares_figure
from interp.report.card_frames import (
    COLUMNS,
    CardFrames,
    Shown,
    at_a_glance,
    by_path,
    by_word,
    how_to_read,
    quoted,
    shown,
    taken_out,
)
from interp.report.card_sentences import across_tasks, by_task
from interp.report.drawing import ordinary_style, write_pictures
from interp.report.folder import CARD, check_output, in_place_of, write_manifest
from interp.report.glance import Glance, with_interval
from interp.report.heads_frames import VERDICTS, Verdict, file_names
from interp.report.heatmap import Heatmap
from interp.report.html import attention_data, flatten, model_with_hash, render
from interp.report.sortable import Table, sortable
from interp.report.words import UNITS, left_out

_TABLES = {
    "shares": "The effect as a share of what the whole model does",
    "halves": "Two random halves of the clusters",
    "replacements": "Every kind of ablation",
    "agreement": "How alike two kinds of ablation order all heads",
    "positions": "Patching by word",
    "feeds": "Direct paths into the head",
    "readers": "Direct paths from the head",
    "feature": "Taken out where it reads",
    "groups": "Ablated together with other heads",
}
_MOST_ROWS = 200


@dataclass(frozen=True)
class TaskView:
    """What the page shows of one task."""

    name: str
    question: str
    verdict: Verdict
    says: str
    further: tuple[str, ...]
    left_out: tuple[str, ...]
    heads: tuple[AttendingHead, ...]
    words: Heatmap | None
    feeds: Heatmap | None
    readers: Heatmap | None
    taken_out: Heatmap | None
    circuits: tuple[tuple[str, str], ...]


def render_card(card: CardFrames, *, command: str | None = None) -> str:
    """The whole card as one HTML document.

    Args:
        card: The frames.
        command: The command line that asked for it, shown for whoever wants to repeat it.

    Raises:
        InputError: The frames are not a card's.
    """
    found = shown(card)
    provenance, maps = flatten(found.provenance), found.attention_maps
    return render(
        "head.html",
        head=found.name,
        asked=asked(found.tasks, provenance),
        across=[*across_tasks(card), *left_out(card.provenance)],
        glance=at_a_glance(found),
        tasks=_views(card, found),
        reading=how_to_read(found),
        attention_data=attention_data(maps[maps["task"] == task] for task in found.tasks["task"]),
        tables=[(caption, _table(getattr(found, name), name)) for name, caption in _TABLES.items()],
        command=command,
        provenance=provenance,
    )


def _views(card: CardFrames, found: Shown) -> list[TaskView]:
    return [_view(found.of(words.task), words.verdict, words.further, words.left_out) for words in by_task(card)]


def _view(card: Shown, says: str, further: tuple[str, ...], left_out: tuple[str, ...]) -> TaskView:
    task = card.tasks.iloc[0]
    return TaskView(
        name=str(task["task"]),
        question=str(task["description"]),
        verdict=VERDICTS[str(card.verdicts["verdict"].iloc[0])],
        says=says,
        further=further,
        left_out=left_out,
        heads=attending_heads(scored(card.attention_maps), str(task["task"])),
        words=by_word(card),
        feeds=by_path(card.feeds),
        readers=by_path(card.readers),
        taken_out=taken_out(card),
        circuits=_circuits(card),
    )


def _circuits(card: Shown) -> tuple[tuple[str, str], ...]:
    """What the weights say of each word: a label, and the tokens."""
    pairs = []
    for (_, word, circuit), rows in card.circuits.groupby(["role", "word", "circuit"], sort=False):
        begin = f"From {quoted(word)}" if circuit == "looks for" else f"Of {quoted(word)}"
        tokens = ", ".join(f"{quoted(row.text)} {row.score:.1f}" for row in rows.itertuples())
        pairs.append((f"{begin} {circuit}", tokens))
    return tuple(pairs)


def _table(frame: pd.DataFrame, name: str) -> Table:
    columns = ("task", *COLUMNS[name])
    words = {column: frame[column].map({True: "yes", False: "no"}) for column in columns if frame[column].dtype == bool}
    return sortable(frame.assign(**words).head(_MOST_ROWS), columns)


@ordinary_style()
def save_card(card: CardFrames, out: str | Path, *, command: str | None = None) -> Path:
    """Write a card's frames, figures, page and manifest into the folder `out`.

    These are a CSV for every frame of the card, ``figures``, ``report.html`` and ``manifest.json``.

    Args:
        card: The frames.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it, for the page and the manifest.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: If `out` cannot be used; see ``check_output``.
        InputError: If the frames are not a card's.
    """
    folder = check_output(out)
    page = render_card(card, command=command)
    with in_place_of(folder) as draft:
        for name in ("verdicts", "tasks", *COLUMNS):
            getattr(card, name).to_csv(draft / f"{name}.csv", index=False)
        _write_figures(card, draft / "figures")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, {**card.provenance, "copying": card.copying}, command, kind=CARD)
    return folder


def _write_figures(card: CardFrames, folder: Path) -> None:
    found = shown(card)
    draws = {} if found.replacements.empty else {"shares": partial(shares_figure, found)}
    names = file_names([str(task) for task in card.tasks["task"]])
    for task, name in zip(found.tasks["task"], names, strict=True):
        if not _without_paths(found.of(task)):
            draws[f"paths_{name}"] = partial(paths_figure, found.of(task))
    write_pictures(draws, folder)


def _without_paths(card: Shown) -> bool:
    return card.feeds.empty and card.readers.empty


def card_glance(card: CardFrames) -> Glance:
    """What a notebook shows of a head's card."""
    named = shown(card)
    return Glance(
        f"Head {card.name}",
        [*across_tasks(card), *left_out(card.provenance)],
        evidence_table(named.verdicts).drop(columns="head"),
        len(card.verdicts),
        ".verdicts",
        card.provenance,
        "interp.plots.card(card)",
        None if named.replacements.empty else lambda: figure(card),
    )


_SAID = ("model", "seed", "device")


def asked(tasks: pd.DataFrame, provenance: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The tasks, the model with its hash, the seed and the device, as far as they are known.

    Args:
        tasks: One row per task: ``task``, ``n_units`` and ``n_clusters``.
        provenance: As ``document.flatten`` gives it.
    """
    counts = tasks[["task", "n_units", "n_clusters"]].itertuples(index=False, name=None)
    known = short_names(provenance)
    known |= model_with_hash(known)
    facts = [("Tasks", ", ".join(f"{task} ({n} units in {clusters} clusters)" for task, n, clusters in counts))]
    return facts + [(key.capitalize(), known[key]) for key in _SAID if key in known]


def short_names(provenance: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The facts by the last part of their names, the first of each: runs of several tasks keep them a level down."""
    return {name.rsplit(".", 1)[-1]: text for name, text in reversed(provenance)}


def evidence_table(table: pd.DataFrame) -> pd.DataFrame:
    """Attention, resampling and probe on each row, with intervals."""
    units = table["metric"].map(lambda metric: UNITS.get(metric, metric))
    effects = with_interval(table, "effect", "effect_low", "effect_high")
    marks = table["verdict"].map(lambda verdict: f"{VERDICTS[verdict].symbol} {verdict}")
    return pd.DataFrame(
        {
            "head": [f"{layer}.{head}" for layer, head in zip(table["layer"], table["head"], strict=True)],
            "task": table["task"],
            "verdict": marks,
            "excess attention": with_interval(table, "excess", "excess_low", "excess_high"),
            "effect of resampling": [f"{text} {unit}" for text, unit in zip(effects, units, strict=True)],
            "probe, excess": with_interval(table, "probe_excess", "probe_excess_low", "probe_excess_high"),
        }
    )
