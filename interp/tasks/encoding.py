"""How do minimal pairs become token ids of one tokenizer, and which of them can it not carry?

1. The prompt alone, the prompt with the right and the prompt with the wrong continuation are
   tokenized (``alignment.py``). A continuation's tokens are those that it has in its context: what
   follows the prompt's tokens. Where the tokenizer merges across the boundary, so that the prompt
   itself changes, there is no position that predicts the answer, and the item is left out.
2. The relation's spans become positions of the prompt with its right continuation.
3. An item or a counterfactual that fails a requirement takes its whole unit with it, so that the
   units stay balanced. What is left out is counted by requirement.
4. Of an example's word counterfactuals the first is taken that has as many tokens, and other ones at the related word
   alone. Where there is none, the example stays without.
5. Replacement values and baselines come from reference sets (``references.py``).
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from transformers import PreTrainedTokenizerBase

from interp.arguments import named_arguments
from interp.errors import InputError, NotCarriedError, TaskError
from interp.tasks.alignment import TokenizedText, require_fast, tokenize
from interp.tasks.example import Example, MinimalPair
from interp.tasks.task import EncodedExample, Metric, Query, Task, Unit
from interp.tasks.units import check_choice, task_of_units

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
    coverage: Mapping[str, float] | None = None,
    unequal_lengths: bool = False,
    feature: str | None = None,
) -> Task:
    """Encode minimal pairs as a task for one tokenizer.

    Args:
        pairs: What is measured.
        tokenizer: A fast tokenizer of ``transformers``, usually ``model.tokenizer``.
        name: The task's name.
        description: One sentence, for people.
        metric: What effects are measured on. With ``logit_difference`` both answers must be
            single tokens.
        query: Which position the relation looks from.
        references: Pairs that replacement values and baselines come from; those with a prompt (or, where whole
            sentences are scored, a sentence) of `pairs` are left out. Without references the units serve each other
            in two halves (one of them empty if there is one unit).
        n_ctx: Longest row of tokens that the model takes, special tokens included; None for no limit.
        coverage: Shares of the source in percent, handed on to the task.
        unequal_lengths: Whether to keep pairs whose two prompts have different numbers of tokens. Patching aligns
            them by the relation's spans (``correspondence.py``), and leaves out what corresponds to nothing.
        feature: The key of the examples' ``features`` in which the related word decides the answer; None for none.

    Returns:
        The task; ``task.dropped`` counts what the tokenizer cannot carry.

    Raises:
        TaskError: The tokenizer is slow, the name is empty, there is no such metric or query, there are
            no pairs, or some example does not have the feature.
        NotCarriedError: No pair is left; the message gives the count for each requirement that failed, and which of the
            arguments would leave one.
    """
    require_fast(tokenizer)
    check_choice("metric", metric, get_args(Metric))
    of_pairs: Any = (tokenizer, metric, n_ctx, unequal_lengths)
    units, dropped = _carried(name, "pairs", pairs, *of_pairs)
    n_pairs = len(units) + sum(dropped.values())
    if dropped[_LENGTH] >= _MANY * n_pairs:
        _LOG.warning("%s: %d of %d pairs are left out: %s; %s", name, dropped[_LENGTH], n_pairs, _LENGTH, _KEEP)
    reference_units = None if references is None else _carried(name, "reference pairs", references, *of_pairs)[0]
    about: Any = {"name": name, "description": description, "metric": metric, "query": query, "feature": feature}
    return task_of_units(units, **about, references=reference_units, dropped=dropped, coverage=coverage, from_text=True)


def _carried(
    name: str,
    what: str,
    given: Iterable[MinimalPair],
    tokenizer: PreTrainedTokenizerBase,
    metric: Metric,
    n_ctx: int | None,
    unequal_lengths: bool,
) -> tuple[list[Unit], Counter[str]]:
    """The units of `given`, one at least, and how many pairs fail each requirement."""
    pairs = _pairs(given)
    if not pairs:
        raise TaskError(f"{name}: expected {what} to encode, got none; give at least one")
    units, dropped = _encode_pairs(pairs, tokenizer, metric, n_ctx, unequal_lengths)
    if units:
        return units, dropped
    failed = "; ".join(f"{requirement}: {count}" for requirement, count in dropped.most_common())
    (most, _), *_ = dropped.most_common(1)
    ways = [_ADVICE.get(most, "use other items, or another tokenizer")]
    if _encode_pairs(pairs, tokenizer, "sentence_log_probability", n_ctx, unequal_lengths)[0]:
        ways.append("give metric='sentence_log_probability'")
    if _encode_pairs(pairs, tokenizer, metric, n_ctx, True)[0]:
        ways.append("give unequal_lengths=True")
    raise NotCarriedError(f"{name}: the tokenizer can carry none of the {len(pairs)} {what} ({failed})", *ways)


def _pairs(given: Iterable[MinimalPair]) -> list[MinimalPair]:
    """All of them, if they are pairs."""
    pairs = list(given)
    for each in pairs:
        if not isinstance(each, MinimalPair):
            raise TaskError(
                f"pairs: expected interp.MinimalPair, got {type(each).__name__}; make one of an example and its "
                "counterfactual, or of an example, None and a cluster"
            )
    return pairs


def _encode_pairs(
    pairs: Sequence[MinimalPair],
    tokenizer: PreTrainedTokenizerBase,
    metric: Metric,
    n_ctx: int | None,
    unequal_lengths: bool,
) -> tuple[list[Unit], Counter[str]]:
    """The units that the tokenizer can carry, and how many pairs fail each requirement."""
    texts = [text for pair in pairs for example in pair.examples for text in _texts(example)]
    rows = iter(tokenize(tokenizer, texts))
    units: list[Unit] = []
    dropped: Counter[str] = Counter()
    for pair in pairs:
        tokenized = [[next(rows) for _ in _texts(example)] for example in pair.examples]
        try:
            encoded = [
                _with_other_word(_encode_example(example, row, metric, n_ctx), tokenizer, metric, n_ctx)
                for example, row in zip(pair.examples, tokenized, strict=True)
            ]
            units.append(_unit(encoded, pair.cluster, unequal_lengths))
        except _FailedError as requirement:
            dropped[str(requirement)] += 1
    return units, dropped


def _texts(example: Example) -> tuple[str, str, str]:
    """What of an example is tokenized."""
    return example.prompt, example.text, example.prompt + example.wrong


def _encode_example(
    example: Example, rows: Sequence[TokenizedText], metric: Metric, n_ctx: int | None
) -> EncodedExample:
    prompt, with_right, with_wrong = rows
    right, wrong = _continuation(prompt, with_right), _continuation(prompt, with_wrong)
    _require(metric != "logit_difference" or len(right) == len(wrong) == 1, "answer of more than one token")
    _require(right != wrong, "right and wrong are the same token")
    longest = max(len(with_right.ids), len(with_wrong.ids)) + len(prompt.after)
    _require(n_ctx is None or longest <= n_ctx, "longer than the context")
    query, related, distractors = _relation_positions(example, with_right)
    of_row = query, related, distractors, None, prompt.n_before, prompt.after
    return EncodedExample(example, prompt.ids, right, wrong, *of_row)


def _with_other_word(
    encoded: EncodedExample, tokenizer: PreTrainedTokenizerBase, metric: Metric, n_ctx: int | None
) -> EncodedExample:
    """The example with the first of its word counterfactuals that the tokenizer carries, if any."""
    for each in encoded.example.word_counterfactuals:
        try:
            other = _encode_example(each, tokenize(tokenizer, _texts(each)), metric, n_ctx)
        except _FailedError:
            continue
        if encoded.differs_at_word(other):
            return replace(encoded, word_counterfactual=other)
    return encoded


def _continuation(prompt: TokenizedText, whole: TokenizedText) -> tuple[int, ...]:
    """The tokens of `whole` that follow the prompt's."""
    length = len(prompt.ids)
    _require(
        whole.ids[:length] == prompt.ids and len(whole.ids) > length,
        "prompt tokens change with the continuation",
    )
    return whole.ids[length:]


def _relation_positions(
    example: Example, row: TokenizedText
) -> tuple[int | None, tuple[int, ...], dict[str, tuple[int, ...]]]:
    """Positions of the query, of the related word and of each distractor."""
    relation = example.relation
    if relation is None:
        return None, (), {}
    try:
        return (
            row.positions(relation.query)[-1],
            row.positions(relation.related),
            {role: row.positions(span) for role, span in relation.distractors.items()},
        )
    except InputError as error:
        raise _FailedError("related word not aligned") from error


def _unit(encoded: Sequence[EncodedExample], cluster: str, unequal_lengths: bool) -> Unit:
    if len(encoded) == 1:
        return Unit(encoded[0], None, cluster)
    item, counterfactual = encoded
    equal = len(item.prompt) == len(counterfactual.prompt)
    _require(equal or unequal_lengths, _LENGTH)
    return Unit(item, counterfactual, cluster)


def _require(fulfilled: bool, requirement: Requirement) -> None:
    if not fulfilled:
        raise _FailedError(requirement)
