"""The table of verdicts, every combination of states; and what a task needs for any verdict at all."""

import itertools
from typing import get_args

import numpy as np
import pytest

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.rules import (
    DISAGREE,
    FEW_TASKS,
    FINDINGS,
    NO_EXCHANGE,
    ORDER,
    UNRELATED,
    AttentionState,
    EffectState,
    Evidence,
    ExchangeState,
    RepresentationState,
    Specificity,
    States,
    judge,
    required_units,
    undecidable,
)
from interp.claims.verdicts import OPEN
from interp.report import heads_frames as shown

LOOKS = ("shown", "none", "not testable", "undecided")
TABLE = {
    "drop": ["attends and causal", "causal, by another route", "causal", "needed"],
    "rise": ["opposes", "opposes", "opposes", "opposes"],
    "none": ["attends, not causal", "none", "none", "undecided"],
    "disagree": ["undecided", "undecided", "undecided", "undecided"],
    "undecided": ["undecided", "undecided", "undecided", "undecided"],
}
"""As in the module's docstring, where nothing else is known: columns as ``LOOKS``."""
CELLS = [(effect, looks) for effect in TABLE for looks in LOOKS]
EVERY = list(
    itertools.product(
        get_args(AttentionState),
        get_args(EffectState),
        get_args(RepresentationState),
        get_args(Specificity),
        get_args(ExchangeState),
        (True, False),
        ((), ("1.3",)),
        ((), ("0.2",)),
    )
)


def judged(attention="shown", effect="drop", representation="carried", **changes):
    """Of a head that tracks, but for the changes."""
    given = {"specificity": "specific", "exchange": "drop", **changes}
    return judge(States(attention, effect, representation, **given))


def test_the_table_is_that_of_the_states():
    assert get_args(AttentionState) == LOOKS
    assert set(TABLE) == set(get_args(EffectState))


@pytest.mark.parametrize(("effect", "looks"), CELLS)
def test_the_table_where_nothing_else_is_known(effect, looks):
    verdict, reason = judge(States(looks, effect, "not testable"))
    assert verdict == TABLE[effect][LOOKS.index(looks)]
    if looks == "not testable" and effect in ("drop", "none"):
        assert "attention is not testable" in reason


def test_every_combination_of_states_has_a_verdict_and_what_is_undecided_a_reason():
    found = {each: judge(States(*each)) for each in EVERY}
    assert {verdict for verdict, _ in found.values()} == set(ORDER)
    assert not [each for each, (verdict, reason) in found.items() if verdict in OPEN and not reason]


def test_tracks_is_claimed_of_nothing_that_lacks_a_part():
    for each in EVERY:
        attention, effect, representation, specificity, exchange, has_feature, *_ = each
        parts = (attention, effect, exchange) == ("shown", "drop", "drop") and specificity in (
            "specific",
            "not testable",
        )
        whole = parts and (representation == "carried" or not has_feature)
        assert (judge(States(*each))[0] == "tracks") == whole, each


def test_what_else_is_known_moves_no_verdict_to_another_row():
    """A drop is never said to be no effect, nor the other way round, whatever is known of the rest."""
    rows = {
        "drop": {"tracks", "attends and causal", "causal, by another route", "causal", "general", "needed"},
        "rise": {"opposes"},
        "none": {"redundant", "attends, not causal", "encodes, unused", "none", "undecided"},
        "disagree": {"redundant", "undecided"},
        "undecided": {"redundant", "undecided"},
    }
    for each in EVERY:
        assert judge(States(*each))[0] in rows[each[1]], each


class TestADrop:
    @pytest.mark.parametrize(
        ("representation", "expected"),
        [
            ("carried", ("tracks", "")),
            ("none", ("attends and causal", "the feature cannot be read there beyond its controls")),
            ("not testable", ("attends and causal", "whether the feature can be read there is not testable")),
            ("undecided", ("attends and causal", "the probe is undecided")),
        ],
    )
    def test_a_named_feature_has_to_be_carried(self, representation, expected):
        assert judged(representation=representation) == expected
        assert judged(representation=representation, has_feature=False) == ("tracks", "")

    @pytest.mark.parametrize("representation", get_args(RepresentationState))
    @pytest.mark.parametrize("exchange", ["none", "rise"])
    def test_a_head_that_turns_nothing_by_the_word_goes_another_route(self, exchange, representation):
        assert judged(exchange=exchange, representation=representation) == (
            "causal, by another route",
            UNRELATED[exchange],
        )

    def test_what_is_not_known_of_the_word_is_not_claimed(self):
        verdict, reason = judged(exchange="undecided")
        assert verdict == "needed"
        assert "what it reads at the related word turns the answer is undecided" in reason
        assert judged(exchange="not testable") == ("attends and causal", NO_EXCHANGE)

    @pytest.mark.parametrize(("effect", "looks"), CELLS)
    def test_the_word_matters_only_to_who_looks_and_is_needed(self, effect, looks):
        if (effect, looks) != ("drop", "shown"):
            others = {judged(looks, effect, exchange=exchange) for exchange in get_args(ExchangeState)}
            assert len(others) == 1

    @pytest.mark.parametrize(("looks", "exchange"), list(itertools.product(LOOKS, get_args(ExchangeState))))
    def test_a_head_that_costs_every_task_is_general_whatever_else_it_does(self, looks, exchange):
        assert judged(looks, exchange=exchange, specificity="general") == ("general", "")

    def test_who_tracks_is_not_known_to_cost_every_task(self):
        assert judged(specificity="not testable") == ("tracks", FEW_TASKS)
        expected = ("attends and causal", "whether its effect is about this task is undecided")
        assert judged(specificity="undecided") == expected

    def test_attention_that_is_undecided_hides_no_effect(self):
        assert judged("undecided") == ("needed", "where it looks is undecided")


class TestNoEffect:
    @pytest.mark.parametrize(("effect", "looks"), CELLS)
    def test_partners_make_redundant_what_is_not_missed(self, effect, looks):
        with_partner = judged(looks, effect, partners=("1.3",))
        assert with_partner == (judged(looks, effect) if effect in ("drop", "rise") else ("redundant", ""))

    @pytest.mark.parametrize("looks", ["none", "not testable"])
    def test_a_feature_that_is_carried_is_encoded_and_not_used(self, looks):
        assert judged(looks, "none", "carried")[0] == "encodes, unused"
        assert judged(looks, "none", "none")[0] == "none"
        assert judged("shown", "none", "carried") == ("attends, not causal", "")

    def test_that_nothing_is_there_claims_nothing_of_an_undecided_probe(self):
        assert judged("none", "none", "none") == ("none", "")
        expected = ("none", "whether the feature can be read there is undecided")
        assert judged("none", "none", "undecided") == expected

    def test_a_head_that_was_not_ablated_with_others_says_so_where_it_is_said_to_do_nothing(self):
        alone = {"caveat": "it was not ablated with others"}
        assert judged("shown", "none", **alone) == ("attends, not causal", alone["caveat"])
        assert judged("none", "none", "carried", **alone) == ("encodes, unused", alone["caveat"])
        assert judged(**alone) == ("tracks", "")

    @pytest.mark.parametrize("looks", ["shown", "none"])
    def test_a_head_that_others_may_stand_in_for_is_not_said_to_do_nothing(self, looks):
        open_question = judged(looks, "none", doubtful=("1.3", "0.2"))
        assert open_question == ("undecided", "whether it and 1.3 or 0.2 stand in for each other is undecided")
        assert judged(looks, "none", doubtful=("1.3",), partners=("0.2",)) == ("redundant", "")


@pytest.mark.parametrize("looks", LOOKS)
def test_replacements_that_disagree_leave_everything_open(looks):
    assert judged(looks, "disagree", doubtful=("1.3",)) == ("undecided", DISAGREE)


DROP = Evidence(-2.0, 0.3, 0.05, 0.01, 1.0, 3.0, 80, FEWEST_CLUSTERS + 10)


FINER = "give each unit of your own task its finest lexical draw as cluster, such as subject and verb"


def changed(**fields):
    return Evidence(**{**vars(DROP), **fields})


class TestUndecidable:
    def test_few_clusters_under_either_replacement_decide_nothing(self):
        few = changed(n_clusters=FEWEST_CLUSTERS - 1)
        expected = f"{FEWEST_CLUSTERS - 1} clusters; at least {FEWEST_CLUSTERS} are needed: draw more units, or"
        for both in ((few, DROP), (DROP, few)):
            assert undecidable(both, above_chance=True).startswith(expected)

    @pytest.mark.parametrize(
        ("n_clusters", "n_units", "advice"),
        [
            (15, 60, f"draw more units, or {FINER}"),
            (15, 15, "draw more units"),
            (1, 1, "draw more units"),
            (1, 60, FINER),
            (FEWEST_CLUSTERS, 60, ""),
        ],
    )
    def test_what_would_decide_is_said(self, n_clusters, n_units, advice):
        """More units of a task that has one cluster would be of that one, too; a unit alone has no finer draw."""
        few = changed(n_clusters=n_clusters, n_units=n_units)
        assert undecidable((few, DROP), above_chance=True).partition("are needed: ")[2] == advice

    def test_without_an_interval_nothing_is_decided(self):
        unknown = changed(standard_error=np.nan)
        expected = "a template has a single cluster, so no interval is known"
        for both in ((unknown, DROP), (DROP, unknown)):
            assert undecidable(both, above_chance=False) == expected

    def test_a_model_at_chance_decides_nothing(self):
        assert "not shown to be above chance" in undecidable((DROP, DROP), above_chance=False)
        assert undecidable((DROP, DROP), above_chance=True) == ""


def test_the_page_shows_every_verdict_in_order():
    """The report knows frames only, so it names the verdicts itself."""
    assert tuple(shown.VERDICTS) == ORDER
    assert shown.FINDINGS == FINDINGS


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
