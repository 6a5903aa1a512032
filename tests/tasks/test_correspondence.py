import random

import pytest

from interp.tasks.correspondence import corresponding, spans
from interp.tasks.example import Example
from interp.tasks.task import EncodedExample


def encoded(n, related, *, query=None, **distractors):
    """A prompt of `n` tokens."""
    example = Example("text", " r", " w", None, "t", f"{n} tokens")
    return EncodedExample(example, tuple(range(n)), (1,), (2,), query, related, distractors)


@pytest.mark.parametrize(
    ("run", "source", "expected"),
    [
        (encoded(4, (1,)), encoded(4, (2,)), (0, 1, 2, 3)),  # equal lengths: position by position
        (encoded(5, (1,)), encoded(7, (1, 2, 3)), (0, 3, 4, 5, 6)),  # one token for three: the last of these
        (encoded(7, (1, 2, 3)), encoded(5, (1,)), (0, -1, -1, 1, 2, 3, 4)),
        (encoded(6, (1, 2)), encoded(7, (1, 2)), (0, 1, 2, -1, -1, 6)),  # what is between is of another length
        (encoded(7, (2,), other=(4,)), encoded(8, (2, 3), other=(5,)), (0, 1, 3, 4, 5, 6, 7)),
        (encoded(7, (2,), other=(4,)), encoded(8, (4,), other=(2, 3)), (0, -1, 4, -1, 3, -1, 7)),  # another order
        (encoded(6, (1,), query=3), encoded(7, (1, 2), query=4), (0, 2, 3, 4, 5, 6)),
        (encoded(6, (3,), other=(4,)), encoded(8, (3,), other=(1,)), (0, -1, -1, 3, 1, 7)),  # a third between two
        (encoded(8, (3,), other=(1,)), encoded(6, (3,), other=(4,)), (0, 4, -1, 3, -1, -1, -1, 5)),
        (encoded(6, (3,)), encoded(8, (3,), other=(1,)), (0, -1, -1, 3, -1, 7)),  # named in one prompt only
        (encoded(6, (3,), other=(1,)), encoded(8, (3,)), (0, -1, -1, 3, -1, 7)),
        (encoded(8, (3,), phrase=(2, 3, 4)), encoded(9, (4,), phrase=(3, 4, 5)), (0, -1, 3, 4, 5, 6, 7, 8)),  # nested
    ],
)
def test_positions_that_mean_the_same(run, source, expected):
    assert corresponding(run, source) == expected


def test_fillers_correspond_to_fillers_and_both_ways():
    rng = random.Random(0)
    n_found = 0
    for _ in range(300):
        run, source = (spaced(rng, n) for n in (9, 11))
        names = [{position for each in spans(one).values() for position in each} for one in (run, source)]
        there, back = corresponding(run, source), corresponding(source, run)
        fillers = {position: other for position, other in enumerate(there) if position not in names[0] and other >= 0}
        assert not set(fillers.values()) & names[1]
        assert all(back[other] == position for position, other in fillers.items())
        n_found += len(fillers)
    assert n_found > 50


def spaced(rng, n):
    """A prompt with a related word and one or two others anywhere."""
    first, second, related = ((position,) for position in rng.sample(range(1, n - 1), 3))
    return encoded(n, related, first=first, **({"second": second} if rng.random() < 0.7 else {}))
