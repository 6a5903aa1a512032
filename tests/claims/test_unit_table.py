import numpy as np
import pandas as pd
import pytest

from interp.claims.bootstrap import contributions
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError


def table(values, clusters, strata=None):
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    return UnitTable(values, list(map(str, clusters)), strata or ["one"] * len(values), pd.RangeIndex(values.shape[1]))


def test_estimate_is_the_mean_of_the_stratum_means():
    units = table([1, 1, 1, 5], "abcd", ["x", "x", "x", "y"])
    assert estimates(units) == pytest.approx([3.0])


def test_what_was_not_measured_leaves_the_mean():
    units = table([[1, np.nan], [3, np.nan], [np.nan, np.nan]], "abc", ["x", "x", "y"])
    assert estimates(units)[0] == pytest.approx(2.0)
    assert np.isnan(estimates(units)[1])
    assert units.n_units.tolist() == [2, 0]
    assert units.n_clusters.tolist() == [2, 0]


def test_standard_error_without_clustering_is_the_textbook_one():
    values = np.random.default_rng(0).normal(size=50)
    assert contributions(table(values, range(50))).standard_error == pytest.approx([values.std(ddof=1) / np.sqrt(50)])


def test_standard_error_of_copies_does_not_shrink():
    values = np.random.default_rng(0).normal(size=30)
    once, tenfold = table(values, range(30)), table(np.repeat(values, 10), np.repeat(range(30), 10))
    assert contributions(tenfold).standard_error == pytest.approx(contributions(once).standard_error)


def test_from_frame_averages_the_examples_of_a_unit():
    frame = pd.DataFrame(
        {
            "layer": 0,
            "head": [0, 0, 0, 1, 1, 1],
            "unit": [7, 7, 3, 7, 7, 3],
            "cluster": ["b", "b", "a", "b", "b", "a"],
            "template": "t",
            "effect": [1.0, 3.0, 5.0, 0.0, np.nan, np.nan],
        }
    )
    units = UnitTable.from_frame(frame, "effect")
    assert units.clusters == ("a", "b")
    assert list(units.cells) == [(0, 0), (0, 1)]
    np.testing.assert_array_equal(units.values, [[5.0, np.nan], [2.0, 0.0]])


def test_parts_of_different_length_are_refused():
    with pytest.raises(InputError, match=r"expected values \(2, 1\).*got values \(3, 1\)"):
        UnitTable(np.zeros((3, 1)), ["a", "b"], ["x", "x"], pd.RangeIndex(1))
