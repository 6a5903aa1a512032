import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.patches import Rectangle

from interp.report.frames import layer_by_head
from interp.report.plots import attention_heatmap, effect_heatmap, overview


@pytest.mark.parametrize("draw", [attention_heatmap, effect_heatmap])
def test_layers_go_down_and_heads_across(make_report, draw):
    ax = draw(make_report().frame, "agreement").axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2", "3"]
    assert ax.yaxis_inverted()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("head", "layer")


def test_the_colours_carry_the_frame(make_report):
    frame = make_report().frame
    mesh = effect_heatmap(frame, "agreement").axes[0].collections[0]
    values = np.ma.filled(mesh.get_array(), np.nan).reshape(3, 4)
    np.testing.assert_array_equal(values, layer_by_head(frame, "agreement", "effect"))


def test_effects_are_centred_on_zero_and_attention_runs_from_0_to_1(make_report):
    frame = make_report().frame
    low, high = effect_heatmap(frame, "agreement").axes[0].collections[0].get_clim()
    assert low == -high
    assert attention_heatmap(frame, "agreement").axes[0].collections[0].get_clim() == (0.0, 1.0)


def test_missing_values_are_hatched_and_never_annotated(make_report):
    frame = make_report().frame.assign(attention=np.nan)
    figure = attention_heatmap(frame, "agreement")
    hatched = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle) and patch.get_hatch()]
    assert len(hatched) == 12
    assert not [text for text in figure.axes[0].texts if text.get_text()]
    assert "not testable" in [text.get_text() for text in figure.legends[0].texts]


def test_every_verdict_but_none_is_marked_once(make_report):
    frame = make_report().frame
    verdicts = frame.loc[frame["task"] == "agreement", "verdict"]
    figure = effect_heatmap(frame, "agreement")
    marked = [tuple(point) for line in figure.axes[0].lines for point in line.get_xydata()]
    assert len(marked) == len(set(marked)) == (verdicts != "none").sum()
    assert {text.get_text() for text in figure.legends[0].texts} == set(verdicts) - {"none"}


def test_values_are_written_only_where_they_can_be_read(make_report):
    large = make_report(n_layers=12, n_heads=24).frame
    assert not effect_heatmap(large, "agreement").axes[0].texts


def test_overview_has_both_kinds_of_evidence_for_every_task(make_report):
    report = make_report()
    figure = overview(report.frame, ["coreference", "agreement"])
    assert [ax.get_title() for ax in figure.axes[:2]] == ["coreference", "agreement"]
    above, below = figure.axes[1].collections[0], figure.axes[3].collections[0]
    np.testing.assert_array_equal(
        np.ma.filled(above.get_array(), np.nan).reshape(3, 4), layer_by_head(report.frame, "agreement", "attention")
    )
    np.testing.assert_array_equal(
        np.ma.filled(below.get_array(), np.nan).reshape(3, 4), layer_by_head(report.frame, "agreement", "effect")
    )


def test_a_frame_without_effects_can_be_drawn(make_report):
    frame = make_report().frame.assign(effect=np.nan)
    effect_heatmap(frame, "agreement").draw_without_rendering()
    overview(frame).draw_without_rendering()


def test_drawing_leaves_matplotlib_as_it_was(make_report):
    before = dict(mpl.rcParams)
    overview(make_report().frame)
    assert dict(mpl.rcParams) == before


def test_noise_around_zero_stays_pale(make_report):
    frame = make_report().frame
    quiet = frame.assign(effect=frame["effect"] / 1e4)
    assert effect_heatmap(quiet, "agreement").axes[0].collections[0].get_clim() == (-1.0, 1.0)
