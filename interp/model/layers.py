"""Layers beside attention: embeddings, norms, the MLP, the unembedding, and biases that a model has or has not.

LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019) have a readable scale, the MLP has readable neurons.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp.model.config import Activation, Normalization, TransformerConfig
from interp.model.hooks import HookPoint
from interp.model.products import rows_for_onednn
from interp.shapes import Logits, Residual, Tokens

Rows = Float[Tensor, "*rows d_model"]
HeadRows = Float[Tensor, "*rows head d_head"]
NeuronRows = Float[Tensor, "*rows d_mlp"]


def add_bias(module: nn.Module, name: str, shape: tuple[int, ...], *, present: bool) -> None:
    """Give `module` a bias called `name`, which is 0 at first: a parameter, or a constant where the model has none.

    So whoever reads a bias need not ask whether there is one.
    """
    if present:
        module.register_parameter(name, nn.Parameter(torch.zeros(shape)))
    else:
        module.register_buffer(name, torch.zeros(shape), persistent=False)


Scales = Float[Tensor, "*rows 1"]


class LayerNorm(nn.Module):
    """``(x - mean(x)) / scale * w + b`` with ``scale = sqrt(var(x) + eps)``.

    ``hook_scale`` ``[batch pos 1]`` and ``hook_normalized`` ``[batch pos d_model]`` are TransformerLens' points: the
    latter holds ``(x - mean(x)) / scale``, before ``w`` and ``b``. Half-precision inputs are normalised in float32,
    which both points hold, and rounded once, at the end.
    """

    w: Tensor
    b: Tensor

    def __init__(self, d_model: int, eps: float, *, bias: bool = True):
        super().__init__()
        self.eps = eps
        self.w = nn.Parameter(torch.ones(d_model))
        add_bias(self, "b", (d_model,), present=bias)
        self.hook_scale = HookPoint()
        self.hook_normalized = HookPoint()

    def forward(self, x: Rows) -> Rows:
        listened = self.hook_scale.listened or self.hook_normalized.listened
        return self._explicit(x) if listened else self._fused(x)

    def _fused(self, x: Rows) -> Rows:
        return F.layer_norm(x, x.shape[-1:], self.w, self.b, self.eps)

    def _explicit(self, x: Rows) -> Rows:
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        normalized = self.hook_normalized(self.centred(wide) / self.hook_scale(self.scale(wide)))
        return (normalized * self.w.to(wide.dtype) + self.b).to(x.dtype)

    def centred(self, x: Rows) -> Rows:
        """What of `x` is normalised: all but its mean."""
        return x - x.mean(-1, keepdim=True)

    def scale(self, x: Rows) -> Scales:
        """What `x` is divided by."""
        return (self.centred(x).square().mean(-1, keepdim=True) + self.eps).sqrt()

    def share(self, part: Rows, scale: Float[Tensor, "*#rows 1"]) -> Rows:
        """What `part` of a whole with this scale becomes; the shares of all parts and ``b`` are the output."""
        return self.centred(part) / scale * self.w.to(part.dtype)


class RMSNorm(LayerNorm):
    """``x / scale * w`` with ``scale = sqrt(mean(x^2) + eps)``: the mean stays."""

    def __init__(self, d_model: int, eps: float):
        super().__init__(d_model, eps, bias=False)

    def _fused(self, x: Rows) -> Rows:
        return F.rms_norm(x, x.shape[-1:], self.w, self.eps)

    def centred(self, x: Rows) -> Rows:
        """What of `x` is normalised: all of it."""
        return x


class NoNorm(nn.Module):
    """``x``: for models without norms; it scales by 1 and has no points."""

    w: Tensor
    b: Tensor

    def __init__(self, d_model: int):
        super().__init__()
        self.register_buffer("w", torch.ones(d_model), persistent=False)
        self.register_buffer("b", torch.zeros(d_model), persistent=False)

    def forward(self, x: Rows) -> Rows:
        return x

    def scale(self, x: Rows) -> Scales:
        """1."""
        return torch.ones_like(x[..., :1])

    def share(self, part: Rows, scale: Float[Tensor, "*#rows 1"]) -> Rows:
        """The part itself."""
        return part


class QKNorm(nn.Module):
    """RMSNorm of queries or keys: of each head with weights ``[d_head]`` that all share, or of all heads as one vector.

    In the latter case the weights ``w`` are ``[head d_head]``.
    """

    def __init__(self, config: TransformerConfig, n_heads: int):
        super().__init__()
        self.flat, self.eps = config.qk_norm == "flat", config.eps
        self.w = nn.Parameter(torch.ones((n_heads, config.d_head) if self.flat else config.d_head))

    def forward(self, x: HeadRows) -> HeadRows:
        return F.rms_norm(x, self.w.shape, self.w, self.eps)


def make_qk_norm(config: TransformerConfig, n_heads: int) -> nn.Module:
    """The norm of the queries, or keys, of `n_heads`; the identity where there is none."""
    return nn.Identity() if config.qk_norm == "none" else QKNorm(config, n_heads)


Norm = LayerNorm | RMSNorm | NoNorm


def make_norm(config: TransformerConfig) -> Norm:
    """The norm of a config."""
    kind: Normalization = config.normalization
    if kind == "none":
        return NoNorm(config.d_model)
    if kind == "RMS":
        return RMSNorm(config.d_model, config.eps)
    return LayerNorm(config.d_model, config.eps, bias="norm" in config.biases)


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "swiglu_oai": lambda gate: gate.clamp(max=7.0) * (1.702 * gate.clamp(max=7.0)).sigmoid(),
}
POST_OPS: dict[Activation | None, tuple[str, str]] = {
    None: ("none", ""),
    "gelu_new": ("gelu", "tanh"),
    "gelu": ("gelu", "none"),
    "silu": ("swish", ""),
}
"""How oneDNN calls what it can do to a product before it is written to memory. Its ReLU would make 0 of NaN."""
ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear(
    x: Rows, weight: Float[Tensor, "inner outer"], bias: Float[Tensor, " outer"], activation: Activation | None = None
) -> NeuronRows:
    """``x weight + bias`` or, with an `activation`, ``act(x weight + bias)``; of what is not learned from, by oneDNN.

    That is where it is faster (``products.py``); the sums are the same up to their order.
    """
    plain = x.device.type == "cpu" and x.dtype == torch.float32 and not torch.is_grad_enabled()
    if ONEDNN and plain and x.numel() >= len(weight) * rows_for_onednn(*weight.shape, torch.get_num_threads()):
        name, algorithm = POST_OPS.get(activation, POST_OPS[None])
        product = torch.ops.mkldnn._linear_pointwise(x, weight.t(), bias, name, [], algorithm)
        activation = None if activation in POST_OPS else activation
    else:
        product = torch.addmm(bias, x.flatten(0, -2), weight).unflatten(0, x.shape[:-1])
    return product if activation is None else ACTIVATIONS[activation](product)


def multiplied(act_fn: Activation, gate: NeuronRows, linear: NeuronRows) -> NeuronRows:
    """What a gate after its activation makes of the other factor."""
    return gate * (linear.clamp(-7.0, 7.0) + 1 if act_fn == "swiglu_oai" else linear)


def _told(act: Any) -> Any:
    """What tells an activation from others; copies of a partial are equal."""
    return (act.func, act.args, act.keywords) if type(act) is partial else act


class MLP(nn.Module):
    """``act(x W_in + b_in) W_out + b_out``; gated, ``(act(x W_gate + b_gate) * (x W_in + b_in)) W_out + b_out``.

    ``hook_pre`` and ``hook_post`` are the neurons before and after the activation, ``[batch pos d_mlp]``: with a gate
    (Shazeer 2020), the gate's product before it, which ``hook_pre_linear``, the other factor, then multiplies.
    """

    b_in: Tensor
    b_out: Tensor
    b_gate: Tensor

    def __init__(self, config: TransformerConfig):
        super().__init__()
        width, neurons, biased = config.d_model, config.d_mlp, "mlp" in config.biases
        self.W_in = nn.Parameter(torch.empty(width, neurons))
        add_bias(self, "b_in", (neurons,), present=biased)
        self.W_out = nn.Parameter(torch.empty(neurons, width))
        add_bias(self, "b_out", (width,), present=biased)
        self.act, self.act_fn, self.gated = ACTIVATIONS[config.act_fn], config.act_fn, config.gated
        self.hook_pre, self.hook_post = HookPoint(), HookPoint()
        if self.gated:
            self.W_gate = nn.Parameter(torch.empty(width, neurons))
            add_bias(self, "b_gate", (neurons,), present=biased)
            self.hook_pre_linear = HookPoint()

    def forward(self, x: Rows) -> Rows:
        post = self.hook_post(self.neurons(self.hook_pre(self.pre(x)), x))
        return linear(post, self.W_out, self.b_out)

    def pre(self, x: Rows, activation: Activation | None = None) -> NeuronRows:
        """What the activation is applied to, or what an `activation` makes of it."""
        weight, bias = (self.W_gate, self.b_gate) if self.gated else (self.W_in, self.b_in)
        return linear(x, weight, bias, activation)

    def neurons(self, pre: NeuronRows, x: Rows) -> NeuronRows:
        """The neurons, from what the activation is applied to and from the input."""
        return self._gated(self.act(pre), x)

    def neurons_at_once(self, x: Rows) -> NeuronRows:
        """The neurons, where nobody reads what the activation is applied to: products may apply it themselves."""
        own = _told(self.act) == _told(ACTIVATIONS[self.act_fn])
        return self._gated(self.pre(x, self.act_fn) if own else self.act(self.pre(x)), x)

    def _gated(self, active: NeuronRows, x: Rows) -> NeuronRows:
        if not self.gated:
            return active
        return multiplied(self.act_fn, active, self.hook_pre_linear(linear(x, self.W_in, self.b_in)))


PositionsOfTokens = Int[Tensor, "batch pos"]


class Embed(nn.Module):
    """``W_E[token]``, times a scale where the model has one (Gemma); ``W_E`` is ``[d_vocab d_model]``."""

    def __init__(self, d_vocab: int, d_model: int, scale: float = 1.0):
        super().__init__()
        self.W_E, self.scale = nn.Parameter(torch.empty(d_vocab, d_model)), scale

    def forward(self, tokens: Tokens) -> Residual:
        # the scale is rounded to the weights' dtype, as where they were trained
        return self.W_E[tokens] if self.scale == 1 else self.W_E[tokens] * self.W_E.new_tensor(self.scale)


class PosEmbed(nn.Module):
    """``W_pos[position]``, learned; ``W_pos`` is ``[n_ctx d_model]``."""

    W_pos: Tensor

    def __init__(self, n_ctx: int, d_model: int):
        super().__init__()
        self.W_pos = nn.Parameter(torch.empty(n_ctx, d_model))

    def forward(self, positions: PositionsOfTokens) -> Residual:
        return self.W_pos[positions]


class SinusoidalPosEmbed(PosEmbed):
    """``W_pos[position]`` with sine in the even and cosine in the odd components (Vaswani et al. 2017, section 3.5).

    Component ``2 i`` has the wavelength ``2 pi 10000 ** (2 i / d_model)``, so a shift of the position is a linear map.
    """

    def __init__(self, n_ctx: int, d_model: int):
        nn.Module.__init__(self)
        self.register_buffer("W_pos", sinusoids(n_ctx, d_model).float(), persistent=False)

    def _apply(self, *given: Any, **named: Any) -> Any:
        """Move to another device or dtype: there, the table is as exact as the dtype is."""
        super()._apply(*given, **named)
        self.W_pos = sinusoids(*self.W_pos.shape).to(self.W_pos)
        return self


def sinusoids(n_ctx: int, d_model: int) -> Float[Tensor, "n_ctx d_model"]:
    """The table of ``SinusoidalPosEmbed``, in 64 bits."""
    position = torch.arange(n_ctx, dtype=torch.float64)[:, None]
    angle = position / 10_000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]


class TokenTypeEmbed(nn.Module):
    """``W_token_type[0]`` for every token (BERT's segments, of which one prompt has one)."""

    def __init__(self, n_types: int, d_model: int):
        super().__init__()
        self.W_token_type = nn.Parameter(torch.empty(n_types, d_model))

    def forward(self, positions: PositionsOfTokens) -> Residual:
        return self.W_token_type[torch.zeros_like(positions)]


def make_pos_embed(config: TransformerConfig) -> PosEmbed | None:
    """The embedding of positions; None where order is known otherwise, or not."""
    if config.positions == "learned":
        return PosEmbed(config.n_ctx, config.d_model)
    return SinusoidalPosEmbed(config.n_ctx, config.d_model) if config.positions == "sinusoidal" else None


class Unembed(nn.Module):
    """``x @ W_U + b_U``, capped where the model caps logits; ``W_U`` is ``[d_model d_vocab]``."""

    W_U: Tensor
    b_U: Tensor

    def __init__(self, d_model: int, d_vocab: int, *, bias: bool = True, cap: float | None = None):
        super().__init__()
        self.cap = cap
        self._make_weights(d_model, d_vocab)
        add_bias(self, "b_U", (d_vocab,), present=bias)

    def _make_weights(self, d_model: int, d_vocab: int) -> None:
        self.W_U = nn.Parameter(torch.empty(d_model, d_vocab))

    def forward(self, x: Residual) -> Logits:
        return self.capped(F.linear(x, self.W_U.T, self.b_U))

    def capped(self, logits: Float[Tensor, "*rows _"]) -> Float[Tensor, "*rows _"]:
        """``cap tanh(logits / cap)`` with a cap."""
        return soft_cap(logits, self.cap)


def soft_cap(values: Float[Tensor, "..."], cap: float | None) -> Float[Tensor, "..."]:
    """``cap tanh(values / cap)``; the values themselves where there is no cap."""
    return values if cap is None else (values / cap).tanh() * cap


class TiedUnembed(Unembed):
    """``x @ W_E.T + b_U``: the embedding read backwards, with no weights of its own but ``b_U``."""

    def __init__(self, embed: Embed, *, bias: bool = True, cap: float | None = None):
        d_vocab, d_model = embed.W_E.shape
        super().__init__(d_model, d_vocab, bias=bias, cap=cap)
        self._embed = (embed,)  # in a tuple, so that its parameters are not registered twice

    def _make_weights(self, d_model: int, d_vocab: int) -> None:
        pass

    @property
    def W_U(self) -> Float[Tensor, "d_model d_vocab"]:  # type: ignore[override]  # noqa: N802
        """The embedding's transpose, a view."""
        return self._embed[0].W_E.T


class PredictionHead(nn.Module):
    """``norm(act(x W + b))``: what BERT puts before its unembedding."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.W = nn.Parameter(torch.empty(config.d_model, config.d_model))
        self.b = nn.Parameter(torch.zeros(config.d_model))
        self.ln = make_norm(config)
        self.act: Callable[[Tensor], Tensor] = ACTIVATIONS[config.act_fn]

    def forward(self, x: Residual) -> Residual:
        return self.ln(self.act(x @ self.W + self.b))


def make_unembed(config: TransformerConfig, embed: Embed) -> Unembed | TiedUnembed:
    """The unembedding of a config."""
    bias, cap = "unembed" in config.biases, config.logit_cap
    if config.tied:
        return TiedUnembed(embed, bias=bias, cap=cap)
    return Unembed(config.d_model, config.d_vocab, bias=bias, cap=cap)
