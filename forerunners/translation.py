"""Does a network learn to translate? Training, translating greedily or with a beam, and scoring translations.

1. Training lowers the mean cross-entropy of each target word and of the end, given the true words before them.
2. Translating is greedy: the most probable word each time, until the end.
3. ``n_best`` keeps the n most probable beginnings; ``translation_scores`` says how probable a translation is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from forerunners.seq2seq import Translator
from forerunners.toy_french import BOS, EOS, PAD, SPECIAL, SentencePair, source_words, target_words
from interp.errors import InputError
from interp.model.devices import documented
from interp.model.training import TrainingConfig, train

PAD_ID, BOS_ID, EOS_ID = (SPECIAL.index(each) for each in (PAD, BOS, EOS))


@dataclass(frozen=True)
class Languages:
    """The vocabularies of a translator; ``SPECIAL`` first in both.

    Attributes:
        source: Words of the source language.
        target: Words of the target language.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]

    @property
    def reversed(self) -> "Languages":
        """Of a translator in the other direction."""
        return Languages(self.target, self.source)


ENGLISH_TO_FRENCH = Languages(source_words(), target_words())
TRAINING = TrainingConfig(steps=800, batch_size=32, adamw_lr=0.005, weight_decay=0.01, warmup_steps=40)


class _Teaching(nn.Module):
    """The loss of rows that hold a source of `width` ids and behind it a target."""

    def __init__(self, translator: Translator, width: int):
        super().__init__()
        self.translator, self._width = translator, width

    def forward(self, rows: Int[Tensor, "batch pos"], return_type: str = "loss") -> Float[Tensor, ""]:
        source, target = rows[:, : self._width], rows[:, self._width :]
        logits = self.translator(source, source != PAD_ID, target[:, :-1])
        return nn.functional.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=PAD_ID)


@documented
def train_translator(
    translator: Translator,
    pairs: Sequence[SentencePair],
    config: TrainingConfig = TRAINING,
    *,
    seed: int = 0,
    languages: Languages = ENGLISH_TO_FRENCH,
) -> list[float]:
    """Train in place; the default takes seconds on a CPU.

    Args:
        translator: Made for the words of `languages`. Left in evaluation mode.
        pairs: What is trained on, each once before any comes again.
        config: How.
        seed: Of the order.
        languages: Of the pairs' sources and targets.

    Returns:
        The loss of each step, in nats a word.

    Raises:
        InputError: There are no pairs, one has an unknown word, or the loss is no longer a finite number.
    """
    source, target = source_ids(pairs, languages), target_ids(pairs, languages)
    rows = torch.cat([source, target], dim=1).tolist()
    return train(_Teaching(translator, source.shape[1]), _shuffled(rows, seed), config).train


def _shuffled(rows: list[list[int]], seed: int) -> Iterator[list[int]]:
    for epoch in count():
        yield from (rows[each] for each in np.random.default_rng([seed, epoch]).permutation(len(rows)))


def source_ids(pairs: Sequence[SentencePair], languages: Languages = ENGLISH_TO_FRENCH) -> Int[Tensor, "batch key_pos"]:
    """Ids of the source words, padded on the right.

    Raises:
        InputError: There are no pairs, or one has a word that its language does not have.
    """
    return _ids([pair.source for pair in pairs], languages.source)


def target_ids(
    pairs: Sequence[SentencePair], languages: Languages = ENGLISH_TO_FRENCH
) -> Int[Tensor, "batch query_pos"]:
    """Ids of the target words between BOS and EOS, padded on the right.

    Raises:
        InputError: There are no pairs, or one has a word that its language does not have.
    """
    return sentence_ids([pair.target for pair in pairs], languages.target)


def sentence_ids(sentences: Sequence[Sequence[str]], words: Sequence[str]) -> Int[Tensor, "batch pos"]:
    """Ids of each sentence between BOS and EOS, padded on the right."""
    return _ids([(BOS, *sentence, EOS) for sentence in sentences], words)


def _ids(sentences: Sequence[Sequence[str]], words: Sequence[str]) -> Int[Tensor, "batch pos"]:
    known = {word: number for number, word in enumerate(words)}
    unknown = sorted({word for sentence in sentences for word in sentence} - set(known))
    if unknown or not sentences or not all(sentences):
        got = f"the unknown words {', '.join(unknown)}" if unknown else "an empty one" if sentences else "none"
        raise InputError(f"sentences: expected at least one, of the toy languages' words, got {got}")
    rows = [torch.tensor([known[word] for word in sentence]) for sentence in sentences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD_ID)


@documented
@torch.inference_mode()
def translate(translator: Translator, sources: Sequence[Sequence[str]], *, most: int = 30) -> list[tuple[str, ...]]:
    """The target words of each source sentence, chosen greedily.

    Args:
        translator: A trained one.
        sources: The words of each sentence.
        most: Words to write, at most.

    Raises:
        InputError: There is no sentence, or one has a word that is not in ``source_words()``.
    """
    source, words = _ids(sources, source_words()), target_words()
    mask: Bool[Tensor, "batch key_pos"] = source != PAD_ID
    written = torch.full((len(source), 1), BOS_ID)
    for _ in range(most):
        following = translator(source, mask, written)[:, -1].argmax(-1, keepdim=True).cpu()
        written = torch.cat([written, following], dim=1)
        if (written == EOS_ID).any(dim=1).all():
            break
    return [tuple(words[each] for each in _before_the_end(row)) for row in written[:, 1:].tolist()]


def _before_the_end(row: list[int]) -> list[int]:
    return row[: row.index(EOS_ID)] if EOS_ID in row else row


@documented
@torch.inference_mode()
def n_best(
    translator: Translator,
    sources: Sequence[Sequence[str]],
    n: int,
    *,
    most: int = 30,
    languages: Languages = ENGLISH_TO_FRENCH,
) -> list[list[tuple[str, ...]]]:
    """The `n` most probable translations of each sentence that a beam of `n` finds, the most probable first.

    Those that have not ended after `most` words are left out, so that there can be fewer.

    Args:
        translator: A trained one.
        sources: The words of each sentence.
        n: Width of the beam.
        most: Words to write, at most.
        languages: Of the translator.

    Raises:
        InputError: There is no sentence, or one has a word that is not in its language.
    """
    return [_beam(translator, row[None], n, most, languages.target) for row in _ids(sources, languages.source)]


def _beam(
    translator: Translator, source: Int[Tensor, "one key_pos"], n: int, most: int, words: Sequence[str]
) -> list[tuple[str, ...]]:
    source = source[:, : int((source != PAD_ID).sum())]
    written, log_p = torch.full((1, 1), BOS_ID), torch.zeros(1)
    ended: list[tuple[float, list[int]]] = []
    for _ in range(most + 1):
        rows = source.expand(len(written), -1)
        following = translator(rows, rows != PAD_ID, written)[:, -1].log_softmax(-1).cpu()
        total = (log_p[:, None] + following).flatten()
        log_p, place = total.topk(min(n, len(total)))
        row, token = place // len(words), place % len(words)
        written = torch.cat([written[row], token[:, None]], dim=1)
        done = token == EOS_ID
        ended += zip(log_p[done].tolist(), written[done, 1:-1].tolist(), strict=True)
        written, log_p = written[~done], log_p[~done]
        best = sorted(ended, key=lambda each: -each[0])[:n]
        # A sentence only becomes less probable as it grows.
        if not len(written) or (len(best) == n and best[-1][0] >= float(log_p.max())):
            break
    return [tuple(words[each] for each in ids) for _, ids in sorted(ended, key=lambda each: -each[0])[:n]]


@documented
@torch.inference_mode()
def translation_scores(
    translator: Translator, pairs: Sequence[SentencePair], *, languages: Languages = ENGLISH_TO_FRENCH
) -> Float[Tensor, " pair"]:
    """``log p(target | source)`` of each pair in nats, the end included; on the CPU.

    Raises:
        InputError: There are no pairs, or one has an unknown word.
    """
    source, target = source_ids(pairs, languages), target_ids(pairs, languages)
    logits = translator(source, source != PAD_ID, target[:, :-1])
    read = target[:, 1:].to(logits.device)
    losses = nn.functional.cross_entropy(logits.transpose(1, 2), read, ignore_index=PAD_ID, reduction="none")
    return -losses.sum(-1).cpu()
