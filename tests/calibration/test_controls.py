"""Nulls, on which nothing tracks; and models of which one head sees: the others are blind however long they train."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from test_planted import margins as planted_margins

from interp.calibration import controls
from interp.calibration.controls import (
    NULLS,
    SEEING,
    at_attractors,
    null_case,
    permuted,
    seeing_head,
    seeing_model,
)
from interp.calibration.language import load, load_crossed, vocabulary
from interp.calibration.planted import Shape
from interp.calibration.random_models import Difficulty, draw
from interp.methods.word_exchange import SAME_VALUE, against_other_words
from interp.tasks.task import Unit

PLAN = draw(3, difficulty=Difficulty(n=60))


@pytest.fixture(scope="module")
def plain():
    return {task.name: task for task in PLAN.tasks()}


def margins(model, task):
    return planted_margins(model, task).numpy()


@cache
def null(kind):
    return null_case(kind, PLAN)


@pytest.mark.parametrize(("shape", "kv_heads"), [(PLAN.shape, 4), (Shape(3, 12, n_kv_heads=6), 2)])
def test_a_trained_model_does_without_fail_what_the_related_word_has_no_part_in(shape, kv_heads):
    """Nor has the first token: the key is somewhere among the words, and the counterfactual has the other one there."""
    model, tasks = null("trained") if shape == PLAN.shape else null_case("trained", replace(PLAN, shape=shape))
    assert (model.cfg.n_layers * model.cfg.n_heads, model.config.kv_heads) == (8, kv_heads)
    for task in tasks:
        assert (margins(model, task) > 0).all()
        for unit in task.units:
            assert unit.item.prompt[unit.item.related[0]] == unit.counterfactual.prompt[unit.item.related[0]]


def test_an_untrained_model_guesses():
    model, tasks = null("untrained")
    assert [task.name for task in tasks] == ["agreement", "coreference", "induction"]
    for task in tasks:
        assert np.mean(margins(model, task) > 0) == pytest.approx(0.5, abs=0.2)


def test_permuted_labels_turn_whole_clusters_and_half_of_them(plain):
    model, tasks = null("permuted labels")
    for task in tasks:
        right = margins(model, task) > 0
        assert 0.2 < right.mean() < 0.8
        turned: dict[str, set[bool]] = {}
        labelled: dict[str, set[bool]] = {}
        for unit, before in zip(task.units, plain[task.name].units, strict=True):
            for one, other in zip(unit.examples, before.examples, strict=True):
                assert one.prompt == other.prompt
                assert {one.right, one.wrong} == {other.right, other.wrong}
                turned.setdefault(unit.cluster, set()).add(one.right != other.right)
                changed = one.example.features != other.example.features
                labelled.setdefault(unit.cluster, set()).add(changed)
        for ways in (turned, labelled):
            assert all(len(each) == 1 for each in ways.values())
            assert 15 < sum(True in each for each in ways.values()) < 45
        assert turned != labelled


def test_references_are_permuted_by_cluster_and_apart_from_the_units():
    _, tasks = null("permuted labels")
    task = tasks[0]
    assert task.name == "agreement"
    ways = []
    for units in (task.units, task.references[0]):
        found: dict[str, set[bool]] = {}
        for unit in units:
            plural = unit.item.example.features["number"] == "plural"
            truly = unit.item.example.relation.related.of(unit.item.example.text).endswith("s")
            found.setdefault(unit.cluster, set()).add(plural != truly)
        assert all(len(each) == 1 for each in found.values())
        ways.append(found)
    assert ways[0] != ways[1]


def test_permuted_pairs_change_who_is_related_and_nothing_else(plain):
    _, tasks = null("permuted pairs")
    for task in tasks:
        for unit, before in zip(task.units, plain[task.name].units, strict=True):
            for one, other in zip(unit.examples, before.examples, strict=True):
                assert (one.prompt, one.right, one.query) == (other.prompt, other.right, other.query)
                assert {one.related, *one.distractors.values()} == {other.related, *other.distractors.values()}


def test_what_is_tagged_in_permuted_pairs_has_another_form_which_turns_nothing(plain):
    """The model's answer does not follow it, unless it is the related word."""
    model, tasks = null("permuted pairs")
    for task in tasks:
        twins = [each for unit in task.units for each in unit.word_counterfactuals]
        examples = [(one, two) for one, two in zip(task.examples, twins, strict=True) if one.example.relation]
        before = [each.related for each in plain[task.name].examples]
        moved = [pair for pair, related in zip(examples, before, strict=True) if pair[0].related != related]
        assert 0.3 < len(moved) / len(examples) < 0.8
        for one, two in moved:
            assert one.differs_at_word(two)
            assert two.example.prompt.split() != one.example.prompt.split()
        found = [replace(task, units=tuple(Unit(each, None, "c") for each in own)) for own in zip(*moved, strict=True)]
        one, other = (margins(model, each) for each in found)
        assert np.mean(one > 0) > 0.9
        assert np.mean(other < 0) > 0.9  # who takes its form for the answer is wrong


def test_what_a_head_reads_at_the_tagged_word_is_testable():
    """Otherwise a rule would keep it from tracking, whatever it does."""
    tasks = [task for kind in ("trained", "permuted labels", "permuted pairs") for task in null(kind)[1]]
    for task in [*tasks, at_attractors(load("agreement", n=60, seed=0, ordered=True))]:
        assert len(against_other_words(task).units) == len(task.units), task.name


def test_the_related_word_keeps_its_tag_as_often_as_each_attractor_gets_it():
    kept = {1: [], 2: []}
    for seed in range(12):
        plain = load("agreement", n=60, seed=seed)
        turned = permuted(plain, "permuted pairs", np.random.default_rng(seed))
        for before, after in zip(plain.units, turned.units, strict=True):
            kept[len(after.item.distractors)].append(before.item.related == after.item.related)
    # Of some 350 clusters of each: 3.5 standard errors.
    assert np.mean(kept[1]) == pytest.approx(1 / 2, abs=0.09)
    assert np.mean(kept[2]) == pytest.approx(1 / 3, abs=0.09)


@pytest.mark.parametrize("kind", sorted(set(NULLS) - {"trained"}))
def test_the_same_plan_gives_the_same_null(kind):
    """But for trained ones: a training's bits are tested where trainings are."""
    one, two = null(kind), null_case(kind, PLAN)
    for first, second in zip(one[0].parameters(), two[0].parameters(), strict=True):
        assert torch.equal(first, second)
    assert one[1] == two[1]


@pytest.mark.parametrize(("grouped", "is_crossed"), [(False, False), (True, False), (False, True)])
def test_only_the_head_that_sees_tells_classes_of_words_apart(grouped, is_crossed, monkeypatch):
    monkeypatch.setattr(controls, "SEEING_STEPS", 30)
    model, sees = seeing_model(5, is_crossed=is_crossed, grouped=grouped), seeing_head(5)
    kinds = [word.kind for word in vocabulary()]
    tokens = torch.tensor([[0, *([kinds.index("filler")] * 6), kinds.index("verb")]] * 2)
    tokens[1, 3] = kinds.index("noun")
    with torch.no_grad():
        one, other = model.run_with_cache(tokens)[1]["blocks.0.attn.hook_pattern"]
    differ = (one[:, -1] - other[:, -1]).abs().amax(dim=-1)
    blind = [head for head in range(SEEING.n_heads) if head != sees]
    assert differ[blind].max() < 1e-5
    assert differ[sees] > 1e-3


def test_all_words_and_places_are_as_long_as_each_other_and_apart(monkeypatch):
    monkeypatch.setattr(controls, "SEEING_STEPS", 0)
    model = seeing_model(0, is_crossed=False, grouped=False)
    for embedded in (model.embed.W_E, model.pos_embed.W_pos):
        lengths = embedded.norm(dim=-1)
        torch.testing.assert_close(lengths, torch.ones_like(lengths))
    assert (model.embed.W_E @ model.pos_embed.W_pos.T).abs().max() < 1e-5


def test_a_wrong_tag_has_no_word_counterfactual_that_decides_the_feature():
    right, wrong = (load_crossed("agreement", tagged, n=20, seed=0) for tagged in ("agreement", "coreference"))
    assert len(against_other_words(right).units) == 20
    assert not against_other_words(wrong).units
    assert against_other_words(wrong).dropped[SAME_VALUE] == 20
    for unit in wrong.units:
        item, other = unit.item, unit.item.word_counterfactual
        differs = [at for at, (one, two) in enumerate(zip(item.prompt, other.prompt, strict=True)) if one != two]
        assert differs == list(item.related)
        assert other.right != item.right
