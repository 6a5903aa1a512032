import numpy as np
import pandas as pd
import pytest
from scipy import stats

from interp.claims.bootstrap import cluster_bootstrap, contributions, groups_of
from interp.claims.units import UnitTable


def errors(table):
    return contributions(table).standard_error


def clustered(rng, *, cells, clusters=25, size=4, mean=0.0):
    """Units that share most of their noise with their cluster, in two strata of different means."""
    draws = rng.normal(size=(clusters, cells)).repeat(size, axis=0)
    stratum = np.tile([0, 1], clusters * size // 2)
    values = mean + draws + 0.5 * rng.normal(size=draws.shape) + np.where(stratum, 1.0, -1.0)[:, None]
    names = [str(each) for each in np.arange(clusters).repeat(size)]
    return UnitTable(values, names, [str(each) for each in stratum], pd.RangeIndex(cells))


def test_coverage_is_near_nominal():
    units = clustered(np.random.default_rng(1), cells=2000, mean=0.3)
    found = cluster_bootstrap(units, resamples=1000)
    covered = np.mean((found.low <= 0.3) & (found.high >= 0.3))
    assert 0.935 <= covered <= 0.965


def test_units_of_a_cluster_are_not_counted_as_independent():
    rng = np.random.default_rng(2)
    units = clustered(rng, cells=500, clusters=25, size=8)
    alone = UnitTable(units.values, [str(each) for each in range(len(units.values))], units.strata, units.cells)
    width = {name: np.median(cluster_bootstrap(each).high) for name, each in {"c": units, "u": alone}.items()}
    assert width["c"] > 1.8 * width["u"]


def test_agrees_with_students_t_where_that_is_right():
    values = np.random.default_rng(3).normal(size=(60, 1))
    units = UnitTable(values, [str(each) for each in range(60)], ["one"] * 60, pd.RangeIndex(1))
    found = cluster_bootstrap(units, resamples=20_000)
    expected = stats.ttest_1samp(values[:, 0], 0).confidence_interval()
    width = expected.high - expected.low
    assert found.low[0] == pytest.approx(expected.low, abs=0.05 * width)
    assert found.high[0] == pytest.approx(expected.high, abs=0.05 * width)


def test_order_of_the_units_does_not_matter():
    rng = np.random.default_rng(4)
    units = clustered(rng, cells=3)
    order = rng.permutation(len(units.values))
    shuffled = UnitTable(
        units.values[order],
        [units.clusters[each] for each in order],
        [units.strata[each] for each in order],
        units.cells,
    )
    one, other = cluster_bootstrap(units), cluster_bootstrap(shuffled)
    np.testing.assert_allclose(one.low, other.low)
    np.testing.assert_allclose(one.high, other.high)


def test_same_seed_same_interval():
    units = clustered(np.random.default_rng(5), cells=2)
    first, again, other = (cluster_bootstrap(units, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.low, again.low)
    assert not np.array_equal(first.low, other.low)


def test_exact_zero_and_unmeasured_cells():
    values = np.column_stack([np.zeros(30), np.full(30, np.nan), np.arange(30.0)])
    units = UnitTable(values, [str(each) for each in range(30)], ["one"] * 30, pd.RangeIndex(3))
    found = cluster_bootstrap(units)
    assert (found.low[0], found.high[0]) == (0.0, 0.0)
    assert np.isnan([found.estimate[1], found.low[1], found.high[1], errors(units)[1]]).all()
    assert found.low[2] < 14.5 < found.high[2]


def test_one_cluster_has_no_interval():
    units = UnitTable(np.ones((5, 1)), ["a"] * 5, ["one"] * 5, pd.RangeIndex(1))
    found = cluster_bootstrap(units)
    assert found.estimate[0] == 1.0
    assert np.isnan(found.low[0])
    assert np.isnan(found.high[0])


def test_a_stratum_of_one_cluster_has_no_spread_that_could_be_known():
    values = np.random.default_rng(6).normal(size=(41, 2))
    strata = ["many"] * 40 + ["single"]
    units = UnitTable(values, [str(each) for each in range(41)], strata, pd.RangeIndex(2))
    for known in (cluster_bootstrap(units).low, cluster_bootstrap(units).high, errors(units)):
        assert np.isnan(known).all()
    values[40, 0] = np.nan  # not measured there: the stratum is none of the first cell's
    found = cluster_bootstrap(units)
    assert np.isfinite([found.low[0], found.high[0], errors(units)[0]]).all()
    assert np.isnan([found.low[1], errors(units)[1]]).all()


def restricted(table, cells, clusters):
    """Some cells of a table, and only the units of some clusters."""
    kept = [number for number, each in enumerate(table.clusters) if each in clusters]
    return UnitTable(
        table.values[np.ix_(kept, cells)],
        [table.clusters[each] for each in kept],
        [table.strata[each] for each in kept],
        table.cells[cells],
    )


def with_absent_cells():
    """60 clusters in two strata: cells of all of them, of the first 25, and of 3, 5 and 8 in one stratum only."""
    table = clustered(np.random.default_rng(8), cells=7, clusters=60)
    cluster, one = np.array(table.clusters, dtype=int), np.array(table.strata) == "0"
    values = table.values.copy()
    values[np.ix_(cluster >= 25, [1, 4])] = np.nan
    for cell, n_clusters in ((2, 5), (3, 8), (6, 3)):
        values[(cluster >= 10 + n_clusters) | (cluster < 10) | ~one, cell] = np.nan
    groups = [
        ([0, 5], range(60)),
        ([1, 4], range(25)),
        ([2], range(10, 15)),
        ([3], range(10, 18)),
        ([6], range(10, 13)),
    ]
    return UnitTable(values, table.clusters, table.strata, table.cells), groups


@pytest.mark.parametrize("ratio", [False, True])
def test_the_interval_of_a_cell_is_the_one_that_it_has_alone(ratio):
    """To the last bit, for cells with the same clusters; those that other cells have make no difference."""
    table, groups = with_absent_cells()

    def found(units):
        below = UnitTable(4 + units.values**2, units.clusters, units.strata, units.cells)
        return cluster_bootstrap(units, per=below if ratio else None)

    together = found(table)
    assert np.isfinite([together.low, together.high]).all()
    for cells, clusters in groups:
        alone = found(restricted(table, cells, {str(each) for each in clusters}))
        for name in ("estimate", "low", "high"):
            np.testing.assert_array_equal(getattr(together, name)[cells], getattr(alone, name))


def test_with_few_clusters_of_its_own_a_cell_s_interval_is_as_wide_as_student_s():
    values = np.full((60, 2), np.nan)
    values[:, 0] = np.random.default_rng(9).normal(size=60)
    values[:6, 1] = values[:6, 0]
    units = UnitTable(values, [str(each) for each in range(60)], ["one"] * 60, pd.RangeIndex(2))
    found = cluster_bootstrap(units, resamples=20_000)
    expected = stats.ttest_1samp(values[:6, 1], 0).confidence_interval()
    assert found.high[1] - found.low[1] == pytest.approx(expected.high - expected.low, rel=0.25)


def test_cells_with_the_same_clusters_are_drawn_for_once():
    table, groups = with_absent_cells()
    found = list(groups_of(contributions(table)))
    assert sorted(tuple(each.cells) for each in found) == sorted(tuple(cells) for cells, _ in groups)


def test_an_interval_is_as_wide_as_the_side_to_which_values_are_skewed_asks_for():
    """Student's t covers too little there."""
    rng = np.random.default_rng(11)
    values = rng.exponential(size=(40, 2000)) - 1
    units = UnitTable(values, [str(each) for each in range(40)], ["one"] * 40, pd.RangeIndex(2000))
    found = cluster_bootstrap(units, resamples=1000)
    covered = np.mean((found.low <= 0) & (found.high >= 0))
    student = stats.t.ppf(0.975, 39) * values.std(axis=0, ddof=1) / np.sqrt(40)
    mean = values.mean(axis=0)
    below = {"ours": np.mean(found.high < 0), "student": np.mean(mean + student < 0)}
    np.testing.assert_allclose(found.high - mean, mean - found.low)
    assert 0.94 <= covered <= 0.98
    assert below["student"] > 0.045
    assert below["ours"] < 0.035


def in_layouts(rng, *, effect, per_layout, layouts=5, cells=400):
    """Values that differ from layout to layout, each drawn equally often."""
    layout = np.repeat(np.arange(layouts), per_layout)
    values = effect * (layout - layout.mean())[:, None] + rng.normal(size=(len(layout), cells))
    names = [str(each) for each in range(len(layout))]
    return UnitTable(values, names, ["one"] * len(layout), pd.RangeIndex(cells), [str(each) for each in layout])


def test_what_the_generator_balances_is_no_part_of_the_spread():
    table = in_layouts(np.random.default_rng(12), effect=3.0, per_layout=6)
    blind = UnitTable(table.values, table.clusters, table.strata, table.cells)
    assert np.median(errors(table)) == pytest.approx(1 / np.sqrt(30), rel=0.05)
    assert np.median(errors(blind)) > 3 * np.median(errors(table))
    found = cluster_bootstrap(table, resamples=1000)
    assert 0.93 <= np.mean((found.low <= 0) & (found.high >= 0)) <= 0.97


def test_layouts_that_chance_draws_are_a_part_of_the_spread():
    table = in_layouts(np.random.default_rng(13), effect=3.0, per_layout=6)
    uneven = [*table.layouts[:2], *table.layouts[4:6], *table.layouts[2:4], *table.layouts[6:]]
    uneven[0] = uneven[-1]
    lost = UnitTable(table.values, table.clusters, table.strata, table.cells, [uneven[-1]] * 4 + uneven[4:])
    blind = UnitTable(table.values, table.clusters, table.strata, table.cells)
    np.testing.assert_array_equal(errors(lost), errors(blind))


def test_clusters_are_drawn_among_those_of_the_same_templates():
    """What differs between templates is fixed: a cluster of one never takes the place of a cluster of another."""
    rng = np.random.default_rng(14)
    stratum = np.repeat(["a", "b", "c"], 12)
    values = rng.normal(size=(36, 300)) + np.where(stratum == "a", 50.0, 0.0)[:, None]
    table = UnitTable(values, [str(each) for each in range(36)], list(stratum), pd.RangeIndex(300))
    assert np.median(errors(table)) == pytest.approx(1 / 6, rel=0.05)
    assert [len(each) for each in next(groups_of(contributions(table))).strata] == [12, 12, 12]
