"""Examples of token ids, for tasks without words and models without a tokenizer."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from interp.arguments import as_list, named_arguments
from interp.errors import TaskError, shown
from interp.tasks.example import Example
from interp.tasks.task import EncodedExample, Ids


@named_arguments
def example_of_ids(
    prompt: Sequence[int],
    right: int | Sequence[int] | Sequence[Sequence[int]],
    wrong: int | Sequence[int] | Sequence[Sequence[int]],
    *,
    related: Sequence[int] = (),
    query: int | None = None,
    distractors: Mapping[str, Sequence[int]] | None = None,
    template: str = "ids",
    layout: str | None = None,
    features: Mapping[str, str] | None = None,
    n_before: int = 0,
) -> EncodedExample:
    """An example of token ids, without a text and without a tokenizer.

    Args:
        prompt: Token ids, special tokens included.
        right: The id, or ids, of the right continuation; of a set of answers the ids of each: ``[[7], [8]]``.
        wrong: The same of the wrong one.
        related: Positions of the related word's tokens, counted from 0; empty where nothing is related.
        query: The position that looks back; None for the prompt's last, if anything is related.
        distractors: Positions of words that could be mistaken for it, by their role.
        template: The structure: a stratum of the statistics.
        layout: Equal for examples whose positions mean the same; None where those of this length and template do.
        features: Labels for probes.
        n_before: Special tokens in front.

    Returns:
        The example, for a ``Unit``.

    Raises:
        TaskError: Something is no id or no position of the row, or an answer is right and wrong.

    Examples:
        >>> from interp.tasks.token_ids import example_of_ids
        >>> example_of_ids([0, 5, 6], [[7], [8]], 9).rights
        ((7,), (8,))
    """
    ids, rights, wrongs = _numbers("prompt", prompt), _answers("right", right), _answers("wrong", wrong)
    if not {*rights}.isdisjoint(wrongs) or not all((ids, *rights, *wrongs)):
        got = f"{shown(prompt)}, {shown(right)} and {shown(wrong)}"
        raise TaskError(f"expected the ids of a prompt and of two different answers, got {got}")
    row = len(ids) + len(rights[0])
    around = {what: _numbers(what, each, below=row) for what, each in (distractors or {}).items()}
    places = _numbers("related", related, below=row)
    looks = len(ids) - 1 if places else None
    if query is not None:
        (looks,) = _numbers("query", query, below=row)
    text, *ends = (" ".join(map(str, each)) for each in (ids, *rights, *wrongs))
    ends = [f" {end}" for end in ends]
    answers = tuple(ends[: len(rights)]), tuple(ends[len(rights) :])
    layout = f"{template}, {len(ids)} tokens" if layout is None else layout
    example = Example(text, *answers, None, template, layout, dict(features or {}))
    encoded = EncodedExample(example, ids, rights[0], wrongs[0], looks, places, around, n_before=n_before)
    return encoded.with_answers(rights, wrongs)


def _answers(what: str, given: object) -> tuple[Ids, ...]:
    """One answer's ids, or those of each of a set of answers, which are not empty."""
    several = as_list(given) or []
    if not any(as_list(each) is not None for each in several):
        return (_numbers(what, given),)
    return tuple(_numbers(what, each) for each in several)


def _numbers(what: str, given: object, *, below: int | None = None) -> tuple[int, ...]:
    """One whole number from 0, or several."""
    numbers: list[Any] = [given] if (several := as_list(given)) is None else several
    if not all(isinstance(each, Integral) and int(each) in range(below or 2**63) for each in numbers):
        most = "" if below is None else f" to {below - 1}"
        raise TaskError(
            f"{what}: expected whole numbers from 0{most}, got {shown(given)}; .tolist() of a tensor gives such"
        )
    return tuple(map(int, numbers))
