"""Ratios of means, and how sure one is of them."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import UnitTable, estimates


def table(values, clusters=None, strata=None):
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    clusters = range(len(values)) if clusters is None else clusters
    strata = ["one"] * len(values) if strata is None else strata
    return UnitTable(values, [str(each) for each in clusters], list(strata), pd.RangeIndex(values.shape[1]))


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


def test_coverage_is_near_nominal():
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


def test_what_cannot_be_known_is_not_given():
    found = cluster_bootstrap(table(np.ones(5), "aaaaa"), per=table(np.full(5, 2.0), "aaaaa"))
    assert found.estimate == pytest.approx([0.5])
    assert np.isnan([found.low[0], found.high[0]]).all()


def test_a_denominator_of_nothing_warns_of_nothing():
    """There is no ratio; the caller says so in its own words."""
    above = table(np.arange(20.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cluster_bootstrap(above, per=table(np.zeros(20)))
    assert not np.isfinite(found.estimate[0])
