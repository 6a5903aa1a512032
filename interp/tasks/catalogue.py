"""Which tasks are there, and how is one loaded for a tokenizer?

1. A generated task draws its pairs from the grammar: the units from the split asked for, the
   reference values from the split ``reference``.
2. ``blimp:PATH`` reads a BLiMP paradigm from a ``.jsonl`` file. ``blimp:PARADIGM`` finds the file
   by itself, in the folder ``blimp`` of the folder that the environment variable ``INTERP_DATA``
   names. A file is used whole unless ``n`` says otherwise.
3. Either way ``encode_task`` turns the pairs into tokens, and counts what it has to leave out.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Protocol, get_args

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerBase

from interp.errors import TaskError, suggest
from interp.tasks import agreement, coreference, induction, ioi, reflexive
from interp.tasks.alignment import require_fast
from interp.tasks.blimp import blimp_coverage, blimp_pair
from interp.tasks.encoding import check_choice, encode_task
from interp.tasks.example import MinimalPair
from interp.tasks.grammar.splits import Split
from interp.tasks.readers.blimp import BlimpItem, read_blimp
from interp.tasks.tagging import all_known
from interp.tasks.task import Metric, Query, Task

GENERATED_PAIRS = 200
"""Pairs of a generated task, unless ``n`` says otherwise."""

REFERENCES = 1_000
"""Pairs that a generated task's replacement values come from: 20 rows or more of each of its layouts, which a
positional mean averages by themselves."""

MOST_PAIRS = 100_000
"""Of a generated task; all of them are held in memory."""

_BLIMP = "blimp:"


class _Pairs(Protocol):
    """What every generated task provides."""

    def __call__(self, n: int, *, seed: int, split: Split = "test") -> Iterator[MinimalPair]: ...


@dataclass(frozen=True)
class TaskInfo:
    """A task of the catalogue.

    Attributes:
        name: What ``load_task`` takes.
        description: One sentence, for people.
        query: Which position the relation looks from.
        metric: What effects are measured on, unless ``load_task`` is told otherwise.
    """

    name: str
    description: str
    query: Query = "predicting position"
    metric: Metric = "logit_difference"


_GENERATED: dict[str, tuple[TaskInfo, _Pairs]] = {
    info.name: (info, pairs)
    for info, pairs in (
        (
            TaskInfo("agreement", "The verb agrees in number with its subject, whatever nouns stand between them."),
            agreement.pairs,
        ),
        (
            TaskInfo(
                "coreference",
                "A pronoun has the gender of the person that it stands for: the subject of the clause before it.",
            ),
            coreference.pairs,
        ),
        (
            TaskInfo("reflexive", "A reflexive pronoun has the gender of the subject of its clause."),
            reflexive.pairs,
        ),
        (
            TaskInfo("ioi", "The indirect object is the person who was mentioned but is not the one giving."),
            ioi.pairs,
        ),
        (
            TaskInfo("induction", "A sequence seen before goes on as it did the first time."),
            induction.pairs,
        ),
    )
}
_BLIMP_INFO = TaskInfo(
    f"{_BLIMP}PATH",
    "The acceptable sentence of a published minimal pair is more probable than the unacceptable one.",
    metric="sentence_log_probability",
)


def list_tasks() -> pd.DataFrame:
    """The tasks that ``load_task`` knows.

    Returns:
        One row a task, with the columns ``name``, ``description``, ``query`` and ``metric``.
    """
    infos = [*(info for info, _ in _GENERATED.values()), _BLIMP_INFO]
    return pd.DataFrame([vars(info) for info in infos])


def load_task(
    name: str,
    *,
    tokenizer: PreTrainedTokenizerBase | None,
    n: int | None = None,
    seed: int = 0,
    n_ctx: int | None = None,
    split: Split = "test",
    metric: Metric | None = None,
    known_words_only: bool = False,
) -> Task:
    """Load a task and encode it for a tokenizer.

    Args:
        name: A name of ``list_tasks()``, or ``blimp:`` with a file or a paradigm's name.
        tokenizer: A fast tokenizer, usually ``model.tokenizer``; None, as of a model without one,
            is an error.
        n: Pairs to draw, before those that the tokenizer cannot carry are left out; by default 200
            of a generated task and all of a file. Of a file, `n` items are sampled (all, where it
            has fewer) and kept in its order.
        seed: Of the generator, or of the sample.
        n_ctx: Longest row of tokens that the model takes (``model.cfg.n_ctx``); None for no limit.
        split: Of a generated task; ``test`` holds pairs of words that no training text holds.
        metric: Of a BLiMP file of one-prefix items, ``logit_difference`` compares the critical
            words alone instead of the whole sentences. Other tasks have one metric.
        known_words_only: Of a file, keep only the items all of whose words generated texts contain.

    Returns:
        The task, with what had to be left out counted in ``dropped``.

    Raises:
        TaskError: The task is unknown, an argument is of no use for it, its file cannot be read,
            or the tokenizer can carry none of its items.
    """
    tokenizer = require_fast(tokenizer)
    _check_count("seed", seed, least=0)
    if n is not None:
        _check_count("n", n, least=1)
    check_choice("split", split, get_args(Split))
    if metric is not None:
        check_choice("metric", metric, get_args(Metric))
    if name.startswith(_BLIMP):
        if split != "test":
            raise TaskError(f"{name}: a file has no splits, got split={split!r}; leave split out")
        items = _blimp_items(name, n=n, seed=seed, known_words_only=known_words_only)
        return _encode_blimp(name, items, metric or _BLIMP_INFO.metric, tokenizer, n_ctx)
    if name not in _GENERATED:
        raise TaskError(f"unknown task {name!r}; {suggest(name, [*_GENERATED, _BLIMP_INFO.name])}")
    info, pairs = _GENERATED[name]
    if metric not in (None, info.metric):
        raise TaskError(f"{name} is measured by {info.metric}, got metric={metric!r}; leave metric out")
    if split == "reference":
        raise TaskError(f"{name}: the split 'reference' gives the replacement values; use another split")
    wanted = GENERATED_PAIRS if n is None else n
    if wanted > MOST_PAIRS:
        raise TaskError(f"{name}: expected n to be at most {MOST_PAIRS:,}, got {wanted:,}")
    return encode_task(
        pairs(wanted, seed=seed, split=split),
        tokenizer=tokenizer,
        name=name,
        description=info.description,
        metric=info.metric,
        query=info.query,
        references=pairs(REFERENCES, seed=seed, split="reference"),
        n_ctx=n_ctx,
    )


def _check_count(what: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise TaskError(f"expected {what} to be a whole number of at least {least}, got {value!r}")


def _blimp_items(name: str, *, n: int | None, seed: int, known_words_only: bool) -> list[BlimpItem]:
    """The items of the file that `name` means, as many as asked for."""
    items = list(read_blimp(_blimp_path(name)))
    if known_words_only:
        items = [item for item in items if all_known(item.good, item.bad)]
        if not items:
            raise TaskError(f"{name}: no item has only known words; leave known_words_only out")
    if n is None or n >= len(items):
        return items
    kept = np.random.default_rng(seed).choice(len(items), size=n, replace=False)
    return [items[i] for i in sorted(kept)]


def _blimp_path(name: str) -> Path:
    """The file that ``blimp:PATH`` or ``blimp:PARADIGM`` names."""
    source = name.removeprefix(_BLIMP)
    if not source:
        raise TaskError(f"{name!r} names no file; expected blimp:PATH with the path of a .jsonl file")
    path = Path(os.path.expanduser(source))
    if path.suffix or path.name != source or path.exists():
        return path
    data = os.environ.get("INTERP_DATA")
    if not data:
        raise TaskError(
            f"{name}: INTERP_DATA is not set, so there is no folder to find the paradigm in; set it to the "
            f"folder that holds blimp/{source}.jsonl, or give the file's path after 'blimp:'"
        )
    folder = Path(os.path.expanduser(data)) / "blimp"
    found = folder / f"{source}.jsonl"
    if not found.is_file():
        paradigms = sorted(each.stem for each in folder.glob("*.jsonl"))
        hint = suggest(source, paradigms) if paradigms else "the folder has no .jsonl files"
        raise TaskError(f"{name}: no file {found} (the folder comes from INTERP_DATA); {hint}")
    return found


def _encode_blimp(
    name: str,
    items: Sequence[BlimpItem],
    metric: Metric,
    tokenizer: PreTrainedTokenizerBase,
    n_ctx: int | None,
) -> Task:
    pairs = [blimp_pair(item, metric) for item in items]
    return encode_task(
        pairs,
        tokenizer=tokenizer,
        name=name,
        description=_BLIMP_INFO.description,
        metric=metric,
        query=_BLIMP_INFO.query,
        n_ctx=n_ctx,
        coverage=blimp_coverage(items, pairs),
    )
