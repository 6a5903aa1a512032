"""A head's ``z`` if another word stood at the related word's place, for this head alone.

1. The item and its word counterfactual are run side by side, and the item once more: the *exchanged* run.
2. In every layer, the exchanged run's keys and values at the related word's tokens become the counterfactual's. All
   heads' do: a query head reads those of its own key head only, so that its ``z`` is the same as if these alone had
   been exchanged, also where heads share them (grouped queries).
3. The exchanged run's ``z``, whose pattern has followed, is what is wanted. Before anything reads it the item's is put
   in its place, so that the next layer begins with the item's stream: one run serves all layers.

In a causal model nothing before the word differs between the two runs, and what differs at the word is the word. In a
bidirectional one that is so in the first layer alone: later, keys and values at the word hold what other words have
read of it.
"""

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.errors import InputError
from interp.interventions.replacement import Patch
from interp.interventions.rows import Batch, Row
from interp.model.positions import looks_back_only
from interp.model.sites import Site
from interp.residual.activations import require_points, require_run, without_logits

RUNS = 3
"""That go through the model side by side: the item, the item with the other word's keys and values, the other item."""


@dataclass(frozen=True)
class WordExchange(Patch):
    """A head's ``z`` where keys and values at the related word are those of ``Row.source``.

    Attributes:
        sites: ``z`` of the layers whose heads are changed, each once.
        words: Positions of the related word's tokens, by example.

    Raises:
        InputError: A layer behind the first of a model that is not causal.
    """

    words: Mapping[int, tuple[int, ...]] = field(kw_only=True, repr=False)
    kind: ClassVar[str] = "word"

    def __post_init__(self) -> None:
        later = sorted({each.layer or 0 for each in self.sites} - {0})
        if later and not looks_back_only(self.model):
            raise InputError(
                f"layer {later[0]}: expected layer 0 of a bidirectional model, where alone keys and values at a word "
                "are the word's own; later they hold what other words have read of it, too; choose heads of layer 0"
            )

    @property
    def identity(self) -> str | None:
        """Its kind, and which words."""
        if type(self) is not WordExchange:
            return None
        return f"{self.kind} at {hashlib.sha256(repr(sorted(self.words.items())).encode()).hexdigest()}"

    def group(self, row: Row, draw: int) -> Hashable:
        """Rows with their words at the same place are alike, as those of ``Patch`` are."""
        return self.words[row.example]

    def read(self, batch: Batch) -> Mapping[str, Tensor]:
        """Every head's ``z`` with the other word's keys and values, by hook name; rows in as many parts as runs."""
        at_once = -(-len(batch.rows) // RUNS)
        starts = range(0, len(batch.rows), at_once)
        parts = [self._read(batch.take(range(len(batch.rows))[start : start + at_once])) for start in starts]
        return {name: torch.cat([each[name] for each in parts]) for name in parts[0]}

    def _read(self, batch: Batch) -> Mapping[str, Tensor]:
        n, there = len(batch.rows), self._at_words(batch)[..., None, None]
        found: dict[str, Tensor] = {}

        def exchange(old: Float[Tensor, "row pos head d_head"], *, hook: Any) -> Tensor:
            item, exchanged, other = old.split(n)
            return torch.cat([item, torch.where(there, other, exchanged), other])

        def take(old: Float[Tensor, "row pos head d_head"], *, hook: Any, name: str) -> Tensor:
            item, exchanged, other = old.split(n)
            found[name] = exchanged.clone()  # a bridge's hook has a name of its own
            return torch.cat([item, item, other])

        changed = [Site(name, each.layer).hook_name for each in self.sites for name in ("k", "v")]
        taken = [each.hook_name for each in self.sites]
        require_points(self.model, [*changed, *taken])
        hooks = [(name, exchange) for name in changed] + [(name, partial(take, name=name)) for name in taken]
        tokens = torch.cat([batch.tokens, batch.tokens, batch.source_tokens])
        with torch.inference_mode():
            self.model.run_with_hooks(tokens, fwd_hooks=hooks, **without_logits(self.model))
        require_run(taken, found)
        return found

    def _at_words(self, batch: Batch) -> Bool[Tensor, "batch pos"]:
        """Where the related words are."""
        mask = torch.zeros(batch.tokens.shape, dtype=torch.bool)
        for number, row in enumerate(batch.rows):
            mask[number, list(self.words[row.example])] = True
        return mask.to(batch.tokens.device)
