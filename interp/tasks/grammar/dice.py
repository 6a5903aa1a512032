"""Seeded draws for the generator, the same on every platform.

Only ``random.Random.random`` is used: of the standard library's draws it alone is documented to give the
same sequence in every version of Python. A text seed goes through SHA-512, so that
``Dice("agreement", 0, 17)`` and ``Dice("agreement", 0, 18)`` are unrelated.
"""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws that depend on nothing but the key.

    Args:
        key: What the draws are for, for example a task, a seed and an item's number.
    """

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
