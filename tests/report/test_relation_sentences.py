"""What is said of heads and relations, for every verdict, looking back only or both ways."""

import numpy as np
import pytest
from synthetic_relations import TO_DEPENDENT, TO_HEAD, scoring, with_row

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.report.relations_sentences import FEWEST_DOCUMENTS, looks_back_only, summarise, target
from interp.report.words import listed, p_value, points

NUMBERS = "in {} of 1,500 pairs, against 50.0 % for “offset -2” (excess {}; 40 documents)"


def only(result):
    (summary,) = summarise(result)
    return summary


def test_a_head_that_attends_is_quoted_with_all_its_numbers():
    summary = only(scoring())
    assert summary.verdict == "attends"
    assert summary.finding == (
        "Head 0.1 attends to nsubj (head to dependent): it attends most to the subject "
        + NUMBERS.format("70.0 %", "20.0 points [15.0, 25.0], adjusted p = 0.0004")
        + "."
    )
    assert summary.attention == (
        "On average 0.25 of its attention goes to the subject; another head of its layer, drawn at random, is right in "
        "21.0 %."
    )
    assert summary.counted == "1,500 of 1,512 pairs are scored, in 40 documents"
    assert summary.left_out == (
        "not scored: 7 whose related word stands ahead; 4 with a word that has no token of its own; 1 without a choice "
        "to make"
    )


def test_other_heads_that_attend_are_named():
    heads = {(0, 1): "attends", (1, 0): "attends"}
    assert only(scoring({("obj", TO_HEAD): heads})).finding.endswith(". Another head attends to it too: 1.0.")
    heads |= {(1, 1): "attends"}
    assert only(scoring({("obj", TO_HEAD): heads})).finding.endswith(". 2 other heads attend to it too: 1.0 and 1.1.")


def test_no_head_attends():
    summary = only(scoring({("obj", TO_HEAD): "none"}))
    assert summary.verdict == "none"
    assert summary.finding == (
        "No head attends to obj (dependent to head) by the minimum of 10 points beyond a rule: the best head, "
        "0.1, attends most to what the object depends on "
        + NUMBERS.format("40.0 %", "-10.0 points [-15.0, -5.0], adjusted p = 1.000")
        + "."
    )


def test_a_head_that_was_chosen_elsewhere_speaks_for_itself_alone():
    result = scoring({("obj", TO_HEAD): "none"}, chosen_on="abc")
    result.cells["chosen"] = [False, True, False, False]
    result.cells.loc[[0, 2, 3], "verdict"] = None
    assert only(result).finding.startswith(
        "Head 0.1 does not attend to obj (dependent to head) by the minimum of 10 points beyond a rule: it attends"
    )
    assert only(with_row(result, verdict="attends")).finding.startswith("Head 0.1 attends to obj")
    undecided = only(with_row(result, verdict="undecided", excess=0.2, high=0.3, p_adjusted=0.2))
    assert "The head that was chosen, 0.1, attends most" in undecided.finding


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"n_documents": 12, "p_adjusted": np.nan}, f": a verdict needs {FEWEST_DOCUMENTS} documents."),
        ({"low": np.nan, "high": np.nan}, ": it is not known how much its documents differ."),
        ({"accuracy_baseline": 0.95}, ": the rule leaves less than the minimum of 10 points of room for improvement."),
        ({}, ": neither a lead over the rule is shown, nor that it is less than the minimum of 10 points."),
    ],
)
def test_what_is_missing_for_a_verdict_is_said(changed, why):
    result = with_row(scoring({("obj", TO_HEAD): "undecided"}), **changed)
    result.cells["n_documents"] = result.cells["n_documents"].iloc[1]
    summary = only(result)
    assert summary.verdict == "undecided"
    assert summary.finding.startswith("Undecided: obj (dependent to head). The best head, 0.1, attends most to")
    assert summary.finding.endswith(why)


def test_a_best_head_that_does_not_attend_is_no_verdict_where_others_are_undecided():
    result = scoring({("obj", TO_HEAD): {(0, 1): "none", (1, 1): "none"}})
    result.cells.loc[3, "verdict"] = "undecided"
    summary = only(result)
    assert summary.verdict == "undecided"
    assert summary.finding.endswith(
        ", and is shown to be better than the rule by less than the minimum of 10 points. Another head is undecided: "
        "1.1."
    )


def test_a_head_that_attends_speaks_before_one_with_a_larger_excess():
    result = scoring({("obj", TO_HEAD): {(0, 1): "undecided", (1, 1): "attends"}})
    result.cells.loc[1, ["excess", "accuracy"]] = [0.4, 0.9]
    assert only(result).finding.startswith("Head 1.1 attends to obj")


def test_not_testable():
    summary = only(scoring({("coref", "antecedent to anaphor"): "not testable"}, causal=True))
    assert summary.verdict == "not testable"
    assert summary.finding == "Not testable: coref (antecedent to anaphor). Of 1,512 pairs, none can be scored."
    assert summary.counted == "looking back only: 0 of 1,512 pairs can be scored"
    assert summary.left_out.startswith("not scored: 1,507 whose related word stands ahead; ")
    assert summary.attention == ""


def test_a_causal_model_is_marked_and_must_not_be_compared():
    causal = scoring(causal=True)
    assert only(causal).counted == "looking back only: 1,500 of 1,512 pairs can be scored, in 40 documents"
    assert "must not be compared with those of a model that looks both ways" in looks_back_only(causal)
    assert looks_back_only(scoring()) == ""


def test_the_most_telling_come_first():
    verdicts = {
        ("det", TO_HEAD): "not testable",
        ("obj", TO_HEAD): "none",
        ("obl", TO_HEAD): "undecided",
        ("nsubj", TO_HEAD): "attends",
    }
    assert [each.verdict for each in summarise(scoring(verdicts))] == ["attends", "undecided", "none", "not testable"]


def test_few_documents_come_after_many():
    result = with_row(scoring({("det", TO_HEAD): "undecided", ("obj", TO_HEAD): "none"}), excess=0.9)
    result.cells.loc[:3, "n_documents"] = 4
    assert [each.name.split()[0] for each in summarise(result)] == ["obj", "det"]


@pytest.mark.parametrize(
    ("relation", "looks", "words"),
    [
        ("nsubj:pass", TO_DEPENDENT, "the subject"),
        ("flat", TO_HEAD, "what the dependent depends on"),
        ("coref", "anaphor to antecedent", "an antecedent"),
        ("coref:nearest", "anaphor to antecedent", "the nearest antecedent"),
        ("pos:NOUN", "any word to it", "such a word"),
        ("my link", "query to related", "the related word"),
    ],
)
def test_targets(relation, looks, words):
    assert target(relation, looks) == words


def test_numbers():
    assert [p_value(each) for each in (np.nan, 0.00001, 1 / 10_001, 0.0004, 0.02)] == [
        *("", "adjusted p < 0.0001", "adjusted p = 0.0001", "adjusted p = 0.0004", "adjusted p = 0.020")
    ]
    assert points(-0.00001) == "0.0"
    assert listed(["a"]) == "a"
    assert listed(list("abc")) == "a, b and c"
    assert listed(list("abcd"), most=2) == "a, b and 2 more"


def test_the_report_knows_how_many_documents_a_verdict_needs():
    assert FEWEST_DOCUMENTS == FEWEST_CLUSTERS
