"""How does a head's card look on the terminal? Sentences first, then a compact table, then each task."""

from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from interp.cli.terminal import console, verbatim
from interp.report.card_frames import Shown, kind, shown
from interp.report.card_sentences import across_tasks, by_task
from interp.report.heads_frames import VERDICTS
from interp.report.words import left_out, or_dash

if TYPE_CHECKING:
    from interp.methods.head_card import HeadCard


def print_card(card: "HeadCard") -> None:
    """Print a card on standard output."""
    out = console(highlight=False)
    for sentence in (*across_tasks(card), *left_out(card.provenance)):
        out.print(verbatim(sentence))
    out.print()
    out.print(_glance(shown(card)))
    for words in by_task(card):
        out.print()
        out.print(verbatim(words.task, style="bold"))
        out.print(_indented(verbatim(words.verdict), 2))
        out.print(Group(*(_item(text) for text in (*words.further, *words.weights, *words.left_out))))
    out.print()


def _glance(card: Shown) -> Table:
    """One row a task: the verdict, attention and probe beyond their controls, and effects as shares of the base."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("task", no_wrap=True)
    table.add_column("verdict")
    kinds = list(dict.fromkeys(card.replacements["kind"]))
    for heading in ("attention", "probe", *map(kind, kinds)):
        table.add_column(heading, justify="right", min_width=max(map(len, heading.split())))
    for task in card.tasks["task"]:
        table.add_row(verbatim(task), *_cells(card.of(task), kinds))
    table.caption = "attention and probe: beyond their toughest control; ablations: share of what the whole model does"
    table.caption_justify = "left"
    return table


def _cells(card: Shown, kinds: list[str]) -> list[str]:
    row, shares = card.verdicts.iloc[0], card.replacements.set_index("kind")["share"].reindex(kinds)
    verdict = VERDICTS[str(row["verdict"])]
    return [f"{verdict.symbol} {verdict.name}", *map(or_dash, (row["excess"], row["probe_excess"], *shares))]


def _item(text: str) -> Padding:
    """A sentence behind a dash, its further lines indented."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row("-", verbatim(text))
    return _indented(grid, 2)


def _indented(what: Text | Table, by: int) -> Padding:
    return Padding(what, (0, 0, 0, by))
