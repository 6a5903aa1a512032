"""Where do a probe's activations come from? A task or a corpus that is run now, or a store that was collected before.

Run now, they are held in memory, those of the labelled words alone; of more than fits, collect a store.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError
from interp.methods.relations.word_attention import with_offsets
from interp.model.devices import place_of
from interp.model.places import looks_back_only
from interp.model.sites import Site
from interp.residual.collecting import word_activations
from interp.residual.pooling import Pooling
from interp.tasks.corpus import Corpus
from interp.tasks.features import features_in
from interp.tasks.passages import At, Context, CorpusPassages, Passage, passage_index, task_passages
from interp.tasks.task import Task
from interp.tasks.windows import Windows

LONGEST_WINDOW = 512
"""Tokens of a document that are read at once, if the model's context is longer."""


@runtime_checkable
class Activations(Protocol):
    """Activations of words at sites; a store is one, too."""

    @property
    def index(self) -> pd.DataFrame:
        """One row a word."""
        ...

    @property
    def sites(self) -> Sequence[Site]:
        """Where activations are known."""
        ...

    def read(self, site: Site, rows: Any = None, heads: Sequence[int] | None = None) -> Float[Tensor, "word ..."]:
        """Of words by their numbers, and heads: ``[word head d_head]``, or ``[word d_model]``; None for all."""
        ...


@dataclass(frozen=True)
class Held:
    """Activations in memory.

    Attributes:
        index: One row a word.
        values: By site.
    """

    index: pd.DataFrame
    values: dict[Site, Float[Tensor, "word ..."]] = field(repr=False)

    @property
    def sites(self) -> tuple[Site, ...]:
        """Where activations are known."""
        return tuple(self.values)

    def read(self, site: Site, rows: Any = None, heads: Sequence[int] | None = None) -> Float[Tensor, "word ..."]:
        """Of words by their numbers, and heads; None for all."""
        found = self.values[site] if rows is None else self.values[site][torch.tensor(rows)]
        return found if heads is None else found[:, list(heads)]


def passages_of(
    model: Any, data: Task | Corpus, features: Sequence[str], *, at: At, context: Context, only: bool = True
) -> Iterable[Passage]:
    """The words of a task or a corpus that have labels.

    Raises:
        InputError: The model has no tokenizer, or the corpus has nothing of the features.
        TaskError: The task has no such words, or the corpus cannot be read.
    """
    if isinstance(data, Task):
        return list(task_passages(data, at))
    tokenizer = with_offsets(model, "probe")
    longest = min(model.cfg.n_ctx, LONGEST_WINDOW) if context == "document" else model.cfg.n_ctx
    windows = Windows(tokenizer, longest, both_sides=not looks_back_only(model))
    found = list(CorpusPassages(data, windows, features, context, only))
    if not found and features:
        known = ", ".join(features_in(data)) or "none"
        raise InputError(f"feature {features[0]!r}: no word of the corpus has it; there are: {known}")
    return found


def held(model: Any, passages: Iterable[Passage], sites: Sequence[Site], pooling: Pooling = "last") -> Held:
    """Run a model over passages, and keep its activations at their words.

    Args:
        model: Follows TransformerLens' protocol.
        passages: What is read.
        sites: What is kept.
        pooling: Over the tokens of a word.

    Raises:
        InputError: As ``word_activations``; or nothing is to be read.
    """
    given = list(passages)
    index = passage_index(given)
    if not len(index):
        raise InputError("probe: expected words with labels that the model can read, got none; give other data")
    values: dict[Site, Tensor] = {}
    for part in word_activations(model, given, sites, pooling=pooling):
        for site, value in part.values.items():
            if site not in values:
                values[site] = torch.empty(len(index), *value.shape[1:], dtype=value.dtype)
            values[site][part.numbers] = value.cpu()
    return Held(index, values)


def device_of(model: Any) -> torch.device:
    """Where probes are fitted: where the model is."""
    return place_of(model)[0]
