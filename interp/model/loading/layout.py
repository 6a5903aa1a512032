"""Where another library keeps its weights: names of tensors and the order of their axes, from which ours are made.

``Layout.weights`` yields our parameters, views with nothing copied where that is possible. Our config says which
biases, norms and experts there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from interp.model.config import TransformerConfig
from interp.model.loading.tensors import Parameters, Taker

Names = str | tuple[str, ...]
"""What a layer is called, or what it is called in one of several versions."""


@dataclass(frozen=True)
class ExpertLayout:
    """Where a block's experts are, without the block's own name."""

    router: str  # the layer that chooses
    read: tuple[str, ...]  # what neurons read: of the gate, then of the other factor, or both in one
    written: str  # what they write
    # axes of both factors in one: ``x`` (expert), ``two``, ``m`` (d_mlp), ``d`` (d_model); None where each expert
    # has layers of its own, whose names have its number in the place of ``{}``
    joined: str | None = None
    joined_written: str = "x d m"  # axes of what is written, of all experts in one

    def is_in(self, take: Taker, block: str) -> bool:
        """Whether a block's experts are kept so."""
        return f"{block}{self.read[0]}" in take if self.joined else f"{block}{self.read[0].format(0)}.weight" in take

    def weights(self, take: Taker, block: str, config: TransformerConfig) -> Parameters:
        """Our parameters of a block, by their names within ``mlp``."""
        n, d, m = config.n_experts, config.d_model, config.d_mlp
        sizes, biased = {"x": n, "d": d, "m": m, "two": 2}, "mlp" in config.biases
        yield "W_router", take(f"{block}{self.router}.weight", n, d).T
        if biased:
            yield "b_router", take(f"{block}{self.router}.bias", n)
        if self.joined is None:
            shapes = {"gate": (self.read[0], m, d), "in": (self.read[1], m, d), "out": (self.written, d, m)}
            for ours, (theirs, *shape) in shapes.items():
                each = [take(f"{block}{theirs.format(expert)}.weight", *shape).T for expert in range(n)]
                yield f"W_{ours}", torch.stack(each)
            return
        both, written = f"{block}{self.read[0]}", f"{block}{self.written}"
        yield from zip(("W_gate", "W_in"), take.arranged(both, self.joined, "two x d m", sizes), strict=True)
        yield "W_out", take.arranged(written, self.joined_written, "x m d", sizes)
        if biased:
            axes = self.joined.replace(" d", "")
            yield from zip(("b_gate", "b_in"), take.arranged(f"{both}_bias", axes, "two x m", sizes), strict=True)
            yield "b_out", take(f"{written}_bias", n, d)


def norm(take: Taker, name: str, ours: str, config: TransformerConfig, *, from_zero: bool = False) -> Parameters:
    """A LayerNorm, or an RMSNorm, which has no bias. In old checkpoints, weights are ``gamma`` and biases ``beta``.

    Of weights that count `from_zero`, 1 is added: in 32 bits at least, as where the norm is computed.
    """
    weight, shift = ("gamma", "beta") if f"{name}.gamma" in take else ("weight", "bias")
    yield f"{ours}.w", _from_one(take(f"{name}.{weight}", config.d_model), from_zero)
    if config.normalization == "LN" and "norm" in config.biases:
        yield f"{ours}.b", take(f"{name}.{shift}", config.d_model)


def _from_one(weight: Tensor, from_zero: bool) -> Tensor:
    return weight.to(torch.promote_types(weight.dtype, torch.float32)) + 1 if from_zero else weight


def _present(take: Taker, before: str, names: Names, after: str) -> str | None:
    """Which of the names is there; None where there are several of which none is."""
    if isinstance(names, str):
        return names
    return next((each for each in names if f"{before}{each}{after}" in take), None)


@dataclass(frozen=True)
class Layout:
    """Where a family keeps its weights: names of tensors, and of layers (without ``.weight``) within a block."""

    embed: str  # the token embedding ``[d_vocab d_model]``
    unembed: str  # the unembedding ``[d_vocab d_model]``, where it is another
    blocks: str  # what stands before a block's number
    # the norm of attention, that of the MLP (where a parallel block has none of several names, the same one), and the
    # last one. None where none has weights
    ln1: Names | None
    qkv: str | tuple[str, ...]  # queries, keys and values: each by a layer of its own, or all by one
    o: str  # what the heads write
    ln2: Names | None
    # what the neurons read, and what they write. With a gate, that stands first, or is the first half of what they read
    mlp: tuple[str, ...]
    ln_final: str | None
    # the position embedding, ``[n_ctx d_model]``, or with a leading axis of 1 where it is no ``.weight``
    pos: str | None = None
    unembed_bias: str | None = None  # the bias of logits
    unused_positions: int = 0  # rows in front of it that no position has
    prefix: str = ""  # before the names of the body's tensors, unless the checkpoint is of the body alone
    conv1d: bool = False  # whether matrices are ``[in out]``, as ``Conv1D`` keeps them, and not ``[out in]``
    # whether rows of joined queries, keys and values stand by key head: its queries, its key, its value (GPT-NeoX)
    by_head: bool = False
    neighbours: bool = False  # whether rotary positions turn neighbouring components (llama2.c, GPT-J)
    ln_embed: str | None = None  # the norm of the embedding
    ln1_post: str | None = None  # the norm of what attention writes
    ln2_post: str | None = None  # the norm of what the MLP writes
    qk_norm: tuple[str, ...] = ()  # the norms of queries and of keys
    sinks: str = ""  # the heads' scores of nothing
    experts: tuple[ExpertLayout, ...] = ()  # in the versions that there are
    norms_from_zero: bool = False  # whether a norm multiplies by 1 more than its weights (Gemma)

    def weights(self, take: Taker, config: TransformerConfig) -> Parameters:
        """Our parameters from the checkpoint's tensors."""
        body = take.prefix(self.prefix, self.embed) if self.prefix else ""
        W_E = take(body + self.embed, config.d_vocab, config.d_model)
        yield "embed.W_E", W_E
        if config.tied:
            take.take_copy(self.unembed, W_E, body + self.embed)
        else:
            yield "unembed.W_U", take(self.unembed, config.d_vocab, config.d_model).T
        if self.unembed_bias is not None:
            yield "unembed.b_U", take(self.unembed_bias, config.d_vocab)
        if self.pos is not None:
            leading = () if self.pos.endswith(".weight") else (1,)
            table = take(body + self.pos, *leading, config.n_ctx + self.unused_positions, config.d_model)
            yield "pos_embed.W_pos", table[0] if leading else table[self.unused_positions :]
        if self.ln_embed is not None:
            yield from norm(take, body + self.ln_embed, "ln_embed", config)
        for layer in range(config.n_layers):
            theirs = f"{body}{self.blocks}.{layer}."
            yield from ((f"blocks.{layer}.{name}", each) for name, each in self._block(take, theirs, config))
        if config.norm_position != "post":
            yield from self._norm(take, "" if self.ln_final is None else body, self.ln_final, "ln_final", config)

    def _block(self, take: Taker, block: str, config: TransformerConfig) -> Parameters:
        if config.norm_position != "reordered":
            first = list(self._norm(take, block, self.ln1, "ln1", config))
            yield from first
            if config.parallel and isinstance(self.ln2, tuple) and _present(take, block, self.ln2, ".weight") is None:
                yield from ((name.replace("ln1", "ln2"), each) for name, each in first)
            else:
                yield from self._norm(take, block, self.ln2, "ln2", config)
        for ours, theirs in (("ln1_post", self.ln1_post), ("ln2_post", self.ln2_post)):
            if theirs is not None:
                yield from self._norm(take, block, theirs, ours, config)
        for letter, n, theirs in zip("qk", (config.n_heads, config.kv_heads), self.qk_norm, strict=False):
            shape = (n, config.d_head) if config.qk_norm == "flat" else (config.d_head,)
            flat = take(f"{block}{theirs}.weight", torch.Size(shape).numel())
            yield f"attn.{letter}_norm.w", _from_one(flat, self.norms_from_zero).view(shape)
        if config.sinks:
            yield "attn.sinks", take(block + self.sinks, config.n_heads)
        yield from self._heads(take, block, config)
        if config.n_experts:
            found = next((each for each in self.experts if each.is_in(take, block)), self.experts[-1])
            yield from ((f"mlp.{name}", each) for name, each in found.weights(take, block, config))
        else:
            yield from self._mlp(take, block, config)

    def _norm(self, take: Taker, before: str, names: Names | None, ours: str, config: TransformerConfig) -> Parameters:
        """A norm of ours; 1 and 0 where theirs has no weights."""
        if names is None:
            yield f"{ours}.w", torch.ones(config.d_model)
            return
        name = _present(take, before, names, ".weight") or names[0]
        yield from norm(take, before + name, ours, config, from_zero=self.norms_from_zero)

    def _heads(self, take: Taker, block: str, config: TransformerConfig) -> Parameters:
        """Weights and biases of attention. Axes are ``d`` (d_model), ``h``, ``k`` (heads of queries, keys), ``e``."""
        sizes = {"d": config.d_model, "h": config.n_heads, "k": config.kv_heads, "e": config.d_head}
        sizes |= {"n": config.n_heads + 2 * config.kv_heads, "u": config.n_heads // config.kv_heads + 2}
        for kind, ours, biased in (("weight", "W", True), ("bias", "b", "qkv" in config.biases)):
            if biased:
                parts = self._qkv(take, block, kind, config, sizes)
                yield from ((f"attn.{ours}_{letter}", part) for letter, part in zip("QKV", parts, strict=True))
        yield "attn.W_O", self._matrix(take, f"{block}{self.o}", "d", "(h e)", "h e d", sizes)
        if "o" in config.biases:
            yield "attn.b_O", take(f"{block}{self.o}.bias", config.d_model)

    def _qkv(
        self, take: Taker, block: str, kind: str, config: TransformerConfig, sizes: Mapping[str, int]
    ) -> tuple[Tensor, ...]:
        """Queries, keys and values by head: matrices ``[head d_model d_head]`` or biases ``[head d_head]``."""
        if isinstance(self.qkv, str):
            out, axes = ("(k u e)", "k u") if self.by_head else ("(n e)", "n")
            joined = self._read(take, f"{block}{self.qkv}", kind, out, axes, sizes)
            parts: tuple[Tensor, ...]
            if self.by_head:
                parts = (joined[:, :-2].flatten(0, 1), joined[:, -2], joined[:, -1])
            else:
                parts = joined.split([config.n_heads, config.kv_heads, config.kv_heads])
        else:
            parts = tuple(
                self._read(take, f"{block}{layer}", kind, f"({head} e)", head, sizes)
                for layer, head in zip(self.qkv, "hkk", strict=True)
            )
        if not self.neighbours:
            return parts
        turned = config.rotary_dim or config.d_head
        order = torch.tensor([*range(0, turned, 2), *range(1, turned, 2), *range(turned, config.d_head)])
        return parts[0][..., order], parts[1][..., order], parts[2]

    def _read(self, take: Taker, layer: str, kind: str, out: str, heads: str, sizes: Mapping[str, int]) -> Tensor:
        if kind == "bias":
            return take.arranged(f"{layer}.bias", out, f"{heads} e", sizes)
        return self._matrix(take, layer, out, "d", f"{heads} d e", sizes)

    def _matrix(self, take: Taker, layer: str, out: str, in_: str, ours: str, sizes: Mapping[str, int]) -> Tensor:
        """A layer's weights, of axes `out` and `in_`, as `ours`."""
        return take.arranged(f"{layer}.weight", f"{in_} {out}" if self.conv1d else f"{out} {in_}", ours, sizes)

    def _mlp(self, take: Taker, block: str, config: TransformerConfig) -> Parameters:
        """Weights and biases of the MLP. Axes are ``d`` (d_model), ``m`` (d_mlp) and ``parts``, the gate in front."""
        sizes, biased = {"d": config.d_model, "m": config.d_mlp}, "mlp" in config.biases
        *read, written = self.mlp
        names = ("gate", "in") if config.gated else ("in",)
        parts = [names] if len(read) < len(names) else [(name,) for name in names]
        for held, layer in zip(parts, read, strict=True):
            sizes["parts"] = len(held)
            weights = self._matrix(take, f"{block}{layer}", "(parts m)", "d", "parts d m", sizes)
            yield from zip([f"mlp.W_{name}" for name in held], weights, strict=True)
            if biased:
                biases = take.arranged(f"{block}{layer}.bias", "(parts m)", "parts m", sizes)
                yield from zip([f"mlp.b_{name}" for name in held], biases, strict=True)
        yield "mlp.W_out", self._matrix(take, f"{block}{written}", "d", "m", "m d", sizes)
        if biased:
            yield "mlp.b_out", take(f"{block}{written}.bias", config.d_model)


def is_tied(state: Mapping[str, Tensor], embed: str, unembed: str) -> bool:
    """Whether the unembedding is the embedding, or is not there at all."""
    if unembed not in state or embed not in state:
        return unembed not in state
    one, other = state[embed], state[unembed]
    return one.dtype == other.dtype and torch.equal(one, other)
