"""What a terminal shows of a result: the cautions, the sentences and the first table of its page."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from interp.report.sections import Page, Sentences, Table
from interp.report.tables import rows_of
from interp.report.words import legible

MOST_ROWS = 10


def lines_of(page: Page) -> Iterator[str | RichTable]:
    """Lines of text, and tables for a console of ``rich``."""
    yield page.title
    yield from page.about
    yield from page.cautions
    table = next((each for each in page.sections if isinstance(each, Table)), None)
    said = False
    for section in page.sections:
        if isinstance(section, Sentences):
            yield from (f"- {text}" for text in section.texts)
            if section.note:
                yield section.note
            said = True
        if section is table and table is not None:
            yield _table(table)
    if not said and table is None:
        yield "nothing was found"


def _table(section: Table) -> Any:
    n_shown = min(len(section.frame), MOST_ROWS)
    first, *rest = (column.title for column in section.columns)
    table = RichTable(box=None, padding=(0, 2, 0, 0))
    table.add_column(first if n_shown == section.n else f"{n_shown} of {section.n}")
    for heading in rest:
        table.add_column(heading, justify="right")
    for row in rows_of(section.frame.head(MOST_ROWS), section.columns):
        table.add_row(*(Text(legible(cell.text)) for cell in row))
    return table
