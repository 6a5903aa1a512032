"""The figures of probes, read back from what was drawn."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic_probes import probing, with_cell

from interp.report.probes_figures import figures, map_of_heads, probe_map, probes
from interp.report.words import decimal

THREE = {(1, 2): "encodes", (0, 1): "undecided"}
MARKED = {"majority", "embedding of the word", "position", "untrained model", "permuted labels", "control task"}


def labels(axis):
    return [each.get_text() for each in axis.get_ticklabels()]


def drawn(ax):
    return {line.get_label(): line for line in ax.lines}


def legend(figure):
    return [each.get_text() for each in figure.legends[0].get_texts()]


@pytest.mark.parametrize(("column", "ends"), [("score", (0.5, 1.0)), ("selectivity", (0.0, 0.5))])
def test_heads_are_coloured_from_the_majority_up_and_marked(column, ends):
    result = probing(THREE)
    figure = probe_map(result, column)
    ax = figure.axes[0]
    assert (labels(ax.yaxis), labels(ax.xaxis)) == (["0", "1"], ["0", "1", "2"])
    mesh = ax.collections[0]
    assert np.allclose(mesh.get_array().reshape(2, 3), result.cells[column].to_numpy().reshape(2, 3))
    assert mesh.get_clim() == ends
    places = {line.get_marker(): list(zip(*line.get_data(), strict=True)) for line in ax.lines}
    assert places == {"o": [(2.5, 1.72)], r"$\mathbf{?}$": [(1.5, 0.72)]}
    assert legend(figure) == ["encodes", "undecided"]
    assert "number in z of <b>tiny</b>" in figure.get_suptitle()
    figure.canvas.draw()


def test_page_and_figure_show_the_same_numbers():
    result = probing(THREE)
    shown = [cell.text for _, row in map_of_heads(result, "score").heatmap().rows for cell in row]
    assert shown == [text.get_text() for text in probe_map(result, "score").axes[0].texts]
    assert shown == [decimal(each) for each in result.cells["score"]]


def test_heads_that_were_not_probed_are_hatched_and_said_to_be():
    result = probing({(1, 2): "none"})
    absent = replace(result, cells=result.cells.drop(index=[1]))
    figure = probe_map(absent, "score")
    assert len([patch for patch in figure.axes[0].patches if patch.get_hatch()]) == 1
    assert legend(figure) == ["not measured"]


def test_without_verdicts_to_mark_there_is_no_legend():
    assert probe_map(probing({}), "score").legends == []


def test_the_best_heads_stand_beside_all_of_their_controls():
    figure = probes(probing(THREE))
    ax = figure.axes[0]
    assert labels(ax.yaxis)[:2] == ["head 1.2", "head 0.1"]
    lines = drawn(ax)
    assert MARKED | {"score, known words"} <= set(lines)
    assert lines["untrained model"].get_xdata() == pytest.approx([0.53] * 6)
    assert lines["permuted labels"].get_xdata() == pytest.approx([0.48] * 6)
    assert lines["score, known words"].get_xdata()[0] == pytest.approx(0.9488)
    scores = {name: np.asarray(lines[f"score, {name}"].get_xdata()) for name in ("encodes", "not shown to encode")}
    assert scores["encodes"][0] == pytest.approx(0.9288)
    assert [list(np.flatnonzero(np.isfinite(each))) for each in scores.values()] == [[0], [1, 2, 3, 4, 5]]
    assert list(lines["score, encodes"].get_ydata()) == list(range(6))
    assert set(legend(figure)) == set(lines)
    assert ax.get_xlabel() == "accuracy; lines are 95 % intervals"
    first = ax.collections[0].get_segments()[0]
    assert first[:, 0].tolist() == pytest.approx([0.8788, 0.9788])
    assert "scores beside the controls" in ax.get_title("left")


def test_no_two_controls_hide_each_other():
    ax = probes(probing(THREE)).axes[0]
    heights = [round(float(drawn(ax)[name].get_ydata()[0]), 6) for name in MARKED]
    assert len(set(heights)) == len(MARKED)
    assert max(map(abs, heights)) < 0.5


def test_of_very_many_heads_the_best_are_drawn_and_the_title_says_so():
    ax = probes(probing({(3, 5): "encodes"}, shape=(12, 12))).axes[0]
    assert len(labels(ax.yaxis)) == 12
    assert labels(ax.yaxis)[0] == "head 3.5"
    assert "the best 12 of 144 heads beside the controls" in ax.get_title("left")


def test_what_was_not_measured_is_not_drawn():
    ax = probes(with_cell(probing(), None, untrained=np.nan)).axes[0]
    assert "untrained model" not in drawn(ax)
    assert "embedding of the word" in drawn(ax)


def test_scores_of_few_units_have_no_intervals_and_are_drawn():
    ax = probes(with_cell(probing(), None, low=np.nan, high=np.nan)).axes[0]
    assert np.isfinite(ax.get_xlim()).all()


def test_a_variance_far_below_0_is_drawn_at_the_edge_and_said_to_be():
    result = with_cell(probing(measure="R2"), 0, permuted=-30.0)
    ax = probes(result).axes[0]
    assert min(drawn(ax)["permuted labels"].get_xdata()) == -1.0
    assert ax.get_xlabel() == "R²; what is below -1.00 is drawn there; lines are 95 % intervals"
    assert probes(probing(measure="R2")).axes[0].get_xlabel() == "R²; lines are 95 % intervals"


def test_layers_are_a_curve_with_its_interval_and_controls_as_lines():
    result = with_cell(probing(heads=False, shape=(3, 1)), 2, verdict="undecided")
    figure = probe_map(result, "score")
    ax = figure.axes[0]
    lines = drawn(ax)
    assert lines["score"].get_ydata() == pytest.approx(result.cells["score"])
    assert lines["untrained model"].get_ydata() == pytest.approx([0.53] * 3)
    assert lines["majority,\nembedding of the word,\nposition"].get_ydata() == pytest.approx([0.5] * 3)
    assert [list(lines[name].get_xdata()) for name in ("encodes", "undecided", "none")] == [[1], [2], [0]]
    assert lines["encodes"].get_markerfacecolor() != lines["undecided"].get_markerfacecolor() == "white"
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(result.cells["low"].min())
    assert band[:, 1].max() == pytest.approx(result.cells["high"].max())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("layer", "accuracy")
    assert [tick for tick in ax.get_xticks() if tick != int(tick)] == []
    figure.canvas.draw()


def test_the_selectivity_of_layers_is_held_against_0():
    result = probing(heads=False, shape=(3, 1))
    ax = probe_map(result, "selectivity").axes[0]
    assert drawn(ax)["selectivity"].get_ydata() == pytest.approx(result.cells["selectivity"])
    assert not MARKED & set(drawn(ax))
    assert any(list(line.get_ydata()) == [0, 0] for line in ax.lines)


def test_which_figures_there_are():
    assert list(figures(probing())) == ["controls", "score", "selectivity"]
    assert list(figures(probing(heads=False))) == ["controls", "score", "selectivity"]
    assert list(figures(probing({(0, 0): "none"}, shape=(1, 1)))) == ["controls"]


def test_names_of_features_are_no_mathematics():
    for draw in figures(probing(feature="$x^", of_task=False)).values():
        figure = draw()
        figure.canvas.draw()
        assert "$x^" in figure.get_suptitle() + figure.axes[0].get_title("left")
