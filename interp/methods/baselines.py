"""What would explain a head's attention without the relation? Position alone, or a look-alike.

Three families of baseline, each a rule that picks key positions without knowing the related word:

- **offset -d**: the position d before the query (0 is the query itself);
- **position p**: an absolute position; first-token sinks look like coreference to the first word;
- **distractor i**: the i-th attractor, a word of the same kind as the related one.

A related word of several tokens is compared with as many tokens from the baseline's position on: the sum
over more tokens is larger without any relation. Special tokens such as BOS are never candidates. Where an
offset or position falls outside an example, it gets no attention there; an example without a distractor
says nothing about one, and is left out.

Clark et al. (2019), "What does BERT look at?" and Voita et al. (2019), "Analyzing multi-head
self-attention": a head counts only by what it does beyond the best fixed offset.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from interp.tasks.task import EncodedExample


@dataclass(frozen=True)
class Baseline:
    """A rule that picks key positions.

    Attributes:
        family: Which of the three.
        at: The distance before the query, the position, or the distractor's number from 0.
    """

    family: Literal["offset", "position", "distractor"]
    at: int

    @property
    def name(self) -> str:
        """For tables: ``offset -3``, ``position 5``, ``distractor 1``."""
        number = {"offset": -self.at, "position": self.at, "distractor": self.at + 1}[self.family]
        return f"{self.family} {number}"

    def positions(self, encoded: EncodedExample) -> tuple[int, ...]:
        """The key positions that the rule picks in an example with a query."""
        if self.family == "distractor":
            return encoded.distractors[self.at] if self.at < len(encoded.distractors) else ()
        start = self.at if self.family == "position" else query_of(encoded) - self.at
        return tuple(range(start, start + len(encoded.related)))

    def applies(self, examples: Sequence[EncodedExample]) -> Bool[np.ndarray, " example"]:
        """Where the rule can be judged: everywhere, but for a distractor only where there is one."""
        return np.array([self.family != "distractor" or self.at < len(each.distractors) for each in examples])


def query_of(encoded: EncodedExample) -> int:
    """The query's position, of an example that has one."""
    assert encoded.query is not None, "only tagged examples are scored"
    return encoded.query


def candidates(examples: Sequence[EncodedExample]) -> list[Baseline]:
    """Every baseline that finds a position in some example."""
    longest = max(query_of(each) for each in examples)
    n_distractors = max(len(each.distractors) for each in examples)
    return [
        *(Baseline("offset", distance) for distance in range(longest)),
        *(Baseline("position", position) for position in range(1, longest + 1)),
        *(Baseline("distractor", number) for number in range(n_distractors)),
    ]


def key_mask(
    baseline: Baseline, examples: Sequence[EncodedExample], n_keys: int, special: Collection[int]
) -> Float[np.ndarray, "example key_pos"]:
    """1 where the rule looks; never at a special token, nor after the query."""
    mask = np.zeros((len(examples), n_keys))
    for row, encoded in enumerate(examples):
        tokens = encoded.prompt + encoded.right
        for position in baseline.positions(encoded):
            if 0 < position <= query_of(encoded) and tokens[position] not in special:
                mask[row, position] = 1.0
    return mask


def strongest(
    weights: Float[np.ndarray, "example cell key_pos"],
    examples: Sequence[EncodedExample],
    special: Collection[int],
) -> list[Baseline]:
    """Each head's baseline with the most attention on average over the examples that it applies to.

    Args:
        weights: Attention from each example's query, by head (``cell``).
        examples: The reference examples; never those that are scored.
        special: Ids of special tokens.
    """
    rules = candidates(examples)
    n_examples, n_cells, n_keys = weights.shape
    masks = np.stack([key_mask(rule, examples, n_keys, special) for rule in rules])
    by_key = weights.transpose(0, 2, 1).reshape(n_examples * n_keys, n_cells)
    totals = masks.reshape(len(rules), -1) @ by_key
    applies = np.array([rule.applies(examples).sum() for rule in rules])
    return [rules[best] for best in (totals / applies[:, None]).argmax(axis=0)]
