from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from interp.report.sentences import head_sentence, summarise

HEAD = {
    "layer": 1,
    "head": 3,
    "task": "agreement",
    "attention": 0.81,
    "attention_baseline": 0.12,
    "baseline": "offset -3",
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
}


def sentence(**changes: object) -> str:
    return head_sentence(pd.Series({**HEAD, **changes}))


def test_a_tracking_head_is_said_with_all_its_numbers():
    assert sentence() == (
        "Head 1.3 tracks agreement: it attends to the subject (0.81 of its attention; its best "
        "baseline, offset -3, has 0.12), and ablating it costs 4.2 logits [3.9, 4.5], accuracy goes from 1.00 to 0.62."
    )


def test_a_cost_is_positive_and_its_interval_in_order():
    assert "costs 0.35 logits [0.10, 0.60]" in sentence(effect=-0.35, effect_low=-0.6, effect_high=-0.1)


def test_a_gain_keeps_its_sign():
    text = sentence(verdict="opposes", effect=0.8, effect_low=0.6, effect_high=1.0, accuracy_ablated=1.0)
    assert (
        text == "Head 1.3 works against agreement: ablating it gains 0.80 logits [0.60, 1.00], accuracy stays at 1.00."
    )


def test_zero_has_no_minus_sign():
    assert "-0.00" not in sentence(verdict="attends only", effect=0.001, effect_low=-0.002, effect_high=0.1)


def test_untestable_attention_is_said_and_not_shown_as_a_number():
    text = sentence(verdict="causal only", attention=np.nan, attention_baseline=np.nan, baseline=None)
    assert text.endswith("its attention is not testable.")
    assert "nan" not in text


def test_sentence_scores_are_in_nats():
    assert "4.2 nats" in sentence(metric="sentence_log_probability")


def test_every_finding_gets_one_sentence_and_none_or_undecided_get_none(make_report):
    report = make_report()
    for summary in summarise(report):
        heads = report.frame[report.frame["task"] == summary.task]
        found = heads[~heads["verdict"].isin(["none", "undecided"])]
        named = {f"{row.layer}.{row.head}" for row in found.itertuples()}
        assert {text.split()[1] for text in summary.findings} == named
        assert len(summary.findings) == len(found)


def test_open_questions_name_heads_reason_and_examples(make_report):
    report = make_report()
    undecided = report.frame["verdict"] == "undecided"
    frame = report.frame.assign(n_to_decide=np.where(undecided, 480.0, np.nan))
    (question,) = summarise(replace(report, frame=frame))[0].open_questions
    for row in frame[undecided & (frame["task"] == "agreement")].itertuples():
        assert f"{row.layer}.{row.head}" in question
    assert "holds both 0 and the minimum effect; about 480 units would decide." in question


def test_an_unbounded_number_of_examples_is_not_promised(make_report):
    report = make_report()
    frame = report.frame.assign(n_to_decide=np.inf)
    assert "would decide" not in " ".join(summarise(replace(report, frame=frame))[0].open_questions)


@pytest.mark.parametrize("verdict", ["none", "undecided"])
def test_a_task_without_a_finding_says_so(make_report, verdict):
    report = make_report()
    summary = summarise(replace(report, frame=report.frame.assign(verdict=verdict)))[0]
    assert summary.findings == ()
    assert "none with a finding" in summary.headline


def test_a_task_on_which_nothing_is_decided_says_so_once(make_report):
    report = make_report()
    frame = report.frame.assign(verdict="undecided", reason="the base is at chance", n_to_decide=np.nan)
    questions = summarise(replace(report, frame=frame))[0].open_questions
    assert questions == ("Every one of the 12 heads is undecided: the base is at chance.",)


def test_a_number_of_units_that_nobody_can_measure_is_not_named(make_report):
    report = make_report()
    undecided = report.frame["verdict"] == "undecided"
    frame = report.frame.assign(n_to_decide=report.frame["n_to_decide"].mask(undecided, 4.9e7))
    questions = " ".join(each for one in summarise(replace(report, frame=frame)) for each in one.open_questions)
    assert "no number of units that one could measure" in questions
    assert "49000000" not in questions
