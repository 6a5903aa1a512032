"""Threads that share a model take turns: nobody's forward pass runs another's hooks."""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from threading import Event

import numpy as np
import pytest
import torch
from random_tasks import random_task
from tiny_models import random_gpt2

import interp

TASK, IDS = random_task(4), torch.tensor([[1, 2, 3]])


@pytest.fixture
def model():
    return interp.load_model(random_gpt2())


def test_a_forward_pass_waits_until_another_thread_s_hooks_are_gone(model):
    clean, hooked, done = model(IDS), Event(), []

    def other():
        hooked.wait(10)
        done.append(model(IDS))

    with ThreadPoolExecutor(1) as executor:
        with model.hooks(fwd_hooks=[("hook_embed", lambda x, hook: x + 1)]):
            waiting = executor.submit(other)
            hooked.set()
            changed = model(IDS)  # of this thread, whose hooks they are
            assert not waiting.cancel()
            assert not done
        waiting.result(10)
    torch.testing.assert_close(done[0], clean)
    assert not torch.allclose(changed, clean)


def test_what_is_measured_at_the_same_time_is_what_is_measured_alone(model):
    alone = interp.ablate(model, TASK).examples
    with ThreadPoolExecutor(4) as executor:
        measured = list(executor.map(lambda _: interp.ablate(model, TASK).examples, range(8)))
    for each in measured:
        np.testing.assert_allclose(each["effect"], alone["effect"], atol=1e-5)


def test_a_copy_has_turns_of_its_own(model):
    copy = deepcopy(model)
    with model.hooks(), ThreadPoolExecutor(1) as executor:
        torch.testing.assert_close(executor.submit(copy, IDS).result(10), model(IDS))
