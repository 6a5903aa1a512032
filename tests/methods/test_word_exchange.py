"""Does what a head reads at the word turn the answer? By hand, in a planted carrier, and in the embedded model."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hand_model import BY, IS, KEY, N_CLUSTERS, NEAR, THERE, HandModel, encode, hand_weights, task_of, varied_task

from interp.errors import InputError
from interp.methods.ablation import ablate
from interp.methods.word_exchange import NO_OTHER, NO_WORD, against_other_words, exchange_word
from interp.model.loading import load_model
from interp.tasks.catalogue import load_task
from interp.tasks.task import Unit


def by_head(result, column):
    return {head: rows[column].to_numpy() for head, rows in result.examples.groupby("head")}


def test_the_only_carrier_turns_the_answer_round():
    """Head 0 gives the noun 9 / (n + 8) of its attention, and writes as much to the answer of whichever noun it is."""
    task = varied_task()
    result = exchange_word(hand_weights(), task)
    lengths = np.array([len(each.prompt) for each in task.examples])
    effect = by_head(result, "effect")
    assert effect[0] == pytest.approx(-18 / (lengths + 8), abs=1e-6)
    assert effect[1] == pytest.approx(0, abs=1e-6)
    assert by_head(result, "value")[0] == pytest.approx(by_head(result, "source")[0], abs=1e-6)
    assert result.provenance["dropped"] == {}
    assert result.summary()["n_units"].tolist() == [4 * N_CLUSTERS, 4 * N_CLUSTERS]


def test_who_reads_another_word_turns_nothing():
    """Head 0 looks at the noun as much as ever, but what it writes it reads at the fillers."""
    model = hand_weights()
    with torch.no_grad():
        attention = model.blocks[0].attn
        attention.W_V[0, [KEY, KEY + 1]] = 0
        attention.W_V[0, BY, KEY] = attention.W_V[0, NEAR, KEY] = 1
    result = exchange_word(model, varied_task(), heads=[(0, 0)])
    assert result.examples["effect"].to_numpy() == pytest.approx(0, abs=1e-6)
    assert ablate(model, varied_task(), replacement="zero", heads=[(0, 0)]).examples["effect"].abs().max() > 0.3


class TestLeftOut:
    def test_units_without_a_word_to_exchange(self):
        task = varied_task()
        alone = replace(task.units[0], counterfactual=None)
        late = Unit(*(replace(each, query=1, related=(3,)) for each in task.units[1].examples), "c")
        untagged = Unit(encode([0, KEY, THERE], tagged=False), None, "c")
        found = against_other_words(task_of([alone, late, untagged, *task.units], [], name="some"))
        assert found.dropped == {NO_OTHER: 1, NO_WORD: 2}
        assert len(found.units) == len(task.units)
        result = exchange_word(hand_weights(), replace(task, units=(alone, *task.units[1:])), heads=[(0, 0)])
        assert result.provenance["dropped"] == {NO_OTHER: 1}
        assert result.examples["example"].max() == 2 * len(task.units) - 3

    def test_half_a_unit_goes_with_the_other(self):
        unit = varied_task().units[0]
        third = replace(unit.counterfactual, prompt=(0, *unit.item.prompt[1:]), related=unit.item.related)
        other = replace(third, prompt=tuple(BY if each == KEY else each for each in third.prompt), right=(BY,))
        given = replace(unit.item, word_counterfactual=other)
        elsewhere = tuple(NEAR if each == THERE else each for each in unit.counterfactual.prompt)
        half = Unit(given, replace(unit.counterfactual, prompt=elsewhere), "c")
        assert half.word_counterfactuals == (other, None)
        assert against_other_words(task_of([half], [])).dropped == {NO_OTHER: 1}

    def test_nothing_left_is_not_testable(self):
        alone = tuple(replace(unit, counterfactual=None) for unit in varied_task().units)
        assert exchange_word(hand_weights(), replace(varied_task(), units=alone)) is None

    def test_a_model_that_shows_no_keys_is_not_testable(self):
        assert exchange_word(HandModel(), varied_task()) is None


def test_the_wrong_answer_is_that_of_the_other_word():
    unit = varied_task().units[0]
    other = replace(unit.counterfactual, right=(BY,), example=replace(unit.counterfactual.example, right=" by"))
    task = against_other_words(task_of([Unit(replace(unit.item, word_counterfactual=other), None, "c")], []))
    (found,) = task.examples
    assert (found.right, found.wrong, found.example.wrong) == ((IS,), (BY,), " by")


def test_a_head_that_is_not_there_raises():
    with pytest.raises(InputError, match=r"head 1.0: the model has 1 layers"):
        exchange_word(hand_weights(), varied_task(), heads=[(1, 0)])


def test_what_is_kept_is_found_again_and_told_from_other_words(tmp_path):
    model, task = hand_weights(), varied_task()
    first = exchange_word(model, task, run=tmp_path)
    assert exchange_word(model, task, run=tmp_path).examples.equals(first.examples)
    n_kept = len(list(tmp_path.glob("*")))
    wider = tuple(
        Unit(*(replace(each, related=(*each.related, each.related[0] + 1)) for each in unit.examples), unit.cluster)
        for unit in task.units
        if unit.item.related[0] + 1 < len(unit.item.prompt) - 1
    )
    exchange_word(model, replace(task, units=wider), run=tmp_path)
    assert len(list(tmp_path.glob("*"))) > n_kept


@pytest.mark.parametrize(
    ("name", "head"),
    [("agreement", (2, 2)), ("ioi", (2, 1)), pytest.param("coreference", (2, 2), marks=pytest.mark.slow)],
)
def test_in_the_embedded_model_one_head_turns_the_answer(name, head):
    model = load_model()
    result = exchange_word(model, load_task(name, tokenizer=model.tokenizer, n=40), heads=[head, (0, 1)])
    means = result.examples.groupby(["layer", "head"])[["base", "source", "value"]].mean()
    assert means.loc[head, "value"] == pytest.approx(means.loc[head, "source"], rel=0.1)
    assert means.loc[head, "source"] < -0.8 * means.loc[head, "base"]
    assert means.loc[(0, 1), "value"] == pytest.approx(means.loc[(0, 1), "base"], rel=0.1)
