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
from interp.errors import InputError, NotCarriedError, TaskError, suggest
from interp.tasks.alignment import TokenizedText, require_fast, tokenize
from interp.tasks.chat import in_chat
from interp.tasks.drawing import Pairs, draw_units, drawn_plainly, with_references
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
_SHOWN = 12
"""Tokens of a text in a message, at most: its last ones."""
_MANY = 0.25
"""Share of the pairs from which on it is said that a length leaves them out."""
_ADVICE: dict[str, str] = {
    "prompt tokens change with the continuation": "begin each answer with the space before it, as in ' is'",
    "answer of more than one token": "use answers of one token",
    _LENGTH: "use words of as many tokens",
    "longer than the context": "use shorter items, or a longer context",
}


class _FailedError(Exception):
    """An item fails a requirement."""

    def __init__(self, requirement: Requirement, tokens: str):
        super().__init__(requirement)
        self.tokens = tokens  # an example of the vocabulary, where one tells why


@named_arguments
def encode_task(
    pairs: Iterable[MinimalPair],
    *,
    tokenizer: PreTrainedTokenizerBase,
    name: str,
    description: str,
    metric: Metric | None = None,
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
            None for that where some answer has several tokens, which a warning says, and else ``logit_difference``.
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
    if metric is not None:
        check_choice("metric", metric, get_args(Metric))
    given = _pairs(pairs)
    encoder = _Encoder(tokenizer, metric or "logit_difference", n_ctx, unequal_lengths)
    if metric is None:
        encoder = encoder.fit(name, given)
    units, dropped = encoder.carried(name, "pairs", given)
    _warn_of_answers(name, given)
    n_pairs = len(units) + sum(dropped.values())
    if dropped[_LENGTH] >= _MANY * n_pairs:
        _LOG.warning("%s: %d of %d pairs are left out: %s; %s", name, dropped[_LENGTH], n_pairs, _LENGTH, _KEEP)
    return task_of_units(
        units,
        name=name,
        description=description,
        metric=encoder.metric,
        query=query,
        references=None if references is None else encoder.carried(name, "reference pairs", _pairs(references))[0],
        feature=feature,
        dropped=dropped,
        from_text=True,
    )


def _pairs(given: Iterable[MinimalPair]) -> list[MinimalPair]:
    """All of them, if they are pairs."""
    pairs = list(given)
    if others := [type(each).__name__ for each in pairs if not isinstance(each, MinimalPair)]:
        raise TaskError(
            f"pairs: expected interp.MinimalPair, got {others[0]}; make one of an example and its counterfactual, "
            "or of an example, None and a cluster"
        )
    return pairs


def _warn_of_answers(name: str, pairs: Sequence[MinimalPair]) -> None:
    """Say how many counterfactuals do not swap the answers: a preference for one can pass for the phenomenon there."""
    twins = [each for each in pairs if each.counterfactual is not None]
    if kept := [each for each in twins if not each.swaps_answers]:
        item, other = kept[0].examples
        _LOG.warning(
            "%s: %d of %d counterfactuals do not swap the right and the wrong answer (%r: %r, %r: %r): a preference "
            "for an answer is not balanced there",
            *(name, len(kept), len(twins), item.prompt[-60:], item.rights[0], other.prompt[-60:], other.rights[0]),
        )


@dataclass(frozen=True)
class _Encoder:
    """Encodes pairs for one tokenizer."""

    tokenizer: PreTrainedTokenizerBase
    metric: Metric
    n_ctx: int | None
    unequal_lengths: bool

    def fit(self, name: str, pairs: Sequence[MinimalPair]) -> "_Encoder":
        """The encoder whose metric takes the answers as they are: whole ones where some have several tokens."""
        several = pairs and self.units(pairs)[1]["answer of more than one token"]
        if not several:
            return self
        _LOG.warning(
            "%s: %d of %d pairs have answers of several tokens, so all are scored by sentence_log_probability; "
            "metric='logit_difference' leaves these out",
            *(name, several, len(pairs)),
        )
        return replace(self, metric="sentence_log_probability")

    def carried(self, name: str, what: str, given: Iterable[MinimalPair]) -> tuple[list[Unit], Counter[str]]:
        """The units of `given`, one at least, and how many pairs fail each requirement."""
        pairs = list(given)
        if not pairs:
            raise TaskError(f"{name}: expected {what} to encode, got none; give at least one")
        if len({each.chat for pair in pairs for each in pair.examples}) > 1:
            raise TaskError(f"{name}: expected all {what} in a chat template or none, got some; give them apart")
        units, dropped = self.units(pairs)
        if units:
            return units, dropped
        (most, _), *_ = dropped.most_common(1)
        failed = "; ".join(f"{requirement}: {count}" for requirement, count in dropped.most_common())
        tokens = self._tokens_of_a_failure(pairs, most)
        ways = [_ADVICE.get(most, "use other items, or another tokenizer")]
        if replace(self, metric="sentence_log_probability").units(pairs)[0]:
            ways.append("give metric='sentence_log_probability'")
        if replace(self, unequal_lengths=True).units(pairs)[0]:
            ways.append("give unequal_lengths=True")
        raise NotCarriedError(
            f"{name}: the tokenizer can carry none of the {len(pairs)} {what} ({failed}){tokens}", *ways
        )

    def units(self, pairs: Sequence[MinimalPair]) -> tuple[list[Unit], Counter[str]]:
        """The units that the tokenizer can carry, and how many pairs fail each requirement."""
        texts = [text for pair in pairs for example in pair.examples for text in _texts(example)]
        rows = iter(tokenize(self.tokenizer, texts, chat=pairs[0].item.chat))
        units: list[Unit] = []
        dropped: Counter[str] = Counter()
        for pair in pairs:
            tokenized = [[next(rows) for _ in _texts(example)] for example in pair.examples]
            try:
                units.append(self._unit(pair, tokenized))
            except _FailedError as requirement:
                dropped[str(requirement)] += 1
        return units, dropped

    def _tokens_of_a_failure(self, pairs: Sequence[MinimalPair], requirement: str) -> str:
        """The tokens of the first pair that fails a requirement, as far as they tell why."""
        for pair in pairs:
            try:
                self._unit(pair, [tokenize(self.tokenizer, _texts(each)) for each in pair.examples])
            except _FailedError as error:
                if str(error) == requirement:
                    return f", such as {error.tokens}" if error.tokens else ""
        return ""

    def _unit(self, pair: MinimalPair, rows: Sequence[Sequence[TokenizedText]]) -> Unit:
        item, *others = map(self._with_other_word, map(self._example, pair.examples, rows))
        if not self.unequal_lengths and any(len(each.prompt) != len(item.prompt) for each in others):
            shown = (f"{each.example.prompt[-60:]!r}: {self._shown(each.prompt)}" for each in (item, *others))
            raise _FailedError(_LENGTH, " and ".join(shown))
        return Unit(item, others[0] if others else None, pair.cluster)

    def _shown(self, ids: Sequence[int]) -> str:
        tokens = [str(each) for each in self.tokenizer.convert_ids_to_tokens(list(ids))]
        return " + ".join(tokens if len(tokens) <= _SHOWN else ["...", *tokens[-_SHOWN:]])

    def _example(self, example: Example, rows: Sequence[TokenizedText]) -> EncodedExample:
        prompt, *ends = rows
        answers = [_continuation(prompt, each) for each in ends]
        if self.metric != "sentence_log_probability" and (long := [n for n, ids in enumerate(answers) if len(ids) > 1]):
            text = (*example.rights, *example.wrongs)[long[0]]
            raise _FailedError("answer of more than one token", f"{text!r}: {self._shown(answers[long[0]])}")
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
                other = self._example(each, tokenize(self.tokenizer, _texts(each), chat=each.chat))
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
        raise _FailedError("related word not aligned", "") from error


def _require(fulfilled: bool, requirement: Requirement) -> None:
    if not fulfilled:
        raise _FailedError(requirement, "")


@dataclass(frozen=True)
class TaskInfo:
    """A task of the catalogue."""

    name: str  # what ``load_task`` takes
    description: str  # one sentence, for people
    query: Query = "predicting position"  # which position the relation looks from
    # what effects are measured on, unless ``load_task`` is told otherwise; None for what the answers' tokens ask for
    metric: Metric | None = "logit_difference"
    feature: str | None = None  # what the related word decides the answer by; None where nothing is probed for


@dataclass(frozen=True)
class TaskRequest:
    """A task as it was asked for by its name; see ``load_task``."""

    name: str
    info: TaskInfo
    tokenizer: PreTrainedTokenizerBase = field(repr=False)
    metric: Metric | None
    source: str | Path = ""  # the file, or a name of the hub
    n: int | None = None  # items to sample; None for all
    seed: int = 0
    n_ctx: int | None = None
    known_words_only: bool = False
    unequal_lengths: bool = False
    counterfactual: str | None = None
    chat: bool = False

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
        chosen = self._against(given := list(pairs))
        others = None if references is None else self._against(list(references))
        if self.chat:
            chosen = list(in_chat(chosen, self.tokenizer))
            others = None if others is None else list(in_chat(others, self.tokenizer))
        about |= {"name": self.name, "metric": self.metric, "references": others}
        about |= {name: getattr(self, name) for name in ("tokenizer", "n_ctx", "unequal_lengths")}
        try:
            task = encode_task(chosen, **about)
        except NotCarriedError as error:
            ways = [f"{way} (of interp.load_task)" for way in error.ways if "metric=" in way or "unequal_len" in way]
            raise NotCarriedError(error.fault, *ways, "take another task, or a model with another tokenizer") from error
        without = {f"no counterfactual {self.counterfactual}": len(given) - len(chosen)}
        dropped = {**task.dropped, **{why: n for why, n in without.items() if n}}
        return replace(task, coverage=dict(coverage or {}), dropped=dropped, counterfactual=self.counterfactual)

    def _against(self, pairs: list[MinimalPair]) -> list[MinimalPair]:
        """The pairs with their counterfactuals of the name that is asked for; those that have none are left out."""
        name = self.counterfactual
        found = pairs if name is None else [each.against(name) for each in pairs if name in each.counterfactuals]
        if pairs and not found:
            known = dict.fromkeys(each for pair in pairs for each in pair.counterfactuals)
            what = suggest(str(name), known) if known else "they have none with names; leave it out"
            raise TaskError(f"{self.name}: no pair has a counterfactual called {name!r}; {what}")
        return found

    def draw(self, pairs: Pairs, n: int, split: Split, n_references: int) -> Task:
        """A generated task of `n` units that the tokenizer carries; a warning where fewer can be had."""
        metric = self.metric or "logit_difference"
        encoder = _Encoder(self.tokenizer, metric, self.n_ctx, self.unequal_lengths)

        def encode(given: Sequence[MinimalPair]) -> tuple[list[Unit], Counter[str]]:
            chosen = self._against(list(given))
            return encoder.units([*in_chat(chosen, self.tokenizer)] if self.chat else chosen)

        references, _ = draw_units(pairs, n_references, encode, seed=self.seed, split="reference")
        fitting = with_references(encode, references, metric)
        units, replaced = draw_units(pairs, n, fitting, seed=self.seed, split=split)
        if not units:  # an error, which says why
            plain = drawn_plainly(pairs, n, self.seed, split)
            return self.encode(plain, references=drawn_plainly(pairs, n_references, self.seed, "reference"))
        if len(units) < n:
            why = "; ".join(f"{reason}: {count}" for reason, count in replaced.most_common())
            _LOG.warning(
                "%s: %d of the %d units asked for can be had: of other draws, %s", self.name, len(units), n, why
            )
        about: Any = {name: getattr(self.info, name) for name in ("description", "query", "feature")}
        about |= {"name": self.name, "metric": metric, "references": references, "dropped": replaced}
        return task_of_units(units, **about, from_text=True)
