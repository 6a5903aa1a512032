"""llama2.c's ``.bin`` file: a header of seven numbers, then the tensors one after the other, in float32.

=========  ==================================================  ======================================================
version    header                                              tensors
=========  ==================================================  ======================================================
0          28 bytes: the numbers. A negative vocabulary says    embedding, first norms, attention, second norms, MLP,
           that the unembedding is not the embedding.           last norm, tables of rotary positions, unembedding
1          256 bytes: ``ak42``, the version, the numbers,       all norms, embedding, attention, MLP, unembedding
           whether the unembedding is the embedding
2          the same; quantised to 8 bits, refused here
=========  ==================================================  ======================================================

What is of every layer stands together: all queries' matrices, then all keys', and so on.
"""

import math
import struct
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError
from interp.model.config import TransformerConfig
from interp.model.loading.build import Checkpoint
from interp.model.loading.fields import ForeignConfig
from interp.model.loading.llama2c import BUFFERS, FAMILY, W_E, W_U, llama2c_config, llama2c_weights
from interp.model.loading.llama2c_tokenizer import tokenizer_beside

MAGIC = 0x616B3432
NUMBERS = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "max_seq_len")
LEGACY_HEADER, HEADER = 28, 256
Shapes = list[tuple[str, tuple[int, ...]]]


def bin_checkpoint(path: Path, tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """The model in llama2.c's `path`, with the tokenizer beside it unless another is given.

    Raises:
        LoadError: It is no such file, of an unknown version, quantised, or shorter or longer than its header says.
    """
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
    tokenizer = tokenizer_beside(path, config.d_vocab) if tokenizer is None else tokenizer
    state = _state(path, start // 4, shapes, config.n_layers)
    return Checkpoint(str(path), FAMILY, config, lambda: state, llama2c_weights, tokenizer, BUFFERS)


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
        return 0, llama2c_config(ForeignConfig(fields, f"{path}: header", FAMILY), tied=tied)
    if len(content) < HEADER:
        raise LoadError(f"{path}: expected a llama2.c header of {HEADER} bytes, got {len(content)}; fetch it again")
    version = struct.unpack_from("<i", content, 4)[0]
    if version != 1:
        kind = "quantised to 8 bits" if version == 2 else "unknown here"
        raise LoadError(f"{path}: version {version} of llama2.c's format is {kind}; export it in version 0 or 1")
    fields = dict(zip(NUMBERS, struct.unpack_from("<7i", content, 8), strict=True))
    return 1, llama2c_config(ForeignConfig(fields, f"{path}: header", FAMILY), tied=bool(content[36]))


def _shapes(config: TransformerConfig, version: int) -> Shapes:
    """The tensors in the order of the file; one with ``{}`` in its name is there once a layer."""
    d, m, e = config.d_model, config.d_mlp, config.d_head
    queries, keys = config.n_heads * e, config.kv_heads * e
    embed: Shapes = [(W_E, (config.d_vocab, d))]
    first: Shapes = [("layers.{}.attention_norm.weight", (d,))]
    second: Shapes = [("layers.{}.ffn_norm.weight", (d,))]
    last: Shapes = [("norm.weight", (d,))]
    sides = {"q": (queries, d), "k": (keys, d), "v": (keys, d), "o": (d, queries)}
    attention: Shapes = [(f"layers.{{}}.attention.w{letter}.weight", shape) for letter, shape in sides.items()]
    mlp: Shapes = [(f"layers.{{}}.feed_forward.w{i}.weight", (d, m) if i == 2 else (m, d)) for i in (1, 2, 3)]
    unembed: Shapes = [] if config.tied else [(W_U, (config.d_vocab, d))]
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
