"""Which cell of a sweep stands where in a table."""

import numpy as np
from synthetic_sweeps import shown_of

from interp.report.sweep_cells import Panel, panel


def test_layers_go_down_and_heads_across_whatever_was_asked_first():
    shown = panel(shown_of({"head": range(4), "layer": range(3)}))
    assert (shown.down, shown.across) == ("layer", "head")
    assert (shown.rows, shown.columns) == (("0", "1", "2"), ("0", "1", "2", "3"))
    np.testing.assert_array_equal(shown.numbers, np.arange(12).reshape(4, 3).T)


def test_positions_go_across_by_their_names():
    shown = panel(shown_of(direction="denoise"))
    assert (shown.down, shown.across) == ("layer", "position")
    assert shown.columns == ("BOS", "related", "last")


def test_each_head_has_a_row_of_positions():
    shown = panel(shown_of({"layer": range(2), "head": range(2), "pos": range(3)}, direction="denoise"))
    assert (shown.down, shown.across) == ("head", "position")
    assert shown.rows == ("0.0", "0.1", "1.0", "1.1")


def test_positions_and_heads_without_layers():
    shown = panel(shown_of({"pos": ("BOS", "last"), "head": range(2)}, direction="denoise"))
    assert (shown.down, shown.rows, shown.columns) == ("head", ("0", "1"), ("BOS", "last"))


def test_attention_to_each_position_goes_across():
    shown = panel(shown_of({"layer": range(2), "head": range(2), "pos": range(2), "key": range(3)}, direction="noise"))
    assert (shown.down, shown.across) == ("head, position", "attention to")
    assert shown.rows[:2] == ("0.0, 0", "0.0, 1")


def test_a_single_axis_is_a_single_row():
    shown = panel(shown_of({"layer": range(3)}))
    assert (shown.rows, shown.columns) == (("",), ("0", "1", "2"))


def test_a_single_cell_and_a_table_that_is_too_wide_are_none():
    assert panel(shown_of({"layer": [1], "head": [2]})) is None
    assert panel(shown_of({"layer": range(2), "neuron": range(49)})) is None


def test_of_very_many_rows_the_strongest_are_kept_in_their_order():
    shown = panel(shown_of({"layer": range(12), "head": range(12), "pos": range(2)}, direction="denoise"))
    assert (len(shown.rows), shown.n_rows) == (24, 144)
    assert shown.rows[:2] == ("0.0", "0.1")


def test_what_is_missing_is_nan():
    shown = shown_of()
    part = Panel("layer", "head", ("0",), ("0", "1"), np.array([[0, -1]]), 1)
    np.testing.assert_array_equal(part.values(shown.cells["effect"], np.nan), [[-4.0, np.nan]])
