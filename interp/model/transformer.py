"""A transformer with a readable residual stream.

``embed -> blocks -> ln_final -> unembed`` (Radford et al. 2019), with TransformerLens' names for every point and
parameter, so that its ``ActivationCache``, ``patching`` and ``head_detector`` run on this model unchanged. The
components are those that ``TransformerConfig`` names.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformer_lens import HookedRootModule
from transformer_lens.ActivationCache import ActivationCache
from transformer_lens.config import TransformerLensConfig
from transformers import PreTrainedTokenizerBase

from interp.arguments import named_arguments
from interp.errors import InputError, LoadError, shown
from interp.model import hooks, layers
from interp.model.attention import KeyValueCache, LayerCache
from interp.model.block import Block, Blocks
from interp.model.config import TransformerConfig
from interp.model.generation import GenerationMixin
from interp.model.hooks import HookPoint
from interp.model.positions import Places, places_of
from interp.model.text import PaddingSide, as_padding_mask, as_token_ids, require_fit
from interp.model.weights import StackedWeights, weights_hash
from interp.shapes import Logits, PaddingMask, Residual, Tokens

IGNORED = -100


def next_token_loss(
    logits: Logits, tokens: Tokens, mask: PaddingMask, *, per_token: bool = False
) -> Float[Tensor, ""] | Float[Tensor, "batch _"]:
    """Cross-entropy in nats of each real token given those before it; half-precision logits are taken to float32 first.

    Returns:
        The mean; `per_token`, each token's but the first's, ``[batch pos - 1]``, NaN where there is padding.

    Raises:
        InputError: No real token follows another one, so that there is nothing to predict.
    """
    real = mask[:, 1:] & mask[:, :-1]
    if not real.any():
        raise InputError("loss: expected a prompt of at least two tokens, got none; there is no next token to predict")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if per_token:
        losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
        return losses.masked_fill(~real, torch.nan)
    targets = F.pad(tokens[:, 1:].masked_fill(~real, IGNORED), (0, 1), value=IGNORED)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


Loss = Float[Tensor, ""] | Float[Tensor, "batch _"]
LastLogits = Float[Tensor, "batch 1 d_vocab"]
DRAWN = ("W", "rel_")
"""How the names of parameters begin that are drawn; norms and biases have fixed values at first."""
RETURN_TYPES = ("logits", "loss", "both", None)


class HookedTransformer(hooks.StrictHooks, GenerationMixin, StackedWeights, HookedRootModule):
    """A transformer, hooked. Made in evaluation mode, with weights drawn from `seed`.

    Attributes:
        config: What the model is made of (ours, frozen).
        cfg: The same as TransformerLens describes it.
        tokenizer: A fast tokenizer, or None.
        name: Where the model came from, for reports.

    Raises:
        InputError: It is called with text, tokens or a mask that it cannot carry, or with an argument that it does not
            know.
        HookError: A hook's name matches no point, or a hook returns another shape, dtype or device.

    Examples:
        >>> from interp.model.config import TransformerConfig
        >>> config = TransformerConfig(n_layers=1, n_heads=2, d_model=8, d_head=4, d_mlp=16, d_vocab=10, n_ctx=5)
        >>> tuple(interp.HookedTransformer(config)(torch.tensor([[1, 2, 3]])).shape)
        (1, 3, 10)
    """

    name: str

    @named_arguments
    @torch.inference_mode(False)
    def __init__(
        self,
        config: TransformerConfig,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        name: str = "untrained",
        seed: int = 0,
    ):
        super().__init__()
        self.config, self.tokenizer, self.name = config, tokenizer, name
        self.embed = layers.Embed(config.d_vocab, config.d_model, config.embed_scale)
        self.hook_embed = HookPoint()
        self._add_to_the_embedding(config)
        self.blocks = Blocks(Block(config, layer) for layer in range(config.n_layers))
        no_norm = layers.NoNorm(config.d_model)  # of a stream that is normalised already, or never
        norm = no_norm if config.norm_position == "post" else layers.make_norm(config)
        self.ln_final = layers.PredictionHead(config) if config.prediction_head else norm
        self.unembed = layers.make_unembed(config, self.embed)
        self._initialise(seed)
        self.setup()
        hooks.name_head_inputs_as_transformer_lens_does(self)
        self.eval()

    @classmethod
    def from_pretrained(cls, name: str = "", **options: Any) -> "HookedTransformer":
        """What TransformerLens loads models with; here it raises ``LoadError``, which names ``interp.load_model``."""
        raise LoadError(f"HookedTransformer.from_pretrained: models are loaded by interp.load_model({name!r})")

    from_pretrained_no_processing = from_pretrained

    def _add_to_the_embedding(self, config: TransformerConfig) -> None:
        """What the architecture adds to a token's embedding, and how the sum is normalised."""
        added: list[tuple[nn.Module, HookPoint]] = []
        pos_embed = layers.make_pos_embed(config)
        if pos_embed is not None:
            self.pos_embed, self.hook_pos_embed = pos_embed, HookPoint()
            added.append((pos_embed, self.hook_pos_embed))
        if config.n_token_types:
            self.token_type_embed = layers.TokenTypeEmbed(config.n_token_types, config.d_model)
            self.hook_token_type_embed = HookPoint()
            added.append((self.token_type_embed, self.hook_token_type_embed))
        self._added = tuple(added)  # in a tuple, since the model itself holds each under its name
        self.ln_embed = layers.make_norm(config) if config.embed_norm else layers.NoNorm(config.d_model)

    def _initialise(self, seed: int) -> None:
        """GPT-2's initialisation: normal, residual writers scaled by ``1 / sqrt(2 n_layers)``; biases zero."""
        generator = torch.Generator().manual_seed(seed)
        embedding, write = self.config.init_std, 0.02 / (2 * self.config.n_layers) ** 0.5
        for name, parameter in self.named_parameters():
            kind = name.rsplit(".", 1)[-1]
            if kind.startswith(DRAWN) and parameter.device.type != "meta":
                std = {"W_E": embedding, "W_pos": embedding, "W_O": write, "W_out": write}.get(kind, 0.02)
                drawn = torch.empty_like(parameter, device="cpu").normal_(std=std, generator=generator)
                parameter.data.copy_(drawn)  # wherever it lies, as on the default device

    def forward(
        self,
        input: str | list[str] | Tokens | Int[Tensor, " pos"],
        return_type: Literal["logits", "loss", "both"] | None = "logits",
        *,
        loss_per_token: bool = False,
        prepend_bos: bool | None = None,
        padding_side: PaddingSide = "right",
        stop_at_layer: int | None = None,
        attention_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        last_only: bool = False,
    ) -> Logits | LastLogits | Residual | Loss | tuple[Logits, Loss] | None:
        """Logits at every position, or the mean next-token loss in nats.

        Args:
            input: Text (with the special tokens around it; several texts are padded), or token ids.
            return_type: ``"loss"`` is the mean cross-entropy over the real next tokens, ``"both"`` is
                ``(logits, loss)``. None returns nothing, as in TransformerLens: for a run that is made for its hooks.
            loss_per_token: The loss as ``[batch pos - 1]``, NaN where the next token or the one before it is padding.
            prepend_bos: Of text: False for no special tokens around it; see ``tokenize``.
            padding_side: Of several texts; it changes no logits of theirs.
            stop_at_layer: Return the residual stream that enters this block, and run nothing from there on, so no hook
                there either; -1 is the last block. A `cache` is left as it was.
            attention_mask: 1 for tokens, 0 for padding, on either side. Padding changes no logits.
            cache: Keys and values of earlier positions; `input` then holds the new tokens only.
            last_only: Compute the logits of the last position only, ``[batch 1 d_vocab]``; a loss takes all.

        Returns:
            Logits ``[batch pos d_vocab]``; a loss in nats, one number or ``[batch pos - 1]``; both; the stream
            ``[batch pos d_model]`` with `stop_at_layer`; or None.

        Raises:
            InputError: More tokens than the context, ids outside the vocabulary, a mask or a cache that does not fit,
                no such layer, a loss without a next token, or an unknown `return_type`.
        """
        if return_type not in RETURN_TYPES:
            raise InputError(f"return_type: expected 'logits', 'loss', 'both' or None, got {return_type!r}")
        blocks = self._blocks_before(stop_at_layer)
        tokens, mask = self.as_tokens(input, attention_mask, prepend_bos=prepend_bos, padding_side=padding_side)
        if last_only and cache is None and not bool(mask[:, -1].all()):
            raise InputError("last_only: the last position of a row is padding; pad on the left, or take all logits")
        if cache is not None and not self.config.causal:
            raise InputError("cache: every position of a bidirectional model sees the new ones, so none can be kept")
        step, seen = (None, mask) if cache is None else cache.step(mask, self.config.n_layers)
        whole = require_fit(tokens, seen, n_ctx=self.config.n_ctx, d_vocab=self.config.d_vocab)
        places = places_of(seen, tokens.shape[1], causal=self.config.causal, whole=whole)
        x = self.run_blocks(blocks, tokens, places, None if step is None else step.layers)
        if stop_at_layer is not None:
            return x
        if last_only and return_type == "logits":
            out = self.unembed(self.ln_final(x[:, -1:]))
        else:
            out = self._answer(self.ln_final(x), tokens, mask, return_type, loss_per_token)
        if cache is not None and step is not None:
            cache.commit(step)
        return out

    def run_blocks(
        self, blocks: Sequence[Block], tokens: Tokens, places: Places, caches: Sequence[LayerCache] | None = None
    ) -> Residual:
        """What leaves the first `blocks` of tokens that stand at these places, with their `caches`."""
        x = self.hook_embed(self.embed(tokens))
        for embed, hook in self._added:
            x = x + hook(embed(places.query))
        x = self.ln_embed(x)
        for layer, block in enumerate(blocks):
            x = block(x, places, None if caches is None else caches[layer])
        return x

    def _answer(
        self, x: Residual, tokens: Tokens, mask: PaddingMask, return_type: str | None, loss_per_token: bool
    ) -> Any:
        """What was asked for, from the last norm's output."""
        if return_type is None:
            return None
        logits = self.unembed(x)
        if return_type == "logits":
            return logits
        loss = self._loss(logits, tokens, mask, loss_per_token)
        return loss if return_type == "loss" else (logits, loss)

    @named_arguments
    def loss_fn(
        self, logits: Logits, tokens: Tokens, attention_mask: Tensor | None = None, per_token: bool = False
    ) -> Loss:
        """The loss in nats of logits that this model gave for `tokens`: what ``return_type="loss"`` returns.

        Args:
            logits: At every position.
            tokens: What the model was given.
            attention_mask: 1 for tokens, 0 for padding; None for no padding.
            per_token: As ``loss_per_token`` of the forward pass.

        Returns:
            One number, or ``[batch pos - 1]``.

        Raises:
            InputError: The model is bidirectional, there is no next token, or shapes or token ids do not fit.
        """
        if logits.shape[:-1] != tokens.shape:
            raise InputError(f"logits: expected shape {(*tokens.shape, 'd_vocab')}, got {tuple(logits.shape)}")
        tokens = tokens.to(logits.device)
        mask = as_padding_mask(attention_mask, tokens)
        require_fit(tokens.where(mask, 0), n_ctx=tokens.shape[1], d_vocab=logits.shape[-1])
        return self._loss(logits, tokens, mask, per_token)

    def _loss(self, logits: Logits, tokens: Tokens, mask: PaddingMask, per_token: bool) -> Loss:
        if not self.config.causal:
            raise InputError(
                "loss: each position of a bidirectional model sees the next token; there is none to predict"
            )
        return next_token_loss(logits, tokens, mask, per_token=per_token)

    def _blocks_before(self, stop: int | None) -> Sequence[Block]:
        n = self.config.n_layers
        if stop is not None and not (isinstance(stop, Integral) and -n <= stop <= n):
            raise InputError(
                f"stop_at_layer: expected a block from 0 to {n} (the end), or from -{n} to -1, got {shown(stop)}"
            )
        return list(self.blocks)[:stop]

    def as_tokens(self, input: Any, attention_mask: Tensor | None = None, **of_text: Any) -> tuple[Tokens, PaddingMask]:
        """Token ids and mask of text or token ids, on the model's device; `of_text` is as of ``tokenize``.

        Raises:
            InputError: The text cannot be encoded, the tensor holds no token ids, or the mask does not fit it.
        """
        texts = isinstance(input, Sequence) and all(isinstance(each, str) for each in input)  # one text is one, too
        if texts and attention_mask is None:
            return self.tokenize(input, **of_text)
        if texts:
            raise InputError("attention_mask: text makes its own mask; give token ids with a mask, or text alone")
        tokens = as_token_ids(input, self.embed.W_E.device)
        return tokens, as_padding_mask(attention_mask, tokens)

    def run_with_cache(  # type: ignore[override]  # theirs takes anything
        self, input: Any, *args: Any, remove_batch_dim: bool = False, **kwargs: Any
    ) -> tuple[Any, ActivationCache]:
        """Run and keep activations, as TransformerLens' own: ``(output, ActivationCache)``.

        Without ``names_filter``, TransformerLens' default points are kept; the expensive ones
        (``hook_result``, the inputs split by head) only when named.

        Args:
            input: As of the forward pass.
            *args: As of the forward pass.
            remove_batch_dim: Whether activations of a single prompt lose their batch axis.
            **kwargs: As of the forward pass; and ``names_filter``, which points are kept: a name, a list of names, or a
                function of a name.

        Returns:
            What the forward pass returns, and the activations by the points' names, such as ``blocks.2.attn.hook_z``
            ``[batch pos head d_head]`` or ``blocks.2.hook_resid_pre`` ``[batch pos d_model]``.

        Raises:
            HookError: ``names_filter`` matches no point, or names one that ``stop_at_layer`` leaves out.
            InputError: `remove_batch_dim` with more than one prompt.

        Examples:
            >>> _, cache = interp.load_model().run_with_cache("The keys to the cabinet")
            >>> tuple(cache["blocks.2.attn.hook_z"].shape)
            (1, 6, 4, 32)
        """
        if remove_batch_dim:
            how = {name: kwargs.pop(name) for name in ("prepend_bos", "padding_side") if name in kwargs}
            input = self.as_tokens(input, kwargs.get("attention_mask"), **how)[0]
            if len(input) != 1:
                raise InputError(f"remove_batch_dim: expected one prompt [1 pos], got {len(input)} rows; leave it out")
        kwargs["names_filter"] = self._before(kwargs.get("names_filter"), kwargs.get("stop_at_layer"))
        out, cache = super().run_with_cache(input, *args, remove_batch_dim=remove_batch_dim, **kwargs)
        return out, ActivationCache(cache, self, has_batch_dim=not remove_batch_dim)

    # Properties, because from Python 3.12 on `isinstance(model, TransformerLensModelWithWeights)` looks for names
    # without asking `__getattr__`, which is how torch finds submodules.
    @property
    def blocks(self) -> Blocks:
        """The blocks in order."""
        return self._modules["blocks"]  # type: ignore[return-value]  # torch knows modules only

    @property
    def ln_final(self) -> Any:
        """The last norm (``norm.Norm``), or the prediction head in its place: what stands before the unembedding."""
        return self._modules["ln_final"]

    @property
    def cfg(self) -> TransformerLensConfig:
        """The configuration as TransformerLens describes it, with the device and dtype of now."""
        return self.config.to_lens(self.embed.W_E.device, self.embed.W_E.dtype)

    @property
    def hash(self) -> str:
        """SHA-256 of the weights' names, shapes and values; the dtype they are held in does not matter."""
        return weights_hash(self)

    @property
    def W_U(self) -> Float[Tensor, "d_model d_vocab"]:  # noqa: N802
        """The unembedding."""
        return self.unembed.W_U

    @property
    def b_U(self) -> Float[Tensor, " d_vocab"]:  # noqa: N802
        """The unembedding's bias (zero in GPT-2)."""
        return self.unembed.b_U

    @property
    def W_E(self) -> Float[Tensor, "d_vocab d_model"]:  # noqa: N802
        """The token embedding."""
        return self.embed.W_E

    @property
    def W_pos(self) -> Float[Tensor, "n_ctx d_model"]:  # noqa: N802
        """The position embedding; a model that has none raises ``InputError``."""
        if self.config.positions not in ("learned", "sinusoidal"):
            raise InputError(f"W_pos: positions are {self.config.positions!r} here and have no embedding")
        return self.pos_embed.W_pos

    @property
    def W_E_pos(self) -> Float[Tensor, "rows d_model"]:  # noqa: N802
        """The embeddings of tokens, then those of positions: ``[d_vocab + n_ctx d_model]``."""
        return torch.cat([self.W_E, self.W_pos])

    def accumulated_bias(
        self, layer: int, mlp_input: bool = False, include_mlp_biases: bool = True
    ) -> Float[Tensor, " d_model"]:
        """Sum of the biases that the blocks before `layer` write; with `mlp_input`, its own ``b_O`` is in it too.

        Experts' biases are not in it: a token takes those of the experts that it is sent to, as parts of ``mlp_out``.
        """
        blocks = list(self.blocks)
        if not 0 <= layer <= len(blocks) - mlp_input:
            raise InputError(f"layer: expected 0 to {len(blocks) - mlp_input}, got {layer}")
        total = self.W_E.new_zeros(self.config.d_model)
        for block in blocks[:layer]:
            total = total + block.attn.b_O
            if include_mlp_biases and self.config.d_mlp and not self.config.n_experts:
                total = total + block.mlp.b_out
        return total + blocks[layer].attn.b_O if mlp_input else total
