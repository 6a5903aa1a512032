"""What do the neural forerunners have in common? Tokens become vectors, layers read them, vectors become logits.

1. ``x = W_E[token]``.
2. The layers of a subclass turn ``x`` into as many vectors of the same width.
3. ``logits = x @ W_U + b_U``, where ``W_U`` is the embedding read backwards unless said otherwise (Press & Wolf 2017).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from interp.baselines.configs import ForerunnerConfig, require_counts
from interp.baselines.forerunner import Forerunner
from interp.baselines.seeding import drawn_from
from interp.errors import ConfigError, shown
from interp.model.embedding import Embed, TiedUnembed, Unembed
from interp.model.hooks import HookPoint
from interp.model.text import TextMixin
from interp.shapes import Logits, PaddingMask, Residual, Tokens


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
