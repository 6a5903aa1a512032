"""A task as the methods see it: minimal pairs, encoded for one tokenizer.

A task is made by ``tasks/catalogue.py`` (``load_task``); a task of your own is a list of
``MinimalPair`` given to ``encode_task``, or, of token ids, of ``Unit`` given to ``task_of_units``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from interp.tasks.example import Example

Metric = Literal["logit_difference", "sentence_log_probability"]
Query = Literal["predicting position", "later word"]


@dataclass(frozen=True)
class EncodedExample:
    """An example in token ids. Positions count from the first token of the row, special tokens included.

    Attributes:
        example: The text that this encodes.
        prompt: Token ids of the prompt, special tokens in front included.
        right: Token ids of the right continuation (one token where the metric is
            ``logit_difference``).
        wrong: Token ids of the wrong continuation.
        query: Position that looks back, or None where there is no relation. A word of several
            tokens looks from its last one.
        related: Positions of the related word's tokens.
        distractors: Positions of each distractor's tokens, by its role.
        word_counterfactual: The first of the example's that the tokenizer carries; None for none.
        n_before: Special tokens in front.
        after: Special tokens behind, which an encoder reads: ``[SEP]``.
    """

    example: Example
    prompt: tuple[int, ...]
    right: tuple[int, ...]
    wrong: tuple[int, ...]
    query: int | None
    related: tuple[int, ...]
    distractors: Mapping[str, tuple[int, ...]]
    word_counterfactual: "EncodedExample | None" = None
    n_before: int = 1
    after: tuple[int, ...] = ()

    @property
    def critical(self) -> int:
        """Position whose logits decide: that of the prompt's last token."""
        return len(self.prompt) - 1

    @property
    def looking(self) -> int:
        """Position from which a head looks back: the query where it stands in the prompt, else the last token."""
        return self.critical if self.query is None else min(self.query, self.critical)

    def continuations(self, metric: str) -> tuple[tuple[int, ...], ...]:
        """What follows the prompt in the rows that `metric` is measured on: right and wrong, or nothing."""
        return (self.right, self.wrong) if metric == "sentence_log_probability" else ((),)

    def is_alike_but_for_the_word(self, other: "EncodedExample") -> bool:
        """Whether `other`'s prompt has as many tokens, and the same ones everywhere but at the related word."""
        pairs = zip(self.prompt, other.prompt, strict=False)
        differing = {position for position, (one, two) in enumerate(pairs) if one != two}
        alike = len(self.prompt) == len(other.prompt) and self.related == other.related
        return alike and differing <= set(self.related)

    def differs_at_word(self, other: "EncodedExample") -> bool:
        """Whether the related word alone is another in `other`'s prompt, and the right answer with it."""
        different = self.prompt != other.prompt and self.right != other.right
        return different and self.is_alike_but_for_the_word(other)


@dataclass(frozen=True)
class Unit:
    """One balanced unit of the statistics: an item and, where there is one, its counterfactual.

    Attributes:
        item: The encoded item.
        counterfactual: The encoded counterfactual, or None; as long as the item unless the task was asked for others.
        cluster: The lexical draw; see ``MinimalPair.cluster``.
        fold: Which of the task's reference sets serves this unit: the one that it is not in.
    """

    item: EncodedExample
    counterfactual: EncodedExample | None
    cluster: str
    fold: int = 0

    @property
    def examples(self) -> tuple[EncodedExample, ...]:
        """The item and, where there is one, its counterfactual."""
        return (self.item,) if self.counterfactual is None else (self.item, self.counterfactual)

    @property
    def word_counterfactuals(self) -> tuple[EncodedExample | None, ...]:
        """For each example the one in which the related word alone is another, its own or the unit's other example.

        None where neither is there: what the word alone decides cannot be told of it.
        """
        if self.counterfactual is None:
            return (self.item.word_counterfactual,)
        alone = self.item.differs_at_word(self.counterfactual)
        pairs = (self.item, self.counterfactual), (self.counterfactual, self.item)
        return tuple(each.word_counterfactual or (other if alone else None) for each, other in pairs)


@dataclass(frozen=True)
class Task:
    """Minimal pairs ready for a model.

    Attributes:
        name: As given to ``load_task``.
        description: One sentence, for people.
        metric: What the effects are measured on. ``logit_difference``: right minus wrong logit at
            the prompt's last position. ``sentence_log_probability``: log-probability of the right
            minus the wrong continuation, summed over its tokens (BLiMP's full-sentence method:
            what the two sentences share before they differ cancels).
        query: Which position the relation looks from.
        units: What is measured.
        references: Sets of units that replacement values come from, never scored together with
            the units that they serve. Generated tasks have one, from a separate split; a file has
            two halves that serve each other.
        dropped: Items left out, by requirement.
        coverage: Shares of the source in percent, by what is covered; empty where it has no meaning.
        hash: SHA-256 of the units' and references' text and token ids.
        feature: The key of ``Example.features`` in which the related word decides the answer, such as ``number``: what
            is probed for. None where there is no such feature.
        from_text: Whether ``encode_task`` made the ids, so that a model's tokenizer must make the same ones of the
            text. Ids of your own, such as random tokens, are taken as they are.
    """

    name: str
    description: str
    metric: Metric
    query: Query
    units: tuple[Unit, ...] = field(repr=False)
    references: tuple[tuple[Unit, ...], ...] = field(repr=False)
    dropped: Mapping[str, int]
    coverage: Mapping[str, float]
    hash: str
    feature: str | None = None
    from_text: bool = False

    @property
    def examples(self) -> tuple[EncodedExample, ...]:
        """Every example of every unit, in order."""
        return tuple(each for unit in self.units for each in unit.examples)

    @property
    def n_words_not_carried(self) -> int:
        """How many examples have word counterfactuals of which the tokenizer carries none; they stay without."""
        return sum(bool(each.example.word_counterfactuals) and not each.word_counterfactual for each in self.examples)
