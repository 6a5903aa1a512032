"""A process that is killed, whenever, leaves a store that the next one completes to the same bytes."""

import os
import signal
import time
from multiprocessing import get_context

import numpy as np
import pytest
from stores import collected, files_of

from interp.errors import LoadError
from interp.runs.store import ActivationStore

pytestmark = pytest.mark.unchecked

MOMENTS = 10
SIZE = {"n": 80, "rows": 16}
SMALL = {"n": 8}


def start(target, *arguments):
    child = get_context("fork").Process(target=target, args=arguments)
    child.start()
    return child


def whole(out):
    collected(out, **SIZE)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The bytes of a store that nobody killed, and the seconds that it took."""
    out = tmp_path_factory.mktemp("whole") / "store"
    started = time.perf_counter()
    child = start(whole, out)
    child.join()
    assert child.exitcode == 0
    return files_of(out), time.perf_counter() - started


def require_incomplete_or_whole(out, expected):
    """Opened, a store is complete or refused."""
    try:
        ActivationStore.open(out)
    except LoadError as error:
        told = ("the store is incomplete", "got no such folder", "got a folder without manifest.json")
        assert any(each in str(error) for each in told)  # noqa: PT017
    else:
        assert expected.items() <= files_of(out).items()


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path, expected):
    moments = np.random.default_rng(0).uniform(0, expected[1], size=MOMENTS)
    shards = []
    for number, moment in enumerate(moments):
        out = tmp_path / str(number)
        child = start(whole, out)
        child.join(moment)
        child.kill()
        child.join()
        shards.append(len(list(out.glob("shard-*"))))
        require_incomplete_or_whole(out, expected[0])
        collected(out, **SIZE)
        assert files_of(out) == expected[0]
    assert len(set(shards)) > 2, "killed early and late"


def test_killed_again_and_again(tmp_path, expected):
    """One store, ten times killed and gone on with."""
    out, generator = tmp_path / "store", np.random.default_rng(1)
    for _ in range(MOMENTS):
        child = start(whole, out)
        child.join(generator.uniform(0, expected[1] / 3))
        child.kill()
        child.join()
        require_incomplete_or_whole(out, expected[0])
    collected(out, **SIZE)
    assert files_of(out) == expected[0]


def killed_before(number, out):
    """Collect, and be killed before the operation of this number that the disk sees."""
    operations = iter(range(10**6))

    def counting(operation):
        def counted(*arguments, **options):
            if next(operations) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*arguments, **options)

        return counted

    for name in ("replace", "fsync", "unlink", "rmdir", "mkdir"):
        setattr(os, name, counting(getattr(os, name)))
    collected(out, **SMALL)


def test_killed_before_every_operation_on_the_disk(tmp_path):
    expected = files_of(collected(tmp_path / "whole", **SMALL).folder)
    assert not [name for name in expected if "/" in name], "nothing but the store is left"
    codes = []
    for number in range(10**6):
        out = tmp_path / str(number)
        child = start(killed_before, number, out)
        child.join()
        codes.append(child.exitcode)
        require_incomplete_or_whole(out, expected)
        collected(out, **SMALL)
        assert files_of(out) == expected, f"killed before operation {number}"
        if child.exitcode == 0:
            break
    assert codes == [-signal.SIGKILL] * number + [0]
    assert number > 20, "the operations were counted"
