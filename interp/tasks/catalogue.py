"""The tasks that there are, and how one is loaded for a tokenizer.

1. A generated task draws its pairs from the grammar, as many as the tokenizer carries of those asked for
   (``drawing.py``): the units from the split asked for, the reference values from the split ``reference``.
2. A task of a file, as ``blimp:PATH``, is read by its loader, and used whole unless ``n`` says otherwise. A name
   without a folder that is no file here is looked up in the task's folder below the one that ``INTERP_DATA`` names.
3. ``encode_task`` turns the pairs into tokens, and counts what it has to leave out.
"""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any, get_args

import pandas as pd
from transformers import PreTrainedTokenizerBase

from interp.arguments import named_arguments
from interp.errors import NotCarriedError, TaskError, shown, suggest
from interp.tasks import (
    agreement,
    capitals,
    coreference,
    gendered_pronoun,
    greater_than,
    induction,
    ioi,
    reflexive,
    relative_clause,
    retrieval,
    successor,
)
from interp.tasks.alignment import require_fast
from interp.tasks.blimp_task import BLIMP, load_blimp
from interp.tasks.drawing import Pairs
from interp.tasks.encoding import TaskInfo, TaskRequest
from interp.tasks.grammar.phrases import Split
from interp.tasks.own_task import load_own, own_info
from interp.tasks.readers.sources import as_path, is_hub
from interp.tasks.stereotypes import WINOBIAS, WINOGENDER, load_winobias, load_winogender
from interp.tasks.task import Metric, Task, check_choice
from interp.tasks.treebank_tasks import AGREEMENT, ANAPHORA, COREFERENCE

GENERATED_PAIRS = 200
"""Pairs of a generated task, unless ``n`` says otherwise."""

REFERENCES = 1_000
"""Pairs that a generated task's replacement values come from: 20 rows or more of each of its layouts, which a
positional mean averages by themselves."""

_OWN = re.compile(r".+(\.jsonl|\.py:\w+)(#.+)?")
_NAMED = re.compile(r"([a-z_]+|.+\.jsonl|.+\.py:\w+)#[^#]+")
"""Names of tasks, the latter with the counterfactual's."""

_TRIED = 8
"""Pairs that tell whether a tokenizer carries any."""

MOST_PAIRS = 100_000
"""Of a generated task; all of them are held in memory."""

_GENERATED: dict[str, tuple[Pairs, TaskInfo]] = {
    each.name: (each.pairs, TaskInfo(each.name, each.description, feature=each.feature))
    for each in (
        agreement.TASK,
        coreference.TASK,
        reflexive.TASK,
        ioi.TASK,
        induction.TASK,
        relative_clause.TASK,
        gendered_pronoun.TASK,
        successor.TASK,
        capitals.TASK,
        greater_than.TASK,
        retrieval.TASK,
    )
}

TASKS = ("agreement", "coreference", "reflexive", "ioi", "induction")
"""What ``heads`` and ``head_card`` ask where no task is named: what the embedded models were trained to do."""


@dataclass(frozen=True)
class FileTask:
    """A task that is read from a file."""

    info: TaskInfo
    load: Callable[[TaskRequest], Task]
    folder: str | None = None  # where files are looked up by name, below INTERP_DATA; None where only paths are taken
    suffix: str = ""  # what a name there can leave out
    single_words: bool = False  # whether single words can be compared, too, though its answers are sentences


FILE_TASKS: dict[str, FileTask] = {
    "blimp": FileTask(BLIMP, load_blimp, folder="blimp", suffix=".jsonl", single_words=True),
    "winobias": FileTask(WINOBIAS, load_winobias, folder="winobias"),
    "winogender": FileTask(WINOGENDER, load_winogender, folder="winogender"),
    "agreement": FileTask(AGREEMENT, AGREEMENT.load),
    "coreference": FileTask(COREFERENCE, COREFERENCE.load),
    "anaphora": FileTask(ANAPHORA, ANAPHORA.load),
}


def find_source(name: str, task: FileTask, source: str) -> str | Path:
    """What `source`, the part of a task's name after the colon, means."""
    if is_hub(source):
        return source
    if not source:
        raise TaskError(f"{name!r} names no file; expected {task.info.name} with a file's path")
    path = as_path(source)
    other_kind = task.suffix and path.suffix not in ("", task.suffix)
    if task.folder is None or path.name != source or other_kind or path.exists():
        return path
    named, data = source.removesuffix(task.suffix), os.environ.get("INTERP_DATA")
    if not data:
        raise TaskError(
            f"{name}: no such file here, and INTERP_DATA is not set, so there is no folder to find {source!r} in; set "
            f"it to the folder that holds {task.folder}/{named}{task.suffix}, or give the path after the colon"
        )
    folder = as_path(data) / str(task.folder)
    found = folder if source == task.folder else folder / f"{named}{task.suffix}"
    if not found.exists():
        known = sorted(each.name.removesuffix(task.suffix) for each in folder.glob(f"*{task.suffix or '.*'}"))
        hint = suggest(named, known) if known else f"the folder has no {task.suffix or 'such'} files"
        raise TaskError(f"{name}: no such file here, and no file {found} (the folder comes from INTERP_DATA); {hint}")
    return found


def is_generated(name: str) -> bool:
    """Whether a task of this name is drawn, so that what a tokenizer cannot carry is replaced."""
    return name.partition("#")[0] in _GENERATED


def list_tasks() -> pd.DataFrame:
    """The tasks that ``load_task`` knows.

    Returns:
        One row a task, with the columns ``name``, ``description``, ``query``, ``metric`` and ``feature``.

    Examples:
        >>> interp.list_tasks()["name"].tolist()[:5]
        ['agreement', 'coreference', 'reflexive', 'ioi', 'induction']
    """
    infos = [*(info for _, info in _GENERATED.values()), *(task.info for task in FILE_TASKS.values())]
    return pd.DataFrame([{each.name: getattr(info, each.name) for each in fields(TaskInfo)} for info in infos])


@named_arguments
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
    unequal_lengths: bool = False,
    chat: bool = False,
) -> Task:
    """Load a task and encode it for a tokenizer.

    Args:
        name: A name of ``list_tasks()``, or a file of your own: ``FILE.jsonl`` or ``FILE.py:NAME``. In place of PATH a
            file, the name of one in the task's folder of ``INTERP_DATA``, or, where the task's reader takes one,
            ``hub:NAME[:CONFIG[:SPLIT]]``. Behind it ``#NAME`` takes the pairs' ``counterfactuals`` of that name; pairs
            without one are left out.
        tokenizer: A fast tokenizer, usually ``model.tokenizer``; None, as of a model without one, is an error.
        n: Units of a generated task, by default 200. In the place of a pair that the tokenizer cannot carry another is
            drawn; a warning says where fewer can be had. Of a file, `n` items are sampled (by default, or where it has
            fewer, all are taken) and kept in its order, before those that the tokenizer cannot carry are left out.
        seed: Of the generator, or of the sample.
        n_ctx: Longest row of tokens that the model takes (``model.cfg.n_ctx``); None for no limit.
        split: Of a generated task; ``test`` holds pairs of words that no training text holds.
        metric: None for the task's own. ``sentence_log_probability`` scores all tokens of the answers, of any task.
            ``logit_difference`` compares answers of one token: of a BLiMP file of one-prefix items, the critical words
            alone; tasks that are whole sentences do not have it.
        known_words_only: Of a file, keep only the items all of whose words generated texts contain.
        unequal_lengths: Whether to keep pairs whose two prompts have different numbers of tokens, as of
            ``encode_task``.
        chat: Whether each prompt stands in the tokenizer's chat template, as the beginning of an instruct model's
            answer (``interp.tasks.chat``).

    Returns:
        The task, with what had to be left out, or replaced, counted in ``dropped``.

    Raises:
        TaskError: The task is unknown, an argument is of no use for it, its file cannot be read, or the tokenizer has
            no chat template that takes its prompts.
        NotCarriedError: The tokenizer can carry none of its items.

    Examples:
        >>> task = interp.load_task("agreement", tokenizer=interp.load_model().tokenizer, n=4)
        >>> task.units[0].item.example.prompt
        'Some paralysis'
    """
    tokenizer = require_fast(tokenizer)
    if n is not None and (isinstance(n, bool) or not isinstance(n, Integral) or int(n) < 1):
        raise TaskError(f"n: expected a whole number of at least 1, got {shown(n)}")
    check_choice("split", split, get_args(Split))
    if metric is not None:
        check_choice("metric", metric, get_args(Metric))
    kind, _, source = name.partition(":")
    file_task = FILE_TASKS.get(kind) if ":" in name else None
    base, _, counterfactual = name.rpartition("#") if _NAMED.fullmatch(name) else (name, "", "")
    own = file_task is None and _OWN.fullmatch(base) is not None
    if file_task is None and not own and base not in _GENERATED:
        raise TaskError(f"unknown task {name!r}; {_instead(name)}")
    info = own_info(base) if own else _GENERATED[base][1] if file_task is None else file_task.info
    sampled: Any = {"n": n, "seed": seed, "known_words_only": known_words_only}
    encoded: Any = {"n_ctx": n_ctx, "unequal_lengths": unequal_lengths, "chat": chat}
    request = TaskRequest(name, info, tokenizer, metric or info.metric, base, **sampled, **encoded)
    request = replace(request, counterfactual=counterfactual or None)
    single_words = file_task is not None and file_task.single_words
    sentences = info.metric == "sentence_log_probability" and not single_words
    if sentences and request.metric != info.metric:
        raise TaskError(f"{name} is measured by {info.metric}, got metric={metric!r}; leave metric out")
    if (own or file_task is not None) and split != "test":
        raise TaskError(f"{name}: a file has no splits, got split={split!r}; leave split out")
    if own:
        return load_own(request)
    if file_task is not None:
        return file_task.load(replace(request, source=find_source(name, file_task, source)))
    if split == "reference":
        raise TaskError(f"{name}: the split 'reference' gives the replacement values; use another split")
    wanted = GENERATED_PAIRS if n is None else n
    if wanted > MOST_PAIRS:
        raise TaskError(f"{name}: expected n to be at most {MOST_PAIRS:,}, got {wanted:,}")
    return request.draw(_GENERATED[base][0], wanted, split, REFERENCES)


def carried_by(
    tokenizer: PreTrainedTokenizerBase | None, *, n: int | None = None, n_ctx: int | None = None
) -> pd.DataFrame:
    """How much of each generated task a tokenizer carries.

    Args:
        tokenizer: A fast one.
        n: Units that are asked for; by default 200.
        n_ctx: Longest row of tokens that the model takes; None for no limit.

    Returns:
        One row a task: ``task``, ``units``, ``clusters``, ``drawn`` (pairs that it took) and ``replaced`` (those that
        are no units, by the reason).

    Examples:
        >>> from interp.tasks.catalogue import carried_by
        >>> carried_by(interp.load_model().tokenizer, n=4)["units"].tolist()[:5]
        [4, 4, 4, 4, 4]
    """
    wanted, rows = GENERATED_PAIRS if n is None else n, list[dict[str, Any]]()
    for name, (pairs, info) in _GENERATED.items():
        request = TaskRequest(name, info, require_fast(tokenizer), info.metric, n_ctx=n_ctx)
        clusters: list[str] = []
        replaced: Mapping[str, int] = {}
        try:
            task = request.draw(pairs, wanted, "test", REFERENCES)
            clusters, replaced = [unit.cluster for unit in task.units], task.dropped
        except NotCarriedError as error:
            replaced = {error.fault.removeprefix(f"{name}: "): wanted}
        drawn = len(clusters) + sum(replaced.values())
        found = {"units": len(clusters), "clusters": len({*clusters}), "drawn": drawn, "replaced": dict(replaced)}
        rows.append({"task": name, **found})
    return pd.DataFrame(rows)


def carries_any(tokenizer: PreTrainedTokenizerBase | None, n_ctx: int | None) -> bool:
    """Whether a tokenizer carries a default task, as far as its first pairs tell; never None, or a slow one."""
    for pairs, info in map(_GENERATED.__getitem__, TASKS):
        with suppress(TaskError):
            request = TaskRequest(info.name, info, require_fast(tokenizer), info.metric, n_ctx=n_ctx)
            request.encode(pairs(_TRIED, seed=0))
            return True
    return False


def _instead(name: str) -> str:
    """What may have been meant by a name that no task has."""
    if os.path.isfile(os.path.expanduser(name)):  # which no name is too long for
        if name.endswith(".py"):
            return f"to run the file, say what in it makes the pairs: {name}:NAME"
        return f"to read the file, say as what: {', '.join(f'{kind}:{name}' for kind in FILE_TASKS)}"
    if all(each in _GENERATED for each in name.split(",")):
        return "several tasks are named one by one"
    return suggest(name, list_tasks()["name"])
