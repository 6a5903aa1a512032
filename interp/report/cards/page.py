"""How does a reader see the card of a head? One self-contained HTML page, as the dossier's.

1. What the head is, across the tasks: a few sentences, and the evidence at a glance.
2. A section a task: what is known in sentences, where it looks, what is taken out where it reads, at which words it
   counts, its direct paths, and what its weights say.
3. All numbers in tables that can be sorted, how to read them, and how they were made, folded away.
"""

from dataclasses import dataclass

import pandas as pd

from interp.report.asked import asked
from interp.report.attended import AttendingHead, attending_heads, scored
from interp.report.cards.frames import COLUMNS, CardFrames, Shown, shown
from interp.report.cards.heatmaps import at_a_glance, by_path, by_word, taken_out
from interp.report.cards.reading import how_to_read
from interp.report.cards.sentences import across_tasks, by_task
from interp.report.cards.words import quoted
from interp.report.document import flatten, render
from interp.report.embedded import attention_data
from interp.report.heatmap import Heatmap
from interp.report.left_out import left_out
from interp.report.sortable import Table, sortable
from interp.report.verdicts import VERDICTS, Verdict

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
