"""Maps of heads hold the numbers of the frame, whatever the model's size, and refuse what is no map."""

import numpy as np
import pandas as pd
import pytest
from drawn_text import cut_off
from matplotlib.patches import Rectangle
from synthetic_heads import synthetic_report

from interp import plots
from interp.errors import InputError
from interp.report.heads_frames import layer_by_head

pytestmark = pytest.mark.unchecked


def drawn(figure, shape):
    return np.ma.filled(figure.axes[0].collections[0].get_array(), np.nan).reshape(shape)


def scores(n_layers=2, n_heads=3):
    cells = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    return pd.DataFrame(cells, columns=["layer", "head"]).assign(score=np.linspace(-0.5, 2, len(cells)))


@pytest.mark.parametrize(
    ("measure", "column"), [("attention", "excess"), ("effect", "effect"), ("probe", "probe_excess")]
)
def test_a_measure_is_a_column_of_the_report(measure, column):
    report = synthetic_report()
    figure = plots.heads(report, "agreement", measure)
    np.testing.assert_array_equal(drawn(figure, (3, 4)), layer_by_head(report.cells, "agreement", column))


def test_a_task_that_is_a_path_is_asked_for_by_it_and_called_by_its_stem():
    report = synthetic_report()
    figure = plots.heads(report, "blimp:données/naïve_accord.jsonl")
    assert figure.get_suptitle().startswith("blimp:naïve_accord\n")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "task: expected one of 'agreement', 'coreference', .*, got none; say which"),
        ({"task": "agreemnt"}, "task: 'agreemnt' is unknown; did you mean 'agreement'"),
        ({"task": "agreement", "measure": "efect"}, "measure: 'efect' is unknown; did you mean 'effect'"),
        ({"task": "coreference", "measure": "probe"}, "task 'coreference' was not probed"),
    ],
)
def test_what_the_report_does_not_have_is_refused(given, said):
    report = synthetic_report()
    report.cells.loc[report.cells["task"] == "coreference", "probe_excess"] = np.nan
    with pytest.raises(InputError, match=said):
        plots.heads(report, **given)


@pytest.mark.parametrize("draw", [plots.overview, plots.heads])
def test_what_is_no_report_is_refused(draw):
    with pytest.raises(InputError, match=r"expected what interp\.heads returns, got a DataFrame without"):
        draw(pd.DataFrame())


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (3, 4), (48, 25)])
def test_models_of_any_size_stay_within_a_screen(n_layers, n_heads):
    report = synthetic_report(n_layers=n_layers, n_heads=n_heads, tasks=("agreement", "ioi"))
    frame = scores(n_layers, n_heads)
    for figure in (plots.overview(report), plots.heads(report, "agreement"), plots.head_map(frame, "score")):
        assert max(figure.get_size_inches()) < 17
        assert cut_off(figure) == []
        for places in (figure.axes[0].get_xticks(), figure.axes[0].get_yticks()):
            assert 1 <= len(places) <= 26


def test_a_map_that_has_values_below_0_is_centred_on_0():
    mesh = plots.head_map(scores(), "score").axes[0].collections[0]
    assert mesh.get_clim() == (-2.0, 2.0)
    assert min(mesh.to_rgba(0.0)[:3]) > 0.95
    below, above = mesh.to_rgba(-2.0), mesh.to_rgba(2.0)
    assert below[0] > below[2]
    assert above[2] > above[0]


def test_a_map_without_any_runs_from_0():
    frame = scores().assign(score=lambda rows: rows["score"] + 0.5)
    assert plots.head_map(frame, "score").axes[0].collections[0].get_clim() == (0.0, 2.5)
    assert plots.head_map(frame, "score", signed=True, bound=4).axes[0].collections[0].get_clim() == (-4, 4)


@pytest.mark.parametrize("nothing", [np.nan, None, np.inf * 0])
def test_what_was_not_measured_is_hatched(nothing):
    figure = plots.head_map(scores().assign(score=nothing), "score")
    figure.draw_without_rendering()
    assert sum(isinstance(patch, Rectangle) and patch.get_hatch() == "////" for patch in figure.axes[0].patches) == 6
    assert [text.get_text() for text in figure.legends[0].texts] == ["not measured"]


@pytest.mark.parametrize(
    ("frame", "options", "said"),
    [
        (scores().head(0), {}, "got an empty frame"),
        (scores().drop(columns="head"), {}, "got none called head"),
        (pd.concat([scores(), scores()]), {}, "expected one row a head, got several of 0.0"),
        (scores().assign(score="high"), {}, "expected numbers in 'score', got 'high'"),
        (scores(), {"bound": 0}, "bound: expected a number above 0, got 0"),
        ([1, 2], {}, "expected a DataFrame, got a list"),
    ],
)
def test_what_is_no_map_is_refused(frame, options, said):
    with pytest.raises(InputError, match=said):
        plots.head_map(frame, "score", **options)
