"""Is a task measured only on the tokens that the model's own tokenizer makes of its text?"""

import pytest
from random_tasks import random_task
from transformers import PreTrainedTokenizerFast

import interp
from interp.errors import InputError
from interp.methods.erasure.erase import erase
from interp.methods.head_card import head_card
from interp.methods.task_arguments import as_task, several_predicted


@pytest.fixture(scope="module")
def model():
    return interp.load_model()


@pytest.fixture(scope="module")
def books():
    """Its vocabulary is the larger one: ids of the default model's tokenizer fit, and are those of other words."""
    return interp.load_model("books")


MEASURES = [
    interp.ablate,
    interp.patch,
    interp.heads,
    lambda model, task, **more: interp.path_patch(model, task, [["embed", "0.0.v"]], **more),
    lambda model, task, **more: interp.probe(model, task, feature="number", **more),
    lambda model, task, **more: head_card(model, (0, 0), task, **more),
    lambda model, task, **more: erase(model, task, "number", heads=[(0, 0)], **more),
]
every_measure = pytest.mark.parametrize(
    "measure", MEASURES, ids=["ablate", "patch", "heads", "path_patch", "probe", "head_card", "erase"]
)


@every_measure
def test_ids_of_another_tokenizer_are_refused(model, books, measure):
    task = interp.load_task("agreement", n=4, tokenizer=model.tokenizer)
    message = (
        r"task 'agreement' was encoded by another tokenizer.*expected tokens \[\d+, .*\], got \[\d+, .*\]; "
        "encode it with tokenizer="
    )
    with pytest.raises(InputError, match=message):
        measure(books, task)


def test_one_prompt_of_other_tokens_is_enough(model):
    task = interp.load_task("agreement", n=2, tokenizer=model.tokenizer)
    first, second = task.examples[0].prompt[1:3]
    object.__setattr__(task.units[-1].item, "prompt", (0, second, first))
    with pytest.raises(InputError, match="encoded by another tokenizer"):
        as_task(task, model, n=None, seed=0)


def test_a_tokenizer_that_makes_the_same_tokens_may_be_another_object(model):
    same = PreTrainedTokenizerFast(tokenizer_object=model.tokenizer.backend_tokenizer, bos_token="<|endoftext|>")
    task = interp.load_task("agreement", n=2, tokenizer=same)
    assert as_task(task, model, n=None, seed=0) is task


def test_ids_without_text_are_taken_as_they_are(model):
    task = random_task()
    assert as_task(task, model, n=None, seed=0) is task


@every_measure
def test_units_are_not_drawn_of_a_task_that_has_its_own(model, measure):
    task = interp.load_task("agreement", n=4, tokenizer=model.tokenizer)
    with pytest.raises(
        InputError, match=r"n: expected None, since task 'agreement' has its 4 units .* got 2: .*load_task"
    ):
        measure(model, task, n=2)


def test_beside_a_task_n_is_for_those_given_by_name(model):
    task = interp.load_task("agreement", n=4, tokenizer=model.tokenizer)
    whole, drawn = several_predicted([task, "coreference"], model, n=6, seed=0)
    assert whole is task
    assert len(drawn.units) == 6
