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
def test_every_call_is_made_once_and_numbered(processes):
    executor = Processes(2) if processes == 2 else Local()
    found = dict(spread(_twice, [(1,), (2,), (3,)], executor))
    assert {number: each[0] for number, each in found.items()} == {0: 2, 1: 4, 2: 6}
    elsewhere = {each[1] != os.getpid() for each in found.values()}
    assert elsewhere == {processes == 2}
    if processes == 2:
        assert {each[2] for each in found.values()} == {1}


def test_one_call_needs_no_other_process():
    assert [each[1] for _, each in spread(_twice, [(1,)], Processes(2))] == [os.getpid()]
    assert list(spread(_twice, [], Processes(2))) == []


def test_an_error_comes_through():
    with pytest.raises(ValueError, match=r"no \d"):
        list(spread(_failing, [(1,), (2,)], Processes(2)))


def test_what_cannot_be_sent_is_refused_before_anything_is_begun():
    with pytest.raises(
        InputError, match=r"workers: expected what can be sent to another process, got .*; leave them out"
    ):
        list(spread(_twice, [(1,), (lambda: 2,)], Processes(2)))
