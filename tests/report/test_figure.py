from io import BytesIO

import matplotlib
import pytest
from cycler import cycler
from IPython.core.formatters import PNGFormatter
from matplotlib import image
from synthetic_heads import synthetic_report

import interp
from interp.report.drawing import Figure, ordinary_style

SETTINGS = [
    {"text.usetex": True},
    {"axes.prop_cycle": cycler(linestyle=["-", ":"])},
    {"figure.subplot.left": 0.9, "figure.subplot.right": 0.95, "figure.autolayout": True},
    {"font.family": ["no such font"]},
]


def test_a_notebook_shows_a_figure_without_being_told_to():
    figure = Figure(figsize=(2, 1), dpi=150)
    picture, shown = PNGFormatter()(figure)
    assert image.imread(BytesIO(picture)).shape[:2] == (150, 300)
    assert shown == {"width": 192, "height": 96}


def test_a_report_is_drawn_in_fonts_that_a_user_names():
    with matplotlib.rc_context({"font.family": ["DejaVu Serif"]}), ordinary_style():
        assert matplotlib.rcParams["font.family"] == ["DejaVu Serif"]


@pytest.mark.parametrize(
    "settings",
    [SETTINGS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in SETTINGS[1:])],
    ids=[next(iter(each)) for each in SETTINGS],
)
def test_a_report_is_drawn_alike_whatever_matplotlib_is_told(tmp_path, settings):
    report = synthetic_report(tasks=("agreement",))
    expected = report.save(tmp_path / "expected")
    with matplotlib.rc_context(settings):
        found = report.save(tmp_path / "found")
        assert all(matplotlib.rcParams[name] == value for name, value in settings.items())
    for picture in expected.rglob("*.png"):
        assert (found / picture.relative_to(expected)).read_bytes() == picture.read_bytes()


def test_a_figure_of_a_users_own_takes_no_token_for_tex(tmp_path):
    with matplotlib.rc_context({"text.usetex": True}):
        figure = interp.plots.overview(synthetic_report(tasks=("50 % of_{it",)))
        figure.savefig(tmp_path / "figure.png", bbox_inches="tight")
        assert figure._repr_png_()[0]


def test_a_picture_that_cannot_be_drawn_takes_nothing_with_it(tmp_path, monkeypatch, caplog):
    def broken(*_):
        raise ValueError("no backend is called 'foo'")

    report = synthetic_report(tasks=("agreement",))
    expected = report.save(tmp_path / "expected")
    monkeypatch.setattr("interp.report.heads.overview", broken)
    found = report.save(tmp_path / "found")
    files, all_files = ({each.relative_to(root) for each in root.rglob("*")} for root in (found, expected))
    assert {each.name for each in all_files - files} == {"overview.png"}
    assert (
        "picture 'overview' cannot be drawn (ValueError: no backend is called 'foo'); all else is kept" in caplog.text
    )


def test_what_a_notebook_shows_needs_no_picture(monkeypatch):
    report = synthetic_report(tasks=("agreement",))
    assert "<img" in report._repr_html_()
    monkeypatch.setattr("interp.report.heads.overview", lambda *_: 1 / 0)
    without = report._repr_html_()
    assert "<img" not in without
    assert "<table" in without
    assert "<li>" in without
