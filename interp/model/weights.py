"""Which weights are these? One hash for every kind of model.

SHA-256 of the values in 64 bits, which a model has in common with its copies in wider types. It takes longer than a
small sweep, so it is computed once for every state of the weights; which state it is, XXH3 of their bytes tells.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch
import xxhash
from torch import Tensor, nn

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
    digest = xxhash.xxh3_128()
    for name, tensor in weights:
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.stride()}{tensor.dtype}".encode())
        # In the order of the memory, so that a permuted view is not copied.
        strides = tensor.stride()
        order = sorted(range(tensor.ndim), key=strides.__getitem__, reverse=True)
        digest.update(tensor.permute(order).reshape(-1).view(torch.uint8).cpu().numpy().data)
    return digest.hexdigest()
