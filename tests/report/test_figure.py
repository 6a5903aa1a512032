from io import BytesIO

from IPython.core.formatters import PNGFormatter
from matplotlib import image

from interp.report.figure import Figure


def test_a_notebook_shows_a_figure_without_being_told_to():
    figure = Figure(figsize=(2, 1), dpi=150)
    picture, shown = PNGFormatter()(figure)
    assert image.imread(BytesIO(picture)).shape[:2] == (150, 300)
    assert shown == {"width": 192, "height": 96}
