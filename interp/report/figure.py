"""How does a figure show itself? As any of matplotlib's, and in a notebook without ``pyplot`` or ``%matplotlib``."""

import io
from typing import Any

import matplotlib.figure

_INCH = 96
"""Pixels of a browser's inch; those of the picture are finer, for screens that have more."""


class Figure(matplotlib.figure.Figure):
    """One of matplotlib's that a notebook shows; ``pyplot`` knows nothing of it, so it need not be closed."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """The picture, and how large it is shown."""
        held = io.BytesIO()
        self.savefig(held, format="png")
        wide, high = self.get_size_inches()
        return held.getvalue(), {"width": round(_INCH * wide), "height": round(_INCH * high)}
