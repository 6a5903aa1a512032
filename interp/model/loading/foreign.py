"""Reading another library's model: its config, field by field, and its tensors, by a table of their names.

A ``Layout`` says where each weight lies; ``Layout.weights`` yields our parameters from it, views with nothing copied.
Our config's ``biases`` and ``normalization`` say which biases there are.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import einops
import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import ConfigError, LoadError, shown
from interp.model.config import LARGEST, Activation, TransformerConfig, require_count
from interp.model.loading.tensors import UNQUANTISED, Parameters, Taker

ACTIVATIONS: dict[str, Activation] = {
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
"""Hugging Face's names of the activations that we have."""
ROTARY_FIELDS = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}
Matrix = Callable[[Taker, str, int, int], Float[Tensor, "n_in n_out"]]


class ForeignConfig:
    """The fields of a config that is not ours; errors call a field as it is called there."""

    def __init__(self, fields: Mapping[str, Any], source: str, family: str):
        """Keep `fields`; `source` says where they are from and `family` whose they are, for the messages."""
        self.fields, self.source, self.family = fields, source, family
        self._names: dict[str, str] = {}
        if self.get("quantization_config") is not None:
            raise LoadError(
                f"{source}: quantization_config={shown(fields['quantization_config'])} is not supported: its weights "
                f"are quantised; {UNQUANTISED}"
            )

    def __getitem__(self, name: str) -> Any:
        if name not in self.fields:
            raise LoadError(f"{self.source}: the config has no field {name!r}, which {self.family} needs")
        return self.fields[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The field, or `default` where the config does not name it."""
        return self.fields.get(name, default)

    def named(self, theirs: Mapping[str, str]) -> dict[str, Any]:
        """Our fields' values, by the names that they have there; a missing one raises."""
        self._names.update(theirs)
        return {ours: self[name] for ours, name in theirs.items()}

    def named_or(self, **theirs: tuple[str, Any]) -> dict[str, Any]:
        """The same of fields that have a default."""
        self._names.update({ours: name for ours, (name, _) in theirs.items()})
        return {ours: self.get(name, default) for ours, (name, default) in theirs.items()}

    def require(self, **supported: Any) -> None:
        """Refuse fields that ask for something else than what is supported; a field that is not there does not."""
        for name, value in supported.items():
            if self.get(name, value) != value:
                raise self.refusal(name, self.fields[name], value)

    def refusal(self, name: str, value: Any, expected: Any) -> LoadError:
        """The error that says that the field `name` asks for what is not supported."""
        return LoadError(f"{self.source}: {name}={shown(value)} is not supported, expected {expected!r}")

    def activation(self, name: str, default: str, names: Mapping[str, Activation] = ACTIVATIONS) -> Activation:
        """Our name of the activation that the field `name` names."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in names:
            raise LoadError(f"{self.source}: {name}={shown(value)}, expected one of {', '.join(names)}")
        return names[value]

    def switch(self, name: str, default: bool) -> bool:
        """The field `name`, which is true or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise LoadError(f"{self.source}: {name}: expected true or false, got {shown(value)}")
        return value

    def head_width(self, d_model: str, n_heads: str) -> int:
        """The width of one head, where all of them share the stream's, by the names of the two fields."""
        try:
            require_count(d_model, self[d_model])
            require_count(n_heads, self[n_heads])
        except ConfigError as error:
            raise LoadError(f"{self.source}: {error}") from error
        if self[d_model] % self[n_heads]:
            raise LoadError(f"{self.source}: {d_model}={self[d_model]} is not a multiple of {n_heads}={self[n_heads]}")
        return int(self[d_model] // self[n_heads])

    def gpt_sizes(self) -> dict[str, Any]:
        """The sizes that have the same names in every GPT, nanoGPT's and minGPT's too."""
        sizes = self.named({"n_layers": "n_layer", "n_heads": "n_head", "d_model": "n_embd", "d_vocab": "vocab_size"})
        return {**sizes, "d_head": self.head_width("n_embd", "n_head"), "d_mlp": 4 * sizes["d_model"]}

    def rotary(self, theta: str = "rope_theta", part: str = "partial_rotary_factor") -> tuple[Any, Any]:
        """The base of rotary positions, and the part of a head that turns; None where the config names no part.

        Since version 5, transformers writes ``rope_parameters``; before, the base and the part were fields of their
        own, called `theta` and `part`, and ``rope_scaling`` said how positions are stretched, which is refused. Where
        there are both, it reads the latter.
        """
        name = "rope_scaling" if self.get("rope_scaling") else "rope_parameters"
        parameters = self.get(name) or {}
        kind = parameters.get("rope_type", parameters.get("type", "default")) if isinstance(parameters, dict) else None
        if kind != "default" or set(parameters) - ROTARY_FIELDS:
            raise self.refusal(name, parameters, {"rope_type": "default"})
        base = parameters.get("rope_theta", self.get(theta, 10_000.0))
        whole = isinstance(base, int) and abs(base) < LARGEST
        return float(base) if whole else base, parameters.get("partial_rotary_factor", self.get(part))

    def transformer(self, **fields: Any) -> TransformerConfig:
        """Our config of `fields`."""
        try:
            return TransformerConfig.from_dict(fields)
        except ConfigError as error:
            name, _, rest = str(error).partition(":")
            raise LoadError(f"{self.source}: {self._names.get(name, name)}:{rest}") from error


def linear(take: Taker, name: str, n_in: int, n_out: int) -> Float[Tensor, "n_in n_out"]:
    """The matrix of PyTorch's ``Linear``, which keeps it transposed."""
    return take(f"{name}.weight", n_out, n_in).T


def conv1d(take: Taker, name: str, n_in: int, n_out: int) -> Float[Tensor, "n_in n_out"]:
    """The matrix of a ``Conv1D``, which keeps it as it is."""
    return take(f"{name}.weight", n_in, n_out)


def norm(take: Taker, name: str, ours: str, config: TransformerConfig) -> Parameters:
    """A LayerNorm, or an RMSNorm, which has no bias. In old checkpoints, weights are ``gamma`` and biases ``beta``."""
    weight, shift = ("gamma", "beta") if f"{name}.gamma" in take else ("weight", "bias")
    yield f"{ours}.w", take(f"{name}.{weight}", config.d_model)
    if config.normalization == "LN" and "norm" in config.biases:
        yield f"{ours}.b", take(f"{name}.{shift}", config.d_model)


@dataclass(frozen=True)
class Layout:
    """Where a family keeps its weights: names of tensors, and of layers (without ``.weight``) within a block."""

    embed: str  # the token embedding ``[d_vocab d_model]``
    unembed: str  # the unembedding ``[d_vocab d_model]``, where it is another
    blocks: str  # what stands before a block's number
    ln1: str  # the norm of attention
    qkv: str | tuple[str, ...]  # queries, keys and values: each by a layer of its own, or all by one
    o: str  # what the heads write
    ln2: str  # the norm of the MLP
    mlp: tuple[str, ...]  # what the neurons read, and what they write; with a gate, that stands first
    ln_final: str | None  # the last norm
    # the position embedding, ``[n_ctx d_model]``, or with a leading axis of 1 where it is no ``.weight``
    pos: str | None = None
    prefix: str = ""  # before the names of the body's tensors, unless the checkpoint is of the body alone
    matrix: Matrix = linear  # how matrices are kept
    # whether rows of joined queries, keys and values are ``[head, (q, k, v), d_head]`` (GPT-NeoX)
    by_head: bool = False
    neighbours: bool = False  # whether rotary positions turn neighbouring components (llama2.c)

    def weights(self, take: Taker, config: TransformerConfig) -> Parameters:
        """Our parameters from the checkpoint's tensors."""
        body = take.prefix(self.prefix, self.embed) if self.prefix else ""
        W_E = take(body + self.embed, config.d_vocab, config.d_model)
        yield "embed.W_E", W_E
        if config.tied:
            take.take_copy(self.unembed, W_E, body + self.embed)
        else:
            yield "unembed.W_U", take(self.unembed, config.d_vocab, config.d_model).T
        if self.pos is not None:
            leading = () if self.pos.endswith(".weight") else (1,)
            table = take(body + self.pos, *leading, config.n_ctx, config.d_model)
            yield "pos_embed.W_pos", table[0] if leading else table
        for layer in range(config.n_layers):
            theirs, ours = f"{body}{self.blocks}.{layer}.", f"blocks.{layer}"
            yield from norm(take, theirs + self.ln1, f"{ours}.ln1", config)
            yield from self._attention(take, theirs, f"{ours}.attn", config)
            yield from norm(take, theirs + self.ln2, f"{ours}.ln2", config)
            yield from self._mlp(take, theirs, f"{ours}.mlp", config)
        if self.ln_final is not None:
            yield from norm(take, body + self.ln_final, "ln_final", config)

    def _attention(self, take: Taker, theirs: str, ours: str, config: TransformerConfig) -> Parameters:
        for letter, (weight, *biases) in self._heads(take, theirs, config):
            heads = config.n_heads if letter == "Q" else config.kv_heads
            by_head = einops.rearrange(weight, "d (h e) -> h d e", h=heads)
            if self.neighbours and letter != "V":  # the components of each head, the even ones first
                by_head = einops.rearrange(by_head, "h d (pair two) -> h d (two pair)", two=2)
            yield f"{ours}.W_{letter}", by_head
            for bias in biases:
                yield f"{ours}.b_{letter}", bias.reshape(heads, config.d_head)
        weight = self.matrix(take, theirs + self.o, config.n_heads * config.d_head, config.d_model)
        yield f"{ours}.W_O", einops.rearrange(weight, "(h e) d -> h e d", h=config.n_heads)
        if "o" in config.biases:
            yield f"{ours}.b_O", take(f"{theirs}{self.o}.bias", config.d_model)

    def _heads(self, take: Taker, theirs: str, config: TransformerConfig) -> Iterator[tuple[str, list[Tensor]]]:
        """Letter, matrix and, where there is one, bias of queries, keys and values."""
        inner, kept = config.n_heads * config.d_head, config.kv_heads * config.d_head

        def read(name: str, width: int) -> list[Tensor]:
            matrix = self.matrix(take, theirs + name, config.d_model, width)
            return [matrix, take(f"{theirs}{name}.bias", width)] if "qkv" in config.biases else [matrix]

        def part(joined: Tensor, number: int) -> Tensor:
            if not self.by_head:
                return joined.chunk(3, dim=-1)[number]
            return joined.unflatten(-1, (config.n_heads, 3, config.d_head))[..., number, :].flatten(-2)

        if isinstance(self.qkv, str):
            joined = read(self.qkv, 3 * inner)
            yield from ((letter, [part(each, number) for each in joined]) for number, letter in enumerate("QKV"))
        else:
            for letter, name, width in zip("QKV", self.qkv, (inner, kept, kept), strict=True):
                yield letter, read(name, width)

    def _mlp(self, take: Taker, theirs: str, ours: str, config: TransformerConfig) -> Parameters:
        for which, name in zip(("gate", "in", "out")[-len(self.mlp) :], self.mlp, strict=True):
            sizes = (config.d_mlp, config.d_model) if which == "out" else (config.d_model, config.d_mlp)
            yield f"{ours}.W_{which}", self.matrix(take, theirs + name, *sizes)
            if "mlp" in config.biases:
                yield f"{ours}.b_{which}", take(f"{theirs}{name}.bias", sizes[1])


def is_tied(state: Mapping[str, Tensor], embed: str, unembed: str) -> bool:
    """Whether the unembedding is the embedding, or is not there at all."""
    if unembed not in state or embed not in state:
        return unembed not in state
    one, other = state[embed], state[unembed]
    return one.dtype == other.dtype and torch.equal(one, other)
