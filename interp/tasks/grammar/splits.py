"""Which split does a pair of words belong to?

Evaluation asks for sentences whose decisive words never stood together in their roles in training. So
every pair of lemmas in a held-out role (a subject and its verb or auxiliary, a subject and its attractor or
stranger, neighbours in a string; two first names in any roles) belongs to one split:

1. Sort the two lemmas, so that the pair has no direction.
2. Hash them with SHA-256; Python's own hash differs from process to process.
3. Read the first eight bytes as a number in [0, 1) and look up whose share it falls into.
"""

import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Literal, Protocol, TypeVar, runtime_checkable

from interp.errors import TaskError

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
    """Draw until the construction fits `split`.

    Args:
        split: For ``train`` all pairs must belong to it, for the others the decisive ones.
        propose: Draws one construction; called again until one fits.
        admit: What else a construction has to fulfil.

    Raises:
        TaskError: No draw out of ``ATTEMPTS`` fitted: the lexicon is too small for the split.
    """
    for _ in range(ATTEMPTS):
        drawn = propose()
        if (admit is None or admit(drawn)) and allowed(drawn.pairs if split == "train" else drawn.decisive, split):
            return drawn
    raise TaskError(
        f"no construction of split {split!r} found: expected pairs of lemmas of that split, got none "
        f"in {ATTEMPTS} draws; use a larger lexicon"
    )
