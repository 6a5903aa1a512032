"""Language models from before transformers take what a transformer takes.

A forerunner takes token ids and gives logits ``[batch pos d_vocab]``: those at a position say what comes next. It has
``cfg``, ``tokenizer``, ``name`` and TransformerLens' hooks, so every task and metric that takes a transformer takes it.

The neural ones have this in common:

1. ``x = W_E[token]``.
2. The layers of a subclass turn ``x`` into as many vectors of the same width.
3. ``logits = x @ W_U + b_U``, where ``W_U`` is the embedding read backwards unless said otherwise (Press & Wolf 2017).
"""

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformer_lens import HookedRootModule
from transformers import PreTrainedTokenizerBase

from interp.errors import ConfigError, InputError, shown, suggest
from interp.model.config import require_count
from interp.model.hooks import HookPoint, StrictHooks
from interp.model.layers import Embed, TiedUnembed, Unembed
from interp.model.text import TextMixin, as_padding_mask, as_token_ids, require_fit
from interp.model.transformer import next_token_loss
from interp.model.weights import weights_hash
from interp.shapes import Logits, PaddingMask, Residual, Tokens

NO_LIMIT = sys.maxsize
"""The context of a model that takes a prompt of any length."""


class CheckedConfig:
    """Base of the configs, which are frozen dataclasses."""

    def __post_init__(self) -> None:
        self.check(vars(self))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "CheckedConfig":
        """The config of `fields`.

        Raises:
            ConfigError: A field is unknown or missing, or its value describes no model.
        """
        described: Any = cls
        known = {each.name: each.default for each in dataclasses.fields(described)}
        for name in fields:
            if name not in known:
                raise ConfigError(f"config: unknown field {name!r}; {suggest(name, known)}")
        missing = [name for name, default in known.items() if default is dataclasses.MISSING and name not in fields]
        if missing:
            raise ConfigError(f"config: expected the fields {', '.join(known)}; missing {', '.join(missing)}")
        cls.check(fields)
        return cls(**fields)

    @classmethod
    def check(cls, fields: Mapping[str, Any]) -> None:
        """Refuse values that describe no model; fields that are not given have their defaults.

        Raises:
            ConfigError: It says which.
        """
        raise NotImplementedError


class ForerunnerConfig(CheckedConfig):
    """Base of the configs of language models."""

    d_vocab: int

    @property
    def n_ctx(self) -> int:
        """The longest prompt: there is no limit."""
        return NO_LIMIT


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the choices.

    Raises:
        ConfigError: `value` is none.
    """
    if value not in choices:
        raise ConfigError(f"{name}: expected one of {', '.join(choices)}, got {shown(value)}")


def require_counts(fields: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Refuse fields that are not whole numbers of at least 1.

    Raises:
        ConfigError: One is none; it is named.
    """
    for name in names:
        require_count(name, fields[name])


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Within it, what is drawn on the CPU comes from `seed`; behind it, the global generator goes on as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


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
        loss = next_token_loss(logits, tokens, mask, per_token=loss_per_token)
        return loss if return_type == "loss" else (logits, loss)

    def as_tokens(self, input: Any) -> tuple[Tokens, PaddingMask]:
        """Token ids of text or token ids, and the mask of those that are no padding, on the model's device.

        Raises:
            InputError: The text cannot be encoded, or the tensor holds no token ids of this vocabulary.
        """
        if not isinstance(input, Tensor):
            return self.tokenize(input)
        tokens = as_token_ids(input, next(self.parameters()).device)
        require_fit(tokens, n_ctx=self.config.n_ctx, d_vocab=self.config.d_vocab)
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


@dataclass(frozen=True)
class NeuralConfig(ForerunnerConfig):
    """What a neural forerunner is made of.

    Attributes:
        n_layers: Layers, one above the other.
        d_model: Width of the embedding and of every layer's state.
        d_vocab: Entries of the vocabulary.
        tied: Whether the unembedding is the embedding's transpose.

    Raises:
        ConfigError: A value describes no model.
    """

    n_layers: int
    d_model: int
    d_vocab: int
    tied: bool = True

    @classmethod
    def check(cls, fields: Mapping[str, Any]) -> None:
        """Refuse values that describe no model.

        Raises:
            ConfigError: It says which.
        """
        require_counts(fields, ("n_layers", "d_model", "d_vocab"))
        if not isinstance(fields.get("tied", True), bool):
            raise ConfigError(f"tied: expected true or false, got {shown(fields['tied'])}")


class NeuralForerunner(TextMixin, Forerunner):
    """``embed -> layers -> unembed``. Made in evaluation mode, with weights drawn from `seed`.

    ``hook_embed`` is the point behind the embedding.
    """

    config: NeuralConfig

    @torch.inference_mode(False)
    def __init__(
        self,
        config: NeuralConfig,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        name: str = "untrained",
        seed: int = 0,
    ):
        super().__init__(config, tokenizer, name)
        self.hook_embed = HookPoint()
        with drawn_from(seed):
            self.embed = Embed(config.d_vocab, config.d_model)
            self.unembed = TiedUnembed(self.embed) if config.tied else Unembed(config.d_model, config.d_vocab)
            for matrix in (self.embed.W_E,) if config.tied else (self.embed.W_E, self.unembed.W_U):
                nn.init.normal_(matrix, std=config.d_model**-0.5)
            self.make_layers()
        self.setup()
        self.eval()

    def make_layers(self) -> None:
        """Make the layers; what they draw comes from the model's seed."""
        raise NotImplementedError

    def states(self, x: Residual, mask: PaddingMask) -> Residual:
        """What the layers make of the embedded tokens: at each position, what the next token is read from."""
        raise NotImplementedError

    def predict(self, tokens: Tokens, mask: PaddingMask) -> Logits:
        """The logits of checked token ids, whose padding, if any, is on the right."""
        return self.unembed(self.states(self.hook_embed(self.embed(tokens)), mask))
