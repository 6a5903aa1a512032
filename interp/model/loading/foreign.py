"""Reading another library's model: its config, field by field, and its tensors, by a table of their names.

A ``Layout`` says where each weight lies; ``Layout.weights`` yields our parameters from it, views with nothing copied.
Our config's ``biases`` and ``normalization`` say which biases there are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
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

    def named(self, theirs: Mapping[str, str | tuple[str, Any]]) -> dict[str, Any]:
        """Our fields' values, by the names that they have there; a missing one without a default beside it raises."""
        self._names.update({ours: name if isinstance(name, str) else name[0] for ours, name in theirs.items()})
        return {ours: self[name] if isinstance(name, str) else self.get(*name) for ours, name in theirs.items()}

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
    conv1d: bool = False  # whether matrices are ``[in out]``, as ``Conv1D`` keeps them, and not ``[out in]``
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
            yield from norm(take, theirs + self.ln2, f"{ours}.ln2", config)
            for matrix in self._matrices():
                yield from ((f"{ours}.{name}", each) for name, each in self._read(take, theirs, config, *matrix))
        if self.ln_final is not None:
            yield from norm(take, body + self.ln_final, "ln_final", config)

    def _matrices(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Of a block: our weights, the layer that holds them, its axes out and in, and the axes of ours.

        Axes are ``d`` (d_model), ``m`` (d_mlp), ``h`` and ``k`` (heads of queries, and of keys), ``e`` (d_head).
        """
        turned, as_ours = ("pair two", "(two pair)") if self.neighbours else ("e", "e")  # the even ones first
        if isinstance(self.qkv, str):
            yield "attn.W_Q attn.W_K attn.W_V", self.qkv, "(h qkv e)" if self.by_head else "(qkv h e)", "d", "qkv h d e"
        else:
            yield "attn.W_Q", self.qkv[0], f"(h {turned})", "d", f"h d {as_ours}"
            yield "attn.W_K", self.qkv[1], f"(k {turned})", "d", f"k d {as_ours}"
            yield "attn.W_V", self.qkv[2], "(k e)", "d", "k d e"
        yield "attn.W_O", self.o, "d", "(h e)", "h e d"
        *read, written = self.mlp
        for name, layer in zip(("mlp.W_gate", "mlp.W_in")[-len(read) :], read, strict=True):
            yield name, layer, "m", "d", "d m"
        yield "mlp.W_out", written, "d", "m", "m d"

    def _read(
        self, take: Taker, block: str, config: TransformerConfig, ours: str, layer: str, out: str, in_: str, axes: str
    ) -> Parameters:
        """Our weights from one matrix, and our biases."""
        sizes = {"d": config.d_model, "m": config.d_mlp, "h": config.n_heads, "k": config.kv_heads}
        sizes |= {"e": config.d_head, "pair": config.d_head // 2, "two": 2, "qkv": 3}
        names = ours.split()
        weight = take.arranged(f"{block}{layer}.weight", f"{in_} {out}" if self.conv1d else f"{out} {in_}", axes, sizes)
        yield from zip(names, weight if len(names) > 1 else [weight], strict=True)
        if ("mlp" if "mlp" in ours else "o" if ours == "attn.W_O" else "qkv") in config.biases:
            axes = " ".join(axis for axis in axes.split() if axis not in in_)
            bias = take.arranged(f"{block}{layer}.bias", out, axes, sizes)
            yield from zip(ours.replace("W", "b").split(), bias if len(names) > 1 else [bias], strict=True)


def is_tied(state: Mapping[str, Tensor], embed: str, unembed: str) -> bool:
    """Whether the unembedding is the embedding, or is not there at all."""
    if unembed not in state or embed not in state:
        return unembed not in state
    one, other = state[embed], state[unembed]
    return one.dtype == other.dtype and torch.equal(one, other)
