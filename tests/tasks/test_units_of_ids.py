"""Tasks of token ids: made by one call, the same as what a tokenizer would have made, or refused in one line."""

import dataclasses
import re

import pytest
import torch
from tiny_models import random_model

import interp
from interp.errors import TaskError
from interp.tasks.task import Unit, task_of_units
from interp.tasks.token_ids import example_of_ids

ABOUT = {"name": "ids", "description": "Random ids."}


def unit(number, **options):
    """The related id decides which of two follows."""
    prompts = [7, 10 + number, 3], [7, 40 + number, 3]
    answers = (20, 21), (21, 20)
    made = [
        example_of_ids(prompt, *both, related=[1], **options) for prompt, both in zip(prompts, answers, strict=True)
    ]
    return Unit(*made, cluster=str(number))


def test_an_example_says_its_ids_and_looks_from_its_end():
    example = unit(0).item
    assert (example.prompt, example.right, example.wrong) == ((7, 10, 3), (20,), (21,))
    assert (example.query, example.related, example.critical) == (2, (1,), 2)
    assert example.example.text == "7 10 3 20"
    assert example.example.layout == "ids, 3 tokens"
    assert (example.n_before, example_of_ids([1], 2, 3).query) == (0, None)


def test_units_serve_each_other_in_halves_and_are_hashed():
    task = task_of_units([unit(number) for number in range(6)], **ABOUT)
    assert [len(each) for each in task.references] == [3, 3]
    for each in task.units:
        assert each.cluster not in {other.cluster for other in task.references[each.fold]}
    assert all(all(each.word_counterfactuals) for each in task.units)
    assert task.hash == task_of_units([unit(number) for number in range(6)], **ABOUT).hash
    assert task.hash != task_of_units([unit(number) for number in range(7)], **ABOUT).hash
    assert not task.from_text


def test_references_that_are_scored_are_left_out():
    units = [unit(number) for number in range(3)]
    task = task_of_units(units, **ABOUT, references=[*units, unit(9)])
    assert task.references == ((unit(9),),)


def test_a_text_task_is_the_task_of_its_units():
    tokenizer = interp.load_model().tokenizer
    task = interp.load_task("agreement", n=8, tokenizer=tokenizer)
    how = {name: getattr(task, name) for name in ("name", "description", "metric", "query", "feature", "dropped")}
    again = task_of_units(task.units, **how, references=task.references[0], from_text=True)
    assert dataclasses.replace(again, coverage=task.coverage) == task


@torch.no_grad()
def test_a_model_without_a_tokenizer_is_measured_on_it():
    model = random_model(d_vocab=60)
    task = task_of_units([unit(number) for number in range(6)], **ABOUT)
    frame = interp.ablate(model, task).examples
    first = task.units[0].item
    logits = model(torch.tensor([first.prompt]))[0, -1]
    assert frame.query("unit == 0 and example == 0")["base"].iloc[0] == pytest.approx(float(logits[20] - logits[21]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prompt": ["a"]}, "prompt: expected whole numbers from 0, got"),
        ({"prompt": [-1]}, "prompt: expected whole numbers from 0, got"),
        ({"prompt": []}, "expected the ids of a prompt and of two different answers, got"),
        ({"right": 5, "wrong": 5}, "expected the ids of a prompt and of two different answers, got"),
        ({"right": "is"}, "right: expected whole numbers from 0, got"),
        ({"related": [4]}, "related: expected whole numbers from 0 to 3, got [4]"),
        ({"query": 7}, "query: expected whole numbers from 0 to 3, got 7"),
        ({"distractors": {"first": [-1]}}, "first: expected whole numbers from 0 to 3, got [-1]"),
    ],
)
@pytest.mark.unchecked
def test_what_is_no_example_is_refused(given, message):
    with pytest.raises(TaskError, match=re.escape(message)):
        example_of_ids(**{"prompt": [1, 2, 3], "right": 4, "wrong": 5} | given)


@pytest.mark.unchecked
def test_what_is_no_task_is_refused():
    units = [unit(number) for number in range(3)]
    long = Unit(example_of_ids([1], [2, 3], [4, 5]), None, "long")
    elsewhere = Unit(example_of_ids([1, 2, 3], 4, 5, related=[0], query=1), None, "elsewhere")
    for given, options, message in (
        ([], {}, "ids: units: expected at least one unit, got none"),
        ([None], {}, "ids: units: expected units, got NoneType"),
        (units, {"references": []}, "ids: references: expected at least one unit, got none"),
        ([*units, long], {}, "expected answers of one token, got ' 2 3' and ' 4 5' behind '1'"),
        ([*units, elsewhere], {}, "the relation does not look from the prompt's last token"),
        (units, {"feature": "number"}, "feature 'number' is missing in 6 of 6 examples"),
        (units, {"metric": "logits"}, "unknown metric 'logits'"),
        (units, {"name": " "}, "name: expected a text in one line"),
    ):
        with pytest.raises(TaskError, match=re.escape(message)):
            task_of_units(given, **ABOUT | options)


def test_whole_continuations_are_scored_where_asked_for():
    long = [Unit(example_of_ids([n], [2, 3], [4, 5]), None, str(n)) for n in range(3)]
    assert task_of_units(long, **ABOUT, metric="sentence_log_probability").metric == "sentence_log_probability"
