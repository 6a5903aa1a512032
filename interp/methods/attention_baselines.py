"""Rules that would explain a head's attention without the relation: position alone, or a look-alike.

A baseline is an **offset** from the query, an absolute **position**, or a **distractor** by its role in the template. A
related word of several tokens is compared with as many tokens from the baseline's position on: the sum over more tokens
is larger without any relation. The query itself, the first token and special tokens are never candidates: attention
that is not needed rests there. Where an offset or position falls outside an example, it gets no attention there; an
example without a distractor says nothing about one, and is left out.

Clark et al. (2019), "What does BERT look at?" and Voita et al. (2019), "Analyzing multi-head self-attention": a head
counts only by what it does beyond the best fixed offset.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from interp.tasks.task import EncodedExample


@dataclass(frozen=True)
class Keys:
    """The key positions of some examples that have a query, counted in tokens, special tokens in front included.

    Attributes:
        examples: With a query each.
        query: Its position.
        width: Tokens of the related word.
        allowed: Which keys a rule can pick: those between the first token and the query that are not special.
    """

    examples: Sequence[EncodedExample]
    query: Int[np.ndarray, "example 1"]
    width: Int[np.ndarray, "example 1"]
    allowed: Bool[np.ndarray, "example key_pos"]

    @classmethod
    def of(cls, examples: Sequence[EncodedExample], n_keys: int, special: Collection[int]) -> "Keys":
        """Those of `examples`, up to `n_keys`; `special` are ids of special tokens."""
        query = np.array([[query_of(each)] for each in examples])
        width = np.array([[len(each.related)] for each in examples])
        position = np.arange(n_keys)
        allowed = (position > 0) & (position < query)
        for row, encoded in zip(allowed, examples, strict=True):
            tokens = (encoded.prompt + encoded.right)[:n_keys]
            row[[at for at, token in enumerate(tokens) if token in special]] = False
        return cls(examples, query, width, allowed)

    def mask(self, rule: "Baseline") -> Float[np.ndarray, "example key_pos"]:
        """1 where the rule looks; NaN where it cannot be judged: nothing has the distractor's role."""
        if isinstance(rule.where, str):
            looks = marked([each.distractors.get(rule.where) for each in self.examples], self.allowed.shape[1])
            return looks * self.allowed
        start = rule.where + (self.query if rule.kind == "offset" else 0)
        beyond = np.arange(self.allowed.shape[1]) - start  # as many keys as the related word has
        return ((beyond >= 0) & (beyond < self.width)).astype(float) * self.allowed


class Baseline(NamedTuple):
    """A rule: -3 from the query, position 5 (special tokens in front included), or a distractor by its role."""

    kind: Literal["offset", "position", "distractor"]
    where: int | str

    @property
    def name(self) -> str:
        """For tables: ``offset -3``, ``position 5``, ``first attractor``."""
        return str(self.where) if self.kind == "distractor" else f"{self.kind} {self.where}"


def query_of(encoded: EncodedExample) -> int:
    """The query's position, of an example that has one."""
    assert encoded.query is not None, "only tagged examples are scored"
    return encoded.query


def is_testable(encoded: EncodedExample) -> bool:
    """Whether the related word stands wholly before the query, where a causal model can look, and not first."""
    query, related = encoded.query, encoded.related
    return query is not None and bool(related) and max(related) < query and min(related) > 0


def is_in_the_prompt(encoded: EncodedExample) -> bool:
    """Whether the related word is testable, and no part of the continuation."""
    return is_testable(encoded) and max(encoded.related) < len(encoded.prompt)


def marked(positions: Sequence[tuple[int, ...] | None], n_keys: int) -> Float[np.ndarray, "example key_pos"]:
    """1 at each example's positions, NaN where it has none to give; those from `n_keys` on are left out."""
    mask = np.zeros((len(positions), n_keys))
    for row, places in zip(mask, positions, strict=True):
        if places is None:
            row[:] = np.nan
        else:
            row[[at for at in places if at < n_keys]] = 1.0
    return mask


def candidates(examples: Sequence[EncodedExample]) -> list[Baseline]:
    """Every baseline that finds a position in some example."""
    longest = max(query_of(each) for each in examples)
    roles = dict.fromkeys(role for each in examples for role in each.distractors)
    return [
        *(Baseline("offset", -distance) for distance in range(1, longest)),
        *(Baseline("position", position) for position in range(1, longest)),
        *(Baseline("distractor", role) for role in roles),
    ]


def toughest(
    weights: Float[np.ndarray, "example cell key_pos"],
    examples: Sequence[EncodedExample],
    special: Collection[int],
) -> list[Baseline]:
    """Each head's baseline that leaves the least excess on the reference examples, which are never those scored.

    As it is scored, the excess is a mean over templates of their means, over the examples where the rule can be
    judged: a rule that is judged on some of them is held against the related word of the same ones. `special` are the
    ids of special tokens.
    """
    rules = candidates(examples)
    n_examples, n_cells, n_keys = weights.shape
    keys, related = Keys.of(examples, n_keys, special), marked([each.related for each in examples], n_keys)
    _, template = np.unique([each.example.template for each in examples], return_inverse=True)
    by_head = weights.transpose(0, 2, 1).reshape(n_examples * n_keys, n_cells)
    excess = np.zeros((len(rules), n_cells))
    for number, rule in enumerate(rules):
        mask = keys.mask(rule)
        share = _shares(~np.isnan(mask[:, 0]), template)
        excess[number] = ((related - np.nan_to_num(mask)) * share[:, None]).ravel() @ by_head
    return [rules[least] for least in excess.argmin(axis=0)]


def _shares(
    judged: Bool[np.ndarray, " example"], template: Int[np.ndarray, " example"]
) -> Float[np.ndarray, " example"]:
    """Each example's weight in the mean over templates of the judged examples' means."""
    same = np.bincount(template, weights=judged)[template]
    weights = np.divide(judged, same, out=np.zeros(len(judged)), where=judged)
    return weights / weights.sum()
