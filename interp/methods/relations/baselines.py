"""Which rule is a relation held against? The one that is right most often on documents that it is not held against.

1. The documents fall into two halves, about as many words in each; each half's rules are chosen on the other one. Where
   another corpus chooses, it chooses for all documents.
2. Three baselines: the best **offset** (or first or last word), the best **nearest** word of a part of speech, and the
   **toughest**: the best of all rules, those that are neither (``rules.py``) among them. The nearest word of a
   part of speech is no rule for finding words of that part of speech: it would be the answer.
3. Documents whose rules nothing could choose are not scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from interp.methods.relations.batch import Sums
from interp.methods.relations.counts import RelationCounts
from interp.methods.relations.rules import CHANCE, MOST_TOKENS, rule_names
from interp.tasks.references import deal
from interp.tasks.relations import Direction

Family = Literal["offset", "nearest", "toughest"]


@dataclass(frozen=True)
class Baseline:
    """A baseline's hits.

    Attributes:
        name: Of its rule; of both halves' rules, where they differ.
        hits: By document; NaN where nothing could choose.
    """

    name: str
    hits: Float[np.ndarray, " document"]


@dataclass(frozen=True)
class DirectionCounts:
    """The sums of one direction, document by document; 0 where a document has nothing of it."""

    direction: Direction
    n: Float[np.ndarray, " document"]
    hits: Float[np.ndarray, "document cell"]
    attention: Float[np.ndarray, "document cell"]
    rules: Float[np.ndarray, "document rule"]

    @classmethod
    def of(cls, counts: RelationCounts, number: int, documents: Sequence[str], causal: bool) -> "DirectionCounts":
        """Put sums into tables; chance is the last rule."""
        n_cells = counts.shape[0] * counts.shape[1]
        n_rules = len(rule_names(causal=causal))
        nothing = Sums(0, np.zeros(n_cells), np.zeros(n_cells), np.zeros(n_rules), 0.0)
        found = [counts.sums.get((document, number), nothing) for document in documents]
        return cls(
            counts.directions[number],
            np.array([each.n for each in found], dtype=float),
            np.stack([each.hits for each in found]),
            np.stack([each.attention for each in found]),
            np.stack([np.append(each.rules, each.chance) for each in found]),
        )


def halves_of(documents: Mapping[str, int]) -> Bool[np.ndarray, " document"]:
    """Which documents are in the second half: the largest are dealt out first, each to the side with fewer words."""
    half = deal(documents)
    return np.array([half[name] == 1 for name in documents])


def baseline(
    own: DirectionCounts,
    chooser: DirectionCounts | None,
    second: Bool[np.ndarray, " document"],
    family: Family,
    *,
    causal: bool,
) -> Baseline:
    """The baseline of a direction.

    Args:
        own: What it is held against.
        chooser: Another corpus' counts; None where the halves choose for each other.
        second: Which documents are in the second half.
        family: Of which rules it is the best.
        causal: Whether the rules look back only.
    """
    names = [*rule_names(causal=causal), CHANCE]
    columns = [at for at, name in enumerate(names) if _belongs(name, family, own.direction)]
    hits, chosen = np.full(len(own.n), np.nan), []
    for half in (False, True):
        here = second == half
        there = own.rules[~here] if chooser is None else chooser.rules
        if here.any() and there[:, columns].sum() > 0:
            best = columns[int(there[:, columns].sum(axis=0).argmax())]
            hits[here] = own.rules[here, best]
            chosen.append(names[best])
    return Baseline(" / ".join(dict.fromkeys(chosen)), hits)


def _belongs(rule: str, family: Family, direction: Direction) -> bool:
    nearest = rule.startswith("nearest")
    if nearest and direction.part_of_speech and rule.split()[1] == direction.part_of_speech:
        return False
    if family == "toughest":
        return True
    return rule not in (CHANCE, MOST_TOKENS) and nearest == (family == "nearest")
