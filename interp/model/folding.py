"""Explicit rewrites that change the weights and not the function; each returns a new model.

``fold_layer_norm``: a norm's affine part ``w, b`` is linear, so it moves into the weights that read it
(Elhage et al. 2021): ``W' = diag(w) W``, ``bias' = bias + b W``. Afterwards each norm only centres and scales.
``center_writing_weights``: LayerNorm subtracts the mean, so nobody reads the stream's component along
the all-ones vector; weights that write there are centred.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from interp.errors import InputError
from interp.model.config import BIASES, TransformerConfig
from interp.model.devices import documented
from interp.model.layers import NoNorm
from interp.model.loading.bridge import require_ours
from interp.model.transformer import HookedTransformer


@documented
@torch.no_grad()
def fold_layer_norm(model: HookedTransformer) -> HookedTransformer:
    """A new model, the same function, whose norms of what is read have ``w = 1`` and ``b = 0``.

    Norms of what attention and MLPs write stay: no weight reads what they give. A tied unembedding becomes a weight of
    its own; a model that lacks some biases gets all of them, where a norm's has to go somewhere.

    Source: Elhage et al. (2021), "A mathematical framework for transformer circuits".

    Args:
        model: One of ours; it stays as it is.

    Returns:
        A copy on the same device and in the same dtype, with the same logits up to rounding.

    Raises:
        InputError: The model is not ours, or its norms stand behind the additions, where the stream itself reads them.

    Examples:
        >>> folded = interp.fold_layer_norm(interp.load_model())
        >>> bool((folded.ln_final.w == 1).all())
        True
    """
    _require_pre_norm(model, "fold_layer_norm")
    norms_biased = model.config.normalization == "LN" and "norm" in model.config.biases
    new = remade(model, **({"biases": BIASES} if norms_biased else {}))
    for block in new.blocks:
        for letter in "QKV":  # of every head
            weights, biases = getattr(block.attn, f"W_{letter}"), getattr(block.attn, f"b_{letter}")
            _fold(block.ln1, zip(weights, biases, strict=True))
        if new.config.n_experts:
            mlp = block.mlp
            pairs = [*zip(mlp.W_gate, mlp.b_gate, strict=True), *zip(mlp.W_in, mlp.b_in, strict=True)]
            _fold(block.ln2, [(mlp.W_router, mlp.b_router), *pairs])
        elif new.config.d_mlp:
            gates = [(block.mlp.W_gate, block.mlp.b_gate)] if new.config.gated else []
            _fold(block.ln2, [(block.mlp.W_in, block.mlp.b_in), *gates])
    _fold(new.ln_final, [(new.unembed.W_U, new.unembed.b_U)])
    for norm in (new.ln_final, *(norm for block in new.blocks for norm in (block.ln1, getattr(block, "ln2", None)))):
        if norm is not None and not isinstance(norm, NoNorm):
            nn.init.ones_(norm.w)
            nn.init.zeros_(norm.b)
    return new


@documented
@torch.no_grad()
def center_writing_weights(model: HookedTransformer) -> HookedTransformer:
    """A new model, the same function, in which no writer changes the stream's mean over ``d_model``.

    Sinusoidal positions become learned ones, whose table is centred.

    Source: Elhage et al. (2021), "A mathematical framework for transformer circuits".

    Args:
        model: One of ours, with LayerNorm; it stays as it is.

    Returns:
        A copy on the same device and in the same dtype, with the same logits up to rounding.

    Raises:
        InputError: The stream's mean is read: by RMSNorm, or where there is no norm, or by norms behind the additions;
            or the model is not ours.

    Examples:
        >>> from interp.model.folding import center_writing_weights
        >>> centred = center_writing_weights(interp.load_model())
        >>> bool(centred.W_E.mean(-1).abs().max() < 1e-6)
        True
    """
    _require_pre_norm(model, "center_writing_weights")
    if model.config.normalization != "LN" or model.config.embed_norm or model.config.normalises_what_is_written:
        raise InputError(
            f"center_writing_weights: the stream's mean is ignored where all that read it are LayerNorms and none "
            f"writes to it, got normalization {model.config.normalization!r}, embed_norm {model.config.embed_norm}, "
            f"norm_position {model.config.norm_position!r}; "
            "leave the weights as they are"
        )
    embedded = {"positions": "learned"} if model.config.positions == "sinusoidal" else {}
    new = remade(model, **embedded)
    writers: list[Tensor] = [new.embed.W_E]
    if new.config.n_token_types:
        writers.append(new.token_type_embed.W_token_type)
    if new.config.positions == "learned":
        writers.append(new.pos_embed.W_pos)
    for block in new.blocks:
        writers += [block.attn.W_O, block.attn.b_O]
        if new.config.d_mlp:
            writers += [block.mlp.W_out, block.mlp.b_out]
    for weight in writers:
        weight -= weight.mean(-1, keepdim=True)
    return new


@documented
def remade(model: HookedTransformer, **fields: Any) -> HookedTransformer:
    """A copy of `model` with an unembedding of its own and some other `fields` of the config.

    What is a constant in `model` and a parameter in the copy, such as a bias that it lacks, takes the constant's value.
    """
    config: TransformerConfig = dataclasses.replace(model.config, tied=False, **fields)
    new = HookedTransformer(config, model.tokenizer, name=model.name)
    new.to(device=model.W_E.device, dtype=model.W_E.dtype)
    held = {**dict(model.named_buffers()), **dict(model.named_parameters()), "unembed.W_U": model.W_U}
    for name, parameter in new.named_parameters():
        parameter.data.copy_(held[name])
    return new


def _require_pre_norm(model: HookedTransformer, what: str) -> None:
    require_ours(model, what)
    if model.config.norm_position == "post":
        raise InputError(
            f"{what}: this model normalises the stream itself (post-norm), so no weight that reads it can take a norm "
            "in; use the model as it is"
        )


def _fold(norm: Any, read_by: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Take a norm's affine part into weights ``[d_model _]`` that read it, and their biases."""
    for weight, bias in read_by:
        bias += norm.b @ weight
        weight *= norm.w[:, None]
