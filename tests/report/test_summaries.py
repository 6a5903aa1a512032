"""Does a task's summary say what was measured, what was found, and what stays open?"""

from dataclasses import replace

import numpy as np
import pytest

from interp.report.heads_frames import with_shown_names
from interp.report.heads_sentences import summarise
from interp.report.sections import Sentences, page_of


def summary_of(report, *, untestable: bool = False, **task: object):
    frame = report.cells.assign(attention=np.nan) if untestable else report.cells
    return summarise(replace(report, cells=frame, tasks=report.tasks.assign(**task)))[0]


def first_sentence(report) -> str:
    return next(each for each in page_of(report).sections if isinstance(each, Sentences)).texts[0]


def test_units_are_called_balanced_only_as_far_as_they_are(make_report):
    report = make_report(tasks=("agreement",))
    assert summary_of(report).headline.startswith("200 balanced units in 90 clusters, 400 examples;")
    partly = summary_of(report, n_units=60, n_examples=75, n_clusters=1)
    assert partly.headline.startswith("60 units, 15 of them balanced, in 1 cluster, 75 examples;")
    assert summary_of(report, n_examples=200).headline.startswith("200 units, none of them balanced, in")


def test_the_headline_of_a_file_has_its_items_accuracy(make_report):
    assert "accuracy is 1.00 (0.981 on the file's own items), its" in summary_of(make_report(), coverage="all").headline
    for nothing in ("", np.nan):
        assert "accuracy is 1.00, its" in summary_of(make_report(), coverage=nothing).headline


def test_the_headline_names_the_minimum(make_report):
    assert "an effect counts from 0.20 logits on." in summary_of(make_report()).headline
    report = make_report()
    tiny = replace(report, cells=report.cells.assign(min_effect=0.0021))
    assert "an effect counts from 0.0021 logits on." in summary_of(tiny).headline


def test_the_headline_says_where_heads_were_ablated_on_a_part_and_the_rest_was_predicted(make_report):
    report = make_report(tasks=("agreement",))
    part = replace(report, cells=report.cells.assign(n_units=50, n_effective=50.0))
    assert summary_of(part).headline.endswith(" Heads were ablated on 50 of the units.")
    predicted = replace(part, cells=part.cells.assign(n_effective=150.0))
    said = " Heads were ablated on 50 of the units; gradients say what to expect of the others."
    assert summary_of(predicted).headline.endswith(said)
    assert "ablated on" not in summary_of(report).headline


def test_the_headline_separates_thousands(make_report):
    headline = summary_of(make_report(), n_units=1200, n_examples=2400, n_clusters=1001).headline
    assert headline.startswith("1,200 balanced units in 1,001 clusters, 2,400 examples;")


def test_why_attention_is_not_testable_is_said_with_counts(make_report):
    report = make_report(tasks=("agreement",))
    said = summary_of(report, untestable=True, n_units=60, n_examples=75, n_excluded=75).untested
    assert said == (
        "Attention is not testable: in all 75 examples the related word is the first token, or does not stand before "
        "the query."
    )
    said = summary_of(report, untestable=True, n_examples=400, n_excluded=100, n_untagged=250).untested
    assert said == (
        "Attention is not testable: in 100 of 400 examples the related word is the first token, or does not stand "
        "before the query; in 250 of 400 examples no related word could be tagged; "
        "in 50 of 400 examples there is nothing to choose a baseline on."
    )


def test_attention_that_is_left_out_on_some_examples_is_counted(make_report):
    report = make_report(tasks=("agreement",))
    summary = summary_of(report, n_excluded=34)
    assert summary.untested.startswith("Attention is left out on some examples: in 34 of 400 examples the related word")
    shown = page_of(replace(report, tasks=report.tasks.assign(n_excluded=34))).sections
    assert any(summary.untested in each.texts for each in shown if isinstance(each, Sentences))
    assert summary_of(report).untested == ""


def test_heads_that_position_explains_wholly_are_counted_with_what_would_help(make_report):
    report = make_report(tasks=("agreement",))
    some = report.cells.index < 2
    frame = report.cells.assign(
        attention_state=np.where(some, "not testable", "none"),
        baseline=np.where(some, "offset -3", "offset -2"),
        baseline_overlap=np.where(some, 0.95, 0.1),
        min_attention=0.1,
    )
    assert summary_of(replace(report, cells=frame)).untested == (
        f"Where 2 of {len(frame)} heads look is not testable: the best rule of position (offset -3) finds the "
        "subject, too, in 95.0 % of the examples or more, and leaves less than 0.1 of the attention as room for "
        "improvement; vary where the word stands, and how far from the query."
    )


def test_a_file_is_named_by_its_stem(make_report):
    (summary,) = summarise(make_report(tasks=("blimp:/home/me/data/naïve_accord.jsonl",)))
    assert summary.task == "blimp:naïve_accord"
    assert "for blimp:naïve_accord:" in summary.findings[0]
    assert "/work" not in str(summary)


def test_every_finding_gets_one_sentence_and_none_or_undecided_get_none(make_report):
    report = make_report()
    shown = with_shown_names(report).cells
    for summary in summarise(report):
        heads = shown[shown["task"] == summary.task]
        found = heads[~heads["verdict"].isin(["none", "undecided", "encodes, unused"])]
        named = {f"{row.layer}.{row.head}" for row in found.itertuples()}
        assert {text.split()[1] for text in summary.findings[: len(found)]} == named
        unused = heads[heads["verdict"] == "encodes, unused"]
        assert len(summary.findings) == len(found) + (not unused.empty)
        assert all(f"{row.layer}.{row.head}" in summary.findings[-1] for row in unused.itertuples())


def test_open_questions_name_heads_reason_and_examples(make_report):
    report = make_report()
    undecided = report.cells["verdict"] == "undecided"
    frame = report.cells.assign(n_to_decide=np.where(undecided, 480.0, np.nan))
    (question,) = summarise(replace(report, cells=frame))[0].open_questions
    for row in frame[undecided & (frame["task"] == "agreement")].itertuples():
        assert f"{row.layer}.{row.head}" in question
    assert ": the effect is undecided; about 480 units would decide." in question


def test_an_unbounded_number_of_examples_is_not_promised(make_report):
    report = make_report()
    frame = report.cells.assign(n_to_decide=np.inf)
    (question,) = summarise(replace(report, cells=frame))[0].open_questions
    assert question.endswith("; no number of units that one could measure would decide.")


def test_how_many_heads_a_number_of_units_would_decide_is_said(make_report):
    report = make_report()
    undecided = report.cells.index[(report.cells["task"] == "agreement") & (report.cells["verdict"] != "tracks")]
    frame = report.cells.assign(n_to_decide=np.nan)
    frame.loc[undecided, ["verdict", "reason"]] = "undecided", "the effect is undecided"
    frame.loc[undecided[:3], "n_to_decide"] = 120.0, 4.9e7, 300.0
    (question,) = summarise(replace(report, cells=frame))[0].open_questions
    assert question.endswith(": the effect is undecided; about 120 to 300 units would decide on 2 of these.")


@pytest.mark.parametrize("verdict", ["none", "undecided"])
def test_a_task_without_a_finding_says_so(make_report, verdict):
    report = make_report()
    summary = summarise(replace(report, cells=report.cells.assign(verdict=verdict)))[0]
    assert summary.findings == ()
    n_heads = report.cells.drop_duplicates(["layer", "head"]).shape[0]
    assert summary.headline.endswith(f"Of {n_heads} heads: {n_heads} “{verdict}”.")


def test_a_task_on_which_nothing_is_decided_says_so_once(make_report):
    report = make_report()
    frame = report.cells.assign(verdict="undecided", reason="the base is at chance", n_to_decide=np.nan)
    questions = summarise(replace(report, cells=frame))[0].open_questions
    assert questions == ("Every one of the 12 heads is undecided: the base is at chance.",)


def test_a_number_of_units_that_nobody_can_measure_is_not_named(make_report):
    report = make_report()
    undecided = report.cells["verdict"] == "undecided"
    frame = report.cells.assign(n_to_decide=report.cells["n_to_decide"].mask(undecided, 4.9e7))
    questions = " ".join(each for one in summarise(replace(report, cells=frame)) for each in one.open_questions)
    assert "no number of units that one could measure" in questions
    assert "49000000" not in questions


def test_a_notebook_says_why_nothing_was_found(make_report):
    report = make_report(tasks=("agreement",))
    frame = report.cells.assign(verdict="undecided", reason="14 clusters; at least 30 are needed", n_to_decide=86.0)
    said = first_sentence(replace(report, cells=frame))
    assert "is undecided: 14 clusters; at least 30 are needed; about 86 units would decide." in said
    frame.loc[0, "verdict"] = "encodes, unused"  # neither its attention nor its effect
    assert "14 clusters" in first_sentence(replace(report, cells=frame))
    frame.loc[0, "verdict"] = "tracks"
    assert "14 clusters" not in first_sentence(replace(report, cells=frame))
