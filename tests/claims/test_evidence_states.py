"""What one kind of evidence comes to by itself, and what two replacements come to together."""

import dataclasses
import itertools

import numpy as np
import pytest

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.rules import Evidence, joint_state

MANY = FEWEST_CLUSTERS + 10
DOES = {
    "drop": Evidence(-2.0, 0.3, 0.05, 0.01, 1.0, 3.0, 80, MANY),
    "rise": Evidence(2.0, 0.3, 0.05, 0.01, 1.0, 3.0, 80, MANY),
    "none": Evidence(0.01, 0.3, 0.05, 1.0, 0.01, 3.0, 80, MANY),
    "undecided": Evidence(-0.4, 0.3, 0.1, 0.3, 0.9, 3.0, 80, MANY),
}
LOOKS = {
    "shown": Evidence(0.5, 0.1, 0.05, 0.01, 1.0, 3.0, 80, MANY),
    "none": Evidence(0.01, 0.1, 0.02, 1.0, 0.01, 3.0, 80, MANY),
    "not testable": Evidence(np.nan, 0.1, np.nan, np.nan, np.nan, np.nan, 0, 0),
    "undecided": Evidence(0.12, 0.1, 0.05, 0.4, 0.6, 3.0, 80, MANY),
}


def change(evidence, **fields):
    return dataclasses.replace(evidence, **fields)


@pytest.mark.parametrize("state", DOES)
def test_effects_and_exchanges(state):
    assert DOES[state].effect(0.05) == state
    assert DOES[state].exchange(0.05) == state
    assert change(DOES[state], n_clusters=0).exchange(0.05) == "not testable"


@pytest.mark.parametrize("state", LOOKS)
def test_excesses(state):
    assert LOOKS[state].excess(0.05) == state


@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_both_claims_need_a_corrected_p_of_at_most_alpha(alpha):
    for state in ("drop", "rise"):
        assert change(DOES[state], p_adjusted=alpha).effect(alpha) == state
        assert change(DOES[state], p_adjusted=1.01 * alpha).effect(alpha) == "undecided"
    assert change(DOES["none"], p_absent=alpha).effect(alpha) == "none"
    assert change(DOES["none"], p_absent=1.01 * alpha).effect(alpha) == "undecided"
    assert change(LOOKS["shown"], p_adjusted=1.01 * alpha).excess(alpha) == "undecided"


def test_what_was_not_tested_is_not_shown_and_may_be_absent():
    untested = change(DOES["drop"], p_adjusted=np.nan)
    assert untested.effect(0.05) == "undecided"
    assert change(untested, p_absent=0.01).effect(0.05) == "none"


@pytest.mark.parametrize("lacking", [{"n_clusters": FEWEST_CLUSTERS - 1}, {"standard_error": np.nan}])
def test_few_clusters_or_an_unknown_spread_decide_nothing(lacking):
    assert {change(each, **lacking).effect(0.05) for each in DOES.values()} == {"undecided"}
    for state in ("shown", "none", "undecided"):
        assert change(LOOKS[state], **lacking).excess(0.05) == "undecided"


@pytest.mark.parametrize(("resample", "mean"), list(itertools.product(DOES, DOES)))
def test_an_effect_is_what_both_replacements_say(resample, mean):
    found = joint_state(resample, mean)
    if resample == mean:
        assert found == resample
    else:
        assert found == ("undecided" if "undecided" in (resample, mean) else "disagree")


PROBE = Evidence(0.3, 0.1, 0.05, 0.01, 1.0, 3.0, 80, MANY)


@pytest.mark.parametrize(
    ("changes", "how", "state"),
    [
        ({}, {}, "carried"),
        ({}, {"selective": False}, "undecided"),
        ({}, {"has_room": False}, "not testable"),
        ({"p_adjusted": 0.06}, {}, "undecided"),
        ({"p_adjusted": 1.0, "p_absent": 0.01}, {}, "none"),
        ({"p_adjusted": 1.0, "p_absent": 0.01}, {"selective": False}, "none"),
        ({"n_clusters": FEWEST_CLUSTERS - 1}, {}, "undecided"),
        ({"n_clusters": FEWEST_CLUSTERS - 1}, {"has_room": False}, "undecided"),
        ({"n_clusters": 0}, {}, "not testable"),
    ],
)
def test_what_a_claim_of_the_feature_needs(changes, how, state):
    asked = {"selective": True, "has_room": True, "alpha": 0.05, **how}
    assert change(PROBE, **changes).representation(**asked) == state
