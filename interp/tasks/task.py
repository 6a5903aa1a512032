"""A task as the methods see it: minimal pairs in token ids, and the reference sets that replacement values come from.

``load_task`` makes one by name. A task of your own is a list of ``MinimalPair`` given to ``encode_task`` or, of token
ids without a text, of ``Unit`` given to ``task_of_units``.

Reference sets are never scored together with the units that they serve: pairs from a separate split serve all units
(one that shares a row with a scored unit is left out), or the units serve each other in two halves.

Examples:
    >>> from interp.tasks.task import Unit, task_of_units
    >>> from interp.tasks.token_ids import example_of_ids
    >>> unit = Unit(example_of_ids([0, 5, 6], 7, 8), example_of_ids([0, 9, 6], 8, 7), cluster="5")
    >>> len(task_of_units([unit], name="ids", description="Five, then seven.").examples)
    2
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from interp.arguments import named_arguments
from interp.errors import TaskError, suggest
from interp.tasks.example import Example, Span

Metric = Literal["logit_difference", "sentence_log_probability", "probability_difference", "best_logit_difference"]
Query = Literal["predicting position", "later word"]
Ids = tuple[int, ...]


@dataclass(frozen=True)
class EncodedExample:
    """An example in token ids. Positions count from the first token of the row, special tokens included.

    Attributes:
        example: The text that this encodes.
        prompt: Token ids of the prompt, special tokens in front included.
        right: Token ids of the right continuation, of several right ones the first (one token unless the metric is
            ``sentence_log_probability``).
        wrong: Token ids of the wrong continuation, of several the first.
        query: Position that looks back, of several tokens the last one's; None where there is no relation.
        related: Positions of the related word's tokens.
        distractors: Positions of each distractor's tokens, by its role.
        word_counterfactual: The first of the example's that the tokenizer carries; None for none.
        n_before: Special tokens in front.
        after: Special tokens behind, which an encoder reads: ``[SEP]``.
        also_right: Token ids of the other right continuations, where the right answer is a set.
        also_wrong: Token ids of the other wrong continuations.
    """

    example: Example
    prompt: Ids
    right: Ids
    wrong: Ids
    query: int | None
    related: Ids
    distractors: Mapping[str, Ids]
    word_counterfactual: "EncodedExample | None" = None
    n_before: int = 1
    after: Ids = ()
    also_right: tuple[Ids, ...] = ()
    also_wrong: tuple[Ids, ...] = ()

    @property
    def rights(self) -> tuple[Ids, ...]:
        """Token ids of all right answers."""
        return (self.right, *self.also_right)

    @property
    def wrongs(self) -> tuple[Ids, ...]:
        """Token ids of all wrong answers."""
        return (self.wrong, *self.also_wrong)

    @property
    def single_tokens(self) -> bool:
        """Whether every answer is one token."""
        return all(len(each) == 1 for each in (*self.rights, *self.wrongs))

    def with_answers(self, right: Sequence[Ids], wrong: Sequence[Ids]) -> "EncodedExample":
        """The example with other right and wrong answers, at least one of each."""
        return replace(self, right=right[0], wrong=wrong[0], also_right=tuple(right[1:]), also_wrong=tuple(wrong[1:]))

    @property
    def critical(self) -> int:
        """Position whose logits decide: that of the prompt's last token."""
        return len(self.prompt) - 1

    @property
    def looking(self) -> int:
        """Position from which a head looks back: the query where it stands in the prompt, else the last token."""
        return self.critical if self.query is None else min(self.query, self.critical)

    def continuations(self, metric: str) -> tuple[tuple[Ids, int], ...]:
        """What follows the prompt in the rows that `metric` is measured on, and their sign.

        A right answer's sign is +1 and a wrong one's -1; nothing follows where the prompt's last logits decide.
        """
        if metric != "sentence_log_probability":
            return (((), +1),)
        return (*((each, +1) for each in self.rights), *((each, -1) for each in self.wrongs))

    def is_alike_but_for_the_word(self, other: "EncodedExample") -> bool:
        """Whether `other`'s prompt has as many tokens, and the same ones everywhere but at the related word."""
        pairs = zip(self.prompt, other.prompt, strict=False)
        differing = {position for position, (one, two) in enumerate(pairs) if one != two}
        alike = len(self.prompt) == len(other.prompt) and self.related == other.related
        return alike and differing <= set(self.related)

    def differs_at_word(self, other: "EncodedExample") -> bool:
        """Whether the related word alone is another in `other`'s prompt, and the right answer with it."""
        different = self.prompt != other.prompt and {*self.rights} != {*other.rights}
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
        metric: What the effects are measured on, as ``interp.interventions.metrics`` defines it, with its unit.
        query: Which position the relation looks from.
        units: What is measured.
        references: Sets of units that replacement values come from, never scored together with the units that they
            serve. Generated tasks have one, from a separate split; a file has two halves that serve each other.
        dropped: Items left out, by requirement; of a generated task, pairs in whose place others were drawn.
        coverage: Shares of the source in percent, by what is covered; empty where it has no meaning.
        hash: SHA-256 of the units' and references' text and token ids.
        feature: The key of ``Example.features`` that the related word decides and probes read; None for none.
        from_text: Whether ``encode_task`` made the ids: then a model's tokenizer must make the same ones of the text.
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


def shares(counts: Mapping[str, int], of: int) -> dict[str, float]:
    """A task's coverage: each count in percent of all."""
    return {what: 100 * count / of for what, count in counts.items()}


def digest(unit_sets: Iterable[Sequence[Unit]]) -> str:
    """SHA-256 of the units' text, token ids, positions and relations, the same on every machine."""
    rows = [[[unit.cluster, list(map(_fields, unit.examples))] for unit in units] for units in unit_sets]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def _fields(encoded: EncodedExample) -> list[object]:
    """What of an example is hashed; what all examples of older versions had in common is left out."""
    example, relation = encoded.example, encoded.example.relation
    fields: list[object] = [example.prompt, example.right, example.wrong, example.template, example.layout]
    fields += [dict(example.features), encoded.prompt, encoded.right, encoded.wrong]
    fields += [encoded.query, encoded.related, dict(encoded.distractors)]
    if relation is None:
        fields.append(None)
    else:
        distractors = {name: _at(span) for name, span in relation.distractors.items()}
        fields.append([relation.name, _at(relation.query), _at(relation.related), distractors])
    if (encoded.n_before, encoded.after) != (1, ()):
        fields.append([encoded.n_before, encoded.after])
    if encoded.also_right or encoded.also_wrong:
        fields.append([encoded.also_right, encoded.also_wrong])
    if encoded.word_counterfactual is not None:
        fields.append(_fields(encoded.word_counterfactual))
    return fields


def _at(span: Span) -> list[int]:
    return [span.start, span.stop]


def unscored(name: str, metric: Metric, references: Sequence[Unit], units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The references without those that share a row of the model's input with a scored unit."""
    scored = {row for unit in units for row in _rows(unit, metric)}
    left = tuple(unit for unit in references if scored.isdisjoint(_rows(unit, metric)))
    if not left:
        raise TaskError(
            f"{name}: every one of the {len(references)} reference pairs has a prompt or sentence that is scored; "
            "give others, or leave `references` out and the pairs serve each other in two halves"
        )
    return left


def _rows(unit: Unit, metric: Metric) -> set[tuple[int, ...]]:
    return {each.prompt + end for each in unit.examples for end, _ in each.continuations(metric)}


def halves(units: Sequence[Unit]) -> tuple[list[Unit], tuple[tuple[Unit, ...], ...]]:
    """Split the units in two, as evenly as their clusters allow; each half serves the other one.

    A cluster stands on one side only, so that no unit is measured against its own words; a single one is split.
    """
    groups = [unit.cluster for unit in units]
    if len(set(groups)) == 1:
        groups = [digest([[unit]]) for unit in units]
    half = deal(Counter(groups))
    folded = [replace(unit, fold=half[group]) for unit, group in zip(units, groups, strict=True)]
    return folded, tuple(tuple(unit for unit in folded if unit.fold == 1 - served) for served in (0, 1))


def deal(sizes: Mapping[str, int]) -> dict[str, int]:
    """Which half, 0 or 1, each name goes to: the largest first, each to the smaller half; equal ones by hash."""
    half: dict[str, int] = {}
    totals = [0, 0]
    for name in sorted(sizes, key=lambda each: (-sizes[each], hashlib.sha256(each.encode()).hexdigest())):
        half[name] = int(totals[1] < totals[0])
        totals[half[name]] += sizes[name]
    return half


@named_arguments
def task_of_units(
    units: Iterable[Unit],
    *,
    name: str,
    description: str,
    metric: Metric = "logit_difference",
    query: Query = "predicting position",
    references: Iterable[Unit] | None = None,
    feature: str | None = None,
    dropped: Mapping[str, int] | None = None,
    coverage: Mapping[str, float] | None = None,
    from_text: bool = False,
) -> Task:
    """A task of units that are encoded already.

    Args:
        units: What is measured.
        name: The task's name.
        description: One sentence, for people.
        metric: What effects are measured on. Answers must be single tokens unless it is ``sentence_log_probability``.
        query: Which position the relation looks from.
        references: Units that replacement values and baselines come from; those with a row of `units` are left out.
            Without references the units serve each other in two halves (one of them empty if there is one unit).
        feature: The key of the examples' ``features`` in which the related word decides the answer; None for none.
        dropped: What was left out before, handed on to the task.
        coverage: Shares of the source in percent, handed on to the task.
        from_text: Whether a tokenizer made the ids of the examples' text, and a model's must make the same ones.

    Returns:
        The task, which every method takes.

    Raises:
        TaskError: The name is empty, there is no such metric or query, there are no units, an answer has several
            tokens, a relation does not look from where `query` says, a feature is missing, or no reference is left.
    """
    if not (isinstance(name, str) and name.strip() and len(name.splitlines()) == 1):
        raise TaskError(f"name: expected a text in one line, got {name!r:.80}")
    check_choice("metric", metric, get_args(Metric))
    check_choice("query", query, get_args(Query))
    scored = _units(name, "units", units)
    given: tuple[tuple[Unit, ...], ...] = ()
    if references is not None:
        given = (unscored(name, metric, _units(name, "references", references), scored),)
    examples = [each for units in (scored, *given) for unit in units for each in unit.examples]
    scored, reference_sets = (scored, given) if given else halves(scored)
    looking = [each for unit in scored for each in unit.examples] if query == "predicting position" else []
    if metric != "sentence_log_probability":
        _require_answers(name, examples, looking)
    _require_feature(name, feature, [each.example for each in examples])
    return Task(
        name=name,
        description=description,
        metric=metric,
        query=query,
        units=tuple(scored),
        references=reference_sets,
        dropped=dict(dropped or {}),
        coverage=dict(coverage or {}),
        hash=digest([scored, *reference_sets]),
        feature=feature,
        from_text=from_text,
    )


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Refuse what is none of the `choices`."""
    if value not in choices:
        raise TaskError(f"unknown {what} {value!r}; {suggest(str(value), choices)}")


def _units(name: str, what: str, given: Iterable[Unit]) -> list[Unit]:
    """All of them, if they are units."""
    units = list(given)
    if others := [type(each).__name__ for each in units if not isinstance(each, Unit)]:
        raise TaskError(f"{name}: {what}: expected units, got {others[0]}; make one with Unit(item, other, cluster)")
    if not units:
        raise TaskError(f"{name}: {what}: expected at least one unit, got none")
    return units


def _require_answers(name: str, examples: Sequence[EncodedExample], looking: Sequence[EncodedExample]) -> None:
    """Refuse several tokens, and relations that do not look from where logits are compared, the prompt's last token."""
    if several := [each for each in examples if not each.single_tokens]:
        example = several[0].example
        raise TaskError(
            f"{name}: expected answers of one token, got {example.right!r} and {example.wrong!r} behind "
            f"{example.prompt!r:.80}; give metric='sentence_log_probability'"
        )
    if elsewhere := [each.example.text for each in looking if each.query not in (None, each.critical)]:
        raise TaskError(
            f"{name}: query='predicting position', but in {elsewhere[0]!r} the relation does not look "
            "from the prompt's last token; give query='later word', or change the relation"
        )


def _require_feature(name: str, feature: str | None, examples: Sequence[Example]) -> None:
    """Refuse a feature that some example does not have."""
    without = sum(feature not in example.features for example in examples)
    if feature is not None and without:
        known = sorted(set.intersection(*(set(example.features) for example in examples)))
        raise TaskError(
            f"{name}: feature {feature!r} is missing in {without} of {len(examples)} examples; all of them have: "
            f"{', '.join(known) or 'none'}; give one of these, or leave it out"
        )
