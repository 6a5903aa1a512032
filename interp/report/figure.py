"""How does a figure show itself? As any of matplotlib's, and in a notebook without ``pyplot`` or ``%matplotlib``."""

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.figure
import matplotlib.style
from matplotlib.backend_bases import RendererBase
from matplotlib.text import Text

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


def inline(figure: matplotlib.figure.Figure, dpi: float | None = None) -> str:
    """The picture as a data URI: what it stands in needs no other file.

    Args:
        figure: Any of matplotlib's.
        dpi: Pixels for an inch; None for the figure's own.
    """
    return "data:image/png;base64," + base64.b64encode(_png(figure, dpi)).decode()


def _png(figure: matplotlib.figure.Figure, dpi: float | None = None) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi="figure" if dpi is None else dpi)
    return held.getvalue()
