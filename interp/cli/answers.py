"""What is the same in the JSON of every command that leaves something? Where it lies, and how long it took."""

import time
from pathlib import Path
from typing import Any

PAGE = "report.html"


def left(folder: Path | None, started: float) -> dict[str, Any]:
    """The folder and the page in it, null without --out, and the seconds since `started` (of the clock)."""
    return {
        "folder": None if folder is None else str(folder),
        "page": None if folder is None else str(folder / PAGE),
        "seconds": seconds_since(started),
    }


def page_line(folder: Path, started: float) -> str:
    """The last line of a command's text: the page to open, and how long it took."""
    return f"{folder / PAGE}  ({seconds_since(started):.0f} s)"


def seconds_since(started: float) -> float:
    """Seconds, to the millisecond."""
    return round(time.perf_counter() - started, 3)
