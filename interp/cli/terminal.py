"""What a command shows while and after it works: progress on standard error, results on standard output."""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from interp.cli.saying import say, say_lines
from interp.report.legible import ACTING, legible


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar with the time left; yields the function to tell (done, total)."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=Console(stderr=True))
    bar = progress.add_task(description, total=None)

    def tell(done: int, total: int) -> None:
        # Started by the first step: what fails before leaves no bar, only its error.
        progress.start()
        progress.update(bar, completed=done, total=total)

    try:
        yield tell
    finally:
        if progress.live.is_started:
            progress.stop()


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
    """Print the one JSON object of a command; a character that acts stands as JSON's own escape, so nothing is lost."""
    say(ACTING.sub(_escaped, json.dumps(result, ensure_ascii=False, allow_nan=False)))


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def verbatim(text: str, style: str = "") -> Text:
    """A name in a table: no markup, and legible."""
    return Text(legible(text), style)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, ready for JSON: a missing number is null."""
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", double_precision=15))
    return rows
