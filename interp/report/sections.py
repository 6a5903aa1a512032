"""What a result is turned into before it is shown: a page of sections.

One function a kind of result (``page_of`` in ``report/sweep.py``, ``report/heads.py``, ...) makes the sections. Four
renderers show the same sections: ``html.py`` as a page, ``notebook.py`` as the first of them, ``terminal.py`` as text,
``folder.py`` as files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import pandas as pd

from interp.errors import InputError
from interp.report.attention_words import PicturedHead
from interp.report.drawing import Figure, inline, picture
from interp.report.heatmap import Heatmap
from interp.report.tables import Column, TableCell, rows_of

MOST_ROWS = 200
"""Rows of a table that stand in a page; all of them are in its files."""


@dataclass(frozen=True)
class Sentences:
    """Findings in words, the most telling first; `further` ones are folded away, the `note` is in small print.

    The `heading` of any section is empty where it continues the one before.
    """

    heading: str
    texts: Sequence[str]
    further: Sequence[str] = ()
    note: str = ""

    macro: ClassVar[str] = "sentences_part"


@dataclass(frozen=True)
class Facts:
    """Terms with what is said of each: what was asked, or how to read the page."""

    heading: str
    pairs: Sequence[tuple[str, str]]

    macro: ClassVar[str] = "facts_part"


@dataclass(frozen=True)
class Heatmaps:
    """Tables of coloured cells, side by side, each with its caption; those of a ``grid`` open a head's card."""

    heading: str
    maps: Sequence[tuple[str, Heatmap]]
    note: str = ""
    kind: str = ""
    grid: Any = None

    macro: ClassVar[str] = "heatmaps_part"


@dataclass(frozen=True)
class Table:
    """A table that a reader can sort; its `file` has all rows.

    Attributes:
        caption: What the rows are, and their order.
        n_rows: How many rows there are with those that are left out.
        data: The name in the page's data of all rows, for its script; empty for those that stand in the page.
    """

    heading: str
    caption: str
    frame: pd.DataFrame
    columns: Sequence[Column]
    file: str
    n_rows: int | None = None
    data: str = ""

    macro: ClassVar[str] = "table_part"

    @property
    def n(self) -> int:
        """How many rows there are with those that are left out."""
        return len(self.frame) if self.n_rows is None else self.n_rows

    @property
    def titles(self) -> list[str]:
        """What stands above the columns."""
        return [column.title for column in self.columns]

    def rows(self, most: int = MOST_ROWS) -> list[list[TableCell]]:
        """The cells of the first rows."""
        return rows_of(self.frame.head(most), self.columns)


@dataclass(frozen=True)
class Shaded:
    """Heads on example sentences, the words shaded by their attention; the page's script draws arcs over them."""

    heading: str
    heads: Sequence[PicturedHead]
    note: str = ""

    macro: ClassVar[str] = "shaded_part"


@dataclass(frozen=True)
class Picture:
    """A figure: a PNG in the folder, drawn in a notebook, and in the page where `inline`."""

    heading: str
    name: str
    draw: Callable[[], Figure]
    alt: str
    inline: bool = False

    macro: ClassVar[str] = "picture_part"

    @property
    def source(self) -> str:
        """The picture as a data URI; empty where the page leaves it to the folder, or it cannot be drawn."""
        png = picture(self.name, self.draw) if self.inline else None
        return "" if png is None else inline(png)


@dataclass(frozen=True)
class Custom:
    """A section that only one kind of page has, by its template's macro; a notebook and a terminal leave it out."""

    heading: str
    macro: str
    values: Mapping[str, Any]


Section = Sentences | Facts | Heatmaps | Table | Shaded | Picture | Custom
S = TypeVar("S")


@dataclass(frozen=True)
class Page:
    """A result, ready to be shown.

    Attributes:
        kind: Of report, as the manifest has it: ``sweep``, ``heads`` ...
        about: The few facts of the page's header.
        cautions: What has to be known before anything else: that it was interrupted, what was left out.
        call: The call that draws its figure, such as ``interp.plots.sweep(result)``.
        frames: What the folder holds as ``NAME.csv`` and ``NAME.parquet``.
        draws: What the folder holds as ``figures/NAME.png``.
        data: What the page's script reads, by its element's id.
        files: What else the folder holds, as text by its path.
        back: The address of the page that this one belongs to, and its name; empty for a page by itself.
    """

    title: str
    kind: str
    sections: Sequence[Section]
    provenance: Mapping[str, Any]
    about: Sequence[str] = ()
    cautions: Sequence[str] = ()
    call: str = ""
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    draws: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    back: tuple[str, ...] = ()

    def first(self, kind: type[S]) -> S | None:
        """The first section of a kind."""
        return next((each for each in self.sections if isinstance(each, kind)), None)


def page_of(result: Any) -> Page:
    """The page of any result.

    Raises:
        InputError: It is no result.
    """
    shown_by = getattr(type(result), "shown_by", None)
    if shown_by is None:
        raise InputError(f"expected a result of a method, such as interp.ablate, got a {type(result).__name__}")
    names_it = next(each for each in type(result).__mro__ if "shown_by" in vars(each))
    inside = names_it.__module__.startswith("interp.")
    page: Page = import_module(f"interp.report.{shown_by}" if inside else shown_by).page_of(result)
    return page
