"""Means of values that were measured of some units and predicted of all."""

import numpy as np
import pandas as pd
import pytest

from interp.claims.bootstrap import cluster_bootstrap, contributions, groups_of
from interp.claims.claim import Measured, claim
from interp.claims.units import PredictedTable, UnitTable, estimates

N, MEASURED = 200, 30
SEEN = np.arange(N) < MEASURED


def table(values):
    values = np.asarray(values, dtype=float).reshape(N, -1)
    clusters, strata = [f"noun {unit}" for unit in range(N)], ["simple", "relative"] * (N // 2)
    return UnitTable(values, clusters, strata, pd.RangeIndex(values.shape[1]))


def predicted(values, predictions):
    """The first units were measured."""
    whole = table(values)
    return PredictedTable(whole.with_values(np.where(SEEN[:, None], whole.values, np.nan)), table(predictions).values)


def drawn(seed, *, share=0.95, cells=20, skew=True):
    """Values of mean 0, and predictions that explain a share of their variance, but are off by 3."""
    rng = np.random.default_rng(seed)
    known, noise = ((rng.exponential(size=(N, cells)) - 1) if skew else rng.normal(size=(N, cells)) for _ in range(2))
    return np.sqrt(share) * known + np.sqrt(1 - share) * noise, np.sqrt(share) * known + 3


def test_right_predictions_are_worth_all_units():
    values, _ = drawn(0)
    found, whole = contributions(predicted(values, values + 3)), contributions(table(values))
    np.testing.assert_allclose(found.estimate, whole.estimate)
    np.testing.assert_allclose(found.standard_error, whole.standard_error, rtol=0.02)


def test_it_is_the_regression_estimator():
    """As statsmodels or any textbook has it, of one stratum without clusters."""
    values, predictions = drawn(1, share=0.5, cells=1)
    predictions *= 1.5
    one = predicted(values, predictions)
    one = PredictedTable(UnitTable(one.measured.values, one.measured.clusters, ["same"] * N, one.cells), predictions)
    y, x = values[SEEN, 0], predictions[SEEN, 0]
    slope, at_zero = np.polyfit(x, y, 1)
    assert 0 < slope < 1
    assert contributions(one).estimate[0] == pytest.approx(at_zero + slope * predictions.mean())
    without = [np.polyfit(np.delete(x, each), np.delete(y, each), 1) for each in range(MEASURED)]
    left_out = np.array([y[each] - np.polyval(fit, x[each]) for each, fit in enumerate(without)])
    textbook = np.sqrt((left_out**2).sum() / MEASURED**2 + slope**2 * predictions.var() / N)
    assert contributions(one).standard_error[0] == pytest.approx(textbook, rel=0.1)


@pytest.mark.parametrize("wrong", ["constant", "opposite", "unknown"])
def test_predictions_that_are_no_use_change_nothing(wrong):
    values, _ = drawn(2)
    told = {"constant": np.full_like(values, 7.0), "opposite": -values, "unknown": np.full_like(values, np.nan)}[wrong]
    found, alone = contributions(predicted(values, told)), contributions(table(values).rows(SEEN))
    np.testing.assert_allclose(found.estimate, alone.estimate)
    np.testing.assert_allclose(found.standard_error, alone.standard_error)


def test_where_all_is_measured_predictions_change_nothing():
    values, predictions = drawn(3)
    found, alone = contributions(PredictedTable(table(values), predictions)), contributions(table(values))
    for name in ("estimate", "values", "measured"):
        assert np.array_equal(getattr(found, name), getattr(alone, name))


def test_measured_clusters_and_others_are_drawn_apart():
    (group,) = groups_of(contributions(predicted(*drawn(4))))
    assert sorted(map(len, group.strata)) == [MEASURED // 2] * 2 + [(N - MEASURED) // 2] * 2


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_intervals_cover_though_predictions_are_off(share):
    """The mean of what is skewed, over 30 measured units, and as narrow as the predictions are good."""
    covered, widths = [], []
    for seed in range(40):
        values, predictions = drawn(seed, share=share)
        found = cluster_bootstrap(predicted(values, predictions), resamples=400, seed=seed)
        covered.append((found.low <= 0) & (found.high >= 0))
        widths.append(contributions(table(values).rows(SEEN)).standard_error)
        widths[-1] /= contributions(predicted(values, predictions)).standard_error
    assert np.mean(covered) > 0.92  # 800 of them: .95 in the long run, and .92 is four standard errors of 800 below
    assert np.median(widths) == pytest.approx({0.0: 0.97, 0.5: 1.26, 0.95: 2.18}[share], abs=0.08)


def test_false_claims_are_as_rare_as_was_asked_for():
    """All cells have an effect of exactly the minimum, in a family of 40."""
    false = []
    for seed in range(150):
        values, predictions = drawn(seed, cells=40)
        measured = Measured(predicted(values + 1, predictions), minimum=1.0)
        (found,) = claim([measured], resamples=400, seed=seed)
        false.append(bool(np.nanmin([found.p_adjusted, found.p_absent]) <= 0.05))
    assert np.mean(false) < 0.1 + 3 * np.sqrt(0.1 * 0.9 / 150)  # .05 shown, .05 absent


def test_units_that_are_measured_and_what_they_are_worth():
    values, predictions = drawn(5, cells=30)
    (found,) = claim([Measured(predicted(values, predictions), minimum=0.5)], resamples=200)
    (alone,) = claim([Measured(table(values).rows(SEEN), minimum=0.5)], resamples=200)
    assert (found.n_units == MEASURED).all()
    assert (found.n_clusters == MEASURED).all()
    np.testing.assert_allclose(
        found.n_effective, np.fmin(N, MEASURED * (alone.standard_error / found.standard_error) ** 2)
    )
    assert 100 < np.median(found.n_effective) < N
    assert (alone.n_effective == MEASURED).all()


def test_a_share_of_a_base_that_is_known_of_all_units():
    values, predictions = drawn(6)
    rng = np.random.default_rng(6)
    minimum = table(np.repeat(rng.uniform(0.5, 1.5, size=(N, 1)), values.shape[1], axis=1))
    (found,) = claim([Measured(predicted(values, predictions), minimum)], resamples=200)
    np.testing.assert_allclose(found.minimum, estimates(minimum))
    assert (found.n_effective > MEASURED).mean() > 0.9
