"""A hook of mkdocs: the reference of the command line, written by Typer from the commands themselves."""

from typing import Any

import typer
from typer.cli import get_docs_for_click

from interp.cli import app

PLACE = "*Each command follows here on the built site (`make docs`); `interp COMMAND --help` says the same.*"
"""In the clone this stands where the site has the commands."""


def on_page_markdown(markdown: str, **_page: Any) -> str:
    """Put the commands where a page asks for them."""
    return markdown.replace(PLACE, commands()) if PLACE in markdown else markdown


def commands() -> str:
    """Every command with its arguments and options, as Markdown."""
    command: Any = typer.main.get_command(app)
    written = get_docs_for_click(obj=command, ctx=typer.Context(command), name="interp", indent=0)
    return written.partition("**Commands**")[2].partition("\n\n")[2].partition("\n\n")[2]
