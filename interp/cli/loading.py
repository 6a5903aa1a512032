"""What a command works on: the tasks that a model can carry, and treebanks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp.cli.messages import say
from interp.errors import InputError, among

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from interp.tasks.corpus import Corpus
    from interp.tasks.task import Task


def load_tasks(
    names: Sequence[str], model: Any, *, n: int | None, seed: int, **how: Any
) -> "tuple[list[Task], dict[str, str]]":
    """The named tasks that the model's tokenizer can carry; where it cannot carry all, say how much of each it can.

    Returns:
        The tasks; and by its name, why each of the others is left out.
    """
    from interp.cli.terminal import warnings_as_lines
    from interp.methods.task_arguments import carried

    with warnings_as_lines():
        tasks, left_out = carried(names, model, n=n, seed=seed, **how)
    if left_out or any(task.dropped for task in tasks):
        for task in tasks:
            say(_carried(task), err=True)
    return tasks, left_out


def _carried(task: "Task") -> str:
    """How many units there are of a task, and what became of the others."""
    from interp.tasks.catalogue import is_generated

    dropped, n = sum(task.dropped.values()), len(task.units)
    if is_generated(task.name):
        replaced = f" ({dropped:,} pairs could not be used: {'; '.join(task.dropped)})" if dropped else ""
        return f"{task.name}: {n:,} units{replaced}"
    without = f" ({dropped} left out: {'; '.join(task.dropped)})" if dropped else ""
    return f"{task.name}: {n} of {n + dropped} units{without}"


def tokenizer_named(name: str) -> "tuple[PreTrainedTokenizerBase, int | None]":
    """The tokenizer of a folder or file, with or without a model, of a hub name or an embedded model; and its context.

    Raises:
        InputError: There is none.
        LoadError: It cannot be read.
    """
    from interp.model.loading.load import configuration_and_tokenizer
    from interp.model.loading.tokenizer import BERT, GPT2, LLAMA, holds_tokenizer, load_tokenizer

    folder = Path(name).expanduser()
    kinds = [each for each in (GPT2, LLAMA, BERT) if holds_tokenizer(folder, each)]
    if kinds and not (folder / "config.json").is_file():
        tokenizer, n_ctx = load_tokenizer(folder, kinds[0]), None
    else:
        config, tokenizer = configuration_and_tokenizer(name)
        n_ctx = config.n_ctx
    if tokenizer is None:
        raise InputError(f"{name}: expected a tokenizer, such as a tokenizer.json, found none; save it there")
    return tokenizer, n_ctx


def can_be_asked(model: Any) -> bool:
    """Whether a model predicts the next token, and its tokenizer carries any default task."""
    from interp.tasks.catalogue import carries_any

    return predicts(model) and carries_any(model.tokenizer, model.cfg.n_ctx)


def predicts(model: Any) -> bool:
    """Whether a model predicts the next token."""
    from interp.model.loading.bridge import why_no_head
    from interp.model.positions import looks_back_only

    return looks_back_only(model) and why_no_head(model) is None


def corpus_of(data: Sequence[str], named: Sequence[str] | None = None, options: str = "--data") -> "Corpus":
    """The treebank of these files, counted before a model is loaded, so that what is wrong with it is told at once.

    Args:
        data: Files, or names of texts that are in none.
        named: All that the command names: twice the same would count twice, or choose what is tested on itself. None
            for `data`.
        options: Where they are named, for the message.

    Raises:
        InputError: A file is named twice.
        TaskError: A file cannot be read.
    """
    from interp.tasks.corpus import Corpus, is_named

    seen = set()
    for source in data if named is None else named:
        place = source if is_named(source) else Path(source).expanduser().resolve()
        if place in seen:
            raise InputError(f"{source}: expected different files for {options}, got it twice; leave one out")
        seen.add(place)
    return Corpus.of(data)


def corpus_with(data: Sequence[str], feature: str) -> "Corpus":
    """The treebank, some of whose words have the feature.

    Raises:
        InputError: A file is named twice, or no word has the feature; what there is is told.
        TaskError: A file cannot be read.
    """
    from interp.tasks.features import features_in

    corpus = corpus_of(data)
    if any(feature in features_in([document]) for document in corpus):
        return corpus
    raise InputError(
        f"feature {feature!r} does not occur in the {len(corpus.contents.documents)} documents of --data"
        f"{among(feature, features_in(corpus))}"
    )
