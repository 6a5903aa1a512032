"""Explicit rewrites that change the weights and not the function; each returns a new model.

``fold_layer_norm``: LayerNorm's affine part ``w, b`` is linear, so it moves into the weights that read it
(Elhage et al. 2021): ``W' = diag(w) W``, ``bias' = bias + b W``. Afterwards each LayerNorm only centres and scales.
``center_writing_weights``: LayerNorm subtracts the mean, so nobody reads the stream's component along
the all-ones vector; weights that write there are centred.
"""

import copy

import torch
from torch import Tensor, nn

from interp.model.norm import LayerNorm
from interp.model.transformer import HookedTransformer


@torch.no_grad()
def fold_layer_norm(model: HookedTransformer) -> HookedTransformer:
    """A new model, the same function, whose LayerNorms have ``w = 1`` and ``b = 0``.

    A tied unembedding becomes a weight of its own.
    """
    new = untied(model)
    for block in new.blocks:
        attn = block.attn
        for letter in "QKV":
            weight, bias = getattr(attn, f"W_{letter}"), getattr(attn, f"b_{letter}")
            bias += torch.einsum("m,hmd->hd", block.ln1.b, weight)
            weight *= block.ln1.w[:, None]
        block.mlp.b_in += block.ln2.b @ block.mlp.W_in
        block.mlp.W_in *= block.ln2.w[:, None]
        _make_plain(block.ln1)
        _make_plain(block.ln2)
    new.unembed.b_U += new.ln_final.b @ new.unembed.W_U
    new.unembed.W_U *= new.ln_final.w[:, None]
    _make_plain(new.ln_final)
    return new


@torch.no_grad()
def center_writing_weights(model: HookedTransformer) -> HookedTransformer:
    """A new model, the same function, in which no writer changes the stream's mean over ``d_model``."""
    new = untied(model)
    writers: list[Tensor] = [new.embed.W_E, new.pos_embed.W_pos]
    for block in new.blocks:
        writers += [block.attn.W_O, block.attn.b_O, block.mlp.W_out, block.mlp.b_out]
    for weight in writers:
        weight -= weight.mean(-1, keepdim=True)
    return new


def untied(model: HookedTransformer) -> HookedTransformer:
    """A copy of `model` whose unembedding is a weight of its own."""
    fields = {**model.config.to_dict(), "tied": False}
    new = HookedTransformer(type(model.config)(**fields), model.tokenizer, name=model.name)
    new.to(device=model.W_E.device, dtype=model.W_E.dtype)
    state = {**copy.deepcopy(model.state_dict()), "unembed.W_U": model.W_U.detach().clone()}
    new.load_state_dict(state)
    return new


def _make_plain(norm: LayerNorm) -> None:
    nn.init.ones_(norm.w)
    nn.init.zeros_(norm.b)
