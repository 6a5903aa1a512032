"""What a terminal shows of a result: the cautions, the sentences with their facts, and the first table of its page."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from interp.report.sections import Facts, Page, Sentences, Table
from interp.report.words import legible

MOST_ROWS, GAP = 10, 2
"""Of a table; what is left out stands in the page."""


def lines_of(page: Page, width: int = 80) -> Iterator[str | RichTable]:
    """Lines of text, and tables for a console of ``rich``, of which the columns that fit into `width` are there."""
    yield page.title
    yield " · ".join(page.about)
    yield from page.cautions
    table = page.first(Table)
    said = False
    for section in page.sections:
        if isinstance(section, Sentences):
            yield from (f"- {text}" for text in section.texts)
            if section.note:
                yield section.note
            said = True
        if isinstance(section, Facts) and not section.heading:  # of the sentences before
            yield from (f"{name}: {text}" for name, text in section.pairs)
        if section is table and table is not None:
            yield _table(table, width)
    if not said and table is None:
        yield "nothing was found"


def _table(section: Table, width: int) -> Any:
    texts, titles = [[legible(cell.text) for cell in row] for row in section.rows(MOST_ROWS)], section.titles
    if len(texts) < section.n:
        titles[0] = f"{len(texts)} of {section.n}".replace(" ", "\u00a0")
    # Headings fold at their spaces, numbers do not.
    widths = [max(map(len, ["", *title.split(" "), *cells])) for title, *cells in zip(titles, *texts, strict=True)]
    n_columns = max(1, sum(total <= width for total in accumulate(each + GAP for each in widths)))
    table = RichTable(box=None, padding=(0, GAP, 0, 0))
    for title, each in list(zip(titles, widths, strict=True))[:n_columns]:
        table.add_column(title, justify="right" if table.columns else "left", width=each)
    for row in texts:
        table.add_row(*(Text(cell) for cell in row[:n_columns]))
    return table
