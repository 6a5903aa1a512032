"""llama2.c's models: Llama under Meta's names, from its training checkpoint or from a ``.bin`` file.

Its rotary positions turn neighbouring components ``(2 i, 2 i + 1)``; ours, as Hugging Face's, turn ``i`` with
``i + d_head / 2``. So the components of every query and key are reordered alike, which leaves every score as it was.

A ``.bin`` file is a header of seven numbers, then the tensors, in float32, each kind for all layers together:

=======  =====================================================  ===================================================
version  header                                                 tensors
=======  =====================================================  ===================================================
0        28 bytes: the numbers. A negative vocabulary says      embedding, first norms, attention, second norms,
         that the unembedding is not the embedding.             MLP, last norm, rotary tables, unembedding
1        256 bytes: ``ak42``, the version, the numbers,         all norms, embedding, attention, MLP, unembedding
         whether the unembedding is the embedding
2        the same; quantised to 8 bits, refused here
=======  =====================================================  ===================================================
"""

import math
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError
from interp.model.config import TransformerConfig
from interp.model.loading.files import file_state
from interp.model.loading.foreign import ForeignConfig, Layout, is_tied
from interp.model.loading.tensors import Checkpoint
from interp.model.loading.tokenizer import tokenizer_beside

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
SIZES = {
    "n_layers": "n_layers",
    "n_heads": "n_heads",
    "d_model": "dim",
    "d_mlp": "hidden_dim",
    "d_vocab": "vocab_size",
    "n_ctx": "max_seq_len",
}
MAGIC = 0x616B3432
NUMBERS = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "max_seq_len")
LEGACY_HEADER, HEADER = 28, 256
Shapes = list[tuple[str, tuple[int, ...]]]


def llama2c_checkpoint(path: Path, content: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """The training checkpoint that llama2.c wrote to `path`, whose `content` was read."""
    state = file_state(content["model"], path)
    if W_1 not in state or state[W_1].ndim != 2:
        raise LoadError(f"{path}: tensor {W_1!r} is no matrix here, which would say how many neurons there are")
    fields = {**content["model_args"], "hidden_dim": len(state[W_1])}
    config = _config(fields, f"{path}: model_args", tied=is_tied(state, LLAMA2C.embed, LLAMA2C.unembed))
    return _checkpoint(path, config, state, tokenizer)


def _checkpoint(
    path: Path, config: TransformerConfig, state: dict[str, Tensor], tokenizer: PreTrainedTokenizerBase | None
) -> Checkpoint:
    tokenizer = tokenizer_beside(path, config.d_vocab) if tokenizer is None else tokenizer
    return Checkpoint(str(path), FAMILY, config, lambda: state, LLAMA2C.weights, tokenizer, BUFFERS)


def _config(fields: Mapping[str, Any], source: str, *, tied: bool) -> TransformerConfig:
    config = ForeignConfig(fields, source, FAMILY)
    return config.transformer(
        **config.named(SIZES),
        **config.named_or(n_kv_heads=("n_kv_heads", None), eps=("norm_eps", 1e-5)),
        d_head=config.head_width("dim", "n_heads"),
        act_fn="silu",
        tied=tied,
        positions="rotary",
        normalization="RMS",
        gated=True,
        biases=(),
    )


def bin_checkpoint(path: Path, tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """The model in llama2.c's `path`, with the tokenizer beside it unless another is given."""
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
    return _checkpoint(path, config, _state(path, start // 4, shapes, config.n_layers), tokenizer)


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
        fields = dict(zip(NUMBERS, struct.unpack_from("<7i", content), strict=True))
        tied = fields["vocab_size"] > 0
        fields["vocab_size"] = abs(fields["vocab_size"])
        return 0, _config(fields, f"{path}: header", tied=tied)
    if len(content) < HEADER:
        raise LoadError(f"{path}: expected a llama2.c header of {HEADER} bytes, got {len(content)}; fetch it again")
    version = struct.unpack_from("<i", content, 4)[0]
    if version != 1:
        kind = "quantised to 8 bits" if version == 2 else "unknown here"
        raise LoadError(f"{path}: version {version} of llama2.c's format is {kind}; export it in version 0 or 1")
    fields = dict(zip(NUMBERS, struct.unpack_from("<7i", content, 8), strict=True))
    return 1, _config(fields, f"{path}: header", tied=bool(content[36]))


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
