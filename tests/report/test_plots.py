from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.patches import Rectangle

from interp.report.heads_figures import heads, overview
from interp.report.heads_frames import layer_by_head
from interp.report.heatmap import heatmap


def changed(report, **columns):
    return replace(report, cells=report.cells.assign(**columns))


@pytest.mark.parametrize("measure", ["attention", "effect", "probe"])
def test_layers_go_down_and_heads_across(make_report, measure):
    ax = heads(make_report(), "agreement", measure).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2", "3"]
    assert ax.yaxis_inverted()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("head", "layer")


def test_effects_are_centred_on_zero_and_attention_runs_from_0_to_1(make_report):
    low, high = heads(make_report(), "agreement").axes[0].collections[0].get_clim()
    assert low == -high
    assert heads(make_report(), "agreement", "attention").axes[0].collections[0].get_clim() == (0.0, 1.0)


def test_missing_values_are_hatched_and_never_annotated(make_report):
    figure = heads(changed(make_report(), excess=np.nan), "agreement", "attention")
    hatched = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle) and patch.get_hatch()]
    assert len(hatched) == 12
    assert not [text for text in figure.axes[0].texts if text.get_text()]
    assert "not testable" in [text.get_text() for text in figure.legends[0].texts]


def test_every_verdict_but_none_is_marked_once(make_report):
    report = make_report()
    verdicts = report.cells.loc[report.cells["task"] == "agreement", "verdict"]
    figure = heads(report, "agreement")
    marked = [tuple(point) for line in figure.axes[0].lines for point in line.get_xydata()]
    assert len(marked) == len(set(marked)) == (verdicts != "none").sum()
    assert {text.get_text() for text in figure.legends[0].texts} == set(verdicts) - {"none"}


def test_values_are_written_only_where_they_can_be_read(make_report):
    assert not heads(make_report(n_layers=12, n_heads=24), "agreement").axes[0].texts


def shown_in(ax) -> np.ndarray:
    return np.ma.filled(ax.collections[0].get_array(), np.nan).reshape(3, 4)


def test_page_and_figure_show_the_same_quantity(make_report):
    report, frame = make_report(), make_report().cells
    figure = heads(report, "agreement", "attention")
    ax = figure.axes[0]
    np.testing.assert_array_equal(shown_in(ax), layer_by_head(frame, "agreement", "excess"))
    assert "less the best" in figure.get_suptitle()
    page = heatmap(frame, "agreement", "excess", "attention")
    texts = [cell.text for _, row in page.rows for cell in row if cell.measured]
    assert texts == [text.get_text() for text in ax.texts]


def test_less_than_the_baseline_is_as_neutral_as_nothing(make_report):
    mesh = heads(make_report(), "agreement", "attention").axes[0].collections[0]
    assert mesh.to_rgba(-0.5) == mesh.to_rgba(0.0)


def test_an_annotation_has_no_minus_zero(make_report):
    texts = heads(changed(make_report(), effect=-0.001), "agreement").axes[0].texts
    assert {text.get_text() for text in texts} == {"0.00"}


def test_overview_has_both_kinds_of_evidence_for_every_task(make_report):
    report = make_report(tasks=("coreference", "agreement"))
    figure = overview(report)
    assert [ax.get_title() for ax in figure.axes[:2]] == ["coreference", "agreement"]
    above, below = figure.axes[1], figure.axes[3]
    np.testing.assert_array_equal(shown_in(above), layer_by_head(report.cells, "agreement", "excess"))
    np.testing.assert_allclose(shown_in(below), layer_by_head(report.cells, "agreement", "effect") / 5.1)


def test_overview_compares_tasks_by_their_own_scale(make_report):
    report = make_report(tasks=("agreement", "ioi"))
    small = report.tasks["task"] == "ioi"
    tasks = report.tasks.assign(base=np.where(small, 0.51, 5.1), base_low=np.where(small, 0.4, 4.9))
    ioi = report.cells["task"] == "ioi"
    first = report.cells[~ioi]["effect"].to_numpy()
    frame = report.cells.assign(effect=np.concatenate([first, first / 10]))
    axes = overview(replace(report, cells=frame, tasks=tasks)).axes
    np.testing.assert_allclose(shown_in(axes[2]), shown_in(axes[3]))


@pytest.mark.parametrize("n_tasks", [1, 2])
def test_the_legend_stays_inside_a_narrow_figure(make_report, n_tasks):
    report = make_report(tasks=("agreement", "ioi")[:n_tasks])
    long = ["causal, by another route", "attends and causal", "encodes, unused", "attends, not causal"]
    verdicts = [long[number % len(long)] for number in range(len(report.cells))]
    figure = overview(replace(report, cells=report.cells.assign(verdict=verdicts)))
    figure.draw_without_rendering()
    extent = figure.legends[0].get_window_extent()
    assert 0 <= extent.x0 < extent.x1 <= figure.bbox.width


def test_overview_says_what_a_share_is_of(make_report):
    report = make_report(tasks=("agreement", "ioi"))
    labels = [ax.get_ylabel() for ax in overview(report).axes]
    assert "effect of resampling\n(share of the model's\nlogit difference)" in labels
    mixed = report.tasks.assign(metric=["logit_difference", "sentence_log_probability"])
    labels = [ax.get_ylabel() for ax in overview(replace(report, tasks=mixed)).axes]
    assert "effect of resampling\n(share of the model's\nmetric)" in labels


def test_a_share_of_a_base_that_may_be_nothing_is_hatched(make_report):
    report = make_report(tasks=("agreement", "ioi"))
    figure = overview(replace(report, tasks=report.tasks.assign(base_low=[-0.1, 4.9])))
    hatched = [sum(isinstance(patch, Rectangle) for patch in ax.patches) for ax in figure.axes[2:4]]
    assert hatched == [12, 0]


@pytest.mark.parametrize("task", ["blimp:/tmp/$x/a$_{.jsonl", "a $\\frac{b$ c"])
def test_a_dollar_in_a_path_is_no_mathematics(make_report, task):
    report = make_report(tasks=(task,))
    for measure in ("attention", "effect"):
        heads(report, task, measure).draw_without_rendering()
    overview(report).draw_without_rendering()


def test_figures_name_a_file_by_its_stem(make_report):
    figure = overview(make_report(tasks=("blimp:/home/me/data/naïve_accord.jsonl",)))
    assert figure.axes[0].get_title() == "blimp:naïve_accord"


def test_a_frame_without_effects_can_be_drawn(make_report):
    report = changed(make_report(), effect=np.nan)
    heads(report, "agreement").draw_without_rendering()
    overview(report).draw_without_rendering()


def test_drawing_leaves_matplotlib_as_it_was(make_report):
    before = dict(mpl.rcParams)
    overview(make_report())
    assert dict(mpl.rcParams) == before


def test_noise_around_zero_stays_pale(make_report):
    quiet = changed(make_report(), effect=make_report().cells["effect"] / 1e4)
    assert heads(quiet, "agreement").axes[0].collections[0].get_clim() == (-1.0, 1.0)
