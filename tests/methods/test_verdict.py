import dataclasses
import itertools

import numpy as np
import pytest

from interp.methods.verdict import (
    FEW_TASKS,
    FINDINGS,
    NO_VALUES,
    ORDER,
    READABLE,
    UNRELATED,
    Evidence,
    Representation,
    States,
    attention_state,
    effect_state,
    judge,
    related_state,
    representation_state,
    undecidable,
)
from interp.report import verdicts as shown

LOOKS = {
    "shown": Evidence(0.5, 0.05, False, 0.01, 0.1, 40),
    "none": Evidence(0.01, 0.05, True, 0.4, 0.1, 40),
    "not testable": Evidence(np.nan, np.nan, False, np.nan, 0.1, 0),
    "undecided": Evidence(0.09, 0.05, False, 0.2, 0.1, 40),
}
DOES = {
    "drop": Evidence(-2.0, 0.05, False, 0.01, 0.3, 40),
    "rise": Evidence(2.0, 0.05, False, 0.01, 0.3, 40),
    "none": Evidence(0.01, 0.05, True, 0.9, 0.3, 40),
    "undecided": Evidence(-0.2, 0.05, False, 0.3, 0.3, 40),
}
PROBE = Evidence(0.3, 0.05, False, 0.01, 0.1, 40)
CARRIES = {
    "used": Representation(PROBE, True, True, -2.0, -0.2, 0.01, False, 0.3),
    "carried": Representation(PROBE, True, True, -0.2, 0.0, 0.4, False, 0.3),
    "unused": Representation(PROBE, True, True, -0.02, 0.0, 0.4, True, 0.3),
    "none": Representation(Evidence(0.01, 0.05, True, 0.4, 0.1, 40), False, True, *[np.nan] * 3, False, 0.3),
    "not testable": Representation(
        Evidence(*[np.nan] * 2, False, np.nan, 0.1, 0), True, False, *[np.nan] * 3, False, 0.3
    ),
    "undecided": Representation(Evidence(0.09, 0.05, False, 0.2, 0.1, 40), True, True, *[np.nan] * 3, False, 0.3),
}
TABLE = {
    "drop": ["attends and causal", "causal, by another route", "causal", "undecided"],
    "rise": ["opposes", "opposes", "opposes", "opposes"],
    "none": ["attends, not causal", "none", "none", "undecided"],
    "undecided": ["undecided", "undecided", "undecided", "undecided"],
}
"""Where nothing is known of the feature."""
THREE_WAY = {
    ("drop", "shown"): ["tracks", *["attends and causal"] * 5],
    ("none", "shown"): ["undecided", *["attends, not causal"] * 5],
    ("none", "none"): ["undecided", "undecided", "encodes, unused", "none", "none", "undecided"],
    ("none", "not testable"): ["undecided", "undecided", "encodes, unused", "none", "none", "undecided"],
}
"""By what is known of it; elsewhere it changes nothing."""


def verdict_of(attention, effect, carried="not testable", **changes):
    """Of states, or of the evidence for them."""
    looks = attention if isinstance(attention, str) else attention_state(attention, 0.05)
    does = effect if isinstance(effect, str) else effect_state(effect, 0.05)
    asked = {"joint_q": 0.01, "tracks_q": 0.01, "alpha": 0.05}
    q = asked | {name: changes.pop(name) for name in asked if name in changes}
    return judge(States(looks, does, carried, **{"related": "drop"} | changes), **q)


def change(evidence, **fields):
    return dataclasses.replace(evidence, **fields)


@pytest.mark.parametrize(("does", "looks"), list(itertools.product(DOES, LOOKS)))
def test_truth_table(does, looks):
    joint_q = np.nan if looks == "not testable" else 0.01
    verdict, reason = verdict_of(LOOKS[looks], DOES[does], joint_q=joint_q)
    assert verdict == TABLE[does][list(LOOKS).index(looks)]
    if verdict == "undecided":
        assert "undecided" in reason
    if looks == "not testable" and does != "rise" and verdict != "attends and causal":
        assert "attention is not testable" in reason


@pytest.mark.parametrize("state", LOOKS)
def test_attention_states(state):
    assert attention_state(LOOKS[state], 0.05) == state


@pytest.mark.parametrize("state", DOES)
def test_effect_states(state):
    assert effect_state(DOES[state], 0.05) == state


def test_a_significant_effect_below_the_minimum_is_no_claim():
    tiny = change(DOES["drop"], estimate=-0.1, standard_error=0.01)
    assert effect_state(change(tiny, absent=True), 0.05) == "none"
    assert effect_state(tiny, 0.05) == "undecided"
    assert effect_state(change(tiny, minimum=0.1), 0.05) == "drop"
    assert attention_state(change(LOOKS["shown"], minimum=0.7, absent=True), 0.05) == "none"
    assert attention_state(change(LOOKS["shown"], minimum=0.55), 0.05) == "undecided"


def test_a_large_effect_that_is_not_significant_is_no_claim():
    assert effect_state(change(DOES["drop"], q=0.051), 0.05) == "undecided"
    assert attention_state(change(LOOKS["shown"], q=0.051), 0.05) == "undecided"


def test_looking_elsewhere_is_not_attending():
    assert attention_state(Evidence(-0.6, 0.05, True, 1.0, 0.1, 40), 0.05) == "none"


def test_attention_without_an_interval_is_not_shown():
    unknown = change(LOOKS["shown"], standard_error=np.nan)
    assert attention_state(unknown, 0.05) == "undecided"
    assert verdict_of(unknown, DOES["drop"]) == (
        "undecided",
        "the task needs the head, and its attention is undecided",
    )


def test_the_joint_claim_needs_its_own_p():
    verdict, reason = verdict_of(LOOKS["shown"], DOES["drop"], joint_q=0.06)
    assert verdict == "undecided"
    assert "joint q 0.06" in reason


@pytest.mark.parametrize("does", DOES)
def test_few_clusters_decide_nothing(does):
    few = change(DOES[does], n_clusters=19)
    assert undecidable(few, above_chance=True) == "19 clusters; at least 20 are needed"


def test_few_attention_clusters_leave_attention_open():
    few = change(LOOKS["shown"], n_clusters=19)
    assert verdict_of(few, DOES["drop"])[0] == "undecided"
    assert verdict_of(few, DOES["rise"])[0] == "opposes"


@pytest.mark.parametrize("does", DOES)
def test_without_an_interval_nothing_is_decided(does):
    unknown = change(DOES[does], standard_error=np.nan)
    assert undecidable(unknown, above_chance=False) == "a template has a single cluster, so no interval is known"


@pytest.mark.parametrize("does", DOES)
def test_a_model_at_chance_decides_nothing(does):
    assert "not above chance" in undecidable(DOES[does], above_chance=False)
    assert undecidable(DOES[does], above_chance=True) == ""


@pytest.mark.parametrize(("looks", "state"), list(itertools.product(LOOKS, CARRIES)))
def test_a_head_that_costs_every_task_is_general_whatever_else_it_does(looks, state):
    assert verdict_of(looks, "drop", state, specificity="general") == ("general", "")


@pytest.mark.parametrize("state", CARRIES)
@pytest.mark.parametrize("related", ["none", "rise"])
def test_a_head_that_is_not_needed_for_the_word_goes_another_route(related, state):
    found = verdict_of("shown", "drop", state, related=related, specificity="specific")
    assert found == ("causal, by another route", UNRELATED)


def test_what_is_not_known_of_the_word_is_not_claimed():
    verdict, reason = verdict_of("shown", "drop", "used", related="undecided", specificity="specific")
    assert verdict == "undecided"
    assert "what it finds at the related word is undecided" in reason
    untestable = verdict_of("shown", "drop", "used", related="not testable", specificity="specific")
    assert untestable == ("attends and causal", NO_VALUES)


@pytest.mark.parametrize(("does", "looks"), list(itertools.product(DOES, LOOKS)))
def test_the_word_matters_only_to_who_looks_and_is_needed(does, looks):
    if (does, looks) != ("drop", "shown"):
        for related in ("none", "undecided", "not testable"):
            assert verdict_of(looks, does, "used", related=related) == verdict_of(looks, does, "used")


@pytest.mark.parametrize("state", DOES)
def test_related_states(state):
    assert related_state(DOES[state], 0.05) == state
    assert related_state(change(DOES[state], n_clusters=0), 0.05) == "not testable"


def test_who_tracks_is_not_known_to_cost_every_task():
    assert verdict_of("shown", "drop", "used", specificity="specific")[0] == "tracks"
    assert verdict_of("shown", "drop", "used", specificity="not testable")[0] == "tracks"
    verdict, reason = verdict_of("shown", "drop", "used", specificity="undecided")
    assert (verdict, reason) == ("attends and causal", "whether other tasks are spared is undecided")


@pytest.mark.parametrize(("does", "looks"), list(itertools.product(DOES, LOOKS)))
def test_partners_make_redundant_what_is_shown_to_have_no_effect(does, looks):
    with_partner = verdict_of(looks, does, "used", partners=("1.3",))
    if does == "none":
        assert with_partner == ("redundant", "")
    else:
        assert with_partner == verdict_of(looks, does, "used")


def test_a_head_that_was_not_paired_says_so_where_it_is_said_to_do_nothing():
    alone = {"caveat": "it was not ablated with others"}
    assert verdict_of("shown", "none", **alone) == ("attends, not causal", alone["caveat"])
    assert verdict_of("none", "none", "unused", **alone) == ("encodes, unused", alone["caveat"])
    assert verdict_of("shown", "drop", "used", specificity="specific", **alone) == ("tracks", "")


@pytest.mark.parametrize("looks", ["shown", "none"])
def test_a_head_that_others_may_stand_in_for_is_not_said_to_do_nothing(looks):
    open_question = verdict_of(looks, "none", "unused", doubtful=("1.3", "0.2"))
    assert open_question == ("undecided", "whether 1.3 stands in for it is undecided")
    assert verdict_of(looks, "none", "unused", doubtful=("1.3",), partners=("0.2",)) == ("redundant", "")


def test_what_erasing_costs_and_ablating_does_not_is_an_open_question_whatever_it_looks_at():
    for looks in ("shown", "none"):
        assert verdict_of(looks, "none", "used")[0] == "undecided"


def test_who_tracks_one_of_too_few_tasks_is_said_to_with_that_reason():
    assert verdict_of("shown", "drop", "used", specificity="specific") == ("tracks", "")
    assert verdict_of("shown", "drop", "used", specificity="not testable") == ("tracks", FEW_TASKS)


def test_what_is_unknown_is_undecided():
    unknown = Evidence(np.nan, np.nan, False, np.nan, 0.3, 40)
    assert effect_state(unknown, 0.05) == "undecided"
    assert attention_state(unknown, 0.05) == "undecided"


@pytest.mark.parametrize(("does", "looks", "state"), list(itertools.product(DOES, LOOKS, CARRIES)))
def test_three_way_table(does, looks, state):
    verdict, reason = verdict_of(LOOKS[looks], DOES[does], state)
    rows = THREE_WAY.get((does, looks), [TABLE[does][list(LOOKS).index(looks)]] * len(CARRIES))
    assert verdict == rows[list(CARRIES).index(state)]
    if verdict == "undecided":
        assert "undecided" in reason or (state == "used" and "erasing the feature costs the task" in reason)
    if (does, looks) == ("drop", "shown"):
        assert bool(reason) == (state != "not testable")


@pytest.mark.parametrize("state", CARRIES)
def test_representation_states(state):
    assert representation_state(CARRIES[state], 0.05) == state


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"erasure_p": 0.06}, "carried"),
        ({"erasure_effect": -0.29}, "carried"),
        ({"erasure_effect": -0.2, "erasure_absent": True}, "unused"),
        ({"erasure_effect": 2.0}, "carried"),
        ({"erasure_random": -1.8}, "carried"),
        ({"erasure_random": -4.0}, "carried"),
        ({"erasure_effect": np.nan, "erasure_p": np.nan}, "carried"),
        ({"selective": False}, "undecided"),
        ({"has_room": False}, "not testable"),
        ({"probe": change(PROBE, q=0.06)}, "undecided"),
        ({"probe": change(PROBE, estimate=0.09)}, "undecided"),
        ({"probe": change(PROBE, n_clusters=19)}, "undecided"),
        ({"probe": change(PROBE, n_clusters=19), "has_room": False}, "undecided"),
        ({"probe": change(PROBE, n_clusters=0)}, "not testable"),
        ({"probe": change(PROBE, q=0.2, absent=True)}, "none"),
    ],
)
def test_what_a_claim_of_the_feature_needs(changes, state):
    assert representation_state(change(CARRIES["used"], **changes), 0.05) == state


def test_all_kinds_together_need_their_own_p():
    verdict, reason = verdict_of(LOOKS["shown"], DOES["drop"], "used", tracks_q=0.06)
    assert verdict == "attends and causal"
    assert "not together (q 0.06)" in reason


def test_the_page_shows_every_verdict_in_order():
    """The report knows frames only, so it names the verdicts itself."""
    assert tuple(shown.VERDICTS) == ORDER
    assert shown.FINDINGS == FINDINGS
    assert shown.READABLE == READABLE
