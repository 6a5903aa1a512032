from collections import Counter

import numpy as np
import pytest

from interp.calibration.language import BOS, LEMMAS, LONGEST, TASKS, load, load_told, tokenizer, vocabulary
from interp.tasks.task import Task

WORDS = {word.text: word for word in vocabulary()}


@pytest.fixture(scope="module", params=TASKS)
def task(request) -> Task:
    return load(request.param, n=60, seed=3)


def kind_and_value(example, span):
    word = WORDS[span.of(example.text)]
    return word.kind, word.value


def test_every_word_is_one_token():
    assert tokenizer().bos_token_id == 0
    assert tokenizer().decode([0]) == BOS
    assert [tokenizer().encode(word.text) for word in vocabulary()] == [[number] for number in range(len(WORDS))]
    assert len(WORDS) == len(vocabulary())


def test_all_pairs_are_carried_and_every_lemma_is_a_cluster(task):
    assert len(task.units) == 60
    assert not task.dropped
    assert max(len(each.prompt) for each in task.examples) <= LONGEST
    assert set(Counter(unit.cluster for unit in task.units).values()) == {60 // LEMMAS}


def test_the_related_word_decides_the_answer(task):
    for unit in task.units:
        values = [kind_and_value(each.example, each.example.relation.related)[1] for each in unit.examples]
        assert sorted(values) == [-1, 1]
        assert unit.item.right == unit.counterfactual.wrong
        assert unit.item.wrong == unit.counterfactual.right
        for value, each in zip(values, unit.examples, strict=True):
            right = tokenizer().decode(list(each.right))
            if task.name == "induction":
                assert right == each.example.relation.related.of(each.example.text)
                assert tokenizer().decode(list(each.wrong)) in each.example.prompt.split()
            else:
                assert right == {"agreement": ("is", "are"), "coreference": ("he", "she")}[task.name][value > 0]


def test_pairs_differ_in_what_they_are_about_and_nothing_else(task):
    for unit in task.units:
        differs = [one != other for one, other in zip(unit.item.prompt, unit.counterfactual.prompt, strict=True)]
        assert sum(differs) == (2 if task.name == "induction" else 1)
        assert differs[unit.item.related[0]]


@pytest.mark.parametrize(("name", "correlation"), [*((name, 0.5) for name in TASKS), ("agreement", 0.85)])
def test_every_example_has_a_twin_in_which_the_related_word_alone_is_another(name, correlation):
    for unit in load(name, n=60, seed=3, correlation=correlation).units:
        for one, other in zip(unit.examples, unit.word_counterfactuals, strict=True):
            differs = [
                place for place, pair in enumerate(zip(one.prompt, other.prompt, strict=True)) if len(set(pair)) > 1
            ]
            assert differs == list(one.related)
            words = [kind_and_value(each.example, each.example.relation.related) for each in (one, other)]
            assert words[0] == (words[1][0], -words[1][1])
            assert other.right != one.right
            labels = [each.example.features for each in (one, other)]
            assert labels[0] != labels[1]


def test_no_offset_and_no_position_finds_the_related_word_in_half_of_the_items(task):
    for places in (
        [each.related[0] for each in task.examples],
        [each.query - each.related[0] for each in task.examples],
    ):
        assert max(Counter(places).values()) < len(task.examples) / 2


@pytest.mark.parametrize("correlation", [0.5, 0.85])
def test_attractors_are_as_the_related_word_as_often_as_asked(correlation):
    alike = []
    for unit in load("agreement", n=300, seed=0, correlation=correlation).units:
        for encoded in unit.examples:
            example = encoded.example
            kind, value = kind_and_value(example, example.relation.related)
            for span in example.relation.distractors.values():
                assert kind_and_value(example, span)[0] == f"of-{kind}"
                alike.append(kind_and_value(example, span)[1] == value)
    # Binomial: 300 to 600 attractors, twice each.
    assert np.mean(alike) == pytest.approx(correlation, abs=0.06)


def test_what_is_told_has_nothing_to_do_with_the_related_word():
    task = load_told("agreement", n=300, seed=0)
    same, places = [], set()
    for unit in task.units:
        one, other = (each.example.prompt.split() for each in unit.examples)
        ((place, *_),) = [pair for pair in zip(range(99), one, other, strict=False) if pair[1] != pair[2]]
        places.add(place)
        for encoded, words in zip(unit.examples, (one, other), strict=True):
            right = encoded.example.right.strip()
            assert right == {"key0": "is", "key1": "are"}[words[place]]
            assert encoded.example.features["number"] == {"is": "singular", "are": "plural"}[right]
            assert encoded.query == len(encoded.prompt) - 1
            (twin,) = encoded.example.word_counterfactuals
            assert (twin.right, twin.wrong) == (encoded.example.wrong, encoded.example.right)
            assert twin.features != encoded.example.features
            assert encoded.differs_at_word(encoded.word_counterfactual)
            relation = encoded.example.relation
            assert relation.query.of(encoded.example.text) == "verb"
            assert all(span.of(encoded.example.text).startswith("of-noun") for span in relation.distractors.values())
        value = kind_and_value(unit.item.example, unit.item.example.relation.related)[1]
        same.append((value > 0) == (unit.item.example.right == " are"))
    assert np.mean(same) == pytest.approx(0.5, abs=0.1)
    assert len(places) > 8


def test_another_seed_is_another_draw_and_the_same_one_the_same():
    one, again, other = (load("agreement", n=30, seed=seed) for seed in (0, 0, 1))
    assert one.hash == again.hash != other.hash
