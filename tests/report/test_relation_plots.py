"""The figures of heads against relations, read back from what was drawn."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from synthetic_relations import TO_DEPENDENT, TO_HEAD, scoring

from interp.report.heatmap import contrast
from interp.report.relations_figures import paint_excess, relation_baselines, relations

TWO = {("nsubj", TO_DEPENDENT): "attends", ("$obj$", TO_HEAD): "none"}


def labels(axis):
    return [each.get_text() for each in axis.get_ticklabels()]


def ends_of(ax):
    """Of every interval that is drawn."""
    segments = (segment for lines in ax.collections for segment in lines.get_segments())
    return [each[:, 0].tolist() for each in segments if len(each)]


def test_every_head_has_its_excess_and_those_that_attend_a_dot():
    figure = relations(scoring(TWO, causal=True))
    first, second = figure.axes[:2]
    assert (labels(first.xaxis), labels(first.yaxis)) == (["0", "1"], ["0", "1"])
    titles = [each.get_title().replace("\n", " ") for each in (first, second)]
    assert titles == ["nsubj, head to dependent (n\u00a0= 1,500)", "$obj$, dependent to head (n\u00a0= 1,500)"] or [
        each.replace("\u00a0", " ") for each in titles
    ] == ["nsubj, head to dependent (n = 1,500)", "$obj$, dependent to head (n = 1,500)"]
    assert np.allclose(first.collections[0].get_array(), [[-30, 20], [-31, -31.01]])
    assert np.allclose(second.collections[0].get_array(), [[-30, -10], [-31, -31.01]])
    (dots,) = [line for line in first.lines if line.get_marker() == "o"]
    assert list(zip(*dots.get_data(), strict=True)) == [(1.5, 0.5)]
    assert not second.lines
    assert "(looking back only)" in figure._suptitle.get_text()
    assert [each.get_text() for each in figure.legends[0].get_texts()] == ["attends"]
    figure.canvas.draw()


def test_without_a_head_that_attends_there_is_no_legend():
    figure = relations(scoring({("obj", TO_HEAD): "none"}))
    assert figure.legends == []
    assert "looking back" not in figure._suptitle.get_text()


def test_very_many_directions_are_cut_and_the_title_says_so():
    many = {(f"r{number}", TO_HEAD): {(number % 12, number % 7): "attends"} for number in range(40)}
    figure = relations(scoring(many, shape=(12, 12)))
    assert sum(ax.axison for ax in figure.axes) == 12 + 1
    assert "The first 12 of 40 directions." in figure._suptitle.get_text().replace("\n", " ")
    assert figure.get_figwidth() < 20
    other = relation_baselines(scoring(many, shape=(12, 12)))
    assert len(labels(other.axes[0].yaxis)) == 30
    assert "The first 30 of 40 directions." in other.axes[0].get_title("left")


def test_the_best_head_stands_beside_what_explains_it():
    result = scoring(TWO)
    result.relations["accuracy_offset"] = 0.45
    ax = relation_baselines(result).axes[0]
    drawn = {line.get_label(): [each for each in line.get_xdata() if each == each] for line in ax.lines}
    assert drawn["best head that attends"] == pytest.approx([70.0])
    assert drawn["best head"] == pytest.approx([40.0])
    assert drawn["best offset"] == [45.0, 45.0]
    assert drawn["rule that it is held against"] == [50.0, 50.0]
    assert drawn["best nearest part of speech"] == [40.0, 40.0]
    assert drawn["random other head of the layer"] == [21.0, 21.0]
    assert drawn["chance"] == [10.0, 10.0]
    assert ends_of(ax) == [pytest.approx([65, 75]), pytest.approx([35, 45])]
    assert ax.get_xlabel().endswith("lines are 95 % intervals of the lead over the best rule")
    assert labels(ax.yaxis)[0] == "nsubj, head to dependent: 0.1 (n = 1,500)"


def test_no_interval_reaches_beyond_all_pairs():
    result = scoring(TWO)
    result.cells[["low", "high"]] = (-0.6, 0.7)
    ax = relation_baselines(result).axes[0]
    assert ends_of(ax) == [[0.0, 100.0]] * 2


def test_where_nothing_was_scored_the_figures_say_so():
    nothing = scoring({("det", TO_HEAD): "not testable"})
    for figure in (relations(nothing), relation_baselines(nothing)):
        assert "no pair can be scored" in figure.axes[0].get_title("left")


def test_colours_tell_above_from_below_are_neutral_at_0_and_can_be_read():
    worst, below, zero, above, best = (paint_excess(each, 0.2) for each in (-0.9, -0.2, 0.0, 0.05, 0.3))
    assert (worst.light, zero.light, best.light) == ("#e3c98f", "#f6f7f8", "#1b6ca8")
    red, _, blue = to_rgb(below.light)
    assert red > blue
    red, _, blue = to_rgb(above.light)
    assert blue > red
    for paint in (worst, below, zero, above, best):
        light, light_ink, dark, dark_ink = re.findall("#[0-9a-f]{6}", paint.style)
        assert contrast(light, light_ink) >= 4.5
        assert contrast(dark, dark_ink) >= 4.5
