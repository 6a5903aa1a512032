"""Seeded draws, and the split that each pair of words belongs to.

Only ``random.Random.random`` is used: of the standard library's draws it alone is documented to give the same sequence
in every version of Python. A text seed goes through SHA-512, so ``Dice("agreement", 0, 17)`` and ``Dice("agreement", 0,
18)`` are unrelated.

Evaluation asks for sentences whose decisive words never stood together in their roles in training. So every pair of
lemmas in a held-out role (a subject and its verb, auxiliary, attractor or stranger; neighbours in a string; two first
names) belongs to one split: the two lemmas are sorted and hashed with SHA-256, and the first eight bytes, as a number
in [0, 1), fall into one split's share.
"""

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Literal, Protocol, TypeVar, runtime_checkable

from interp.errors import TaskError

T = TypeVar("T")


class Dice:
    """Draws that depend on nothing but the key."""

    def __init__(self, *key: object) -> None:
        self._random = random.Random("/".join(map(str, key))).random

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`, each with the same probability."""
        return options[int(self._random() * len(options))]

    def sample(self, options: Sequence[T], n: int) -> list[T]:
        """At most `n` of the options, each once, in any order."""
        left = list(options)
        return [left.pop(int(self._random() * len(left))) for _ in range(min(n, len(left)))]

    def chance(self, probability: float) -> bool:
        """True with `probability`."""
        return self._random() < probability

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._random()


Split = Literal["train", "select", "reference", "test"]

SHARES: dict[Split, float] = {"train": 0.70, "select": 0.06, "reference": 0.12, "test": 0.12}
ATTEMPTS = 100_000
"""Draws after which a construction counts as impossible in a split."""


@runtime_checkable
class Drawn(Protocol):
    """A drawn construction that says which of its pairs of lemmas fall under the held-out rule."""

    @property
    def decisive(self) -> Iterable[tuple[str, str]]:
        """The pairs that the construction's task holds out: evaluation draws them from its split."""

    @property
    def pairs(self) -> Iterable[tuple[str, str]]:
        """All pairs in a held-out role, of this task or another: training avoids those held out."""


DrawnT = TypeVar("DrawnT", bound=Drawn)


@cache
def split_of(first: str, second: str) -> Split:
    """The split of a pair of lemmas, whatever their order."""
    key = "\t".join(sorted((first, second))).encode()
    share = int.from_bytes(hashlib.sha256(key).digest()[:8], "big") / 2**64
    for split, width in SHARES.items():
        if share < width:
            return split
        share -= width
    return "test"  # rounding left nothing over


def allowed(pairs: Iterable[tuple[str, str]], split: Split) -> bool:
    """Whether every pair is of two different lemmas and belongs to `split`."""
    return all(first != second and split_of(first, second) == split for first, second in pairs)


def draw_within(
    split: Split, propose: Callable[[], DrawnT], *, admit: Callable[[DrawnT], bool] | None = None
) -> DrawnT:
    """Draw until the construction fits `split`."""
    for _ in range(ATTEMPTS):
        drawn = propose()
        if (admit is None or admit(drawn)) and allowed(drawn.pairs if split == "train" else drawn.decisive, split):
            return drawn
    raise TaskError(
        f"no construction of split {split!r} found: expected pairs of lemmas of that split, got none "
        f"in {ATTEMPTS} draws; use a larger lexicon"
    )
