import numpy as np
import pandas as pd
import pytest

from interp.claims.rules import UNRELATED
from interp.report.heads_sentences import head_sentence, unused_sentence

HEAD = {
    "layer": 1,
    "head": 3,
    "task": "agreement",
    "attention": 0.81,
    "attention_baseline": 0.12,
    "baseline": "offset -3",
    "excess": 0.69,
    "min_attention": 0.1,
    "min_effect": 0.47,
    "effect": -4.2,
    "effect_low": -4.5,
    "effect_high": -3.9,
    "accuracy_base": 1.0,
    "accuracy_ablated": 0.62,
    "verdict": "attends and causal",
    "reason": "",
    "n_to_decide": np.nan,
    "metric": "logit_difference",
    "relation": "subject",
    "n_templates": 6,
    "n_templates_attended": 6,
    "representation": "not testable",
    "attention_state": "shown",
    "attention_value": "",
    "attention_values": "",
    "n_attention_values": 1,
    "attention_self": 0.02,
    "attention_first": 0.05,
    "mean_replacement": "positional_mean",
    "mean_effect": -3.9,
    "mean_effect_low": -4.1,
    "mean_effect_high": -3.7,
    "exchange": -8.1,
    "exchange_low": -8.6,
    "exchange_high": -7.6,
    "exchange_state": "drop",
}
COST = (
    "resampling it costs 4.20 logits [3.90, 4.50], accuracy goes from 1.00 to 0.62; its positional mean in its place "
    "costs 3.90 logits [3.70, 4.10]"
)
CARRIED = {
    "representation": "carried",
    "feature": "number",
    "probe": 0.98,
    "probe_baseline": "untrained",
    "probe_baseline_score": 0.55,
    "probe_control": 0.51,
}
"""Where a probe reads the feature."""


def sentence(**changes: object) -> str:
    return head_sentence(pd.Series({**HEAD, **changes}))


def test_a_head_that_attends_and_is_causal_is_said_with_all_its_numbers():
    assert sentence() == (
        "Head 1.3 matters for agreement: it attends to the subject (0.81 of its attention; its best "
        f"baseline, offset -3, has 0.12), and {COST}; exchanging the subject for this head alone costs 8.10 logits "
        "[7.60, 8.60]."
    )


def test_what_it_reads_at_the_word_may_be_unknown_or_not_what_is_needed():
    unknown = sentence(exchange=np.nan, exchange_low=np.nan, exchange_high=np.nan)
    assert unknown.endswith("its positional mean in its place costs 3.90 logits [3.70, 4.10].")
    elsewhere = {"exchange": -0.02, "exchange_low": -0.05, "exchange_high": 0.01, "exchange_state": "none"}
    assert sentence(verdict="causal, by another route", reason=UNRELATED["none"], **elsewhere) == (
        f"Head 1.3 matters for agreement: {COST}. It attends to the subject (0.81 of its attention; its best baseline, "
        "offset -3, has 0.12), but what it reads there turns the answer by less than the minimum; exchanging the "
        "subject for this head alone costs 0.02 logits [-0.01, 0.05]."
    )


def test_a_word_that_speaks_against_the_answer_does_not_turn_it_by_less():
    against = {"exchange": 2.1, "exchange_low": 1.8, "exchange_high": 2.4, "exchange_state": "rise"}
    said = sentence(verdict="causal, by another route", reason=UNRELATED["rise"], **against)
    assert "but what it reads there speaks against the answer; exchanging the subject" in said
    assert "less than the minimum" not in said


def test_which_mean_stands_in_its_place_is_said():
    said = sentence(mean_replacement="template_mean")
    assert "; its template mean in its place costs 3.90 logits [3.70, 4.10]" in said


def test_a_tracking_head_is_said_with_all_its_numbers():
    assert sentence(verdict="tracks", **CARRIED) == (
        "Head 1.3 tracks agreement: it attends to the subject (0.81 of its attention; its best "
        f"baseline, offset -3, has 0.12), and {COST}; exchanging the subject for this head alone costs 8.10 logits "
        "[7.60, 8.60]. A probe reads number there (accuracy 0.98 on unseen words; untrained 0.55, control task 0.51)."
    )


@pytest.mark.parametrize("state", ["none", "undecided", "not testable"])
def test_what_is_not_carried_is_not_said_to_be_read(state):
    assert "A probe reads" not in sentence(**CARRIED | {"representation": state})


def test_what_is_carried_is_said_beside_the_reason_of_other_verdicts():
    text = sentence(**CARRIED, reason="whether its effect is about this task is undecided")
    assert "Head 1.3 matters for agreement" in text
    assert "[7.60, 8.60]. Whether its effect is about this task is undecided. A probe reads number there" in text


def test_heads_that_carry_it_unused_share_a_sentence():
    rows = [
        {**HEAD, **CARRIED, "verdict": "encodes, unused", "head": head, "probe": 0.6 + head / 10} for head in range(3)
    ]
    heads = pd.DataFrame(rows)
    (text,) = unused_sentence(heads)
    assert text == (
        "Heads 1.2, 1.1 and 1.0 carry number (the first: accuracy 0.80 on unseen words; untrained 0.55, control task "
        "0.51), unused: ablating any one of them costs agreement less than the minimum."
    )
    (one,) = unused_sentence(heads[:1])
    assert one.startswith("Head 1.0 carries number (accuracy 0.60 on unseen words;")
    assert one.endswith("unused: ablating it costs agreement less than the minimum.")
    assert unused_sentence(heads.assign(verdict="none")) == []


@pytest.mark.parametrize("verdict", ["attends and causal", "attends, not causal"])
def test_attention_in_some_templates_only_is_said(verdict):
    some = sentence(verdict=verdict, n_templates_attended=2)
    assert some.endswith(". It looks there beyond its baseline in 2 of 6 templates only.")
    elsewhere = {"verdict": "causal, by another route", "attention_state": "none", "n_templates_attended": 2}
    assert "templates" not in sentence(**elsewhere)
    assert "in 2 of 6 templates only" in sentence(**elsewhere | {"attention_state": "shown"})


def test_a_cost_is_positive_and_its_interval_in_order():
    assert "costs 0.35 logits [0.10, 0.60]" in sentence(effect=-0.35, effect_low=-0.6, effect_high=-0.1)


def test_a_gain_keeps_its_sign():
    text = sentence(verdict="opposes", effect=0.8, effect_low=0.6, effect_high=1.0, accuracy_ablated=1.0)
    assert text.startswith(
        "Head 1.3 works against agreement: resampling it gains 0.80 logits [0.60, 1.00], accuracy stays at 1.00; "
    )


def test_zero_has_no_minus_sign():
    assert "-0.00" not in sentence(verdict="attends, not causal", effect=0.001, effect_low=-0.002, effect_high=0.1)


def test_untestable_attention_is_said_and_not_shown_as_a_number():
    text = sentence(verdict="causal", attention=np.nan, attention_baseline=np.nan, baseline=None)
    assert text.endswith("Its attention is not testable.")
    assert "nan" not in text


@pytest.mark.parametrize(
    ("minimum", "effect", "low", "high", "least", "gain"),
    [
        (0.47, 0.22, 0.18, 0.27, "0.47", "0.22 logits [0.18, 0.27]"),
        (0.0047, 0.0022, 0.0018, 0.0027, "0.0047", "0.0022 logits [0.0018, 0.0027]"),
        (0.47, 0.01, -0.01, 0.05, "0.47", "0.01 logits [-0.01, 0.05]"),  # which may be nothing
    ],
)
def test_a_small_effect_is_not_called_none(minimum, effect, low, high, least, gain):
    numbers = {"min_effect": minimum, "effect": effect, "effect_low": low, "effect_high": high}
    text = sentence(verdict="attends, not causal", accuracy_ablated=1.0, **numbers)
    assert f", but its effect is below the minimum that counts ({least} logits): resampling it gains {gain}" in text
    assert "; its positional mean in its place costs 3.90 logits" in text
    assert "can do without it" not in text


@pytest.mark.parametrize(
    ("baseline", "shown"),
    [
        ("giver's second mention", "the giver's second mention"),
        ("distractor 2", "distractor 2"),
        ("offset -3 / other person", "offset -3 / the other person"),
    ],
)
def test_a_causal_head_that_looks_elsewhere_is_said_to(baseline, shown):
    text = sentence(
        verdict="causal, by another route",
        attention_state="none",
        attention=0.01,
        attention_baseline=0.74,
        baseline=baseline,
        excess=-0.73,
    )
    assert text.endswith(
        f"[3.70, 4.10]. It attends more to {shown} (0.74 of its attention) than to the subject (0.01)."
    )


def test_a_causal_head_whose_baseline_is_not_clearly_above_is_not_said_to_look_there():
    text = sentence(
        verdict="causal, by another route",
        attention_state="undecided",
        attention=0.06,
        attention_baseline=0.12,
        excess=-0.06,
        reason="attention is undecided",
    )
    assert "attends more" not in text
    assert text.endswith(
        "It is not shown to attend to the subject "
        "(0.06 of its attention; its best baseline, offset -3, has 0.12): attention is undecided."
    )


def test_attention_below_the_minimum_is_not_called_none():
    close = {"attention": 0.55, "attention_baseline": 0.52, "excess": 0.03}
    text = sentence(verdict="causal, by another route", attention_state="none", **close)
    assert text.endswith(
        "It attends to the subject (0.55 of its attention; its best baseline, offset -3, has 0.52) by less than the "
        "minimum beyond a baseline."
    )


@pytest.mark.parametrize(
    ("own", "first", "said"),
    [
        (0.1, 0.61, "; 0.61 of its attention rests on the first token."),
        (0.55, 0.1, "; 0.55 of its attention rests on the query itself."),
        (0.1, 0.1, "beyond a baseline."),
    ],
)
def test_attention_that_rests_is_said_where_it_is_much(own, first, said):
    low = {"attention": 0.05, "excess": -0.07, "attention_self": own, "attention_first": first}
    assert sentence(verdict="causal, by another route", attention_state="none", **low).endswith(said)


def test_a_head_that_looks_for_one_value_only_is_said_to():
    by_value = {"feature": "number", "attention_value": "singular", "n_attention_values": 2}
    assert (
        "it attends to the subject where number is singular only (0.81 of its attention; its best baseline, offset -3, "
        "has 0.12), and"
    ) in sentence(**by_value, attention_values="singular")
    assert (
        "it attends to the subject most clearly where number is singular (0.81 of its attention; its best baseline, "
        "offset -3, has 0.12), and"
    ) in sentence(**by_value, attention_values="plural, singular")


@pytest.mark.parametrize(("overlap", "share"), [(1.0, "every example"), (0.95, "95.0 % of the examples")])
def test_a_baseline_that_is_the_related_word_leaves_nothing_to_test(overlap, share):
    same = {"attention": 0.92, "attention_baseline": 0.92, "excess": np.nan, "baseline_overlap": overlap}
    text = sentence(verdict="causal", attention_state="not testable", **same)
    assert text.endswith(
        "Whether it attends to the subject is not testable (0.92 of its attention; its best baseline, offset -3, "
        f"has 0.92): offset -3 is the subject itself in {share}."
    )


def test_sentence_scores_are_in_nats():
    assert "4.20 nats" in sentence(metric="sentence_log_probability")
