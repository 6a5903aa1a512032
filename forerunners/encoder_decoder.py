"""The transformer of 2017: an encoder that reads a source, and a decoder that writes a target and looks at both.

1. Source: ``embed * sqrt(d_model) + positions``, then blocks without a causal mask.
2. Target: the same embedding and positions, then blocks of causal self-attention, cross-attention to what the encoder
   has written, and an MLP.
3. Logits: the embedding read backwards, or an unembedding of its own.

Vaswani et al. (2017), "Attention is all you need". With ``VASWANI`` (post-norm, sinusoidal positions, ReLU, tied) in
the config it is theirs; any other architecture of ``TransformerConfig`` with an MLP goes into the same two stacks.
"""

import math
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformer_lens import HookedRootModule

from interp.errors import ConfigError, InputError
from interp.model.attention import Attention
from interp.model.block import Block
from interp.model.config import TransformerConfig
from interp.model.devices import ordinary_modes
from interp.model.hooks import HookPoint, StrictHooks
from interp.model.layers import Embed, NoNorm, Rows, make_norm, make_pos_embed, make_unembed
from interp.model.positions import Places, places_of, positions_of
from interp.model.text import as_padding_mask, as_token_ids, require_fit
from interp.shapes import Logits, Residual, Tokens

VASWANI: dict[str, Any] = {"positions": "sinusoidal", "norm_position": "post", "act_fn": "relu", "tied": True}
"""The fields of the config that are those of the paper."""
Source = Int[Tensor, "sources source_pos"]
SourceMask = Bool[Tensor, "sources _"]
Memory = Float[Tensor, "sources source_pos d_model"]


class DecoderBlock(Block):
    """``x + attn(ln1(x))``, ``x + cross_attn(ln_cross(x), source)``, ``x + mlp(ln2(x))``; or with post-norm.

    Post-norm is ``ln1(x + attn(x))``, ``ln_cross(x + cross_attn(x, source))``, ``ln2(x + mlp(x))``.

    ``cross_attn`` has the points of an attention; its pattern is ``[batch head query_pos key_pos]`` with the target's
    positions as queries and the source's as keys. ``hook_resid_cross`` is the stream when it has written.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.ln_cross = make_norm(config)
        self.cross_attn = Attention(replace(config, positions="none", rotary_dim=None, causal=False))
        self.hook_cross_attn_out, self.hook_resid_cross = HookPoint(), HookPoint()

    def forward(self, x: Residual, places: Places, source: Memory, across: Places) -> Residual:  # type: ignore[override]  # reads a source, too
        """The stream after the block, from that before it and what the encoder wrote of the source."""
        x = self._stream(x)
        x = x + self.hook_attn_out(self.attn(self._inputs(x), places))
        x = self.after_attention_norm(self.hook_resid_mid(x))
        written = self.cross_attn((self.read_by_cross(x), source, source), across)
        x = self.crossed(self.hook_resid_cross(x + self.hook_cross_attn_out(written)))
        return self.after_mlp_norm(self.hook_resid_post(x + self._mlp(x)))

    def read_by_cross(self, x: Rows) -> Rows:
        """What the queries to the source read of the stream, which post-norm has normalised already."""
        return x if self.post_norm else self.ln_cross(x)

    def crossed(self, x: Rows) -> Rows:
        """What goes on when cross-attention has written."""
        return self.ln_cross(x) if self.post_norm else x


class EncoderDecoder(StrictHooks, HookedRootModule):
    """A source and the beginning of a target to the target's next tokens. Made in evaluation mode, weights from `seed`.

    Attributes:
        config: Of both stacks; source and target share one vocabulary.
    """

    @torch.inference_mode(False)
    def __init__(self, config: TransformerConfig, *, seed: int = 0):
        """Make the model.

        Args:
            config: Its ``causal`` is the decoder's, and has to be true.
            seed: Of the weights.

        Raises:
            ConfigError: The blocks are parallel or of attention alone, or not causal, or the config has a part of BERT.
        """
        super().__init__()
        if config.parallel or not config.d_mlp or not config.causal:
            raise ConfigError(
                "encoder-decoder: expected a causal config of sequential blocks with an MLP, got "
                f"causal={config.causal}, parallel={config.parallel}, d_mlp={config.d_mlp}; change these fields"
            )
        for name in ("embed_norm", "prediction_head", "n_token_types"):
            if getattr(config, name):
                raise ConfigError(f"encoder-decoder: has no {name}, got {name}={getattr(config, name)!r}; leave it out")
        self.config = config
        self.embed, self.pos_embed = Embed(config.d_vocab, config.d_model), make_pos_embed(config)
        self.hook_source_embed, self.hook_target_embed = HookPoint(), HookPoint()
        both_ways = replace(config, causal=False)
        self.encoder = nn.ModuleList(Block(both_ways) for _ in range(config.n_layers))
        self.decoder = nn.ModuleList(DecoderBlock(config) for _ in range(config.n_layers))
        post = config.norm_position == "post"
        self.ln_encoded, self.ln_final = (NoNorm(config.d_model) if post else make_norm(config) for _ in range(2))
        self.unembed = make_unembed(config, self.embed)
        self._initialise(seed)
        self.setup()
        self.eval()

    def _initialise(self, seed: int) -> None:
        """Glorot & Bengio's (2010) normal for matrices, and ``1 / sqrt(d_model)`` for the embedding."""
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            kind = name.rsplit(".", 1)[-1]
            if kind.startswith(("W_", "rel_")):
                ends = self.config.d_model + math.prod(parameter.shape) // self.config.d_model
                std = self.config.d_model**-0.5 if kind in ("W_E", "W_pos", "rel_K", "rel_V") else (2 / ends) ** 0.5
                nn.init.normal_(parameter, std=std, generator=generator)

    def forward(self, source: Source, target: Tokens, *, source_mask: SourceMask | None = None) -> Logits:
        """The target's logits, ``[batch pos d_vocab]``: at each position, of the token that follows.

        Args:
            source: Token ids.
            target: Token ids, from the one that begins a target on.
            source_mask: True for tokens, False for padding; None for no padding.

        Raises:
            InputError: Sources and targets of different number, or what one of them cannot be (``encode``, ``decode``).
        """
        return self.decode(target, *self.encode(source, source_mask))

    def encode(self, source: Source, source_mask: SourceMask | None = None) -> tuple[Memory, SourceMask]:
        """What the encoder writes of `source`, and where it is no padding.

        Raises:
            InputError: No token ids, longer than the context, ids beyond the vocabulary, a mask of another shape, or a
                row without a token.
        """
        source = self._checked(source)
        mask = as_padding_mask(source_mask, source, "source_mask")
        if not bool(mask.any(-1).all()):
            raise InputError("source_mask: expected a token in every row, got one that is all padding")
        places = places_of(mask, source.shape[1], causal=False)
        x = self.hook_source_embed(self._embedded(source, places))
        for block in self.encoder:
            x = block(x, places)
        return self.ln_encoded(x), mask

    def decode(self, target: Tokens, memory: Memory, source_mask: SourceMask) -> Logits:
        """The target's logits, given what ``encode`` returns.

        Raises:
            InputError: No token ids, another number of rows, longer than the context, or ids beyond the vocabulary.
        """
        target = self._checked(target)
        if len(target) != len(memory):
            raise InputError(f"target: expected a row for each of the {len(memory)} sources, got {len(target)}")
        places = places_of(torch.ones_like(target, dtype=torch.bool), target.shape[1], causal=True)
        seen = source_mask[:, None, None].expand(-1, 1, target.shape[1], -1)
        across = Places(places.query, positions_of(source_mask), seen, causal=False)
        x = self.hook_target_embed(self._embedded(target, places))
        for block in self.decoder:
            x = block(x, places, memory, across)
        return self.unembed(self.ln_final(x))

    def _embedded(self, tokens: Tokens, places: Places) -> Residual:
        x = self.embed(tokens) * math.sqrt(self.config.d_model)
        return x if self.pos_embed is None else x + self.pos_embed(places.query)

    @ordinary_modes()
    @torch.inference_mode()
    def translate(
        self, source: Source, max_new_tokens: int, *, bos: int, eos: int, source_mask: SourceMask | None = None
    ) -> list[list[int]]:
        """The target that is written greedily, without `bos`, up to `eos` or to where it fills the context.

        Raises:
            InputError: As ``forward``.
        """
        memory, mask = self.encode(source, source_mask)
        target = torch.full((len(memory), 1), bos, device=memory.device)
        for _ in range(min(max_new_tokens, self.config.n_ctx)):
            following = self.decode(target, memory, mask)[:, -1].argmax(-1)
            target = torch.cat([target, following[:, None]], dim=1)
            if bool((target == eos).any(-1).all()):
                break
        rows = target[:, 1:].tolist()
        return [row[: row.index(eos)] if eos in row else row for row in rows]

    def _checked(self, given: Tokens) -> Tokens:
        tokens = as_token_ids(given, self.embed.W_E.device)
        require_fit(tokens, n_ctx=self.config.n_ctx, d_vocab=self.config.d_vocab)
        return tokens
