"""How does text get onto a terminal? Legibly: no name moves its cursor, wipes its screen or turns round a line."""

import os
from collections.abc import Iterable
from contextvars import ContextVar

import typer

from interp.report.words import legible

_MOST_LINES = 5
answer_due: ContextVar[bool] = ContextVar("answer_due", default=False)
"""Whether the present command was asked for one JSON object, and has not printed it."""


def colours() -> bool:
    """Whether a terminal may be sent colours: not where NO_COLOR is set, nor to a dumb one."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


def say(text: str = "", *, err: bool = False) -> None:
    """Print on standard output, or on standard error."""
    typer.echo(legible(text), err=err)


def say_lines(kind: str, given: Iterable[str]) -> None:
    """Print each different text once on standard error, in a line that begins with its kind; many are counted."""
    texts = list(dict.fromkeys(given))
    for text in texts[:_MOST_LINES]:
        say(f"{kind}: {' '.join(text.split())}", err=True)
    if len(texts) > _MOST_LINES:
        say(f"{kind}: {len(texts) - _MOST_LINES} more such as the last", err=True)
