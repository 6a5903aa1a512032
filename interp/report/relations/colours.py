"""Which colour does an excess get? Blue above the best rule; below it sand that fades, so that near misses are seen.

The colour jumps at 0, where a head stops being worse than a rule without attention.
"""

from functools import cache

from matplotlib.colors import LinearSegmentedColormap, to_hex

from interp.report.colours import Paint, ink

FADED = 0.5
"""From this much below the rule on, a cell has no colour."""
_SCHEMES = {
    "light": ("#f6f7f8", "#f1dfba", "#d3e5f3", "#1b6ca8"),
    "dark": ("#1e2227", "#5c4a26", "#1f4563", "#6cc0ff"),
}


def paint_excess(value: float, bound: float) -> Paint:
    """The colours of one cell; beyond `bound` it gets the strongest."""
    share = (min(max(value, -FADED), bound) + FADED) / (bound + FADED)
    light, dark = (to_hex(excess_colours(bound, scheme)(share)) for scheme in _SCHEMES)
    return Paint(light, ink(light), dark, ink(dark))


@cache
def excess_colours(bound: float, scheme: str = "light") -> LinearSegmentedColormap:
    """The colours from ``-FADED`` to `bound`, for a ``light`` or a ``dark`` page."""
    least, below, above, most = _SCHEMES[scheme]
    zero = FADED / (FADED + bound)
    return LinearSegmentedColormap.from_list("excess", [(0.0, least), (zero, below), (zero, above), (1.0, most)])
