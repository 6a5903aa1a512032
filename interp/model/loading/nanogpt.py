"""Training checkpoints of nanoGPT (``ckpt.pt``) and minGPT (``model.pt`` with ``config.json``).

nanoGPT calls its layers as GPT-2 does, but keeps them as ``Linear`` does. Its embeddings are tied since January 2023;
whether both tensors are equal tells. ``model_args`` name ``bias`` since 27 January 2023 (before, there always were
some). Its GELU is exact since 17 May 2023 and was the tanh approximation before, and nothing says which: it is read as
exact where ``bias`` is named. In what was trained between the dates, each neuron is then off by at most 0.0005.

minGPT writes the config before it is filled in: null sizes are read off the tensors, heads off the ``model_type``.

===========  ======================================  ==========================================================
since 2022   ``transformer.h.0.attn.c_attn.weight``  as ``Linear`` keeps it (on 23 and 24 June 2022 as ``Conv1D``
                                                     does); the tanh approximation
2020         ``blocks.0.attn.query.weight``          queries, keys and values apart, in copies of it also together
                                                     (``blocks.0.attn.c_attn.weight``); the exact GELU
===========  ======================================  ==========================================================
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError
from interp.model.config import TransformerConfig
from interp.model.loading.files import State, file_state
from interp.model.loading.foreign import ForeignConfig, Layout, conv1d, is_tied, linear
from interp.model.loading.huggingface import GPT2, GPT_BIASES, MASKS
from interp.model.loading.tensors import Checkpoint

NANOGPT = replace(
    GPT2,
    prefix="",
    embed="transformer.wte.weight",
    pos="transformer.wpe.weight",
    blocks="transformer.h",
    ln_final="transformer.ln_f",
    matrix=linear,
)
MINGPT_2020 = Layout(
    embed="tok_emb.weight",
    pos="pos_emb",
    unembed="head.weight",
    blocks="blocks",
    ln1="ln1",
    qkv=("attn.query", "attn.key", "attn.value"),
    o="attn.proj",
    ln2="ln2",
    mlp=("mlp.0", "mlp.2"),
    ln_final="ln_f",
)
MINGPT_MASKS = re.compile(r"\.attn\.(bias|mask)$")
LAYER = re.compile(r"(?:transformer\.h|blocks)\.(\d+)\.")
MINGPT_SIZES = {
    "openai-gpt": (12, 12, 768),
    "gpt2": (12, 12, 768),
    "gpt2-medium": (24, 16, 1024),
    "gpt2-large": (36, 20, 1280),
    "gpt2-xl": (48, 25, 1600),
    "gopher-44m": (8, 16, 512),
    "gpt-mini": (6, 6, 192),
    "gpt-micro": (4, 4, 128),
    "gpt-nano": (3, 3, 48),
}
"""By minGPT's names of them: layers, heads of a layer and width."""


def nanogpt_checkpoint(path: Path, content: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """The checkpoint that nanoGPT wrote to `path`, whose `content` was read."""
    fields = ForeignConfig(content["model_args"], f"{path}: model_args", "nanoGPT")
    config = _config(
        fields,
        act_fn="gelu" if "bias" in fields.fields else "gelu_new",
        biases=GPT_BIASES if fields.switch("bias", True) else (),
    )
    state = file_state(content["model"], path)
    config = replace(config, tied=is_tied(state, NANOGPT.embed, NANOGPT.unembed))
    return Checkpoint(str(path), "nanoGPT", config, lambda: state, NANOGPT.weights, tokenizer, MASKS)


def _config(fields: ForeignConfig, **chosen: Any) -> TransformerConfig:
    return fields.transformer(**fields.gpt_sizes(), **fields.named({"n_ctx": "block_size"}), **chosen)


def mingpt_checkpoint(
    path: Path, state: State, written: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase | None
) -> Checkpoint:
    """The checkpoint that minGPT wrote to `path`, whose tensors and whose ``config.json`` were read."""
    described = written.get("model")
    if not isinstance(described, dict):
        raise LoadError(
            f"{path}: the config.json beside it has no 'model', which minGPT writes; expected at least "
            '{"model": {"n_head": ...}}'
        )
    layout = _mingpt_layout(state)
    fields = ForeignConfig(_filled_in(described, state, layout), f"{path.parent / 'config.json'}", "minGPT")
    first = layout.embed == MINGPT_2020.embed
    config = _config(fields, act_fn="gelu" if first else "gelu_new", tied=False, biases=GPT_BIASES)
    return Checkpoint(str(path), "minGPT", config, lambda: state, layout.weights, tokenizer, MINGPT_MASKS)


def _mingpt_layout(state: State) -> Layout:
    """The generation's names, and how it keeps its matrices: ``c_attn``, which is no square, tells."""
    if MINGPT_2020.embed in state:
        qkv = "attn.c_attn" if "blocks.0.attn.c_attn.weight" in state else MINGPT_2020.qkv
        o = "attn.c_proj" if "blocks.0.attn.c_proj.weight" in state else MINGPT_2020.o
        return replace(MINGPT_2020, qkv=qkv, o=o)
    joined = state.get("transformer.h.0.attn.c_attn.weight")
    kept = joined is not None and joined.ndim == 2 and joined.shape[0] < joined.shape[1]
    return replace(NANOGPT, matrix=conv1d if kept else linear)


def _filled_in(described: Mapping[str, Any], state: Mapping[str, Tensor], layout: Layout) -> dict[str, Any]:
    """The sizes that the config names, and for those that it does not, those of the tensors."""
    found: dict[str, Any] = {"n_layer": len({match[1] for name in state if (match := LAYER.match(name))})}
    embed, positions = state.get(layout.embed), state.get(str(layout.pos))
    if embed is not None and embed.ndim == 2:
        found |= {"vocab_size": embed.shape[0], "n_embd": embed.shape[1]}
    if positions is not None and positions.ndim >= 2:
        found["block_size"] = positions.shape[-2]
    kind = described.get("model_type")
    if isinstance(kind, str) and kind in MINGPT_SIZES:
        n_layer, n_head, n_embd = MINGPT_SIZES[kind]
        if (n_layer, n_embd) == (found["n_layer"], found.get("n_embd")):
            found["n_head"] = n_head  # heads leave no trace in the shapes
    return found | {name: value for name, value in described.items() if value is not None}
