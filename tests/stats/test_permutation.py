import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from interp.stats.permutation import sign_flip_test
from interp.stats.units import UnitTable


def clustered(rng, *, cells, clusters=24, size=3, mean=0.0):
    """Correlated cells, correlated units within a cluster, symmetric about `mean`."""
    common = rng.normal(size=(clusters, 1))
    draws = (common + rng.normal(size=(clusters, cells))).repeat(size, axis=0)
    values = mean + draws + 0.5 * rng.normal(size=draws.shape)
    names = [str(each) for each in np.arange(clusters).repeat(size)]
    strata = [str(each % 2) for each in range(len(values))]
    return UnitTable(values, names, strata, pd.RangeIndex(cells))


def simple(values):
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    return UnitTable(
        values, [str(each) for each in range(len(values))], ["s"] * len(values), pd.RangeIndex(values.shape[1])
    )


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_raw_p_is_uniform_under_the_null(alternative):
    rng = np.random.default_rng(0)
    p = [
        sign_flip_test([clustered(rng, cells=1)], alternative=alternative, flips=400, seed=seed)[0].p[0]
        for seed in range(500)
    ]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_family_wise_error_is_at_most_alpha():
    rng = np.random.default_rng(1)
    runs = 400
    wrong = 0
    for seed in range(runs):
        tasks = [clustered(rng, cells=6), clustered(rng, cells=6, clusters=30)]
        found = sign_flip_test(tasks, flips=300, seed=seed)
        wrong += min(each.p_family.min() for each in found) <= 0.05
    # 95 % of binomial(400, .05) lie below 29; far fewer would mean a test without power.
    assert 8 <= wrong <= 29


def test_an_effect_is_found_among_nulls():
    rng = np.random.default_rng(2)
    units = clustered(rng, cells=20)
    units.values[:, 7] += 2.5
    found = sign_flip_test([units, clustered(rng, cells=20)], flips=2000)
    assert found[0].p_family[7] <= 0.01
    assert np.delete(found[0].p_family, 7).min() > 0.05
    assert found[1].p_family.min() > 0.05


def test_greater_does_not_find_a_drop():
    units = clustered(np.random.default_rng(3), cells=1, mean=-2.0)
    assert sign_flip_test([units], alternative="greater", flips=500)[0].p[0] > 0.9
    assert sign_flip_test([units], alternative="two-sided", flips=500)[0].p[0] < 0.01


def test_agrees_with_all_sign_vectors_counted_out():
    values = np.array([0.9, -0.2, 1.4, 0.3, 0.8, -0.5, 1.1, 0.6])
    sums = np.array(list(itertools.product([-1, 1], repeat=8))) @ values
    exact = np.mean(np.abs(sums) >= abs(values.sum()) - 1e-9)
    assert sign_flip_test([simple(values)], flips=20_000)[0].p[0] == pytest.approx(exact)
    assert sign_flip_test([simple(values)], flips=200)[0].p[0] == pytest.approx(exact, abs=0.06)


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_few_clusters_are_counted_out(alternative):
    """Exact, whatever the seed: every p is a multiple of 2^-C."""
    values = np.random.default_rng(5).normal(0.4, size=(9, 3))
    found = [sign_flip_test([simple(values)], alternative=alternative, flips=512, seed=seed)[0].p for seed in (0, 1)]
    np.testing.assert_array_equal(*found)
    exact = stats.permutation_test(
        (values,), lambda x, axis: x.mean(axis), permutation_type="samples", alternative=alternative, axis=0
    )
    np.testing.assert_allclose(found[0], exact.pvalue)
    drawn = sign_flip_test([simple(values)], alternative=alternative, flips=511)[0].p
    assert not np.array_equal(drawn, found[0])
    np.testing.assert_allclose(drawn, found[0], atol=0.08)


def test_agrees_with_scipys_permutation_test():
    values = np.random.default_rng(4).normal(0.4, 1, size=18)
    expected = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", alternative="greater", n_resamples=20_000, rng=0
    )
    found = sign_flip_test([simple(values)], alternative="greater", flips=20_000)[0].p[0]
    assert found == pytest.approx(expected.pvalue, abs=0.008)


def test_one_family_over_all_tasks_is_stricter_than_each_alone():
    rng = np.random.default_rng(5)
    tasks = [simple(rng.normal(0.4, 1, size=(30, 10))), simple(rng.normal(size=(30, 200)))]
    alone, together = sign_flip_test(tasks[:1])[0], sign_flip_test(tasks)[0]
    np.testing.assert_allclose(alone.p, together.p, atol=0.02)
    assert (together.p_family >= alone.p_family).all()
    assert together.p_family.min() > 5 * alone.p_family.min()


def test_flips_are_joint_for_the_cells_of_a_task():
    copies = np.random.default_rng(6).normal(0.3, 1, size=(30, 1)).repeat(50, axis=1)
    found = sign_flip_test([simple(copies)])[0]
    np.testing.assert_allclose(found.p_family, found.p)


def test_scale_of_a_cell_does_not_matter():
    values = np.random.default_rng(7).normal(0.3, 1, size=(30, 4))
    found = sign_flip_test([simple(values)])[0]
    scaled = sign_flip_test([simple(values * [1, 1e-3, 1e3, 7])])[0]
    np.testing.assert_array_equal(found.p_family, scaled.p_family)


def test_order_of_the_units_does_not_matter():
    rng = np.random.default_rng(8)
    units = clustered(rng, cells=5, mean=0.3)
    order = rng.permutation(len(units.values))
    shuffled = UnitTable(
        units.values[order],
        [units.clusters[each] for each in order],
        [units.strata[each] for each in order],
        units.cells,
    )
    one, other = sign_flip_test([units])[0], sign_flip_test([shuffled])[0]
    np.testing.assert_array_equal(one.p, other.p)
    np.testing.assert_array_equal(one.p_family, other.p_family)


def test_zero_everywhere_is_one_and_unmeasured_is_nan():
    rng = np.random.default_rng(9)
    values = np.column_stack([np.zeros(30), np.full(30, np.nan), rng.normal(3, 1, size=30)])
    found = sign_flip_test([simple(values), simple(np.full((30, 2), np.nan))], flips=999)
    assert found[0].p[0] == found[0].p_family[0] == 1.0
    assert np.isnan([found[0].p[1], found[0].p_family[1]]).all()
    assert np.isnan(found[1].p).all()
    assert found[0].p[2] == found[0].p_family[2] == 0.001


@pytest.mark.parametrize("few", [2, 4, 19])
def test_cells_that_nobody_can_decide_cost_the_others_nothing(few):
    """With 4 clusters, all signs agree in an eighth of the flips, and t is as good as infinite."""
    rng = np.random.default_rng(10)
    many = simple(rng.normal(1.0, 1, size=(30, 3)))
    alone, beside = sign_flip_test([many])[0], sign_flip_test([many, simple(rng.normal(size=(few, 5)))])
    assert alone.p_family.max() < 0.01
    np.testing.assert_array_equal(beside[0].p_family, alone.p_family)
    assert np.isnan(beside[1].p_family).all()
    assert np.isfinite(beside[1].p).all()
