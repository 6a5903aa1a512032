"""A pre-LayerNorm block: two additions to the residual stream."""

from collections.abc import Iterator

from torch import nn

from interp.model.attention import Attention, HeadInput, Mask
from interp.model.cache import LayerCache
from interp.model.config import TransformerConfig
from interp.model.mlp import MLP
from interp.model.norm import LayerNorm
from interp.model.points import HookPoint
from interp.shapes import Residual


class Block(nn.Module):
    """``x + attn(ln1(x))``, then ``x + mlp(ln2(x))``.

    While somebody listens to an input split by head, ``ln1`` runs for queries, keys and values in turn, and its
    points see ``[batch pos head ...]``.
    """

    hook_out_is_single_residual_stream = True  # what TransformerLens' logit lens asks of a block

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.n_heads = config.n_heads
        self.ln1, self.ln2 = LayerNorm(config.d_model, config.eps), LayerNorm(config.d_model, config.eps)
        self.attn, self.mlp = Attention(config), MLP(config)
        self.hook_resid_pre, self.hook_resid_mid, self.hook_resid_post = HookPoint(), HookPoint(), HookPoint()
        self.hook_attn_in, self.hook_mlp_in = HookPoint(), HookPoint()
        self.hook_q_input, self.hook_k_input, self.hook_v_input = HookPoint(), HookPoint(), HookPoint()
        self.hook_attn_out, self.hook_mlp_out = HookPoint(), HookPoint()

    def forward(self, x: Residual, mask: Mask | None, cache: LayerCache | None = None) -> Residual:
        x = self._stream(x)
        x = self.hook_resid_mid(x + self.hook_attn_out(self.attn(self._inputs(x), mask, cache)))
        return self.hook_resid_post(x + self.hook_mlp_out(self.mlp(self.ln2(self._mlp_input(x)))))

    def _stream(self, x: Residual) -> Residual:
        """The stream, or a copy where listened: an edit in place leaves what the block before wrote in the cache."""
        return self.hook_resid_pre(x.clone()) if self.hook_resid_pre.listened else x

    def _inputs(self, x: Residual) -> tuple[HeadInput, HeadInput, HeadInput]:
        """What queries, keys and values read: one normalised stream, or a copy a head where listened."""
        points = (self.hook_q_input, self.hook_k_input, self.hook_v_input)
        if not self.hook_attn_in.listened and not any(point.listened for point in points):
            shared = self.ln1(x)
            return shared, shared, shared
        heads = self.hook_attn_in(x.unsqueeze(-2).repeat(1, 1, self.n_heads, 1))
        # A copy each, so that a hook that edits the queries' input in place leaves keys and values alone.
        q, k, v = (self.ln1(point(heads.clone())) for point in points)
        return q, k, v

    def _mlp_input(self, x: Residual) -> Residual:
        """The stream, or a copy where listened: an edit in place there reaches the MLP and not the stream."""
        return self.hook_mlp_in(x.clone()) if self.hook_mlp_in.listened else x


class Blocks(nn.ModuleList):
    """The blocks in order."""

    def __iter__(self) -> Iterator[Block]:
        return super().__iter__()  # type: ignore[return-value]  # holds nothing but blocks
