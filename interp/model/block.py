"""A block: what attention and the MLP add to the residual stream, in each of the orders that the field uses.

=======================  ==========================================================================
pre-norm (GPT-2)         ``x + attn(ln1(x))``, then ``x + mlp(ln2(x))``: the stream is a sum
parallel (GPT-NeoX)      ``x + attn(ln1(x)) + mlp(ln2(x))``
attention only           ``x + attn(ln1(x))``
sandwich (Gemma 2)       ``x + ln1_post(attn(ln1(x)))``, then the MLP alike: what is written is normalised, too
reordered (OLMo 2)       ``x + ln1_post(attn(x))``, then the MLP alike: only that is
post-norm (2017, BERT)   ``ln1(x + attn(x))``, then ``ln2(x + mlp(x))``: the stream is normalised
=======================  ==========================================================================
"""

from collections.abc import Iterator
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from interp.model.attention import Attention, HeadInput, KeyInput, LayerCache
from interp.model.config import TransformerConfig
from interp.model.experts import Experts
from interp.model.hooks import HookPoint
from interp.model.layers import MLP, NoNorm, Rows, make_norm
from interp.model.positions import Places
from interp.shapes import Residual


class Block(nn.Module):
    """Attention, then the MLP where there is one; ``hook_resid_mid`` and ``hook_resid_post`` are the sums.

    While somebody listens to an input split by head, ``ln1`` runs for queries, keys and values in turn, and its
    points see ``[batch pos head ...]``.
    """

    mlp: Any  # an MLP, or Experts

    hook_out_is_single_residual_stream = True  # what TransformerLens' logit lens asks of a block

    def __init__(self, config: TransformerConfig, layer: int = 0):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.has_mlp = config.n_heads, config.kv_heads, config.d_mlp > 0
        self.parallel, self.post_norm = config.parallel, config.norm_position == "post"
        reading = NoNorm(config.d_model) if config.norm_position == "reordered" else None
        writing = None if config.normalises_what_is_written else NoNorm(config.d_model)
        self.ln1, self.ln1_post = reading or make_norm(config), writing or make_norm(config)
        if self.has_mlp:
            self.ln2, self.ln2_post = reading or make_norm(config), writing or make_norm(config)
        self.attn = Attention(config, layer)
        self.hook_resid_pre, self.hook_resid_post = HookPoint(), HookPoint()
        self.hook_attn_in, self.hook_attn_out = HookPoint(), HookPoint()
        self.hook_q_input, self.hook_k_input, self.hook_v_input = HookPoint(), HookPoint(), HookPoint()
        if self.has_mlp:
            self.mlp = Experts(config) if config.n_experts else MLP(config)
            self.hook_resid_mid, self.hook_mlp_in, self.hook_mlp_out = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Residual, places: Places, cache: LayerCache | None = None) -> Residual:
        """``x + attn(ln1(x))``, then ``x + mlp(ln2(x))``, or another order of the table above."""
        before = self._stream(x)
        x = before + self.hook_attn_out(self.ln1_post(self.attn(self._inputs(before), places, cache)))
        if self.has_mlp:
            x = self.after_attention_norm(self.hook_resid_mid(x))
            x = x + self._mlp(self.mlp_input(before, x))
        return self.after_mlp_norm(self.hook_resid_post(x))

    def _mlp(self, x: Residual) -> Residual:
        # A copy where listened: an edit in place there reaches the MLP and not the stream.
        x = self.hook_mlp_in(x.clone()) if self.hook_mlp_in.listened else x
        return self.hook_mlp_out(self.ln2_post(self.mlp(self.read_by_mlp(x))))

    def _stream(self, x: Residual) -> Residual:
        """The stream, or a copy where listened: an edit in place leaves what the block before wrote in the cache."""
        return self.hook_resid_pre(x.clone()) if self.hook_resid_pre.listened else x

    def _inputs(self, x: Residual) -> tuple[HeadInput, KeyInput, KeyInput]:
        """What queries, keys and values read: one normalised stream, or a copy a head where listened."""
        points = (self.hook_q_input, self.hook_k_input, self.hook_v_input)
        if not self.hook_attn_in.listened and not any(point.listened for point in points):
            shared = self.read_by_attention(x)
            return shared, shared, shared
        heads = self.hook_attn_in(x.unsqueeze(-2).repeat(1, 1, self.n_heads, 1))
        # A copy each, so that a hook that edits the queries' input in place leaves keys and values alone.
        group = self.n_heads // self.n_kv_heads
        q, k, v = (
            self.read_by_attention(point(heads[:, :, ::step].clone()))
            for point, step in zip(points, (1, group, group), strict=True)
        )
        return q, k, v

    def added_to_the_stream(self, z: Float[Tensor, "*rows head d_head"], change: Rows) -> Rows:
        """What the stream gets more where the heads together write `change` on top of what they write of `z`."""
        if isinstance(self.ln1_post, NoNorm):
            return change
        before = self.attn.written(z)
        return self.ln1_post(before + change) - self.ln1_post(before)

    def read_by_attention(self, x: Rows) -> Rows:
        """What attention reads of the stream, which post-norm has normalised already."""
        return x if self.post_norm else self.ln1(x)

    def after_attention_norm(self, x: Rows) -> Rows:
        """``ln1(x)`` in post-norm, else ``x``: of the stream to which attention has been added."""
        return self.ln1(x) if self.post_norm else x

    def mlp_input(self, before: Rows, after: Rows) -> Rows:
        """The stream after attention has been added, or before in a parallel block."""
        return before if self.parallel else after

    def read_by_mlp(self, x: Rows) -> Rows:
        """What the MLP reads of the stream."""
        return x if self.post_norm else self.ln2(x)

    def after_mlp_norm(self, x: Rows) -> Rows:
        """The block's last norm in post-norm (``ln1`` where there is no MLP), else ``x``."""
        if not self.post_norm:
            return x
        return self.ln2(x) if self.has_mlp else self.ln1(x)


class Blocks(nn.ModuleList):
    """The blocks in order; those of a model of attention alone have no ``mlp`` and what belongs to it."""

    def __iter__(self) -> Iterator[Block]:
        return super().__iter__()  # type: ignore[return-value]  # holds nothing but blocks
