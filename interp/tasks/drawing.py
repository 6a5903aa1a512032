"""Units of a generated task, drawn until there are as many as were asked for.

1. The pairs are drawn as for a tokenizer that carries all words. Where it carries all of them, they are the units.
2. Where it does not, they are drawn once more. In the place of a pair that it cannot carry, or that was drawn before,
   another is drawn with the same structure and frame; what was replaced is counted by requirement.
3. A unit of which no reference pair has the template and the length could not be resampled, and is replaced likewise.
4. Drawing ends with the number asked for, or where ``items.GIVEN_UP`` draws of each structure and frame found no other
   unit: then these are all that can be had.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from interp.tasks.example import MinimalPair
from interp.tasks.grammar.items import GIVEN_UP
from interp.tasks.grammar.phrases import Split
from interp.tasks.task import Unit

Pairs = Callable[..., Iterator[MinimalPair]]
"""As ``pairs`` of a ``GeneratedTask``."""
Encode = Callable[[Sequence[MinimalPair]], tuple[list[Unit], Counter[str]]]
"""Gives the units that a tokenizer carries, and how many pairs fail each requirement."""
AGAIN = "drawn before"
"""Counted beside the requirements: a pair of another draw's texts is no new unit."""
ALONE = "no reference example of its template and length"
"""Likewise: nothing stands in for its activations where they are resampled."""
_KEPT, _LARGEST = 32, 1_000


def draw_units(pairs: Pairs, n: int, encode: Encode, *, seed: int, split: Split) -> tuple[list[Unit], Counter[str]]:
    """`n` units, or as many as can be had, and how many pairs were replaced, by the reason.

    Where none of the first ``GIVEN_UP`` pairs is carried, no others are drawn.
    """
    first = min(n, GIVEN_UP)
    units, failed = encode(drawn_plainly(pairs, first, seed, split))
    if not failed and first < n:
        units, failed = encode(drawn_plainly(pairs, n, seed, split))
    if not failed:
        return units, failed
    if not units and (first == GIVEN_UP or not encode(drawn_plainly(pairs, GIVEN_UP, seed, split))[0]):
        return [], failed
    units, failed = [], Counter()
    seen = set[tuple[object, ...]]()

    def fits(pair: MinimalPair) -> bool:
        made, why = encode([pair])
        texts = tuple(text for each in pair.examples for text in (each.prompt, *each.rights, *each.wrongs))
        failed.update(why or {AGAIN: texts in seen})
        if made and texts not in seen:
            units.extend(made)
            seen.add(texts)
            return True
        return False

    for _ in pairs(n, seed=seed, split=split, fits=fits):
        pass
    return units, +failed


def with_references(encode: Encode, references: Sequence[Unit], metric: str) -> Encode:
    """`encode`, of pairs each of whose rows has a row of the references of its template and length."""
    there = _layouts(references, metric)

    def fitting(pairs: Sequence[MinimalPair]) -> tuple[list[Unit], Counter[str]]:
        units, failed = encode(pairs)
        kept = [unit for unit in units if _layouts([unit], metric) <= there]
        return kept, failed + Counter({ALONE: len(units) - len(kept)})

    return fitting


def _layouts(units: Sequence[Unit], metric: str) -> set[tuple[str, int]]:
    return {
        (each.example.template, len(each.prompt) + len(end))
        for unit in units
        for each in unit.examples
        for end, _ in each.continuations(metric)
    }


def drawn_plainly(pairs: Pairs, n: int, seed: int, split: Split) -> tuple[MinimalPair, ...]:
    """The pairs as any tokenizer is given them first, each drawn once: most draws are thrown away before one fits."""
    if n > _LARGEST:
        return tuple(pairs(n, seed=seed, split=split))
    drawn, others = _begun(pairs, seed, split)
    try:
        drawn.extend(islice(others, max(0, n - len(drawn))))
    except BaseException:  # what is broken off yields no more
        _begun.cache_clear()
        raise
    return tuple(drawn[:n])


@lru_cache(maxsize=_KEPT)
def _begun(pairs: Pairs, seed: int, split: Split) -> tuple[list[MinimalPair], Iterator[MinimalPair]]:
    """The pairs that were drawn so far, and where the next ones come from: the first are the same for every number."""
    return [], pairs(_LARGEST, seed=seed, split=split)
