"""What is asked of a task that is read from a file, and what does the list of tasks say about one?"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from transformers import PreTrainedTokenizerBase

from interp.errors import NotCarriedError, TaskError
from interp.tasks.encoding import encode_task
from interp.tasks.example import MinimalPair
from interp.tasks.tagging import all_known
from interp.tasks.task import Metric, Query, Task

ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class TaskInfo:
    """A task of the catalogue.

    Attributes:
        name: What ``load_task`` takes.
        description: One sentence, for people.
        query: Which position the relation looks from.
        metric: What effects are measured on, unless ``load_task`` is told otherwise.
        feature: What the related word decides the answer by; None where nothing is probed for.
    """

    name: str
    description: str
    query: Query = "predicting position"
    metric: Metric = "logit_difference"
    feature: str | None = None


def require_metric(name: str, metric: Metric | None, info: TaskInfo) -> None:
    """Refuse to compare single words where a task's answers are sentences; all answers can be scored as sentences.

    Args:
        name: The task's, for the message.
        metric: What was asked for; None for the task's own.
        info: What the task is.

    Raises:
        TaskError: The task compares sentences, and single words were asked for.
    """
    if metric not in (None, info.metric, "sentence_log_probability"):
        raise TaskError(f"{name} is measured by {info.metric}, got metric={metric!r}; leave metric out")


def encode_named(pairs: Iterable[MinimalPair], info: TaskInfo, **given: Any) -> Task:
    """Encode the pairs of a task that is asked for by its name, and so cannot be given other words.

    Args:
        pairs: What is measured.
        info: What the task is.
        given: What else ``encode_task`` is given.

    Raises:
        NotCarriedError: The tokenizer can carry none.
        TaskError: As ``encode_task``.
    """
    try:
        return encode_task(pairs, description=info.description, query=info.query, feature=info.feature, **given)
    except NotCarriedError as error:
        ways = [f"{way} (of interp.load_task)" for way in error.ways if "metric=" in way or "unequal_lengths=" in way]
        raise NotCarriedError(error.fault, *ways, "take another task, or a model with another tokenizer") from error


@dataclass(frozen=True)
class FileRequest:
    """A task of a file as it was asked for; see ``load_task``.

    Attributes:
        name: The task's whole name.
        source: The file, or a name of the hub.
        tokenizer: What the pairs are encoded for.
        metric: What effects are measured on.
        n: Items to sample; None for all.
        seed: Of the sample.
        n_ctx: Longest row of tokens that the model takes; None for no limit.
        known_words_only: Keep only the items all of whose words generated texts contain.
        unequal_lengths: Keep pairs whose two prompts have different numbers of tokens.
    """

    name: str
    source: str | Path
    tokenizer: PreTrainedTokenizerBase = field(repr=False)
    metric: Metric
    n: int | None = None
    seed: int = 0
    n_ctx: int | None = None
    known_words_only: bool = False
    unequal_lengths: bool = False

    def choose(self, items: Sequence[ItemT], sentences: Callable[[ItemT], Iterable[str]]) -> list[ItemT]:
        """What of the file's items is asked for: as many, in the file's order.

        Args:
            items: All of them.
            sentences: The texts of an item whose words are to be known.

        Raises:
            TaskError: No item has only known words.
        """
        chosen = list(items)
        if self.known_words_only:
            chosen = [item for item in chosen if all_known(*sentences(item))]
            if not chosen:
                raise TaskError(f"{self.name}: no item has only known words; leave known_words_only out")
        if self.n is None or self.n >= len(chosen):
            return chosen
        kept = np.random.default_rng(self.seed).choice(len(chosen), size=self.n, replace=False)
        return [chosen[i] for i in sorted(kept)]

    def encode(self, pairs: Sequence[MinimalPair], info: TaskInfo, coverage: dict[str, float]) -> Task:
        """Encode what was chosen as the task that `info` describes; see ``encode_task`` for the errors."""
        given: Any = {"name": self.name, "tokenizer": self.tokenizer, "metric": self.metric, "n_ctx": self.n_ctx}
        given["unequal_lengths"] = self.unequal_lengths
        return encode_named(pairs, info, **given, coverage=coverage)
