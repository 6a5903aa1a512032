"""What would drown a message, given in a place of something else: the answer is one line that says what to do."""

from inspect import unwrap

import numpy as np
import pandas as pd
import pytest
import torch
from random_tasks import random_task
from tiny_models import random_gpt2

import interp
from interp.errors import CLEAR, InputError, InterpError, plain, shown

GPT2 = random_gpt2()
DROWNING = {
    "module": GPT2,
    "compiled module": torch.compile(GPT2, backend="eager"),
    "state dict": GPT2.state_dict(),
    "frame": pd.DataFrame(np.zeros((1_000, 50))),
    "tensor": torch.zeros(300, 300),
    "array": np.zeros((300, 300)),
    "numbers": list(range(10_000)),
    "texts": ["word"] * 5_000,
    "bytes": b"x" * 10_000,
    "text": "word " * 5_000,
}
TASK = random_task(2)
OF_A_MODEL = {
    "ablate": lambda given: (given, TASK),
    "patch": lambda given: (given, TASK),
    "heads": lambda given: (given, [TASK]),
    "path_patch": lambda given: (given, TASK, [["0.0", "1.0"]]),
    "probe": lambda given: (given, TASK, "number"),
    "attend": lambda given: (given, []),
    "residual_stream": lambda given: (given, "the keys"),
    "direct_logit_attribution": lambda given: (given, None, 3),
    "fold_layer_norm": lambda given: (given,),
    "save_model": lambda given: (given, "nowhere"),
}
drowning = pytest.mark.parametrize("given", DROWNING.values(), ids=DROWNING)


def test_every_function_of_a_model_is_asked():
    """By the stub, whose functions take a model first."""
    without = {"load_model", "load_task", "list_tasks", "encode_task"}
    functions = {name for name in interp.__all__ if callable(found := getattr(interp, name)) and name.islower()}
    assert callable(found)
    assert functions == {*OF_A_MODEL, *without}


@drowning
@pytest.mark.parametrize("name", OF_A_MODEL)
def test_in_the_place_of_a_model(name, given):
    with pytest.raises(InterpError, match=r"expected (a model|one of our own models), got ") as refusal:
        unwrap(getattr(interp, name))(*OF_A_MODEL[name](given))
    message = str(refusal.value)
    assert "\n" not in message
    assert len(message) < 300
    if given is GPT2 and name != "save_model":
        assert message.endswith("got a GPT2LMHeadModel; give interp.load_model(module), which copies its weights")


def test_what_the_advice_gives():
    assert interp.residual_stream(interp.load_model(GPT2), torch.tensor([[1, 2]])).tokens.shape == (1, 2)


@drowning
def test_quoted_in_a_message(given):
    """In whatever way it is quoted, the beginning and the advice stay, and it is one line."""
    for text in (f"{given!r}", f"{given!s}", shown(given)):
        message = str(InputError(f"task: expected a Task or the name of one, got {text}; see interp.list_tasks()"))
        assert "\n" not in message
        assert len(message) <= CLEAR + 1
        assert message.startswith("task: expected a Task or the name of one, got ")
        assert message.endswith("; see interp.list_tasks()")


@drowning
def test_shown(given):
    assert "\n" not in shown(given)
    assert len(shown(given)) < 200


def test_what_is_shown():
    assert shown(GPT2) == "a GPT2LMHeadModel"
    assert shown(DROWNING["tensor"]) == "a Tensor of shape (300, 300)"
    assert shown(DROWNING["frame"]) == "a DataFrame of shape (1000, 50)"
    assert shown(GPT2.state_dict()).startswith("{'transformer.wte.weight': a Tensor of shape (40, 12), ")


def test_a_short_message_stays_as_it_is():
    message = "heads: expected  (layer, head) pairs; " + "; ".join(["give one"] * 40)
    assert len(message) < CLEAR
    assert plain(message) == message
