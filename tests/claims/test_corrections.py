import numpy as np
import pandas as pd
import pytest

from interp.claims.corrections import benjamini_hochberg, choose, holm
from interp.claims.rules import required_units


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


def test_required_units_have_the_power_that_was_asked_for():
    """Of a one-sided z-test with 1.645: a head with twice the minimum, and one with none, are one minimum away."""
    needed = required_units(1 / np.sqrt(10), 10, 0.5, critical=1.645)
    assert needed == np.ceil(((1.645 + 0.8416) / 0.5) ** 2) == 25
    rng = np.random.default_rng(2)
    for truth in (0.0, 1.0):
        means = rng.normal(truth, 1, size=(4000, 25)).mean(axis=1)
        z = (means - 0.5) * np.sqrt(25) * (1 if truth else -1)
        assert np.mean(z > 1.645) == pytest.approx(0.8, abs=0.03)


def test_one_and_a_half_minima_need_four_times_as_many():
    assert required_units(1.0, 100, 0.5, critical=3.0) == pytest.approx(
        required_units(1.0, 100, 1.0, critical=3.0) * 4, rel=0.01
    )


def test_required_units_of_an_unknown_spread_are_unknown():
    assert np.isnan(required_units(np.nan, 10, 0.5, critical=2.0))
    assert np.isnan(required_units(0.0, 10, 0.5, critical=2.0))
    assert np.isnan(required_units(1.0, 10, 0.0, critical=2.0))
    assert np.isnan(required_units(1.0, 10, 0.5, critical=np.nan))


ROWS = pd.DataFrame(
    {
        "effect_p": [0.01, 0.2, 0.01, np.nan],
        "mean_effect_p": [0.01, 0.01, 0.2, 0.01],
        "excess_p": [0.01, 0.2, 0.05, np.nan],
        "probe_excess_p": [0.01, 0.2, 0.051, np.nan],
    }
)


def test_what_is_beyond_its_minimum_by_its_raw_p_is_chosen():
    found = choose(ROWS, 0.05)
    assert found["effect"].tolist() == [True, False, False, False]  # under both replacements, or not at all
    assert found["excess"].tolist() == [True, False, True, False]
    assert found["probe"].tolist() == [True, False, False, False]
    assert found["exchange"].tolist() == [True, False, False, False]  # of a head that looks and matters
    assert choose(ROWS, 0.2)["effect"].tolist() == [True, True, True, False]
