"""The figures of a sweep."""

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from synthetic_sweeps import screened, shown_of

from interp.report.sweep_cells import swept
from interp.report.sweep_figures import heatmap, strongest


def hatched(figure):
    return [each.get_hatch() for each in figure.axes[0].patches if isinstance(each, Rectangle) and each.get_hatch()]


def ticks(labels):
    return [label.get_text() for label in labels]


def test_the_colours_carry_the_cells_and_are_centred_on_nothing():
    shown = shown_of()
    mesh = heatmap(shown).axes[0].collections[0]
    np.testing.assert_allclose(np.asarray(mesh.get_array()).reshape(3, 4).ravel(), shown.cells["effect"])
    assert mesh.get_clim() == (-4.0, 4.0)


@pytest.mark.parametrize(
    ("direction", "label"),
    [
        ("denoise", "share of the clean run's answer\n0 corrupted, 1 clean"),
        ("noise", "change from the clean run\n0 none, -1 corrupted"),
    ],
)
def test_patching_is_centred_on_the_run_that_is_patched(direction, label):
    figure = heatmap(shown_of(direction=direction))
    assert figure.axes[0].collections[0].get_clim() == (-1.0, 1.0)
    assert figure.axes[1].get_ylabel() == label


def test_positions_carry_their_names_and_tokens_are_no_mathematics():
    assert ticks(heatmap(shown_of(direction="denoise")).axes[0].get_xticklabels()) == ["BOS", "related", "last"]
    tokens = [(0, "BOS", 1.0), (1, " $\\frac{", 1.0), (2, "cat", 0.5), (3, "BOS", 1.0)]
    figure = heatmap(shown_of({"layer": range(2), "pos": range(4)}, direction="noise", tokens=tokens))
    assert ticks(figure.axes[0].get_xticklabels()) == ["BOS", "$\\frac{", "2: cat…", "BOS"]
    figure.draw_without_rendering()


def test_what_could_not_change_is_hatched_by_its_reason_and_explained():
    figure = heatmap(shown_of(direction="denoise", state={0: "identical input", 3: "unreachable"}))
    assert sorted(hatched(figure)) == ["....", "xxxx"]
    assert {"identical input", "unreachable"} <= {text.get_text() for text in figure.legends[0].texts}


def test_cells_that_a_screen_left_out_are_hatched():
    figure = heatmap(swept(screened()))
    assert hatched(figure) == ["////"] * 6
    strongest(swept(screened())).draw_without_rendering()


def test_findings_are_marked():
    figure = heatmap(shown_of(p_adjusted=[1e-4, 1e-4, *[0.5] * 10]))
    marked = [tuple(point) for line in figure.axes[0].lines for point in line.get_xydata()]
    assert marked == [(0.5, 0.72), (1.5, 0.72)]
    texts = [text.get_text() for text in figure.legends[0].texts]
    assert texts == ["significant after correction", "significant after correction, but small"]


def test_the_strongest_come_first_and_a_short_axis_keeps_its_order():
    shown = shown_of({"layer": range(12), "head": range(12)})
    names = ticks(strongest(shown).axes[0].get_yticklabels())
    assert (len(names), names[0]) == (20, "head 0.0")
    shown = shown_of({"layer": range(3)}, effect=[0.1, -2.0, 0.3])
    names = ticks(strongest(shown).axes[0].get_yticklabels())
    assert names == ["layer 0", "layer 1", "layer 2"]


def test_an_interval_that_is_not_known_and_a_state_can_be_drawn():
    shown = shown_of({"layer": range(3)}, state={1: "no-op"}, low=np.nan, high=np.nan)
    figure = strongest(shown)
    figure.draw_without_rendering()
    assert " no-op" in [text.get_text() for text in figure.axes[0].texts]


def test_a_partial_sweep_is_called_so():
    shown = shown_of(complete=False)
    for figure in (heatmap(shown), strongest(shown)):
        assert "PARTIAL: 30 of 60 examples" in figure.get_suptitle() + figure.axes[0].get_title("left")
