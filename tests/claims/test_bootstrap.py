"""Tables of units, their means and ratios of means, and how sure one is of these."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from interp.claims.bootstrap import (
    FEWEST_CLUSTERS,
    cluster_bootstrap,
    contributions,
    groups_of,
    units_for_clusters,
)
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.tasks import agreement, coreference, induction, ioi, reflexive


def errors(units):
    return contributions(units).standard_error


def table(values, clusters=None, strata=None):
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    clusters = range(len(values)) if clusters is None else clusters
    strata = ["one"] * len(values) if strata is None else strata
    return UnitTable(values, [str(each) for each in clusters], list(strata), pd.RangeIndex(values.shape[1]))


def clustered(rng, *, cells, clusters=25, size=4, mean=0.0):
    """Units that share most of their noise with their cluster, in two strata of different means."""
    draws = rng.normal(size=(clusters, cells)).repeat(size, axis=0)
    stratum = np.tile([0, 1], clusters * size // 2)
    values = mean + draws + 0.5 * rng.normal(size=draws.shape) + np.where(stratum, 1.0, -1.0)[:, None]
    return table(values, np.arange(clusters).repeat(size), map(str, stratum))


def test_coverage_is_near_nominal():
    units = clustered(np.random.default_rng(1), cells=2000, mean=0.3)
    found = cluster_bootstrap(units, resamples=1000)
    covered = np.mean((found.low <= 0.3) & (found.high >= 0.3))
    assert 0.935 <= covered <= 0.965


def test_units_of_a_cluster_are_not_counted_as_independent():
    rng = np.random.default_rng(2)
    units = clustered(rng, cells=500, clusters=25, size=8)
    alone = table(units.values, strata=units.strata)
    width = {name: np.median(cluster_bootstrap(each).high) for name, each in {"c": units, "u": alone}.items()}
    assert width["c"] > 1.8 * width["u"]


def test_agrees_with_students_t_where_that_is_right():
    values = np.random.default_rng(3).normal(size=(60, 1))
    units = table(values)
    found = cluster_bootstrap(units, resamples=20_000)
    expected = stats.ttest_1samp(values[:, 0], 0).confidence_interval()
    width = expected.high - expected.low
    assert found.low[0] == pytest.approx(expected.low, abs=0.05 * width)
    assert found.high[0] == pytest.approx(expected.high, abs=0.05 * width)


def test_order_of_the_units_does_not_matter():
    rng = np.random.default_rng(4)
    units = clustered(rng, cells=3)
    order = rng.permutation(len(units.values))
    shuffled = table(units.values[order], np.array(units.clusters)[order], np.array(units.strata)[order])
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
    units = table(values)
    found = cluster_bootstrap(units)
    assert (found.low[0], found.high[0]) == (0.0, 0.0)
    assert np.isnan([found.estimate[1], found.low[1], found.high[1], errors(units)[1]]).all()
    assert found.low[2] < 14.5 < found.high[2]


def test_one_cluster_has_no_interval():
    units = table(np.ones(5), "aaaaa")
    found = cluster_bootstrap(units)
    assert found.estimate[0] == 1.0
    assert np.isnan(found.low[0])
    assert np.isnan(found.high[0])


def test_a_stratum_of_one_cluster_has_no_spread_that_could_be_known():
    values = np.random.default_rng(6).normal(size=(41, 2))
    strata = ["many"] * 40 + ["single"]
    units = table(values, strata=strata)
    for known in (cluster_bootstrap(units).low, cluster_bootstrap(units).high, errors(units)):
        assert np.isnan(known).all()
    values[40, 0] = np.nan  # not measured there: the stratum is none of the first cell's
    found = cluster_bootstrap(units)
    assert np.isfinite([found.low[0], found.high[0], errors(units)[0]]).all()
    assert np.isnan([found.low[1], errors(units)[1]]).all()


def restricted(units, cells, clusters):
    """Some cells of a table, and only the units of some clusters."""
    kept = [number for number, each in enumerate(units.clusters) if each in clusters]
    own, strata = np.array(units.clusters)[kept], np.array(units.strata)[kept]
    return table(units.values[np.ix_(kept, cells)], own, strata)


def with_absent_cells():
    """60 clusters in two strata: cells of all of them, of the first 25, and of 3, 5 and 8 in one stratum only."""
    units = clustered(np.random.default_rng(8), cells=7, clusters=60)
    cluster, one = np.array(units.clusters, dtype=int), np.array(units.strata) == "0"
    values = units.values.copy()
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
    return units.with_values(values), groups


@pytest.mark.parametrize("ratio", [False, True])
def test_the_interval_of_a_cell_is_the_one_that_it_has_alone(ratio):
    """To the last bit, for cells with the same clusters; those that other cells have make no difference."""
    whole, groups = with_absent_cells()

    def found(units):
        return cluster_bootstrap(units, per=units.with_values(4 + units.values**2) if ratio else None)

    together = found(whole)
    assert np.isfinite([together.low, together.high]).all()
    for cells, clusters in groups:
        alone = found(restricted(whole, cells, {str(each) for each in clusters}))
        for name in ("estimate", "low", "high"):
            np.testing.assert_array_equal(getattr(together, name)[cells], getattr(alone, name))


def test_with_few_clusters_of_its_own_a_cell_s_interval_is_as_wide_as_student_s():
    values = np.full((60, 2), np.nan)
    values[:, 0] = np.random.default_rng(9).normal(size=60)
    values[:6, 1] = values[:6, 0]
    units = table(values)
    found = cluster_bootstrap(units, resamples=20_000)
    expected = stats.ttest_1samp(values[:6, 1], 0).confidence_interval()
    assert found.high[1] - found.low[1] == pytest.approx(expected.high - expected.low, rel=0.25)


def test_cells_with_the_same_clusters_are_drawn_for_once():
    units, groups = with_absent_cells()
    found = list(groups_of(contributions(units)))
    assert sorted(tuple(each.cells) for each in found) == sorted(tuple(cells) for cells, _ in groups)


def test_an_interval_is_as_wide_as_the_side_to_which_values_are_skewed_asks_for():
    """Student's t covers too little there."""
    rng = np.random.default_rng(11)
    values = rng.exponential(size=(40, 2000)) - 1
    units = table(values)
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
    return dataclasses.replace(table(values), layouts=[str(each) for each in layout])


def test_what_the_generator_balances_is_no_part_of_the_spread():
    units = in_layouts(np.random.default_rng(12), effect=3.0, per_layout=6)
    assert np.median(errors(units)) == pytest.approx(1 / np.sqrt(30), rel=0.05)
    assert np.median(errors(table(units.values))) > 3 * np.median(errors(units))
    found = cluster_bootstrap(units, resamples=1000)
    assert 0.93 <= np.mean((found.low <= 0) & (found.high >= 0)) <= 0.97


def test_layouts_that_chance_draws_are_a_part_of_the_spread():
    units = in_layouts(np.random.default_rng(13), effect=3.0, per_layout=6)
    uneven = [*units.layouts[:2], *units.layouts[4:6], *units.layouts[2:4], *units.layouts[6:]]
    uneven[0] = uneven[-1]
    lost = dataclasses.replace(units, layouts=[uneven[-1]] * 4 + uneven[4:])
    np.testing.assert_array_equal(errors(lost), errors(table(units.values)))


def test_clusters_are_drawn_among_those_of_the_same_templates():
    """What differs between templates is fixed: a cluster of one never takes the place of a cluster of another."""
    rng = np.random.default_rng(14)
    stratum = np.repeat(["a", "b", "c"], 12)
    values = rng.normal(size=(36, 300)) + np.where(stratum == "a", 50.0, 0.0)[:, None]
    units = table(values, strata=stratum)
    assert np.median(errors(units)) == pytest.approx(1 / 6, rel=0.05)
    assert [len(each) for each in next(groups_of(contributions(units))).strata] == [12, 12, 12]


def drawn(rng, *, cells, clusters=30, size=3, ratio=0.4):
    """Numerators and denominators that share their clusters' noise, in two strata."""
    n = clusters * size
    shared = rng.normal(size=(clusters, cells)).repeat(size, axis=0)
    below = 3 + 0.8 * shared + 0.5 * rng.normal(size=(n, cells)) + np.tile([0, 1], n // 2)[:, None]
    above = ratio * below + 0.3 * rng.normal(size=(clusters, cells)).repeat(size, axis=0)
    names = np.arange(clusters).repeat(size)
    return table(above, names, np.tile(["a", "b"], n // 2)), table(below, names, np.tile(["a", "b"], n // 2))


def test_it_is_a_ratio_of_means_not_a_mean_of_ratios():
    above, below = table([1.0, 2.0, 9.0]), table([1.0, 4.0, 3.0])
    assert cluster_bootstrap(above, per=below).estimate == pytest.approx([12 / 8])
    assert np.mean([1, 2 / 4, 9 / 3]) == pytest.approx(1.5)
    assert cluster_bootstrap(table([1.0, 2.0, 3.0]), per=table([1.0, 4.0, 1.0])).estimate == pytest.approx([1.0])


def test_the_means_are_those_over_strata():
    strata = ["x", "x", "x", "y"]
    above, below = table([1, 2, 3, 10], strata=strata), table([1, 1, 1, 3], strata=strata)
    found = cluster_bootstrap(above, per=below).estimate
    assert found == pytest.approx(estimates(above) / estimates(below))
    assert found == pytest.approx([6 / 2])


def test_of_a_table_by_itself_it_is_one_for_sure():
    above, _ = drawn(np.random.default_rng(0), cells=5)
    found = cluster_bootstrap(above, per=above)
    for values in (found.estimate, found.low, found.high):
        np.testing.assert_allclose(values, 1, rtol=1e-12)


@pytest.mark.parametrize("factor", [2.0, -0.5])
def test_it_scales(factor):
    above, below = drawn(np.random.default_rng(1), cells=4)
    one = cluster_bootstrap(above, per=below, seed=3)
    scaled = cluster_bootstrap(dataclasses.replace(above, values=factor * above.values), per=below, seed=3)
    low, high = (one.low, one.high) if factor > 0 else (one.high, one.low)
    np.testing.assert_allclose(scaled.estimate, factor * one.estimate)
    np.testing.assert_allclose(scaled.low, factor * low)
    np.testing.assert_allclose(scaled.high, factor * high)


def test_by_a_constant_it_is_the_interval_of_the_mean():
    above, _ = drawn(np.random.default_rng(2), cells=4)
    below = dataclasses.replace(above, values=np.full_like(above.values, 2.0))
    ratio, mean = cluster_bootstrap(above, per=below, seed=5), cluster_bootstrap(above, seed=5)
    np.testing.assert_allclose(ratio.estimate, mean.estimate / 2)
    np.testing.assert_allclose(ratio.low, mean.low / 2)
    np.testing.assert_allclose(ratio.high, mean.high / 2)


def test_numerator_and_denominator_are_drawn_together():
    """What they share does not widen the interval."""
    above, below = drawn(np.random.default_rng(3), cells=200)
    order = np.random.default_rng(4).permutation(30)
    apart = below.values.reshape(30, 3, -1)[order].reshape(below.values.shape)
    width = {}
    for name, values in (("together", below.values), ("apart", apart)):
        found = cluster_bootstrap(above, per=dataclasses.replace(below, values=values), resamples=500)
        width[name] = np.median(found.high - found.low)
    assert width["apart"] > 1.3 * width["together"]


def test_coverage_of_a_ratio_is_near_nominal():
    above, below = drawn(np.random.default_rng(6), cells=2000, ratio=0.4)
    found = cluster_bootstrap(above, per=below, resamples=1000)
    covered = np.mean((found.low <= 0.4) & (found.high >= 0.4))
    assert 0.93 <= covered <= 0.97


def test_units_that_were_not_measured_are_left_out_of_both():
    values = np.random.default_rng(7).normal(3, 1, size=(24, 2))
    above, below = table(values), table(values + 1)
    hole = values.copy()
    hole[20:, 1] = np.nan
    found = cluster_bootstrap(table(hole), per=table(hole + 1))
    whole = cluster_bootstrap(above, per=below)
    assert found.estimate[0] == whole.estimate[0]
    assert found.estimate[1] == pytest.approx(values[:20, 1].mean() / (values[:20, 1].mean() + 1))
    assert np.isfinite(found.low).all()


def test_a_denominator_of_nothing_warns_of_nothing():
    """There is no ratio; the caller says so in its own words."""
    above = table(np.arange(20.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cluster_bootstrap(above, per=table(np.zeros(20)))
    assert not np.isfinite(found.estimate[0])


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


def test_the_units_that_would_do_are_enough_of_every_generated_task():
    """Estimated from 8 to 28 of its units, in whatever clusters they are."""
    for task in (agreement, coreference, reflexive, ioi, induction):
        clusters = [pair.cluster for pair in task.pairs(70, seed=0)]
        for n in (8, 16, 28):
            enough = units_for_clusters(len({*clusters[:n]}), n)
            assert n < enough <= 70
            assert len({*clusters[:enough]}) >= FEWEST_CLUSTERS
    assert units_for_clusters(1, 8) is None
    assert units_for_clusters(1, 1) == 48
