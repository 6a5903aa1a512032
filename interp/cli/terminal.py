"""What a command shows while and after it works: progress on standard error, results on standard output.

On a terminal progress is a bar; elsewhere a line a minute, without escape codes.
"""

import json
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from interp.cli.messages import answer_due, colours, say, say_lines
from interp.report.words import legible

if TYPE_CHECKING:
    from interp.report.sections import Page

SELDOM = 60.0
"""Seconds between lines of progress, where no bar is drawn."""


def console(*, err: bool = False, highlight: bool = True) -> Console:
    """Standard output, or standard error, with colours where these are welcome."""
    return Console(stderr=err, highlight=highlight, color_system="auto" if colours() else None)


def print_page(page: "Page") -> None:
    """Print the cautions, sentences and first table of a result's page on standard output."""
    from interp.report.terminal import lines_of

    out = console(highlight=False)
    for line in lines_of(page, max(80, out.width) if out.is_terminal else 80):
        if isinstance(line, str):  # a sentence is one line, however long
            say(line)
        else:
            out.print(line)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, spaced: bool = False) -> None:
    """Print a table of texts on standard output, with an empty line between rows where they are ``spaced``."""
    table = Table(*headings, box=None, padding=(0, 2, int(spaced), 0))
    for row in rows:
        table.add_row(*map(verbatim, row))
    console().print(table)


def duration(seconds: float) -> str:
    """For people: 12.0 s, or 3.3 minutes."""
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "s")):
        if seconds >= (2 * size if size > 1 else 1):
            return f"{seconds / size:,.1f} {unit}"
    return f"{1000 * seconds:,.1f} ms"


class _Far:
    """How far a command is: steps of its own, or, where it says what it does by ``about``, a share of all."""

    def __init__(self, description: str):
        self.name, self.what, self._counts = description, description, True

    def about(self, text: str) -> None:
        """Told what is being done."""
        self.what, self._counts = text, False

    def took(self, seconds: Mapping[str, float]) -> None:
        """Told what every stage has taken, when all is done; short ones stay silent."""
        if sum(seconds.values()) >= SELDOM:
            stages = ", ".join(f"{stage} {duration(taken)}" for stage, taken in seconds.items())
            say(f"{self.name}: {stages}", err=True)

    def far(self, done: int, total: int, counts: str) -> str:
        """The share, or `counts` with both numbers filled in."""
        return counts.format(done, total) if self._counts else f"{done / max(1, total):.0%}"


class _Bar(_Far):
    """A bar with the time taken and left; started by the first step: what fails before leaves only its error."""

    def __init__(self, description: str, where: Console):
        super().__init__(description)
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[far]}"), *times)
        self._progress = Progress(*columns, console=where)
        self._task = self._progress.add_task(description, total=None, far="")

    def __call__(self, done: int, total: int) -> None:
        """Told after every step."""
        self._progress.start()
        far = self.far(done, total, "{}/{}")
        self._progress.update(self._task, completed=done, total=total, description=self.what, far=far)

    def stop(self) -> None:
        """Leave the bar as it is."""
        if self._progress.live.is_started:
            self._progress.stop()


class _Lines(_Far):
    """Says how far a command is, and not often: short ones stay silent."""

    def __init__(self, description: str):
        super().__init__(description)
        self._said = self._begun = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Told after every step."""
        now = time.monotonic()
        if now - self._said >= SELDOM:
            self._said = now
            far = self.far(done, total, "{:,} of {:,}")
            say(f"{self.what}: {far} after {now - self._begun:.0f} s", err=True)


@contextmanager
def progress_bar(description: str) -> Iterator[Any]:
    """A progress bar with the time left, or seldom a line; yields what to tell (done, total), and by ``about`` what."""
    where = console(err=True)
    if not where.is_interactive:
        yield _Lines(description)
        return
    bar = _Bar(description, where)
    try:
        yield bar
    finally:
        bar.stop()


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Tell each different warning of the block in one line on standard error, when the block ends; many are counted."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            say_lines("warning", (str(each.message) for each in caught if each.category is RuntimeWarning))


def print_json(result: dict[str, Any]) -> None:
    """Print the one JSON object of a command, in ASCII: every terminal and pipe can carry it, and nothing is lost."""
    answer_due.set(False)
    say(json.dumps(result, allow_nan=False).replace("\x7f", r"\u007f"))


def verbatim(text: str, style: str = "") -> Text:
    """A name in a table: no markup, and legible."""
    return Text(legible(text), style)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, ready for JSON: a missing number is null."""
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", double_precision=15))
    return rows
