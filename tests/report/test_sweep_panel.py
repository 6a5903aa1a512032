"""Which cell of a sweep stands where in a table."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic_sweeps import shown_of, sweep

from interp.report.sweep_cells import panel, swept


@pytest.mark.parametrize(
    ("axes", "down", "across", "rows", "columns"),
    [
        ({"pos": ("BOS", "last"), "head": range(2)}, "head", "position", ["0", "1"], ["BOS", "last"]),
        ({"layer": range(2), "pos": ("BOS", "last")}, "layer", "position", ["0", "1"], ["BOS", "last"]),
        ({"layer": range(3)}, "", "layer", [""], ["0", "1", "2"]),
        (
            {"layer": range(2), "head": range(2), "pos": range(3)},
            *("head", "position", ["0.0", "0.1", "1.0", "1.1"], ["0", "1", "2"]),
        ),
        (
            {"layer": range(1), "head": range(2), "pos": range(2), "key": range(3)},
            *("head, position", "attention to", ["0.0, 0", "0.0, 1", "0.1, 0", "0.1, 1"], ["0", "1", "2"]),
        ),
    ],
)
def test_what_goes_down_and_what_goes_across(axes, down, across, rows, columns):
    grid, n_rows = panel(shown_of(axes, direction="denoise"))
    assert (grid.down, grid.across) == (down, across)
    assert (list(grid.values.index), list(grid.values.columns)) == (rows, columns)
    assert n_rows == len(rows)


def test_layers_go_down_and_heads_across_whatever_was_asked_first():
    grid, _ = panel(shown_of({"head": range(4), "layer": range(3)}, effect=np.arange(12.0)))
    assert (grid.down, grid.across) == ("layer", "head")
    assert (list(grid.values.index), list(grid.values.columns)) == (["0", "1", "2"], ["0", "1", "2", "3"])
    np.testing.assert_array_equal(grid.values, np.arange(12).reshape(4, 3).T)


def test_numbers_are_in_order_and_names_in_that_of_the_sweep():
    grid, _ = panel(shown_of({"layer": (2, 0), "head": (6, 1)}, effect=np.arange(4.0)))
    assert (list(grid.values.index), list(grid.values.columns)) == (["0", "2"], ["1", "6"])
    np.testing.assert_array_equal(grid.values, [[3, 2], [1, 0]])
    grid, _ = panel(shown_of({"layer": (2, 0), "pos": ("last", "BOS")}))
    assert list(grid.values.columns) == ["last", "BOS"]


def test_a_single_cell_and_a_table_that_is_too_wide_are_none():
    assert panel(shown_of({"layer": [1], "head": [2]})) is None
    assert panel(shown_of({"layer": range(2), "neuron": range(49)})) is None


def test_of_very_many_rows_the_strongest_are_kept_in_their_order():
    grid, n_rows = panel(shown_of({"layer": range(12), "head": range(12), "pos": range(2)}, direction="denoise"))
    assert (len(grid.values), n_rows) == (24, 144)
    assert list(grid.values.index[:2]) == ["0.0", "0.1"]


def test_what_is_missing_is_nan_and_said_to_be():
    result = sweep({"layer": range(2), "head": range(2)})
    examples = result.examples[(result.examples["layer"] == 0) | (result.examples["head"] == 1)]
    grid, _ = panel(swept(replace(result, examples=examples)))
    assert grid.values.iloc[0, 0] == -4.0
    assert np.isnan(grid.values.iloc[1, 0])
    assert (grid.absent[1, 0], grid.titles[1, 0], grid.marks[1, 0]) == ("not measured", "not measured", "")
