"""What would explain a head's attention without the relation? Position alone, or a look-alike.

Three families of baseline, each a rule that picks key positions without knowing the related word:

- **offset -d**: the position d before the query (0 is the query itself);
- **position p**: an absolute position; first-token sinks look like coreference to the first word;
- **a distractor**, by its role in the template: ``first attractor``, ``other person``.

A related word of several tokens is compared with as many tokens from the baseline's position on: the sum
over more tokens is larger without any relation. Special tokens such as BOS are never candidates. Where an
offset or position falls outside an example, it gets no attention there; an example without a distractor
says nothing about one, and is left out.

Clark et al. (2019), "What does BERT look at?" and Voita et al. (2019), "Analyzing multi-head
self-attention": a head counts only by what it does beyond the best fixed offset.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from interp.tasks.task import EncodedExample


@dataclass(frozen=True)
class Offset:
    """Looks `distance` tokens before the query; 0 is the query itself."""

    distance: int

    @property
    def name(self) -> str:
        """For tables: ``offset -3``."""
        return f"offset {-self.distance}"

    def positions(self, encoded: EncodedExample) -> tuple[int, ...]:
        """The key positions that the rule picks in an example with a query."""
        return _as_wide(query_of(encoded) - self.distance, encoded)


@dataclass(frozen=True)
class Position:
    """Looks at one position, counted from 0, BOS included."""

    at: int

    @property
    def name(self) -> str:
        """For tables: ``position 5``."""
        return f"position {self.at}"

    def positions(self, encoded: EncodedExample) -> tuple[int, ...]:
        """The key positions that the rule picks."""
        return _as_wide(self.at, encoded)


@dataclass(frozen=True)
class Distractor:
    """Looks at the word with a role in the template, which is the rule's name; see ``Relation.distractors``."""

    name: str

    def positions(self, encoded: EncodedExample) -> tuple[int, ...] | None:
        """The key positions that the rule picks; None where nothing has the role."""
        return encoded.distractors.get(self.name)


Baseline = Offset | Position | Distractor


def query_of(encoded: EncodedExample) -> int:
    """The query's position, of an example that has one."""
    assert encoded.query is not None, "only tagged examples are scored"
    return encoded.query


def _as_wide(start: int, encoded: EncodedExample) -> tuple[int, ...]:
    """As many positions as the related word has, from `start` on."""
    return tuple(range(start, start + len(encoded.related)))


def candidates(examples: Sequence[EncodedExample]) -> list[Baseline]:
    """Every baseline that finds a position in some example."""
    longest = max(query_of(each) for each in examples)
    roles = dict.fromkeys(role for each in examples for role in each.distractors)
    return [
        *(Offset(distance) for distance in range(longest)),
        *(Position(position) for position in range(1, longest + 1)),
        *(Distractor(role) for role in roles),
    ]


def key_mask(
    baseline: Baseline, examples: Sequence[EncodedExample], n_keys: int, special: Collection[int]
) -> Float[np.ndarray, "example key_pos"]:
    """1 where the rule looks, never at a special token, nor after the query; NaN where it cannot be judged."""
    mask = np.zeros((len(examples), n_keys))
    for row, encoded in enumerate(examples):
        tokens, positions = encoded.prompt + encoded.right, baseline.positions(encoded)
        if positions is None:
            mask[row] = np.nan
            continue
        for position in positions:
            if 0 < position <= query_of(encoded) and tokens[position] not in special:
                mask[row, position] = 1.0
    return mask


def toughest(
    weights: Float[np.ndarray, "example cell key_pos"],
    examples: Sequence[EncodedExample],
    special: Collection[int],
) -> list[Baseline]:
    """Each head's baseline that leaves the least excess: the related word's attention less the baseline's.

    As it is scored, the excess is a mean over templates of their means, over the examples where the rule can be
    judged: a rule that is judged on some of them is held against the related word of the same ones.

    Args:
        weights: Attention from each example's query, by head (``cell``).
        examples: The reference examples; never those that are scored.
        special: Ids of special tokens.
    """
    rules = candidates(examples)
    n_examples, n_cells, n_keys = weights.shape
    masks = np.stack([key_mask(rule, examples, n_keys, special) for rule in rules])
    share = _shares(~np.isnan(masks[:, :, 0]), [each.example.template for each in examples])
    looks = (related_mask(examples, n_keys) - np.nan_to_num(masks)) * share[:, :, None]
    excess = looks.reshape(len(rules), -1) @ weights.transpose(0, 2, 1).reshape(n_examples * n_keys, n_cells)
    return [rules[least] for least in excess.argmin(axis=0)]


def related_mask(examples: Sequence[EncodedExample], n_keys: int) -> Float[np.ndarray, "example key_pos"]:
    """1 at the related word."""
    mask = np.zeros((len(examples), n_keys))
    for row, encoded in enumerate(examples):
        mask[row, list(encoded.related)] = 1.0
    return mask


def _shares(judged: Bool[np.ndarray, "rule example"], templates: Sequence[str]) -> Float[np.ndarray, "rule example"]:
    """Each example's weight in the mean over templates of the judged examples' means."""
    same = (np.asarray(templates)[:, None] == np.asarray(templates)).astype(float)
    weights = np.divide(judged, judged @ same, out=np.zeros(judged.shape), where=judged)
    return weights / weights.sum(axis=1, keepdims=True)
