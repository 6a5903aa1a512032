"""What does a model hold at the words of many texts? One run over them, streamed: nothing that grows with them is kept.

1. Rows of equally many tokens are run at once (``batching.py``).
2. Of each word that is read, an activation is pooled over the word's tokens: the first, the last, or their mean. This
   is done as the activation is computed, so a layer's activations are never held beside another's.
3. Batches are not in the order of the texts; so each word bears its number in that order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.model.devices import ordinary_modes, place_of
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.residual.activations import read
from interp.residual.batching import batched
from interp.residual.passages import AnyPassage, Passage, named
from interp.residual.pooling import Pooler, Pooling
from interp.shapes import Tokens


@dataclass(frozen=True)
class WordActivations(Generic[AnyPassage]):
    """What a model holds at the words of a batch.

    Attributes:
        passages: The batch; its words, one after the other, are those of the other attributes.
        numbers: Of each word, its number among all words, in the order that the passages were given in.
        values: By site, on the model's device: ``[word head d_head]`` of ``z``, ``[word d_model]`` of ``resid_post``.
    """

    passages: tuple[AnyPassage, ...]
    numbers: Int[Tensor, " word"]
    values: dict[Site, Float[Tensor, "word ..."]]


def word_activations(
    model: Any, passages: Iterable[AnyPassage], sites: Sequence[Site], *, pooling: Pooling = "last", first: int = 0
) -> Iterator[WordActivations[AnyPassage]]:
    """Run a model over passages, and give its activations at their words batch by batch.

    On one machine the same passages, model and number of threads give the same bits.

    Args:
        model: Follows TransformerLens' protocol.
        passages: Read one after the other; only some are held at a time.
        sites: Points with an activation for each position.
        pooling: Over the tokens of a word. A mean is computed in 32 bits or more, and has the activation's dtype.
        first: The number of the first word.

    Raises:
        InputError: A site that is none of the model's or has no positions, a word without tokens or with tokens that
            its row does not have, a row that the model cannot carry, or an activation that is no finite number.
    """
    require_positions(sites)
    rest = (passage for passage in passages if passage.words)
    for passage in rest:
        # A point that is not there, or is not run, is refused in our words.
        read(
            model, torch.tensor([tuple(passage.ids)[:1]], device=place_of(model)[0]), [site.hook_name for site in sites]
        )
        yield from batch_activations(model, chain([passage], rest), sites, pooling=pooling, first=first)


def batch_activations(
    model: Any, passages: Iterable[AnyPassage], sites: Sequence[Site], *, pooling: Pooling = "last", first: int = 0
) -> Iterator[WordActivations[AnyPassage]]:
    """As ``word_activations``, at points that the model is known to run."""
    device = place_of(model)[0]
    for batch in batched(_numbered(passages, first)):
        chosen = tuple(row.passage for row in batch)
        tokens = torch.tensor([tuple(passage.ids) for passage in chosen], device=device)
        values = _run(model, tokens, sites, Pooler(chosen, pooling, device).pool)
        for site, value in values.items():
            if not _is_finite(value):
                raise _not_finite(model, tokens, chosen, site, value)
        numbers = [row.first + at for row in batch for at in range(len(row.passage.words))]
        yield WordActivations(chosen, torch.tensor(numbers), values)


def require_positions(sites: Sequence[Site]) -> None:
    """Refuse sites whose activations are of no single position, and an empty list.

    Raises:
        InputError: One of `sites` is such a one, or there is none.
    """
    if not sites:
        raise InputError("sites: expected at least one, got none; name one such as z or resid_post")
    for site in sites:
        if site.axes[1] != "pos":
            raise InputError(
                f"site {site.name!r}: expected one with an activation for each position, got one for pairs of "
                "positions, which a word has none of its own of; take z, q, k, v or a point of the stream"
            )


@dataclass(frozen=True)
class _Row(Generic[AnyPassage]):
    """A passage and the number of its first word."""

    passage: AnyPassage
    first: int

    @property
    def ids(self) -> Sequence[int]:
        return self.passage.ids


def _numbered(passages: Iterable[AnyPassage], first: int) -> Iterator[_Row[AnyPassage]]:
    """The passages that have words."""
    for passage in passages:
        for word in passage.words:
            if not word.tokens or min(word.tokens) < 0 or max(word.tokens) >= len(passage.ids):
                raise InputError(
                    f"{named(passage, word)}: expected tokens among the {len(passage.ids)} of its row, got "
                    f"{tuple(word.tokens)}"
                )
        if passage.words:
            yield _Row(passage, first)
            first += len(passage.words)


def _run(model: Any, tokens: Tokens, sites: Sequence[Site], pool: Callable[[Tensor], Tensor]) -> dict[Site, Tensor]:
    """The pooled activations of a batch."""
    values: dict[Site, Tensor] = {}

    def reader(site: Site) -> Callable[..., None]:
        def take(activation: Tensor, *, hook: Any) -> None:
            values[site] = pool(activation)

        return take

    hooks = [(site.hook_name, reader(site)) for site in sites]
    # Nobody reads the logits, and they can cost as much as the blocks.
    needed = max((site.layer + 1 for site in sites if site.layer is not None), default=0)
    stop = {"stop_at_layer": needed} if isinstance(model, HookedTransformer) else {}
    with ordinary_modes(), torch.no_grad():  # a probe may be trained on what comes out
        model.run_with_hooks(tokens, fwd_hooks=hooks, **stop)
    return {site: values[site] for site in sites}


def _is_finite(values: Tensor) -> bool:
    # A sum is no finite number if a summand is none, and costs less than looking at each.
    total = values.sum(dtype=torch.promote_types(values.dtype, torch.float32))
    return bool(torch.isfinite(total)) or bool(torch.isfinite(values).all())


def _not_finite(model: Any, tokens: Tokens, passages: Sequence[Passage], site: Site, value: Tensor) -> InputError:
    """Names the first word, and its token, at which the activation is no finite number."""
    number = int((~torch.isfinite(value)).flatten(1).any(1).nonzero()[0])
    words = [(row, word) for row, passage in enumerate(passages) for word in passage.words]
    row, word = words[number]
    passage = passages[row]
    activation = read(model, tokens, [site.hook_name])[site.hook_name].expand(len(passages), *[-1] * value.ndim)
    bad = [token for token in word.tokens if not bool(torch.isfinite(activation[row, token]).all())]
    token = [*bad, word.tokens[-1]][0]
    layer = "" if site.layer is None else f" of layer {site.layer}"
    return InputError(
        f"{site.name}{layer}: expected finite activations, got others at {named(passage, word)}, token {token} (id "
        f"{passage.ids[token]}); a weight is no number, or values overflow in the model's dtype: use float32"
    )
