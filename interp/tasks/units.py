"""How do units become a task? Of texts, as ``encode_task`` makes them, or of token ids where there is no text.

1. An example of token ids is made by ``example_of_ids``; nothing is encoded, so the model needs no tokenizer. What
   people read of it is its ids.
2. Two examples with the answers exchanged are a ``Unit``.
3. ``task_of_units`` checks that they fit together, gives each its reference set, and hashes all.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, get_args

from interp.arguments import named_arguments
from interp.errors import TaskError, shown, suggest
from interp.tasks.digest import digest
from interp.tasks.example import Example
from interp.tasks.references import halves, unscored
from interp.tasks.task import EncodedExample, Metric, Query, Task, Unit


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
        metric: What effects are measured on. With ``logit_difference`` both answers must be single tokens.
        query: Which position the relation looks from.
        references: Units that replacement values and baselines come from; those with a row of `units` are left out.
            Without references the units serve each other in two halves (one of them empty if there is one unit).
        feature: The key of the examples' ``features`` in which the related word decides the answer; None for none.
        dropped: What was left out before, handed on to the task.
        coverage: Shares of the source in percent, handed on to the task.
        from_text: Whether a tokenizer made the ids of the examples' text, and a model's must make the same ones.

    Raises:
        TaskError: The name is empty, there is no such metric or query, there are no units, an answer has several
            tokens, a relation does not look from where `query` says, some example does not have the feature, or every
            reference is scored.
    """
    if not (isinstance(name, str) and name.strip() and len(name.splitlines()) == 1):
        raise TaskError(f"name: expected a text in one line, got {name!r:.80}")
    check_choice("metric", metric, get_args(Metric))
    check_choice("query", query, get_args(Query))
    scored = _units(name, "units", units)
    reference_sets: tuple[tuple[Unit, ...], ...]
    if references is None:
        scored, reference_sets = halves(scored)
    else:
        reference_sets = (unscored(name, metric, _units(name, "references", references), scored),)
    sets = [scored] if references is None else [scored, *reference_sets]
    if metric == "logit_difference":
        _require_single_tokens(name, sets)
        if query == "predicting position":
            _require_last_query(name, scored)
    _require_feature(name, feature, sets)
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


@named_arguments
def example_of_ids(
    prompt: Sequence[int],
    right: int | Sequence[int],
    wrong: int | Sequence[int],
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
        right: The id, or ids, of the right continuation.
        wrong: The same of the wrong one.
        related: Positions of the related word's tokens, counted from 0; empty where nothing is related.
        query: The position that looks back; None for the prompt's last, if anything is related.
        distractors: Positions of words that could be mistaken for it, by their role.
        template: The structure: a stratum of the statistics.
        layout: Equal for examples whose positions mean the same; None where those of this length and template do.
        features: Labels for probes.
        n_before: Special tokens in front.

    Raises:
        TaskError: Something is no id or no position of the row, or right and wrong are the same.
    """
    ids, ends = _numbers("prompt", prompt), (_numbers("right", right), _numbers("wrong", wrong))
    if ends[0] == ends[1] or not all((ids, *ends)):
        got = f"{shown(prompt)}, {shown(right)} and {shown(wrong)}"
        raise TaskError(f"expected the ids of a prompt and of two different answers, got {got}")
    row = len(ids) + len(ends[0])
    around = {what: _numbers(what, each, below=row) for what, each in (distractors or {}).items()}
    places = _numbers("related", related, below=row)
    looks = len(ids) - 1 if places else None
    if query is not None:
        (looks,) = _numbers("query", query, below=row)
    texts = [" ".join(map(str, each)) for each in (ids, *ends)]
    layout = f"{template}, {len(ids)} tokens" if layout is None else layout
    example = Example(texts[0], f" {texts[1]}", f" {texts[2]}", None, template, layout, dict(features or {}))
    return EncodedExample(example, ids, *ends, looks, places, around, n_before=n_before)


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Refuse what is none of the `choices`.

    Raises:
        TaskError: It says which are nearest.
    """
    if value not in choices:
        raise TaskError(f"unknown {what} {value!r}; {suggest(str(value), choices)}")


def _numbers(what: str, given: object, *, below: int | None = None) -> tuple[int, ...]:
    """One whole number from 0, or several."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    numbers: list[Any] = list(given) if several else [given]  # type: ignore[call-overload]  # it was asked
    if not all(isinstance(each, Integral) and int(each) in range(below or 2**63) for each in numbers):
        most = "" if below is None else f" to {below - 1}"
        raise TaskError(
            f"{what}: expected whole numbers from 0{most}, got {shown(given)}; .tolist() of a tensor gives such"
        )
    return tuple(map(int, numbers))


def _units(name: str, what: str, given: Iterable[Unit]) -> list[Unit]:
    """All of them, if they are units."""
    units = list(given)
    for each in units:
        if not isinstance(each, Unit):
            raise TaskError(
                f"{name}: {what}: expected units, got {type(each).__name__}; make one with Unit(item, other, cluster)"
            )
    if not units:
        raise TaskError(f"{name}: {what}: expected at least one unit, got none")
    return units


def _require_single_tokens(name: str, units: Iterable[Sequence[Unit]]) -> None:
    for each in (each for some in units for unit in some for each in unit.examples):
        if not len(each.right) == len(each.wrong) == 1:
            raise TaskError(
                f"{name}: expected answers of one token, got {each.example.right!r} and {each.example.wrong!r} behind "
                f"{each.example.prompt!r:.80}; give metric='sentence_log_probability'"
            )


def _require_last_query(name: str, units: Sequence[Unit]) -> None:
    """Refuse relations that do not look from the position whose logits are compared, the prompt's last."""
    for unit in units:
        for each in unit.examples:
            if each.query not in (None, len(each.prompt) - 1):
                raise TaskError(
                    f"{name}: query='predicting position', but in {each.example.text!r} the relation does not look "
                    "from the prompt's last token; give query='later word', or change the relation"
                )


def _require_feature(name: str, feature: str | None, units: Iterable[Sequence[Unit]]) -> None:
    """Refuse a feature that some example does not have."""
    examples = [each.example for some in units for unit in some for each in unit.examples]
    without = sum(feature not in example.features for example in examples)
    if feature is not None and without:
        known = sorted(set.intersection(*(set(example.features) for example in examples)))
        raise TaskError(
            f"{name}: feature {feature!r} is missing in {without} of {len(examples)} examples; all of them have: "
            f"{', '.join(known) or 'none'}; give one of these, or leave it out"
        )
