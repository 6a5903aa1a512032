"""What can be asked of every language model that came before transformers? The same as of a transformer.

A forerunner takes token ids and gives logits ``[batch pos d_vocab]``: those at a position say what comes next. It has
``cfg``, ``tokenizer``, ``name`` and TransformerLens' hooks, so every task and metric that takes a transformer takes it.
"""

from collections.abc import Sequence
from typing import Any, Literal

from jaxtyping import Float, Int
from torch import Tensor
from transformer_lens import HookedRootModule
from transformers import PreTrainedTokenizerBase

from interp.baselines.configs import ForerunnerConfig
from interp.errors import InputError
from interp.model.hooks import StrictHooks
from interp.model.inputs import as_padding_mask, as_token_ids, require_fit
from interp.model.transformer import next_token_loss, next_token_losses
from interp.model.weights import weights_hash
from interp.shapes import Logits, PaddingMask, Tokens

RETURN_TYPES = ("logits", "loss", "both")
Loss = Float[Tensor, ""] | Float[Tensor, "batch _"]


class Forerunner(StrictHooks, HookedRootModule):
    """A language model; a subclass says in ``predict`` how the logits are made.

    Attributes:
        config: What the model is made of (frozen).
        tokenizer: A fast tokenizer, or None.
        name: Where the model came from, for reports.
    """

    name: str

    def __init__(self, config: ForerunnerConfig, tokenizer: PreTrainedTokenizerBase | None, name: str):
        super().__init__()
        self.config, self.tokenizer, self.name = config, tokenizer, name

    def predict(self, tokens: Tokens, mask: PaddingMask) -> Logits:
        """The logits of checked token ids, whose padding, if any, is on the right."""
        raise NotImplementedError

    def forward(
        self,
        input: str | list[str] | Tokens | Int[Tensor, " pos"],
        return_type: Literal["logits", "loss", "both"] = "logits",
        *,
        loss_per_token: bool = False,
    ) -> Logits | Loss | tuple[Logits, Loss]:
        """Logits at every position, or the mean next-token loss in nats.

        Args:
            input: Token ids; where the model knows how, also text, with what ``interp.special_tokens`` puts around it
                (several texts are padded on the right, and padding changes no logits).
            return_type: ``"loss"`` is the mean cross-entropy over the real next tokens, ``"both"`` is
                ``(logits, loss)``.
            loss_per_token: The loss as ``[batch pos - 1]``, NaN where there is padding.

        Raises:
            InputError: No tokens, ids outside the vocabulary, text that cannot be encoded, a loss without a next
                token, or an unknown `return_type`.
        """
        if return_type not in RETURN_TYPES:
            raise InputError(f"return_type: expected 'logits', 'loss' or 'both', got {return_type!r}")
        tokens, mask = self.as_tokens(input)
        logits = self.predict(tokens, mask)
        if return_type == "logits":
            return logits
        loss = (next_token_losses if loss_per_token else next_token_loss)(logits, tokens, mask)
        return loss if return_type == "loss" else (logits, loss)

    def as_tokens(self, input: Any) -> tuple[Tokens, PaddingMask]:
        """Token ids of text or token ids, and the mask of those that are no padding, on the model's device.

        Raises:
            InputError: The text cannot be encoded, or the tensor holds no token ids of this vocabulary.
        """
        if not isinstance(input, Tensor):
            return self.tokenize(input)
        tokens = as_token_ids(input, next(self.parameters()).device)
        require_fit(tokens, tokens.shape[1], n_ctx=self.config.n_ctx, d_vocab=self.config.d_vocab)
        return tokens, as_padding_mask(None, tokens)

    def tokenize(self, texts: str | Sequence[str]) -> tuple[Tokens, PaddingMask]:
        """Token ids of text, where a model knows how.

        Raises:
            InputError: This one does not.
        """
        raise InputError(f"{type(self).__name__} takes token ids, got {texts!r}; encode the text with its tokenizer")

    @property
    def cfg(self) -> ForerunnerConfig:
        """The same as ``config``: where TransformerLens' protocol looks for it."""
        return self.config

    @property
    def hash(self) -> str:
        """SHA-256 of the weights' names, shapes and values; the dtype they are held in does not matter."""
        return weights_hash(self)
