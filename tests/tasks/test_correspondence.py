import pytest

from interp.tasks.correspondence import corresponding
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
    ],
)
def test_positions_that_mean_the_same(run, source, expected):
    assert corresponding(run, source) == expected
