"""Is all of a figure within its edges?"""

_SLACK = 3
"""Pixels that an estimate of a text's size may be wrong by."""


def cut_off(figure):
    """What is drawn of a figure beyond its edges: panels with their labels and titles, legends and texts."""
    figure.draw_without_rendering()
    renderer = figure._get_renderer()
    wide, high = figure.bbox.size
    panels = [ax for ax in figure.axes if ax.axison or ax.get_title()]
    found = []
    for each in (*panels, *figure.legends, *figure.texts):
        box = each.get_tightbbox(renderer)
        if box.x0 < -_SLACK or box.y0 < -_SLACK or box.x1 > wide + _SLACK or box.y1 > high + _SLACK:
            found.append((each, box.extents.round().tolist(), (wide, high)))
    return found
