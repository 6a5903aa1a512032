import os

import pytest
import torch

from interp.errors import InputError
from interp.runs.executors import Local, Processes, spread


def _twice(number):
    return 2 * number, os.getpid(), torch.get_num_threads()


def _failing(number):
    raise ValueError(f"no {number}")


@pytest.mark.parametrize("processes", [1, 2])
def test_every_call_is_made_once_in_order_and_told(processes):
    executor = Processes(2) if processes == 2 else Local()
    told = []
    found = spread(_twice, [(1,), (2,), (3,)], executor, lambda *each: told.append(each))
    assert [each[0] for each in found] == [2, 4, 6]
    assert told == [(1, 3), (2, 3), (3, 3)]
    elsewhere = {each[1] != os.getpid() for each in found}
    assert elsewhere == {processes == 2}
    if processes == 2:
        assert {each[2] for each in found} == {1}


def test_one_call_needs_no_other_process():
    assert [each[1] for each in spread(_twice, [(1,)], Processes(2))] == [os.getpid()]
    assert spread(_twice, [], Processes(2)) == []


def test_an_error_comes_through():
    with pytest.raises(ValueError, match=r"no \d"):
        spread(_failing, [(1,), (2,)], Processes(2))


def test_what_cannot_be_sent_is_refused_before_anything_is_begun():
    with pytest.raises(
        InputError, match=r"workers: expected what can be sent to another process, got .*; leave them out"
    ):
        spread(_twice, [(1,), (lambda: 2,)], Processes(2))
