"""Activations at given points of one run; and at the words of many texts, streamed: nothing held grows with them.

1. Rows of equally many tokens are run at once: without padding, any model can run them. What rows begin alike with is
   run once.
2. Each word's activation is pooled over its tokens: the first, the last, or their mean. This is done as the activation
   is computed, so a layer's activations are never held beside another's.
3. Batches are not in the order of the texts; so each word bears its number in that order.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from interp.errors import InputError, suggest
from interp.model.devices import ordinary_modes, place_of, sent
from interp.model.hooks import turn_of
from interp.model.loading.bridge import has_foreign_code, has_hooks
from interp.model.positions import SharedPlaces
from interp.model.sites import Site
from interp.model.text import require_fit
from interp.model.transformer import HookedTransformer
from interp.shapes import Tokens


def read(
    model: Any, tokens: Tokens, hook_names: Iterable[str], device: torch.device | None = None
) -> Mapping[str, Tensor]:
    """The activations of `model` on `tokens`, by the name of their point; brought to `device` as they are computed.

    Raises InputError for a point that the model does not have, or does not run.
    """
    names = sorted(set(hook_names))
    require_points(model, names)
    with torch.inference_mode():
        if isinstance(model, HookedTransformer):
            found = dict[str, Tensor]()
            listen(model, tokens, {name: partial(_keep, found, name, device) for name in names})
            if device is not None and tokens.device.type == "cuda":
                torch.cuda.current_stream(tokens.device).synchronize()  # all is there
        else:
            _, found = model.run_with_cache(tokens, names_filter=names, device=device)
    require_run(names, found)
    return {name: found[name] for name in names}


def _keep(found: dict[str, Tensor], name: str, device: torch.device | None, activation: Tensor) -> None:
    found[name] = activation.to(device, non_blocking=True)


Reader = Callable[[Tensor], None]
SHARED = 0.9
"""Of a batch's tokens, the share after different beginnings up to which it is run with equal beginnings once."""


def listen(model: Any, tokens: Tokens, readers: Mapping[str, Reader], blocks: int | None = None) -> Any:
    """Run rows of tokens without padding, and give each reader the activations at its point as they are computed.

    What rows begin alike with is run once, where the model is ours and causal, on the CPU (a GPU would have to be
    waited for), and has nobody's hooks or code. Of a model of ours only the first `blocks` are run (all of them, if
    None), and what leaves them is returned: the logits of a whole batch can be larger than all activations together.
    """
    if not isinstance(model, HookedTransformer):
        return model.run_with_hooks(tokens, fwd_hooks=[(name, _hook(each)) for name, each in readers.items()])
    last = model.config.n_layers if blocks is None else blocks
    tokens, _ = model.as_tokens(tokens)
    with turn_of(model):  # another thread's hooks are not to decide what is run once
        places = _shared_places(model, tokens)
        hooks = [(name, _hook(each, places)) for name, each in readers.items()]
        if places is None:
            return model.run_with_hooks(tokens, fwd_hooks=hooks, stop_at_layer=last)
        with model.hooks(hooks):
            return places.by_row(model.run_blocks(list(model.blocks)[:last], places.once(tokens), places))


def _hook(reader: Reader, places: SharedPlaces | None = None) -> Callable[..., None]:
    def give(activation: Tensor, *, hook: Any) -> None:
        reader(activation if places is None else places.by_row(activation))

    return give


def _shared_places(model: HookedTransformer, tokens: Tokens) -> SharedPlaces | None:
    """Where the tokens stand if beginnings are run once; None if they are not."""
    ours = type(model) is HookedTransformer and model.config.causal and tokens.device.type == "cpu"
    if not ours or len(tokens) < 2:
        return None
    require_fit(tokens, n_ctx=model.config.n_ctx, d_vocab=model.config.d_vocab)
    places = SharedPlaces.of(tokens)
    # To look through all modules takes longer, and is needed only where something is shared.
    worth_it = len(places.number) <= SHARED * tokens.numel()
    return places if worth_it and not has_hooks(model) and not has_foreign_code(model) else None


def without_logits(model: Any) -> dict[str, int]:
    """Options of a forward pass that stops after the blocks; only models of ours have one.

    The logits of a whole batch can be larger than all activations together.
    """
    return {"stop_at_layer": model.cfg.n_layers} if isinstance(model, HookedTransformer) else {}


def require_points(model: Any, hook_names: Iterable[str]) -> None:
    """Refuse points that a model does not have."""
    known = getattr(model, "hook_dict", None)  # TransformerLens' protocol does not promise one
    for name in hook_names:
        if known is not None and name not in known:
            raise InputError(f"the model has no point {name!r}; {suggest(name, known)}")


def require_run(hook_names: Iterable[str], kept: Iterable[str]) -> None:
    """Refuse points that a model has and did not run: those that are not among the `kept`."""
    ran = set(kept)
    silent = [name for name in hook_names if name not in ran]
    if silent:
        raise InputError(
            f"{silent[0]}: the model did not run this point, so nothing is known of it; switch it on "
            "(TransformerLens: model.set_use_attn_result(True) and the like), or choose another site"
        )


Passage = Any
"""A row of tokens, such as ``tasks/passages.py`` makes: its ``document``, its token ``ids`` and the ``words`` in it.

A word has the name of its ``sentence``, its number ``word`` there, its spelling ``form``, and its ``tokens``: at least
one position in the row.
"""


def named(passage: Passage, word: Any) -> str:
    """Where a word stands, for messages."""
    return f"document {passage.document!r}, sentence {word.sentence!r}, word {word.word} ({word.form!r})"


TOKENS_AT_ONCE = 2048
"""Of a batch: attention patterns of longer rows are larger."""
BUFFERED = 16_384
"""Tokens of rows that are looked through for some of equal length."""


AnyRow = TypeVar("AnyRow")


def batched(
    rows: Iterable[AnyRow], ids: Callable[[AnyRow], Sequence[int]] = attrgetter("ids")
) -> Iterator[list[AnyRow]]:
    """Rows with equally many tokens (their `ids`), in batches; of the rows, only some are held at a time."""
    rest = iter(rows)
    while True:
        by_length: dict[int, list[AnyRow]] = {}
        n_tokens = 0
        for row in rest:
            by_length.setdefault(len(ids(row)), []).append(row)
            n_tokens += len(ids(row))
            if n_tokens >= BUFFERED:
                break
        if not by_length:
            return
        for length, same in sorted(by_length.items()):
            size = max(1, TOKENS_AT_ONCE // length)
            yield from (same[start : start + size] for start in range(0, len(same), size))


Pooling = Literal["first", "last", "mean"]
_TOKENS = {"first": slice(0, 1), "last": slice(-1, None), "mean": slice(None)}


class Pooler:
    """Pools activations over the tokens of each word of a batch.

    PyTorch's sum over a bag adds one number after the other, also on a GPU, where ``index_add_`` adds in any order: the
    same words have the same bits.
    """

    def __init__(self, passages: Sequence[Passage], pooling: Pooling, device: torch.device):
        if pooling not in _TOKENS:
            raise InputError(f"pooling: expected first, last or mean, got {pooling!r}")
        self._n_rows, length = len(passages), len(passages[0].ids)
        tokens = [
            [row * length + token for token in word.tokens[_TOKENS[pooling]]]
            for row, passage in enumerate(passages)
            for word in passage.words
        ]
        self._tokens = sent(np.array([token for own in tokens for token in own]), device)
        self._starts = sent(np.array([0, *accumulate(map(len, tokens[:-1]))]), device)

    def pool(self, activation: Float[Tensor, "#batch pos ..."]) -> Float[Tensor, "word ..."]:
        """The activations of all words, one passage's after the other's; a mean of 16-bit floats is computed in 32."""
        flat = activation.expand(self._n_rows, *activation.shape[1:]).flatten(0, 1)
        if len(self._tokens) == len(self._starts):
            return flat.index_select(0, self._tokens)
        rows = flat.flatten(1).to(torch.promote_types(flat.dtype, torch.float32))
        means = functional.embedding_bag(self._tokens, rows, self._starts, mode="mean")
        return means.to(flat.dtype).unflatten(1, flat.shape[1:])


@dataclass(frozen=True)
class WordActivations:
    """Activations at the words of a batch."""

    passages: tuple[Passage, ...]  # the batch; its words, one after the other, are those of the other attributes
    # of each word, its number among all words, in the order that the passages were given in
    numbers: Int[Tensor, " word"]
    # by site, on the model's device: ``[word head d_head]`` of ``z``, ``[word d_model]`` of ``resid_post``
    values: dict[Site, Float[Tensor, "word ..."]]


def word_activations(
    model: Any, passages: Iterable[Passage], sites: Sequence[Site], *, pooling: Pooling = "last", first: int = 0
) -> Iterator[WordActivations]:
    """Run a model over passages, and give its activations at their words batch by batch.

    On one machine the same passages, model and number of threads give the same bits. `first` is the first word's
    number. A mean is computed in 32 bits or more, and has the activation's dtype. Raises InputError for a site without
    positions or that the model lacks, tokens that a row does not have, and an activation that is not finite.
    """
    require_positions(sites)
    rest = (passage for passage in passages if passage.words)
    for passage in rest:
        # A point that is not there, or is not run, is refused in our words.
        one = torch.tensor([tuple(passage.ids)[:1]], device=place_of(model)[0])
        read(model, one, [site.hook_name for site in sites])
        yield from batch_activations(model, chain([passage], rest), sites, pooling=pooling, first=first)


def batch_activations(
    model: Any, passages: Iterable[Passage], sites: Sequence[Site], *, pooling: Pooling = "last", first: int = 0
) -> Iterator[WordActivations]:
    """As ``word_activations``, at points that the model is known to run."""
    device = place_of(model)[0]
    for batch in batched(_numbered(passages, first), lambda row: row[0].ids):
        chosen = tuple(passage for passage, _ in batch)
        tokens = sent(np.array([tuple(passage.ids) for passage in chosen]), device)
        values = _run(model, tokens, sites, Pooler(chosen, pooling, device).pool)
        for site, value in values.items():
            if not _is_finite(value):
                raise _not_finite(model, tokens, chosen, site, value)
        numbers = [number for passage, start in batch for number in range(start, start + len(passage.words))]
        yield WordActivations(chosen, torch.tensor(numbers), values)


def require_positions(sites: Sequence[Site]) -> None:
    """Refuse sites whose activations are of no single position, and an empty list."""
    if not sites:
        raise InputError("sites: expected at least one, got none; name one such as z or resid_post")
    for site in sites:
        if site.axes[1] != "pos":
            raise InputError(
                f"site {site.name!r}: expected one with an activation for each position, got one for pairs of "
                "positions, which a word has none of its own of; take z, q, k, v or a point of the stream"
            )


def _numbered(passages: Iterable[Passage], first: int) -> Iterator[tuple[Passage, int]]:
    """The passages that have words, each with the number of its first word."""
    for passage in passages:
        for word in passage.words:
            if not word.tokens or min(word.tokens) < 0 or max(word.tokens) >= len(passage.ids):
                raise InputError(
                    f"{named(passage, word)}: expected tokens among the {len(passage.ids)} of its row, got "
                    f"{tuple(word.tokens)}"
                )
        if passage.words:
            yield passage, first
            first += len(passage.words)


def _run(model: Any, tokens: Tokens, sites: Sequence[Site], pool: Callable[[Tensor], Tensor]) -> dict[Site, Tensor]:
    """The pooled activations of a batch."""
    values: dict[Site, Tensor] = {}

    def take(site: Site, activation: Tensor) -> None:
        values[site] = pool(activation)

    readers = {site.hook_name: partial(take, site) for site in sites}
    # Nobody reads the logits, and they can cost as much as the blocks.
    needed = max((site.layer + 1 for site in sites if site.layer is not None), default=0)
    with ordinary_modes(), torch.no_grad():  # a probe may be trained on what comes out
        listen(model, tokens, readers, needed)
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
        f"{passage.ids[token]}); a weight is not a number, or values overflow in the model's dtype: use float32"
    )
