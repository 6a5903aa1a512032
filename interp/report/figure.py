"""How does a figure show itself in a notebook? As the picture that it is, without ``%matplotlib inline``.

IPython draws the figures of ``pyplot``, once it has been used, and no others. Figures here are made without it, so that
none is kept, nothing is set for other figures, and many may be drawn side by side.
"""

import io

from matplotlib.figure import Figure as _Figure

_INCH = 96
"""Pixels of a browser's inch: a figure is shown as large as it was made, however finely it is drawn."""


class Figure(_Figure):
    """A ``matplotlib.figure.Figure`` that a notebook shows."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture, and how large it is shown."""
        held = io.BytesIO()
        self.savefig(held, format="png")
        wide, high = self.get_size_inches()
        return held.getvalue(), {"width": round(wide * _INCH), "height": round(high * _INCH)}
