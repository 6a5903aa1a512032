"""How does a network translate that looks back at the source? An encoder and a decoder LSTM with attention.

1. The encoder reads the source in both directions: ``h[j]``, for each source position.
2. The decoder starts from a map of the encoder's last states and reads the target words so far: ``s[i]``.
3. ``alignment[i, j]`` is the softmax over ``j`` of ``score(., h[j])``: where the decoder looks for its next word, and
   ``c[i] = sum_j alignment[i, j] h[j]`` what it sees there.
4. ``x = tanh(W [s[i]; c[i]])`` and ``logits = x @ W_U + b_U``.

Two decoders. Bahdanau's (Bahdanau et al. 2015) looks with the state before, ``score(s[i-1], h[j])``, and then reads
the word beside what it sees: ``s[i] = LSTM([word; c[i]], s[i-1])``. Luong's (Luong et al. 2015) reads first, ``s[i] =
LSTM(word, s[i-1])``, and looks with that: ``score(s[i], h[j])``. Both have an LSTM here, and step 4.

Three scores: ``additive``, ``v . tanh(W_q s + W_k h)`` (Bahdanau), ``bilinear``, ``s W h`` ("general"), and ``dot``,
``s . h`` (Luong).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformer_lens import HookedRootModule

from forerunners.language_model import CheckedConfig, drawn_from, require_choice, require_counts
from interp.errors import ConfigError
from interp.model.attention import Additive, Bilinear, Dot
from interp.model.hooks import HookPoint, StrictHooks
from interp.model.layers import Embed, Unembed

Score = Literal["additive", "bilinear", "dot"]
DecoderName = Literal["bahdanau", "luong"]
Source = Int[Tensor, "batch key_pos"]
Target = Int[Tensor, "batch query_pos"]
Encoded = Float[Tensor, "batch key_pos d_model"]
Decoded = Float[Tensor, "batch query_pos d_model"]
Alignment = Float[Tensor, "batch query_pos key_pos"]
State = tuple[Float[Tensor, "layer batch d_model"], Float[Tensor, "layer batch d_model"]]


@dataclass(frozen=True)
class TranslatorConfig(CheckedConfig):
    """What an encoder-decoder is made of.

    Attributes:
        n_source: Words of the source vocabulary.
        n_target: Words of the target vocabulary.
        d_model: Width of embeddings and states; even, since each direction of the encoder has half.
        score: How the decoder's state is compared with the encoder's.
        decoder: Whether it looks before it reads a word (``bahdanau``) or after (``luong``).
        n_layers: Recurrent layers on each side.

    Raises:
        ConfigError: A value describes no model.
    """

    n_source: int
    n_target: int
    d_model: int = 64
    score: Score = "additive"
    decoder: DecoderName = "bahdanau"

    n_layers: ClassVar[int] = 1

    @classmethod
    def check(cls, fields: Mapping[str, Any]) -> None:
        """Refuse values that describe no model.

        Raises:
            ConfigError: It says which.
        """
        fields = {"d_model": 64, "score": "additive", "decoder": "bahdanau", **fields}
        require_counts(fields, ("n_source", "n_target", "d_model"))
        if fields["d_model"] % 2:
            raise ConfigError(f"d_model: expected an even number, got {fields['d_model']}")
        require_choice("score", fields["score"], get_args(Score))
        require_choice("decoder", fields["decoder"], get_args(DecoderName))


_SCORES: dict[Score, Callable[[int], nn.Module]] = {
    "additive": lambda d_model: Additive(1, d_model),
    "bilinear": lambda d_model: Bilinear(1, d_model),
    "dot": lambda d_model: Dot(1.0),
}


class AlignmentScore(nn.Module):
    """``score(s, h)`` for each target and source position."""

    def __init__(self, score: Score, d_model: int):
        super().__init__()
        mapped = score == "additive"  # the other two compare the states themselves
        self.query, self.key = (nn.Linear(d_model, d_model, bias=False) if mapped else nn.Identity() for _ in range(2))
        self.compare = _SCORES[score](d_model)
        if score == "bilinear":
            nn.init.normal_(self.compare.get_parameter("w_score"), std=d_model**-0.5)

    def forward(self, decoded: Decoded, encoded: Encoded) -> Alignment:
        """Scores before the softmax."""
        return self.compare(self.query(decoded)[:, None], self.key(encoded)[:, None])[:, 0]  # one head


Look = Callable[[Decoded], Decoded]
"""What states see of the source."""


class LuongDecoder(nn.Module):
    """Reads a word, then looks."""

    def __init__(self, d_model: int):
        super().__init__()
        self.lstm = nn.LSTM(d_model, d_model, batch_first=True)

    def forward(self, words: Decoded, start: State, _look: Look) -> tuple[Decoded, Decoded]:
        """The state after each word, and the state that looks for the next one: the same."""
        decoded, _ = self.lstm(words, start)
        return decoded, decoded


class BahdanauDecoder(nn.Module):
    """Looks, then reads a word beside what it sees."""

    def __init__(self, d_model: int):
        super().__init__()
        self.lstm = nn.LSTMCell(2 * d_model, d_model)

    def forward(self, words: Decoded, start: State, look: Look) -> tuple[Decoded, Decoded]:
        """The state after each word, and the state that looks for the next one: the one before."""
        state, cell = (each[0] for each in start)
        states = [state]
        for word in words.unbind(1):
            seen = look(state[:, None])[:, 0]
            state, cell = self.lstm(torch.cat([word, seen], dim=-1), (state, cell))
            states.append(state)
        return torch.stack(states[1:], dim=1), torch.stack(states[:-1], dim=1)


_DECODERS: dict[DecoderName, Callable[[int], nn.Module]] = {"bahdanau": BahdanauDecoder, "luong": LuongDecoder}


class Translator(StrictHooks, HookedRootModule):
    """Source words to target words. Made in evaluation mode, with weights drawn from `seed`.

    Points: ``hook_encoded`` ``[batch key_pos d_model]``, ``hook_decoded`` ``[batch query_pos d_model]``,
    ``hook_scores`` and ``hook_alignment`` ``[batch query_pos key_pos]``. What a hook writes to the last three changes
    what words are read from, and no later state: the recurrence runs before.

    Attributes:
        config: What it is made of.
    """

    @torch.inference_mode(False)
    def __init__(self, config: TranslatorConfig, *, seed: int = 0):
        super().__init__()
        self.config = config
        d_model = config.d_model
        with drawn_from(seed):
            self.embed_source, self.embed_target = Embed(config.n_source, d_model), Embed(config.n_target, d_model)
            self.encoder = nn.LSTM(d_model, d_model // 2, batch_first=True, bidirectional=True)
            self.start = nn.Linear(d_model, d_model)
            self.decoder = _DECODERS[config.decoder](d_model)
            self.score = AlignmentScore(config.score, d_model)
            self.join = nn.Linear(2 * d_model, d_model)
            self.unembed = Unembed(d_model, config.n_target)
            for matrix in (self.embed_source.W_E, self.embed_target.W_E):
                nn.init.normal_(matrix)
            nn.init.normal_(self.unembed.W_U, std=d_model**-0.5)
        self.hook_encoded, self.hook_decoded = HookPoint(), HookPoint()
        self.hook_scores, self.hook_alignment = HookPoint(), HookPoint()
        self.setup()
        self.eval()

    def forward(
        self, source: Source, source_mask: Bool[Tensor, "batch key_pos"], target: Target
    ) -> Float[Tensor, "batch query_pos d_vocab"]:
        """The logits of the word after each of the target's, given those before and the source; on the model's device.

        Args:
            source: Token ids, padded on the right.
            source_mask: Where there is no padding.
            target: Token ids, BOS first; those behind a position have no influence there.
        """
        source, source_mask, target = (each.to(self.start.weight.device) for each in (source, source_mask, target))
        encoded, start = self._encode(source, source_mask)

        def aligned(scores: Alignment) -> Alignment:
            return scores.masked_fill(~source_mask[:, None], -torch.inf).softmax(-1)

        def look(states: Decoded) -> Decoded:
            return aligned(self.score(states, encoded)) @ encoded

        decoded, looking = self.decoder(self.embed_target(target), start, look)
        decoded, scores = self.hook_decoded(decoded), self.hook_scores(self.score(looking, encoded))
        alignment = self.hook_alignment(aligned(scores))
        return self.unembed(self.join(torch.cat([decoded, alignment @ encoded], dim=-1)).tanh())

    def _encode(self, source: Source, mask: Bool[Tensor, "batch key_pos"]) -> tuple[Encoded, State]:
        """The encoder's states, and the decoder's first."""
        lengths = mask.sum(-1).cpu()
        packed = pack_padded_sequence(self.embed_source(source), lengths, batch_first=True, enforce_sorted=False)
        states, (last, _) = self.encoder(packed)
        encoded, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        first = self.start(torch.cat([last[0], last[1]], dim=-1)).tanh()[None]
        return self.hook_encoded(encoded), (first, torch.zeros_like(first))
