"""How minimal pairs become token ids of one tokenizer, and which of them it cannot carry.

1. The prompt alone and the prompt with either continuation are tokenized. A continuation's tokens are those after the
   prompt's. Where the tokenizer merges across the boundary, no position predicts the answer, and the item is left out.
2. The relation's spans become positions of the prompt with its right continuation.
3. An item or counterfactual that fails a requirement takes its whole unit with it, so the units stay balanced. What is
   left out is counted by requirement.
4. Of an example's word counterfactuals the first is taken that has as many tokens, and other ones at the related word
   alone. Where there is none, the example stays without.
5. A ``TaskRequest`` is a task as it was asked for by its name: it samples a file's items and encodes their pairs.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from transformers import PreTrainedTokenizerBase

from interp.arguments import named_arguments
from interp.errors import InputError, NotCarriedError, TaskError
from interp.tasks.alignment import TokenizedText, require_fast, tokenize
from interp.tasks.drawing import Pairs, draw_units, drawn_plainly
from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.phrases import Split
from interp.tasks.tagging import all_known
from interp.tasks.task import EncodedExample, Metric, Query, Task, Unit, check_choice, task_of_units

ItemT = TypeVar("ItemT")
_LOG = logging.getLogger(__name__)
Requirement = Literal[
    "prompt tokens change with the continuation",
    "answer of more than one token",
    "right and wrong are the same token",
    "related word not aligned",
    "longer than the context",
    "counterfactual of another length",
]
_LENGTH: Requirement = "counterfactual of another length"
_KEEP = "unequal_lengths=True keeps them (--unequal-lengths of heads, head, ablate and patch)"
_MANY = 0.25
"""Share of the pairs from which on it is said that a length leaves them out."""
_ADVICE: dict[str, str] = {
    "prompt tokens change with the continuation": "begin each answer with the space before it, as in ' is'",
    "answer of more than one token": "use answers of one token",
    _LENGTH: "use words of as many tokens",
    "longer than the context": "use shorter items, or a longer context",
}


class _FailedError(Exception):
    """An item fails a requirement; its argument says which."""


@named_arguments
def encode_task(
    pairs: Iterable[MinimalPair],
    *,
    tokenizer: PreTrainedTokenizerBase,
    name: str,
    description: str,
    metric: Metric,
    query: Query = "predicting position",
    references: Iterable[MinimalPair] | None = None,
    n_ctx: int | None = None,
    unequal_lengths: bool = False,
    feature: str | None = None,
) -> Task:
    """Encode minimal pairs as a task for one tokenizer.

    Args:
        pairs: What is measured.
        tokenizer: A fast tokenizer of ``transformers``, usually ``model.tokenizer``.
        name: The task's name.
        description: One sentence, for people.
        metric: What effects are measured on. Answers must be single tokens unless it is ``sentence_log_probability``.
        query: Which position the relation looks from.
        references: Pairs that replacement values and baselines come from; those with a prompt (or, where whole
            sentences are scored, a sentence) of `pairs` are left out. Without references the units serve each other
            in two halves (one of them empty if there is one unit).
        n_ctx: Longest row of tokens that the model takes, special tokens included; None for no limit.
        unequal_lengths: Whether to keep pairs whose two prompts have different numbers of tokens. Patching aligns
            them by the relation's spans (``alignment.corresponding``), and leaves out what corresponds to nothing.
        feature: The key of the examples' ``features`` in which the related word decides the answer; None for none.

    Returns:
        The task; ``task.dropped`` counts what the tokenizer cannot carry.

    Raises:
        TaskError: The tokenizer is slow, the name is empty, there is no such metric or query, there are
            no pairs, or some example does not have the feature.
        NotCarriedError: No pair is left; the message gives the count for each requirement that failed, and which of the
            arguments would leave one.

    Examples:
        >>> from interp.tasks import agreement
        >>> about = {"name": "agreement", "description": "Subject and verb agree.", "metric": "logit_difference"}
        >>> task = interp.encode_task(agreement.pairs(4, seed=0), tokenizer=interp.load_model().tokenizer, **about)
        >>> len(task.units)
        4
    """
    require_fast(tokenizer)
    check_choice("metric", metric, get_args(Metric))
    encoder = _Encoder(tokenizer, metric, n_ctx, unequal_lengths)
    units, dropped = encoder.carried(name, "pairs", pairs)
    n_pairs = len(units) + sum(dropped.values())
    if dropped[_LENGTH] >= _MANY * n_pairs:
        _LOG.warning("%s: %d of %d pairs are left out: %s; %s", name, dropped[_LENGTH], n_pairs, _LENGTH, _KEEP)
    return task_of_units(
        units,
        name=name,
        description=description,
        metric=metric,
        query=query,
        references=None if references is None else encoder.carried(name, "reference pairs", references)[0],
        feature=feature,
        dropped=dropped,
        from_text=True,
    )


@dataclass(frozen=True)
class _Encoder:
    """Encodes pairs for one tokenizer."""

    tokenizer: PreTrainedTokenizerBase
    metric: Metric
    n_ctx: int | None
    unequal_lengths: bool

    def carried(self, name: str, what: str, given: Iterable[MinimalPair]) -> tuple[list[Unit], Counter[str]]:
        """The units of `given`, one at least, and how many pairs fail each requirement."""
        pairs = list(given)
        if others := [type(each).__name__ for each in pairs if not isinstance(each, MinimalPair)]:
            raise TaskError(
                f"pairs: expected interp.MinimalPair, got {others[0]}; make one of an example and its counterfactual, "
                "or of an example, None and a cluster"
            )
        if not pairs:
            raise TaskError(f"{name}: expected {what} to encode, got none; give at least one")
        units, dropped = self.units(pairs)
        if units:
            return units, dropped
        failed = "; ".join(f"{requirement}: {count}" for requirement, count in dropped.most_common())
        (most, _), *_ = dropped.most_common(1)
        ways = [_ADVICE.get(most, "use other items, or another tokenizer")]
        if replace(self, metric="sentence_log_probability").units(pairs)[0]:
            ways.append("give metric='sentence_log_probability'")
        if replace(self, unequal_lengths=True).units(pairs)[0]:
            ways.append("give unequal_lengths=True")
        raise NotCarriedError(f"{name}: the tokenizer can carry none of the {len(pairs)} {what} ({failed})", *ways)

    def units(self, pairs: Sequence[MinimalPair]) -> tuple[list[Unit], Counter[str]]:
        """The units that the tokenizer can carry, and how many pairs fail each requirement."""
        texts = [text for pair in pairs for example in pair.examples for text in _texts(example)]
        rows = iter(tokenize(self.tokenizer, texts))
        units: list[Unit] = []
        dropped: Counter[str] = Counter()
        for pair in pairs:
            tokenized = [[next(rows) for _ in _texts(example)] for example in pair.examples]
            try:
                item, *others = map(self._with_other_word, map(self._example, pair.examples, tokenized))
                _require(self.unequal_lengths or all(len(each.prompt) == len(item.prompt) for each in others), _LENGTH)
                units.append(Unit(item, others[0] if others else None, pair.cluster))
            except _FailedError as requirement:
                dropped[str(requirement)] += 1
        return units, dropped

    def _example(self, example: Example, rows: Sequence[TokenizedText]) -> EncodedExample:
        prompt, *ends = rows
        answers = [_continuation(prompt, each) for each in ends]
        single = self.metric == "sentence_log_probability" or all(len(each) == 1 for each in answers)
        _require(single, "answer of more than one token")
        _require(len({*answers}) == len(answers), "right and wrong are the same token")
        longest = max(len(each.ids) for each in ends) + len(prompt.after)
        _require(self.n_ctx is None or longest <= self.n_ctx, "longer than the context")
        n_right, positions = len(example.rights), _relation_positions(example, ends[0])
        encoded = EncodedExample(
            example, prompt.ids, answers[0], answers[n_right], *positions, None, prompt.n_before, prompt.after
        )
        return encoded.with_answers(answers[:n_right], answers[n_right:])

    def _with_other_word(self, encoded: EncodedExample) -> EncodedExample:
        """The example with the first of its word counterfactuals that the tokenizer carries, if any."""
        for each in encoded.example.word_counterfactuals:
            with suppress(_FailedError):
                other = self._example(each, tokenize(self.tokenizer, _texts(each)))
                if encoded.differs_at_word(other):
                    return replace(encoded, word_counterfactual=other)
        return encoded


def _texts(example: Example) -> list[str]:
    """What of an example is tokenized: its prompt, and that with each right and each wrong answer."""
    return [example.prompt + end for end in ("", *example.rights, *example.wrongs)]


def _continuation(prompt: TokenizedText, whole: TokenizedText) -> tuple[int, ...]:
    """The tokens of `whole` that follow the prompt's."""
    length = len(prompt.ids)
    goes_on = whole.ids[:length] == prompt.ids and len(whole.ids) > length
    _require(goes_on, "prompt tokens change with the continuation")
    return whole.ids[length:]


def _relation_positions(
    example: Example, row: TokenizedText
) -> tuple[int | None, tuple[int, ...], dict[str, tuple[int, ...]]]:
    """Positions of the query, of the related word and of each distractor."""
    relation = example.relation
    if relation is None:
        return None, (), {}
    try:
        distractors = {role: row.positions(span) for role, span in relation.distractors.items()}
        return row.positions(relation.query)[-1], row.positions(relation.related), distractors
    except InputError as error:
        raise _FailedError("related word not aligned") from error


def _require(fulfilled: bool, requirement: Requirement) -> None:
    if not fulfilled:
        raise _FailedError(requirement)


@dataclass(frozen=True)
class TaskInfo:
    """A task of the catalogue."""

    name: str  # what ``load_task`` takes
    description: str  # one sentence, for people
    query: Query = "predicting position"  # which position the relation looks from
    metric: Metric = "logit_difference"  # what effects are measured on, unless ``load_task`` is told otherwise
    feature: str | None = None  # what the related word decides the answer by; None where nothing is probed for


@dataclass(frozen=True)
class TaskRequest:
    """A task as it was asked for by its name; see ``load_task``."""

    name: str
    info: TaskInfo
    tokenizer: PreTrainedTokenizerBase = field(repr=False)
    metric: Metric
    source: str | Path = ""  # the file, or a name of the hub
    n: int | None = None  # items to sample; None for all
    seed: int = 0
    n_ctx: int | None = None
    known_words_only: bool = False
    unequal_lengths: bool = False

    def choose(self, items: Sequence[ItemT], sentences: Callable[[ItemT], Iterable[str]]) -> list[ItemT]:
        """The file's items that are asked for, in the file's order."""
        chosen = list(items)
        if self.known_words_only:
            chosen = [item for item in chosen if all_known(*sentences(item))]
            if not chosen:
                raise TaskError(f"{self.name}: no item has only known words; leave known_words_only out")
        if self.n is None or self.n >= len(chosen):
            return chosen
        kept = np.random.default_rng(self.seed).choice(len(chosen), size=self.n, replace=False)
        return [chosen[i] for i in sorted(kept)]

    def encode(
        self,
        pairs: Iterable[MinimalPair],
        coverage: Mapping[str, float] | None = None,
        references: Iterable[MinimalPair] | None = None,
    ) -> Task:
        """Encode the pairs as ``encode_task`` does; errors name only what ``load_task`` can be given."""
        about: Any = {name: getattr(self.info, name) for name in ("description", "query", "feature")}
        about |= {"name": self.name, "metric": self.metric, "references": references}
        about |= {name: getattr(self, name) for name in ("tokenizer", "n_ctx", "unequal_lengths")}
        try:
            task = encode_task(pairs, **about)
        except NotCarriedError as error:
            ways = [f"{way} (of interp.load_task)" for way in error.ways if "metric=" in way or "unequal_len" in way]
            raise NotCarriedError(error.fault, *ways, "take another task, or a model with another tokenizer") from error
        return replace(task, coverage=dict(coverage or {}))

    def draw(self, pairs: Pairs, n: int, split: Split, n_references: int) -> Task:
        """A generated task of `n` units that the tokenizer carries; a warning where fewer can be had."""
        encode = _Encoder(self.tokenizer, self.metric, self.n_ctx, self.unequal_lengths).units
        units, replaced = draw_units(pairs, n, encode, seed=self.seed, split=split)
        references, _ = (
            draw_units(pairs, n_references, encode, seed=self.seed, split="reference") if units else ([], {})
        )
        if not references:  # an error, which says why
            plain = drawn_plainly(pairs, n, self.seed, split)
            return self.encode(plain, references=drawn_plainly(pairs, n_references, self.seed, "reference"))
        if len(units) < n:
            why = "; ".join(f"{reason}: {count}" for reason, count in replaced.most_common())
            _LOG.warning(
                "%s: %d of the %d units asked for can be had: of other draws, %s", self.name, len(units), n, why
            )
        about: Any = {name: getattr(self.info, name) for name in ("description", "query", "feature")}
        about |= {"name": self.name, "metric": self.metric, "references": references, "dropped": replaced}
        return task_of_units(units, **about, from_text=True)
