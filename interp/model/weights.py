"""Which weights are these, and what are they? Hashes for every model, and our weights stacked over layers.

1. The hash is SHA-256 of the values in 64 bits, the same for copies in wider types. It takes longer than a small sweep,
   so it is computed once for every state of the weights, told apart by XXH3 of their bytes.
2. Stacked weights carry TransformerLens' names. A head's ``W_Q W_K^T`` says which positions it reads from which, its
   ``W_V W_O`` what it moves between them (Elhage et al. 2021).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import xxhash
from jaxtyping import Float
from torch import Tensor, nn
from transformer_lens import FactoredMatrix

from interp.errors import InputError
from interp.model.config import TransformerConfig

SLICE = 2**18
_known: dict[str, str] = {}


def config_hash(model: nn.Module) -> str | None:
    """SHA-256 of what a model of ours is made of: two of the same weights can compute different things.

    None for the models of others.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, TransformerConfig):
        return None
    return hash_of_values(config.to_dict())


def hash_of_values(values: Mapping[str, Any]) -> str:
    """SHA-256 of a configuration."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def weights_hash(model: nn.Module) -> str:
    """SHA-256 of the weights' names, shapes and values; the dtype they are held in does not matter."""
    return hash_of_tensors(model.state_dict())


def hash_of_tensors(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of the tensors' names, shapes and values."""
    named = sorted((name, tensor.detach()) for name, tensor in tensors.items())
    state = _state(named)
    if state not in _known:
        _known[state] = _sha256(named)
    return _known[state]


def tokenizer_hash(tokenizer: Any) -> str | None:
    """SHA-256 of a fast tokenizer's full definition, of a slow one's vocabulary, and of which tokens are special.

    None without one.
    """
    if tokenizer is None:
        return None
    backend = getattr(tokenizer, "backend_tokenizer", None)
    text = repr(sorted(tokenizer.get_vocab().items())) if backend is None else backend.to_str()
    special = sorted(getattr(tokenizer, "special_tokens_map", {}).items())
    return hashlib.sha256(f"{text}{special}".encode()).hexdigest()


def _sha256(weights: list[tuple[str, Tensor]]) -> str:
    digest = hashlib.sha256()
    for name, tensor in weights:
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        # In slices: the embedding of a large vocabulary in 64 bits can be larger than the model.
        for part in tensor.reshape(-1).split(SLICE):
            digest.update(part.double().cpu().numpy())
    return digest.hexdigest()


def _state(weights: list[tuple[str, Tensor]]) -> str:
    digest, held = xxhash.xxh3_128(), list[Tensor]()
    for name, tensor in weights:
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.stride()}{tensor.dtype}".encode())
        # In the order of the memory, so that a permuted view is not copied.
        strides = tensor.stride()
        order = sorted(range(tensor.ndim), key=strides.__getitem__, reverse=True)
        held.append(tensor.permute(order).reshape(-1).view(torch.uint8))
    for each in _together(held):
        digest.update(each.cpu().numpy().data)
    return digest.hexdigest()


def _together(held: list[Tensor]) -> Iterator[Tensor]:
    """What each device holds, the small tensors of a GPU as one: each copy to the host is waited for."""
    small: dict[torch.device, list[Tensor]] = {}
    for each in held:
        if each.device.type == "cuda" and len(each) < SLICE:
            small.setdefault(each.device, []).append(each)
        else:
            yield each
    yield from map(torch.cat, small.values())


class _Stacked:
    """An attribute that is one weight of every block, stacked."""

    def __init__(self, part: str, name: str):
        self.part, self.name = part, name

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        if not all(hasattr(block, self.part) for block in model.blocks):
            raise InputError(f"{self.name}: this model is of attention alone (d_mlp=0) and has no MLP")
        weights = [getattr(getattr(block, self.part), self.name) for block in model.blocks]
        if self.name[-1] in "KV":
            weights = [each.repeat_interleave(model.config.n_heads // len(each), dim=0) for each in weights]
        return torch.stack(weights)


class StackedWeights:
    """Weights of a model with ``blocks``, each a copy with a leading ``layer`` axis.

    Every query head has its own keys and values here, where some share them, too.
    """

    config: Any
    blocks: Any

    W_Q = _Stacked("attn", "W_Q")  # [layer head d_model d_head], as W_K and W_V
    W_K = _Stacked("attn", "W_K")
    W_V = _Stacked("attn", "W_V")
    W_O = _Stacked("attn", "W_O")  # [layer head d_head d_model]
    b_Q = _Stacked("attn", "b_Q")  # [layer head d_head], as b_K and b_V
    b_K = _Stacked("attn", "b_K")
    b_V = _Stacked("attn", "b_V")
    b_O = _Stacked("attn", "b_O")  # [layer d_model]
    W_in = _Stacked("mlp", "W_in")  # [layer d_model d_mlp]
    b_in = _Stacked("mlp", "b_in")  # [layer d_mlp]
    W_out = _Stacked("mlp", "W_out")  # [layer d_mlp d_model]
    b_out = _Stacked("mlp", "b_out")  # [layer d_model]

    @property
    def W_gate(self) -> Float[Tensor, "layer d_model d_mlp"] | None:  # noqa: N802
        """What gates neurons, from the stream; None where nothing does."""
        gated = all(hasattr(getattr(block, "mlp", None), "W_gate") for block in self.blocks)
        return torch.stack([block.mlp.W_gate for block in self.blocks]) if gated else None

    @property
    def QK(self) -> FactoredMatrix:  # noqa: N802
        """Each head's ``W_Q W_K^T``, ``[layer head d_model d_model]``, as its two factors."""
        return FactoredMatrix(self.W_Q, self.W_K.transpose(-2, -1))

    @property
    def OV(self) -> FactoredMatrix:  # noqa: N802
        """Each head's ``W_V W_O``, ``[layer head d_model d_model]``, as its two factors."""
        return FactoredMatrix(self.W_V, self.W_O)

    @property
    def all_head_labels(self) -> list[str]:
        """``L0H0``, ``L0H1``, ...: the heads in the order of the stacked weights."""
        return [f"L{layer}H{head}" for layer, block in enumerate(self.blocks) for head in range(block.n_heads)]
