"""A process is killed at random moments, again and again, or before each operation that the disk sees."""

import os
import signal
import time
from multiprocessing import get_context

import numpy as np


def begun(call, *arguments):
    """A process of its own that makes a call: a copy of this one, so that it is at work at once."""
    child = get_context("fork").Process(target=call, args=arguments)
    child.start()
    return child


def seconds_of(call, folder):
    """How long the call takes when nobody disturbs it."""
    started = time.perf_counter()
    child = begun(call, folder)
    child.join()
    assert child.exitcode == 0
    return time.perf_counter() - started


def killed(call, root, times, longest, look=lambda folder: None):
    """Folders in which the call was made, killed and made again until it ended well; the kills that hit it, by folder.

    It is killed so many `times` in all, each after `longest` seconds at most; `look` sees each folder then.
    """
    generator, kills = np.random.default_rng(0), {root / "0": 0}
    left = times
    while True:
        folder = root / str(len(kills) - 1)
        child = begun(call, folder)
        child.join(generator.uniform(0, longest) if left else None)
        child.kill()
        child.join()
        look(folder)
        if child.exitcode == 0 and not left:
            return kills
        if child.exitcode == 0:
            kills[root / str(len(kills))] = 0
            continue
        assert child.exitcode == -9, f"ended by itself: {child.exitcode}"
        kills[folder] += 1
        left -= 1


def killed_before(number, call, *arguments):
    """Make a call, and be killed before the operation of this number that the disk sees."""
    operations = iter(range(10**6))

    def counting(operation):
        def counted(*arguments, **options):
            if next(operations) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*arguments, **options)

        return counted

    for name in ("open", "replace", "fsync", "unlink", "rmdir", "mkdir"):
        setattr(os, name, counting(getattr(os, name)))
    call(*arguments)
