"""How does a figure show itself? As any of matplotlib's, and in a notebook without ``pyplot`` or ``%matplotlib``."""

import base64
import io
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.figure
import matplotlib.style
from matplotlib.backend_bases import RendererBase
from matplotlib.text import Text

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


def pictures(draws: Draws, dpi: float | None = None) -> dict[str, bytes]:
    """Each figure as a PNG, but for those that cannot be drawn: numbers are not lost for want of a picture.

    Args:
        draws: By the figures' names.
        dpi: Pixels for an inch; None for each figure's own.
    """
    found = {}
    for name, draw in draws.items():
        try:
            found[name] = _png(draw(), dpi)
        except Exception as error:  # whatever matplotlib, a font or a backend raises
            logger.warning("picture %r cannot be drawn (%s: %s); all else is kept", name, type(error).__name__, error)
    return found


def write_pictures(draws: Draws, folder: Path, dpi: float | None = None) -> None:
    """Write what can be drawn into `folder`, which is made, as ``{name}.png``."""
    folder.mkdir(exist_ok=True)
    for name, png in pictures(draws, dpi).items():
        (folder / f"{name}.png").write_bytes(png)


def inline(png: bytes) -> str:
    """A picture as a data URI: what it stands in needs no other file."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _png(figure: matplotlib.figure.Figure, dpi: float | None = None) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi="figure" if dpi is None else dpi)
    return held.getvalue()
