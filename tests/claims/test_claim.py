"""Shown and absent, against a minimum: what is claimed at most as often as it may be, and what is found."""

import numpy as np
import pandas as pd
import pytest

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.claim import Claims, Measured, benjamini_hochberg, claim
from interp.claims.declared import holm
from interp.claims.effects import against_base
from interp.claims.units import ClusterTable, UnitTable
from interp.errors import InputError

ALPHA = 0.05


def skewed(rng, *, cells, clusters=60, size=2, mean=0.0, sign=1):
    """Clusters whose contributions are skewed as real ones are (about 1.4), correlated over cells; two templates."""
    common, own = rng.gamma(2, size=(clusters, 1)), rng.gamma(2, size=(clusters, cells))
    draws = sign * ((common + own - 4) / 2).repeat(size, axis=0)
    values = mean + draws + 0.3 * rng.normal(size=draws.shape)
    names = [str(each) for each in np.arange(clusters).repeat(size)]
    return UnitTable(values, names, [str(each % 2) for each in range(len(values))], pd.RangeIndex(cells))


def simple(values):
    values = np.asarray(values, dtype=float)
    return UnitTable(
        values, [str(each) for each in range(len(values))], ["s"] * len(values), pd.RangeIndex(values.shape[1])
    )


@pytest.mark.parametrize("minimum", [np.nan, -1.0])
def test_a_minimum_that_is_none_is_refused(minimum):
    """Nothing is below it, so all would be shown."""
    with pytest.raises(InputError, match="minimum: expected a number from 0, got"):
        claim([Measured(skewed(np.random.default_rng(0), cells=2), minimum)])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_at_its_minimum_a_mean_is_seldom_shown_and_seldom_absent(sign, alternative):
    """Both at most at alpha, over the family, and not never: whichever way the contributions are skewed."""
    rng, found = np.random.default_rng(0), []
    for seed in range(200):
        tasks = [skewed(rng, cells=5, mean=1.0, sign=sign), skewed(rng, cells=5, mean=1.0, sign=sign, clusters=50)]
        found.append(claim([Measured(each, 1.0) for each in tasks], alternative=alternative, resamples=400, seed=seed))
    shown, absent = (
        np.mean([min(getattr(each, name).min() for each in one) <= ALPHA for one in found])
        for name in ("p_adjusted", "p_absent")
    )
    # 99 % of binomial(200, .05) lie below 18; a two-sided family is asked about both sides, and errs on one.
    assert shown <= 0.09
    assert absent <= 0.09
    assert shown + absent >= 0.01


@pytest.mark.parametrize("clusters", [30, 60])
def test_shares_that_are_0_in_every_cluster_may_be_0_by_chance(clusters):
    """One in ten is 1, which is the minimum: samples without one are no absence, however many cells there are."""
    rng, wrong = np.random.default_rng(0), []
    for seed in range(40):
        values = (rng.random((clusters, 144)) < 0.1).astype(float)
        (found,) = claim([Measured(simple(values), 0.1, counted=True)], alternative="greater", resamples=500, seed=seed)
        alike = values.sum(axis=0) == 0
        wrong.append((found.p_absent[alike] <= ALPHA).any())
        np.testing.assert_allclose(found.p[alike], 1.0)
    assert not any(wrong)  # 5 of 144 cells are alike at 30 clusters


def test_shares_that_are_alike_everywhere_are_shown_and_absent_where_there_are_enough():
    """Of a share .1, 60 clusters hold none in 1 of 556 samples; and what is 1 everywhere is hardly .1."""
    alike = np.repeat([[0.0, 1.0, 0.2]], 60, axis=0)
    (found,) = claim([Measured(simple(alike), 0.1, counted=True)], alternative="greater")
    assert found.states(ALPHA) == ["none", "rise", "rise"]
    assert found.p_absent[0] == pytest.approx(3 * 0.9**60, rel=0.01)
    assert found.p_adjusted[2] == pytest.approx(3 * (1 - 0.1 / 1.2) ** 60, rel=0.01)
    (few,) = claim([Measured(simple(alike[:30]), 0.1, counted=True)], alternative="greater")
    assert few.states(ALPHA) == ["undecided", "rise", "undecided"]
    (weights,) = claim([Measured(simple(alike[:30]), 0.1)], alternative="greater")  # which are alike for a reason
    assert weights.states(ALPHA) == ["none", "rise", "rise"]


def test_what_was_wrong_before_is_wrong_of_student_as_well():
    """The populations of the test above are skewed enough to be a test: a mean of them errs three times too often."""
    rng = np.random.default_rng(1)
    wrong = []
    for _ in range(200):
        values = skewed(rng, cells=10, clusters=30, size=1, sign=-1).values
        t = values.mean(axis=0) / (values.std(axis=0, ddof=1) / np.sqrt(len(values)))
        signs = rng.choice([-1.0, 1.0], size=(400, len(values))) @ (values / np.sqrt((values**2).sum(axis=0)))
        flipped = signs * np.sqrt(29 / np.maximum(30 - signs**2, 1e-9))
        wrong.append(t.max() > np.quantile(flipped.max(axis=1), 0.95))
    assert np.mean(wrong) > 0.1


def test_a_truth_below_the_minimum_is_shown_even_less():
    rng = np.random.default_rng(2)
    tables = [Measured(skewed(rng, cells=8, mean=0.8), 1.0) for _ in range(100)]
    found = [claim([each], resamples=300, seed=seed)[0] for seed, each in enumerate(tables)]
    assert np.mean([each.p_adjusted.min() <= ALPHA for each in found]) <= 0.05


@pytest.mark.parametrize("sign", [1, -1])
def test_twice_the_minimum_is_found(sign):
    rng = np.random.default_rng(3)
    table = skewed(rng, cells=12, mean=0.0)
    table.values[:, 4] += sign * 3.0
    (found,) = claim([Measured(table, 1.5)])
    states = found.states(ALPHA)
    assert states[4] == ("rise" if sign > 0 else "drop")
    assert set(states[:4] + states[5:]) == {"none"}


def test_the_minimum_is_held_against_and_not_zero():
    """An effect that is sure, and smaller than the minimum, is none; at the minimum it is neither."""
    rng = np.random.default_rng(4)
    values = np.array([0.5, 1.0, 1.5]) + 0.2 * rng.normal(size=(60, 3))
    (found,) = claim([Measured(simple(values), 1.0)])
    assert found.states(ALPHA) == ["none", "undecided", "rise"]
    (against_zero,) = claim([Measured(simple(values))])
    assert against_zero.states(ALPHA) == ["rise"] * 3
    assert (against_zero.p_absent == 1).all()


def test_greater_asks_nothing_of_a_drop():
    values = np.random.default_rng(5).normal(-3, 1, size=(40, 1))
    (found,) = claim([Measured(simple(values), 0.5)], alternative="greater")
    assert found.p[0] > 0.99
    assert found.states(ALPHA) == ["none"]


def test_a_share_of_the_base_is_held_against_unit_by_unit():
    """``effect + share x base`` by unit: where effect and base go together, it is known far better than either."""
    rng = np.random.default_rng(6)
    base = rng.gamma(4, 2.5, size=60)
    frame = pd.DataFrame({"unit": range(60), "cluster": range(60), "base": base}).assign(template="t", layer=0, head=0)
    for share, state in ((0.14, "drop"), (0.06, "none")):
        measured = against_base(frame.assign(effect=-share * base), "effect", ("layer", "head"), 0.1)
        (found,) = claim([measured])
        assert found.states(ALPHA) == [state]
        assert found.minimum[0] == pytest.approx(0.1 * base.mean())
        # Of the side that is known less, effect less the minimum, -(share + .1) x base.
        assert found.standard_error[0] == pytest.approx((share + 0.1) * base.std(ddof=1) / np.sqrt(60), rel=0.01)
    negative = against_base(frame.assign(effect=-0.14 * base, base=-base), "effect", ("layer", "head"), 0.1)
    assert claim([negative])[0].minimum[0] == pytest.approx(0.1 * base.mean())


def test_one_family_over_all_tasks_is_stricter_than_each_alone():
    rng = np.random.default_rng(7)
    tasks = [Measured(simple(rng.normal(0.5, 1, size=(40, 10)))), Measured(simple(rng.normal(size=(40, 200))))]
    alone, together = claim(tasks[:1])[0], claim(tasks)[0]
    np.testing.assert_allclose(alone.p, together.p, atol=0.02)
    assert (together.p_adjusted >= alone.p_adjusted).all()
    assert together.critical[0] > alone.critical[0] + 0.3


def test_what_is_shown_leaves_the_family_of_the_rest():
    """Step by step: beside many clear cells, an unclear one is corrected for those that are left."""
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(50, 41))
    clear = noise + np.where(np.arange(41) < 40, 5.0, 0.42)
    (stepwise,) = claim([Measured(simple(clear))])
    (single,) = claim([Measured(simple(clear[:, 40:]))])
    (crowd,) = claim([Measured(simple(noise + np.where(np.arange(41) < 40, 0.0, 0.42)))])
    assert stepwise.p_adjusted[40] == pytest.approx(single.p[0], abs=0.01)
    assert crowd.p_adjusted[40] > 5 * single.p[0]


def test_cells_of_a_task_are_drawn_for_together():
    """Fifty copies of a cell count as one."""
    copies = np.random.default_rng(9).normal(0.3, 1, size=(40, 1)).repeat(50, axis=1)
    (found,) = claim([Measured(simple(copies))])
    np.testing.assert_allclose(found.p_adjusted, found.p)


def test_few_clusters_are_no_hypothesis_and_cost_the_others_nothing():
    rng = np.random.default_rng(10)
    values = rng.normal(0.4, 1, size=(50, 30))
    values[FEWEST_CLUSTERS - 1 :, 1:] = np.nan
    (found,) = claim([Measured(simple(values), 0.1)])
    assert np.isnan(found.p_adjusted[1:]).all()
    assert np.isnan(found.p_absent[1:]).all()
    assert np.isfinite(found.p[1:]).all()
    (alone,) = claim([Measured(simple(values[:, :1]), 0.1)])
    assert found.p_adjusted[0] == pytest.approx(alone.p_adjusted[0], abs=0.01)
    assert found.states(ALPHA)[1] == "undecided"


def test_cells_that_may_not_be_shown_can_still_be_absent():
    values = np.random.default_rng(11).normal([3.0, 3.0, 0.0], 0.5, size=(40, 3))
    (found,) = claim([Measured(simple(values), 1.0)], hypotheses=[np.array([True, False, False])])
    assert found.states(ALPHA) == ["rise", "undecided", "none"]
    assert np.isnan(found.p_adjusted[1:]).all()


def test_what_decides_a_head_allows_for_absence_over_all_where_few_may_be_shown():
    """So that the units that would decide are enough for either."""
    measured = [Measured(simple(np.random.default_rng(3).normal(size=(40, 60))), 1.0)]
    few = [np.arange(60) == 0]
    (of_few,) = claim(measured, hypotheses=few, absences=few)
    (of_all,) = claim(measured, hypotheses=few)
    assert of_all.critical[0] > of_few.critical[0] + 0.3


def test_the_false_discovery_rate_claims_more():
    rng = np.random.default_rng(12)
    values = rng.normal(np.where(np.arange(60) < 20, 0.55, 0.0), 1, size=(40, 60))
    strict, loose = (claim([Measured(simple(values))], correction=name)[0] for name in ("max-T", "fdr"))
    assert (loose.p_adjusted <= ALPHA).sum() > (strict.p_adjusted <= ALPHA).sum()
    np.testing.assert_array_equal(loose.p, strict.p)


def test_zero_everywhere_is_never_shown_and_unmeasured_is_nan():
    values = np.column_stack([np.zeros(40), np.full(40, np.nan), np.random.default_rng(13).normal(3, 1, size=40)])
    (found, nothing) = claim([Measured(simple(values)), Measured(simple(np.full((40, 2), np.nan)))])
    assert found.p[0] == found.p_adjusted[0] == 1.0
    assert np.isnan([found.p[1], found.p_adjusted[1], found.interval.low[1]]).all()
    assert np.isnan(nothing.p).all()
    (held,) = claim([Measured(simple(values), 0.5)])
    assert held.states(ALPHA) == ["none", "undecided", "rise"]


def test_scale_and_order_do_not_matter():
    rng = np.random.default_rng(14)
    table = skewed(rng, cells=4, mean=0.8)
    order = rng.permutation(len(table.values))
    clusters, strata = ([each[at] for at in order] for each in (table.clusters, table.strata))
    shuffled = UnitTable(table.values[order], clusters, strata, table.cells)
    one, other = claim([Measured(table, 0.5)])[0], claim([Measured(shuffled, 0.5)])[0]
    np.testing.assert_array_equal(one.p_adjusted, other.p_adjusted)
    scaled = claim([Measured(table.with_values(1000 * table.values), 500.0)])[0]
    np.testing.assert_allclose(one.p_adjusted, scaled.p_adjusted, atol=2e-4)


def test_the_same_seed_gives_the_same_bits():
    table = skewed(np.random.default_rng(15), cells=4, mean=1.2)
    first, again, other = (claim([Measured(table, 1.0)], seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.p_adjusted, again.p_adjusted)
    assert not np.array_equal(first.p_adjusted, other.p_adjusted)


def test_sums_by_cluster_are_tested_as_units_are():
    rng = np.random.default_rng(16)
    units = UnitTable(
        rng.normal(1, 1, size=(120, 3)), [str(each // 3) for each in range(120)], ["s"] * 120, pd.RangeIndex(3)
    )
    sums = units.values.reshape(40, 3, 3).sum(axis=1)
    order = np.argsort([str(each) for each in range(40)])  # tables number clusters by their names
    table = ClusterTable(sums[order], np.full((40, 3), 3.0), units.cells)
    one, other = claim([Measured(units, 0.5)])[0], claim([Measured(table, 0.5)])[0]
    for name in ("estimate", "standard_error", "p_adjusted", "p_absent"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name))
    np.testing.assert_allclose(one.interval.low, other.interval.low)


def test_few_clusters_that_deviate_do_not_hide_what_is_far_beyond():
    """Resamples that miss both have no spread, and are one in seven."""
    values = np.full((40, 1), 0.48)
    values[[3, 17]] = 0.1
    (found,) = claim([Measured(simple(values), 0.1)], alternative="greater")
    assert found.states(ALPHA) == ["rise"]


def test_a_frame_has_the_kind_in_its_columns():
    (found,) = claim([Measured(simple(np.random.default_rng(17).normal(size=(40, 2))), 0.5)])
    frame = found.frame("effect")
    assert list(frame) == Claims.columns("effect")
    assert list(frame)[:3] == ["effect", "effect_low", "effect_high"]
    np.testing.assert_array_equal(frame["effect_p_adjusted"], found.p_adjusted)


def test_holm_by_hand():
    # .01 x 4, .02 x 3, .03 x 2 = .06 (as the one before), .2 x 1
    np.testing.assert_allclose(holm(np.array([0.03, 0.01, 0.2, 0.02])), [0.06, 0.04, 0.2, 0.06])


def test_benjamini_hochberg_by_hand():
    # .04 x 4/4 bounds those before it: .03 x 4/3 = .04, .02 x 4/2 = .04, .01 x 4 = .04
    np.testing.assert_allclose(benjamini_hochberg(np.array([0.04, 0.01, 0.03, 0.02])), 0.04)


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_what_was_not_measured_is_no_hypothesis(correct):
    p = np.array([0.01, np.nan, 0.02])
    np.testing.assert_array_equal(correct(p)[[0, 2]], correct(p[[0, 2]]))
    assert np.isnan(correct(p)[1])
    assert np.isnan(correct(np.array([np.nan]))).all()


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_corrected_is_never_smaller_and_never_above_one(correct):
    p = np.random.default_rng(0).uniform(size=200)
    assert (correct(p) >= p).all()
    assert correct(p).max() <= 1


def test_holm_bounds_the_family_wise_error():
    rng = np.random.default_rng(1)
    wrong = np.mean([holm(rng.uniform(size=20)).min() <= 0.05 for _ in range(2000)])
    assert 0.035 <= wrong <= 0.062
