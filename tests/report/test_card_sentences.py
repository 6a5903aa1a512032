"""What a card says, against made-up numbers."""

import dataclasses

import numpy as np
import pytest
from made_up_card import IDLE, TASK, made_up_card, table

from interp.errors import InputError
from interp.report.card_evidence import across_tasks, findings, further, named, of_task
from interp.report.sections import page_of

SHOWN = "blimp:<script>alert(1)"


@dataclasses.dataclass
class Words:
    """What a card says of one task."""

    findings: list[str]
    further: list[str]

    @property
    def verdict(self):
        return self.findings[0]

    @property
    def text(self):
        return " ".join(self.findings + self.further)


def words_of(card):
    shown = named(card)
    own = {task: of_task(shown, task) for task in shown.tasks["task"]}
    return {task: Words(findings(each), further(each)) for task, each in own.items()}


@pytest.fixture(scope="module")
def words():
    return words_of(made_up_card())


def test_across_the_tasks_the_verdicts_the_shares_and_the_copying():
    verdicts, shares, copying = across_tasks(named(made_up_card()))
    assert verdicts == f"Head 2.1: ● attends and causal: {TASK}; · none: {SHOWN}."
    assert f"from 0.1 on): {TASK} 0.80 [0.70, 0.90]; {SHOWN} 0.00 [-0.01, 0.01]." in shares
    assert copying.startswith("Copying score of its weights: 0.63")


def test_a_finding_has_the_dossiers_sentence(words):
    assert words[TASK].verdict.startswith(f"Head 2.1 matters for {TASK}: it attends to the subject (0.80 of its")
    assert "resampling it costs 4.00 logits [3.90, 4.10]" in words[TASK].verdict


def test_what_is_no_finding_has_its_meaning_and_its_effect(words):
    assert words[SHOWN].verdict.startswith(
        f"Verdict on {SHOWN}: “none”, its effect is shown to be smaller than the minimum"
    )
    assert words[SHOWN].verdict.endswith(
        "The effect of resampling it is 0.01 logits [-0.09, 0.11], of its positional mean in its place 0.01 logits "
        "[-0.10, 0.11]; an effect counts from 0.50 on."
    )


def test_an_undecided_one_says_how_many_units_would_decide():
    card = made_up_card()
    verdicts = card.verdicts.assign(verdict="undecided", reason="few clusters", n_to_decide=[310.0, np.nan])
    first, second = words_of(made_up_card(verdicts=verdicts)).values()
    assert "(few clusters)" in first.verdict
    assert first.verdict.endswith("on; about 310 units would decide.")
    assert second.verdict.endswith("on.")


def test_kinds_of_ablation_that_part_are_told(words):
    effects, alike = words[TASK].further[:2]
    assert words[TASK].findings[1] == (
        "The replacements do not conclude the same: a drop by zero and mean; an effect below the minimum by "
        "positional mean. Its drop is number 1 to 3 of 12 heads."
    )
    assert effects.startswith(
        "Effects of ablation, all on the same 40 units: zero -4.00 logits [-4.40, -3.60]; mean -3.90 logits "
        "[-4.30, -3.50]; positional mean -0.10 logits"
    )
    assert "by Kendall's τ: 0.25 (zero and positional mean)." in alike


def test_a_refused_kind_has_its_reason(words):
    assert words[SHOWN].findings[1].startswith("All 2 replacements conclude the same: an effect below the minimum.")
    assert words[SHOWN].further[1] == "Ablation by positional mean is refused: positions mean <b>different</b> things."


def test_halves_say_what_came_back(words):
    (halves,) = (each for each in words[TASK].further if "random halves" in each)
    assert "attention above the baseline is 0.70 and 0.05 (it counts from 0.10 on): one of them passes" in halves
    assert "the effect of resampling is -4.10 and -3.90 (it counts from 0.50 on): both pass." in halves
    (halves,) = (each for each in words[SHOWN].further if "random halves" in each)
    assert "attention" not in halves
    assert "neither passes" in halves


def test_what_is_taken_out_where_it_reads_stands_beside_random_directions(words):
    (taken,) = (each for each in words[TASK].further if each.startswith("Removed"))
    assert taken == (
        "Removed from what the head reads or writes, on 40 units: putting the mean in place of its values at the "
        "related word costs 3.50 logits [3.20, 3.80]; erasing number from what it writes costs 2.50 logits [2.10, "
        "2.90]; erasing as many random directions costs 0.20 logits [-0.10, 0.30]."
    )
    assert not any(each.startswith("Removed") for each in words[SHOWN].further)
    values = made_up_card().feature[:1]
    fewer = made_up_card(
        feature=table("feature", *values.to_numpy().tolist(), (TASK, "feature", 0.1, 0.0, 0.2, 31, 30))
    )
    taken = words_of(fewer)[TASK].text
    assert "Removed from what the head reads or writes, on 31 to 40 units: putting the mean" in taken
    assert "erasing number from what it writes gains 0.10 logits [0.00, 0.20]." in taken
    assert "random directions" not in taken


def test_the_word_that_counts_comes_first_and_the_idle_are_named(words):
    text = words[TASK].text
    assert (
        "Patching what it writes at the query into the corrupted run restores 0.90 [0.85, 0.95] of the answer; at all "
        "words, 0.91" in text
    )
    assert "What it writes at BOS and the related word is the same in both runs there" in text


def test_runs_that_do_not_differ_have_nothing_to_bring_back():
    positions = made_up_card().positions.assign(normalised=np.nan)
    text = words_of(made_up_card(positions=positions))[TASK].text
    assert "patching has nothing to restore" in text


def test_paths_are_named_by_what_is_at_their_other_end(words):
    text = words[TASK].text
    assert (
        "Of 3 direct paths into it (40 units), these carry at least 0.05 of the answer: the embeddings by its values "
        "0.60 [0.50, 0.70] and MLP 0 by its keys -0.30 [-0.40, -0.20]." in text
    )
    assert "Of 1 direct path from it (40 units), none carries 0.05" in text
    assert "the largest is the logits 0.02 [0.01, 0.03]." in text
    readers = table("readers", (TASK, "2.1", "3.0.q", "q", 0.5, 0.4, 0.6, 2.0, 40, 1))
    assert "head 3.0 by its queries 0.50" in words_of(made_up_card(readers=readers))[TASK].text


def test_that_many_paths_were_not_patched_is_said(words):
    assert "gradient" not in words[TASK].text
    text = words_of(made_up_card(feeds=made_up_card().feeds.assign(n_paths=453)))[TASK].text
    assert "Of 453 direct paths into it (40 units), these carry" in text
    assert "Patched were only the 3 into it with the largest gradient estimates." in text


def test_weights_say_what_they_look_for_and_write():
    pages = page_of(made_up_card()).sections
    (weights,) = (each.values["pairs"] for each in pages if getattr(each, "macro", "") == "folded_facts")
    assert weights == [
        ("From “near” looks for", "“␣” 2.5"),
        ("Of “keys” raises", "“are” 3.5"),
        ("Of “keys” lowers", "“is” -3.0"),
    ]


def test_what_is_missing_has_its_reason_once(words):
    assert words[SHOWN].further[-1] == (
        "Not measured: direct paths into the head, direct paths from the head and what is removed from what it reads "
        "or writes (no <b>counterfactual</b>)."
    )
    assert "Not measured" not in words[TASK].text


def test_what_nobody_knows_is_not_said():
    card = made_up_card()
    unknown = made_up_card(copying=np.nan, shares=card.shares.assign(share=np.nan))
    assert len(across_tasks(named(unknown))) == 1


def test_frames_that_are_no_cards_are_refused():
    card = made_up_card()
    with pytest.raises(InputError, match=r"a card's `feeds`: expected the columns task, sender, .* got no reads"):
        named(made_up_card(feeds=card.feeds.drop(columns="reads")))
    with pytest.raises(InputError, match="verdicts"):
        named(made_up_card(verdicts=card.verdicts.assign(verdict="unheard of")))
    assert card.tasks["task"].tolist() == [TASK, IDLE]
