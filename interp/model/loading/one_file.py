"""Checkpoints that are one file: nanoGPT's and minGPT's ``.pt``, and llama2.c's ``.pt`` and ``.bin``.

**nanoGPT** calls its layers as GPT-2 does, but keeps them as ``Linear`` does. Its embeddings are tied since January
2023; whether both tensors are equal tells. ``model_args`` name ``bias`` since 27 January 2023 (before, there always
were some). Its GELU is exact since 17 May 2023 and was the tanh approximation before, and nothing says which: it is
read as exact where ``bias`` is named. In what was trained between the dates, each neuron is then off by at most 0.0005.

**minGPT** writes the config before it is filled in: null sizes are read off the tensors, heads off the ``model_type``.
Since 2022 it names its layers as nanoGPT does (on 23 and 24 June 2022 kept as ``Conv1D`` does) and has the tanh
approximation. In 2020, queries, keys and values were apart, in copies of it also together; the GELU was exact.

**llama2.c** keeps Llama under Meta's names. Its rotary positions turn neighbouring components ``(2 i, 2 i + 1)``; ours,
as Hugging Face's, turn ``i`` with ``i + d_head / 2``. So the components of every query and key are reordered alike,
which leaves every score as it was. A ``.bin`` file is a header with seven numbers, then the tensors, in float32, each
kind for all layers together (``_shapes``). In version 0, the header is the numbers alone, and a negative vocabulary
says that the unembedding is not the embedding. In version 1, it is ``ak42``, the version, the numbers, and whether the
unembedding is the embedding. Version 2 is quantised to 8 bits, and refused here.
"""

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError
from interp.model.config import TransformerConfig
from interp.model.loading import tensors
from interp.model.loading.family_configs import GPT_BIASES
from interp.model.loading.family_tensors import GPT2
from interp.model.loading.foreign import ForeignConfig
from interp.model.loading.huggingface import GPT_BUFFERS
from interp.model.loading.layout import Layout, is_tied
from interp.model.loading.tensors import Checkpoint
from interp.model.loading.tokenizer import load_tokenizer, tokenizer_beside

PYTORCH = (".pt", ".pth", ".ckpt")
NANOGPT = replace(
    GPT2,
    prefix="",
    embed="transformer.wte.weight",
    pos="transformer.wpe.weight",
    blocks="transformer.h",
    ln_final="transformer.ln_f",
    conv1d=False,
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
LLAMA2C = Layout(
    embed="tok_embeddings.weight",
    unembed="output.weight",
    blocks="layers",
    ln1="attention_norm",
    qkv=("attention.wq", "attention.wk", "attention.wv"),
    o="attention.wo",
    ln2="ffn_norm",
    mlp=("feed_forward.w1", "feed_forward.w3", "feed_forward.w2"),
    ln_final="norm",
    neighbours=True,
)
BUFFERS = re.compile(r"^freqs_(cos|sin)$|\.attention\.mask$")
W_1 = "layers.0.feed_forward.w1.weight"
FAMILY = "llama2.c"
SIZES: dict[str, str | tuple[str, Any]] = {
    "n_layers": "n_layers",
    "n_heads": "n_heads",
    "d_model": "dim",
    "d_mlp": "hidden_dim",
    "d_vocab": "vocab_size",
    "n_ctx": "max_seq_len",
    "n_kv_heads": ("n_kv_heads", None),
    "eps": ("norm_eps", 1e-5),
}
MAGIC = 0x616B3432
NUMBERS = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "max_seq_len")
LEGACY_HEADER, HEADER = 28, 256
Shapes = list[tuple[str, tuple[int, ...]]]


def file_checkpoint(path: Path, tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """The checkpoint that is one file, with the tokenizer beside it unless another is given."""
    llama2c_bin = path.suffix == ".bin" and path.name != tensors.BIN
    if not llama2c_bin and path.suffix not in PYTORCH:
        raise LoadError(
            f"{path}: expected a folder with config.json and weights, nanoGPT's or minGPT's checkpoint (.pt), "
            "llama2.c's (.bin), or a .gguf file, got another file; give its folder"
        )
    if tokenizer is None:
        tokenizer = load_tokenizer(path.parent)
    found = bin_checkpoint(path) if llama2c_bin else pt_checkpoint(path)
    if tokenizer is None and found.family == FAMILY:
        tokenizer = tokenizer_beside(path, found.config.d_vocab)
    return replace(found, tokenizer=tokenizer)


def pt_checkpoint(path: Path) -> Checkpoint:
    """What PyTorch wrote to `path`: nanoGPT's checkpoint, minGPT's or llama2.c's."""
    content = tensors.read_torch(path)
    if isinstance(content, dict) and {"model", "model_args"} <= content.keys():
        arguments = content["model_args"]
        if not isinstance(arguments, dict):
            kind = type(arguments).__name__
            raise LoadError(f"{path}: 'model_args': expected a dictionary of the model's sizes, got {kind}")
        return (llama2c_checkpoint if "dim" in arguments else nanogpt_checkpoint)(path, content)
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        raise LoadError(
            f"{path}: a checkpoint of Lightning, which does not say what the model is made of; save its 'state_dict' "
            f"as {tensors.BIN} in a folder with the config.json of the model, and give that folder"
        )
    if not (path.parent / "config.json").is_file():
        raise LoadError(
            f"{path}: expected a dictionary with 'model' and 'model_args', as nanoGPT writes, or minGPT's config.json "
            "beside it, which says how many heads there are; got neither"
        )
    written = tensors.read_json(path.parent / "config.json")
    return mingpt_checkpoint(path, tensors.file_state(content, path), written)


def nanogpt_checkpoint(path: Path, content: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint that nanoGPT wrote to `path`, whose `content` was read."""
    fields = ForeignConfig(content["model_args"], f"{path}: model_args", "nanoGPT")
    config = _gpt_config(
        fields,
        act_fn="gelu" if "bias" in fields.fields else "gelu_new",
        biases=GPT_BIASES if fields.switch("bias", True) else (),
    )
    state = tensors.file_state(content["model"], path)
    config = replace(config, tied=is_tied(state, NANOGPT.embed, NANOGPT.unembed))
    return Checkpoint(str(path), "nanoGPT", config, lambda: state, NANOGPT.weights, left_out=GPT_BUFFERS)


def _gpt_config(fields: ForeignConfig, **chosen: Any) -> TransformerConfig:
    return fields.transformer(**fields.gpt_sizes(), **fields.named({"n_ctx": "block_size"}), **chosen)


def mingpt_checkpoint(path: Path, state: tensors.State, written: Mapping[str, Any]) -> Checkpoint:
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
    config = _gpt_config(fields, act_fn="gelu" if first else "gelu_new", tied=False, biases=GPT_BIASES)
    return Checkpoint(str(path), "minGPT", config, lambda: state, layout.weights, left_out=MINGPT_MASKS)


def _mingpt_layout(state: tensors.State) -> Layout:
    """The generation's names, and how it keeps its matrices: ``c_attn``, which is no square, tells."""
    if MINGPT_2020.embed in state:
        qkv = "attn.c_attn" if "blocks.0.attn.c_attn.weight" in state else MINGPT_2020.qkv
        o = "attn.c_proj" if "blocks.0.attn.c_proj.weight" in state else MINGPT_2020.o
        return replace(MINGPT_2020, qkv=qkv, o=o)
    joined = state.get("transformer.h.0.attn.c_attn.weight")
    kept = joined is not None and joined.ndim == 2 and joined.shape[0] < joined.shape[1]
    return replace(NANOGPT, conv1d=kept)


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
    # model_type is minGPT's own name of a size there
    kept = {name: value for name, value in described.items() if value is not None and name != "model_type"}
    return found | kept


def llama2c_checkpoint(path: Path, content: Mapping[str, Any]) -> Checkpoint:
    """The training checkpoint that llama2.c wrote to `path`, whose `content` was read."""
    state = tensors.file_state(content["model"], path)
    if W_1 not in state or state[W_1].ndim != 2:
        raise LoadError(f"{path}: tensor {W_1!r} is not a matrix here, which would say how many neurons there are")
    fields = {**content["model_args"], "hidden_dim": len(state[W_1])}
    config = _llama2c_config(fields, f"{path}: model_args", tied=is_tied(state, LLAMA2C.embed, LLAMA2C.unembed))
    return Checkpoint(str(path), FAMILY, config, lambda: state, LLAMA2C.weights, left_out=BUFFERS)


def _llama2c_config(fields: Mapping[str, Any], source: str, *, tied: bool) -> TransformerConfig:
    config = ForeignConfig(fields, source, FAMILY)
    return config.transformer(
        **config.named(SIZES),
        d_head=config.head_width("dim", "n_heads"),
        act_fn="silu",
        tied=tied,
        positions="rotary",
        normalization="RMS",
        gated=True,
        biases=(),
    )


def bin_checkpoint(path: Path) -> Checkpoint:
    """The model in llama2.c's `path`."""
    version, config = _header(path)
    shapes = _shapes(config, version)
    start = HEADER if version else LEGACY_HEADER
    numbers = sum(math.prod(shape) * (config.n_layers if "{}" in name else 1) for name, shape in shapes)
    size = path.stat().st_size
    if size != start + 4 * numbers:
        raise LoadError(
            f"{path}: expected {start + 4 * numbers} bytes of a llama2.c model of version {version} with these sizes, "
            f"got {size}; fetch or export it again, or give the folder of another kind of model"
        )
    state = _state(path, start // 4, shapes, config.n_layers)
    return Checkpoint(str(path), FAMILY, config, lambda: state, LLAMA2C.weights, left_out=BUFFERS)


def _header(path: Path) -> tuple[int, TransformerConfig]:
    """The version of the file, and our config of its numbers."""
    try:
        with path.open("rb") as file:
            content = file.read(HEADER)
    except OSError as error:
        raise LoadError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    if len(content) < LEGACY_HEADER:
        raise LoadError(f"{path}: expected a llama2.c header of at least {LEGACY_HEADER} bytes, got {len(content)}")
    if struct.unpack_from("<I", content)[0] != MAGIC:
        numbers = [*struct.unpack_from("<7i", content)]
        fields = dict(zip(NUMBERS, numbers, strict=True)) | {"vocab_size": abs(numbers[5])}
        return 0, _llama2c_config(fields, f"{path}: header", tied=numbers[5] > 0)
    if len(content) < HEADER:
        raise LoadError(f"{path}: expected a llama2.c header of {HEADER} bytes, got {len(content)}; fetch it again")
    version, *numbers = struct.unpack_from("<8i", content, 4)
    if version != 1:
        kind = "quantised to 8 bits" if version == 2 else "unknown here"
        raise LoadError(f"{path}: version {version} of llama2.c's format is {kind}; export it in version 0 or 1")
    fields = dict(zip(NUMBERS, numbers, strict=True))
    return 1, _llama2c_config(fields, f"{path}: header", tied=bool(content[36]))


def _shapes(config: TransformerConfig, version: int) -> Shapes:
    """The tensors in the order of the file; one with ``{}`` in its name is there once a layer."""
    d, m, e = config.d_model, config.d_mlp, config.d_head
    queries, keys = config.n_heads * e, config.kv_heads * e
    embed: Shapes = [(LLAMA2C.embed, (config.d_vocab, d))]
    first: Shapes = [("layers.{}.attention_norm.weight", (d,))]
    second: Shapes = [("layers.{}.ffn_norm.weight", (d,))]
    last: Shapes = [("norm.weight", (d,))]
    sides = {"q": (queries, d), "k": (keys, d), "v": (keys, d), "o": (d, queries)}
    attention: Shapes = [(f"layers.{{}}.attention.w{letter}.weight", shape) for letter, shape in sides.items()]
    mlp: Shapes = [(f"layers.{{}}.feed_forward.w{i}.weight", (d, m) if i == 2 else (m, d)) for i in (1, 2, 3)]
    unembed: Shapes = [] if config.tied else [(LLAMA2C.unembed, (config.d_vocab, d))]
    if version:
        return [*first, *second, *last, *embed, *attention, *mlp, *unembed]
    turns: Shapes = [(name, (config.n_ctx, e // 2)) for name in ("freqs_cos", "freqs_sin")]
    return [*embed, *first, *attention, *second, *mlp, *last, *turns, *unembed]


def _state(path: Path, start: int, shapes: Shapes, n_layers: int) -> dict[str, Tensor]:
    """The tensors, mapped from the file."""
    numbers = torch.from_file(str(path), shared=False, size=path.stat().st_size // 4, dtype=torch.float32)
    state = {}
    for name, shape in shapes:
        for each in [name.format(layer) for layer in range(n_layers)] if "{}" in name else [name]:
            state[each] = numbers[start : start + math.prod(shape)].view(shape)
            start += math.prod(shape)
    return state
