"""How does a figure show itself? As any of matplotlib's, and in a notebook without ``pyplot`` or ``%matplotlib``.

What do all figures have in common? Coloured cells with their numbers, verdicts as shapes, hatching, and text.

How are several things told apart in one figure? By their shape and, beside it, by a colour-blind safe colour.

Is this what a figure is drawn of? Anything else is refused in our words, before anything is drawn.
"""

import base64
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.figure
import matplotlib.style
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import Colormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from numpy.typing import ArrayLike

from interp.errors import InputError, shown, suggest
from interp.report.heads_frames import Verdict
from interp.report.words import legible

logger = logging.getLogger(__name__)
_INCH = 96
"""Pixels of a browser's inch; those of the picture are finer, for screens that have more."""


class Figure(matplotlib.figure.Figure):
    """One of matplotlib's that a notebook shows; ``pyplot`` knows nothing of it, so it need not be closed."""

    def draw(self, renderer: RendererBase) -> None:
        """Draw, with words as they are: TeX, where the settings ask for it, would take a token for a command."""
        for text in self.findobj(Text):
            text.set_usetex(False)
        with matplotlib.rc_context({"text.usetex": False}):  # some labels are made as they are drawn
            super().draw(renderer)

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """The picture, and how large it is shown."""
        wide, high = self.get_size_inches()
        return _png(self), {"width": round(_INCH * wide), "height": round(_INCH * high)}


@contextmanager
def ordinary_style() -> Iterator[None]:
    """Matplotlib's own settings: a report looks alike, and can be drawn, whatever a matplotlibrc or a style says.

    But for fonts, since what is drawn may be in a script that needs another. A context, and a decorator.
    """
    fonts: dict[str, Any] = {
        name: value for name, value in matplotlib.rcParams.items() if name.startswith("font.") and name != "font.size"
    }
    with matplotlib.style.context(["default", fonts]):
        yield


Draws = Mapping[str, Callable[[], matplotlib.figure.Figure]]
"""What draws each figure, by its name."""


def picture(name: str, draw: Callable[[], matplotlib.figure.Figure], dpi: float | None = None) -> bytes | None:
    """A figure as a PNG with `dpi` pixels for an inch, or its own number of them.

    None where it cannot be drawn: numbers are not lost for want of a picture.
    """
    try:
        return _png(draw(), dpi)
    except Exception as error:  # whatever matplotlib, a font or a backend raises
        logger.warning("picture %r cannot be drawn (%s: %s); all else is kept", name, type(error).__name__, error)
        return None


def write_pictures(draws: Draws, folder: Path, dpi: float | None = None) -> None:
    """Write what can be drawn into `folder`, which is made, as ``{name}.png``."""
    folder.mkdir(exist_ok=True)
    for name, draw in draws.items():
        if (png := picture(name, draw, dpi)) is not None:
            (folder / f"{name}.png").write_bytes(png)


def inline(png: bytes) -> str:
    """A picture as a data URI: what it stands in needs no other file."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _png(figure: matplotlib.figure.Figure, dpi: float | None = None) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi="figure" if dpi is None else dpi)
    return held.getvalue()


_MOST_ANNOTATED = 200
_LONGEST_LABEL, _LONGEST_TITLE = 100, 300
UNMEASURED = "////"


def draw_table(
    ax: Axes,
    table: pd.DataFrame,
    *,
    cmap: Colormap,
    vmin: float,
    vmax: float,
    annotate: bool,
    cbar: bool,
    label: str = "",
    hatches: np.ndarray | None = None,
) -> None:
    """Draw a table of numbers as coloured cells, the first row on top; its index and columns are the ticks' labels.

    Numbers are annotated as far as there is room; `label` stands at the bar of the colours. What is missing is hatched,
    each place in its own way where `hatches` are given.
    """
    values = table.astype(float)
    sns.heatmap(
        values,
        ax=ax,
        cmap=cmap,
        vmin=vmin,
        vmax=vmax,
        # Adding 0 takes the sign from -0.00.
        annot=values.round(2) + 0.0 if annotate and is_annotated(values) else None,
        fmt=".2f",
        annot_kws={"fontsize": 8, "va": "bottom"},
        linewidths=0.5,
        linecolor="white",
        square=not annotate,
        cbar=cbar,
        cbar_kws={"label": label},
        xticklabels=False,
        yticklabels=False,
    )
    # Seaborn would draw the whole figure for every panel, to see whether its labels overlap.
    ax.set_xticks(np.arange(values.shape[1]) + 0.5, labels=list(map(label_text, values.columns)), parse_math=False)
    ax.set_yticks(np.arange(values.shape[0]) + 0.5, labels=list(map(label_text, values.index)), parse_math=False)
    for row, column in np.argwhere(values.isna().to_numpy()).tolist():
        hatch = UNMEASURED if hatches is None else str(hatches[row, column])
        ax.add_patch(Rectangle((column, row), 1, 1, facecolor="0.92", edgecolor="0.6", hatch=hatch, linewidth=0))
    ax.tick_params(length=0)


def is_annotated(table: pd.DataFrame) -> bool:
    """Whether there is room for numbers in the cells."""
    return table.size <= _MOST_ANNOTATED


def hatching(hatch: str = UNMEASURED) -> Patch:
    """A hatched swatch, for a legend."""
    return Patch(facecolor="0.92", edgecolor="0.6", hatch=hatch, linewidth=0)


def verdict_marker(verdict: Verdict, x: ArrayLike = (), y: ArrayLike = ()) -> Line2D:
    """A verdict's shape at every (x, y), edged black or white so that it shows on any colour."""
    with rc_context({"text.usetex": False}):  # some shapes are letters, which TeX, if asked for, would set
        return Line2D(
            x,
            y,
            linestyle="none",
            marker=verdict.marker,
            markersize=11 if verdict.marker == "*" else 7,  # of a star, little is filled
            markerfacecolor="black" if verdict.filled else "white",
            markeredgecolor="white" if verdict.filled else "black",
            markeredgewidth=0.4 if verdict.filled else 1.2,
        )


def mark_cells(
    ax: Axes, marks: np.ndarray, verdicts: Mapping[str, Verdict], down: float = 0.5, scale: float = 1.0
) -> dict[str, Artist]:
    """Draw each verdict's shape in its cells, `down` from their tops, `scale` as large; what a legend shows of them."""
    handles: dict[str, Artist] = {}
    for name in (each for each in verdicts if each != "none" and (marks == each).any()):
        rows, columns = np.nonzero(marks == name)
        mark = verdict_marker(verdicts[name], columns + 0.5, rows + down)
        mark.set(markersize=scale * mark.get_markersize(), markeredgewidth=scale * mark.get_markeredgewidth())
        ax.add_line(mark)
        handles[verdicts[name].name] = verdict_marker(verdicts[name])
    return handles


def legend(figure: matplotlib.figure.Figure, handles: Mapping[str, Artist], n_columns: int = 2) -> None:
    """What shapes and hatches mean, below the panels; nothing where there are none."""
    if handles:
        where: dict[str, Any] = {"loc": "outside lower center", "fontsize": 8, "frameon": False}
        figure.legend(list(handles.values()), list(handles), ncols=n_columns, **where)


def short(text: str, most: int) -> str:
    """The text, legible, in `most` characters; an ellipsis stands for the rest."""
    shown = legible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def label_text(name: object) -> str:
    """What a row or a column is called in a figure."""
    return short(str(name), _LONGEST_LABEL)


def wrapped_title(ax: Axes, text: str) -> None:
    """A title that begins where the axes do, in as many lines as it takes."""
    shown = short(text, _LONGEST_TITLE)
    # Matplotlib measures what it wraps as mathematics, whatever else it is told.
    ax.set_title(shown, fontsize=9, loc="left", parse_math=False, wrap="$" not in shown)


def despined(ax: Axes, *, left: bool = False) -> None:
    """Take the frame away but for the axes that are read."""
    sns.despine(ax=ax, left=left)
    ax.tick_params(labelsize=8)


def one_panel(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of so many inches, and the only axes that it has."""
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    return figure, figure.subplots()


def finish(ax: Axes, title: str, across: str, up: str = "", *, rows: Sequence[str] | None = None) -> None:
    """Name the axes and what they show, and take the frame away; `rows`, if any, are named from the top."""
    ax.set_xlabel(across, fontsize=9)
    ax.set_ylabel(up, fontsize=9)
    despined(ax, left=rows is not None)
    wrapped_title(ax, title)
    if rows is not None:
        ax.set_yticks(np.arange(len(rows)), labels=rows, parse_math=False)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)


def thin_ticks(ax: Axes, most: int = 26) -> None:
    """Name every second, third ... row and column only, where they are too many to be read."""
    for axis in (ax.xaxis, ax.yaxis):
        places, texts = axis.get_ticklocs(), axis.get_ticklabels()
        every = -(-len(places) // most)
        if every > 1:
            axis.set_ticks(places[::every], labels=[each.get_text() for each in texts[::every]], parse_math=False)


LINE = "#1b6ca8"
SHAPES = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">")
MOST = len(SHAPES)


def style(number: int) -> dict[str, Any]:
    """The shape and the colour of the first thing (0), the second and so on; of each of ten they are its own."""
    return {"marker": SHAPES[number % MOST], "color": sns.color_palette("colorblind")[number % MOST]}


def diverging() -> Colormap:
    """From red (below) by white to blue (above): told apart by who sees no red or no green, too."""
    return sns.color_palette("RdBu", as_cmap=True)


def require(given: object, attributes: Iterable[str], what: str, made_by: str) -> None:
    """Refuse what lacks an attribute of a result; the message says `what` is drawn, and by which call it is made."""
    missing = [name for name in attributes if not hasattr(given, name)]
    if missing:
        raise InputError(
            f"{what}: expected what {made_by} returns, got a {type(given).__name__} without .{missing[0]}; make it "
            f"with {made_by}"
        )


def require_rows(frame: object, columns: Sequence[str], what: str, made_by: str) -> pd.DataFrame:
    """The frame; one that is none, lacks a column or has no row is refused, as ``require`` does."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{what}: expected a DataFrame, got a {type(frame).__name__}; make it with {made_by}")
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InputError(
            f"{what}: expected the columns {', '.join(columns)}, got none called {', '.join(missing)}; make it with "
            f"{made_by}"
        )
    if frame.empty:
        raise InputError(f"{what}: expected a row at least, got an empty frame; there is nothing to draw")
    return frame


def chosen(what: str, given: Any, known: Sequence[Any]) -> Any:
    """The one that is given, or the only one that is known; refuses an unknown one, and None of several."""
    if given is None and len(known) == 1:
        return known[0]
    if given is None:
        raise InputError(f"{what}: expected one of {_listed(known)}, got none; say which")
    if given not in known:
        raise InputError(f"{what}: {shown(given)} is unknown; {suggest(str(given), map(str, known))}")
    return given


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(shown(each) for each in names[:8]) + (", ..." if len(names) > 8 else "")
