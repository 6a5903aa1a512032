"""How does text get onto a terminal? Legibly: no name moves its cursor, wipes its screen or turns round a line."""

import typer

from interp.report.legible import legible


def say(text: str = "", *, err: bool = False) -> None:
    """Print on standard output, or on standard error."""
    typer.echo(legible(text), err=err)
