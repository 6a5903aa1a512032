"""How are several things told apart in one figure? By their shape and, beside it, by a colour-blind safe colour."""

from typing import Any

import seaborn as sns
from matplotlib.colors import Colormap

LINE = "#1b6ca8"
SHAPES = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">")
MOST = len(SHAPES)


def style(number: int) -> dict[str, Any]:
    """The shape and the colour of the first thing (0), the second and so on; of each of ten they are its own."""
    return {"marker": SHAPES[number % MOST], "color": sns.color_palette("colorblind")[number % MOST]}


def diverging() -> Colormap:
    """From red (below) by white to blue (above): told apart by who sees no red or no green, too."""
    return sns.color_palette("RdBu", as_cmap=True)
