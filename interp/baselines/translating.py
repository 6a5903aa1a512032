"""Does a network learn to translate, and does it look where it should? Training, translating and alignments.

1. Training lowers the mean cross-entropy of each target word and of the end, given the true words before them.
2. Translating is greedy: the most probable word each time, until the end.
3. The alignment is read with the true target words given. A word is aligned right when its largest weight lies on the
   source word that it translates. Each word has one link in both, so the rest is the alignment error rate
   (Och & Ney 2003). A decoder that only counts along scores the share of words that stand at their own position.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from interp.baselines.seq2seq import Translator
from interp.baselines.translation import BOS, EOS, PAD, SPECIAL, SentencePair, source_words, target_words
from interp.errors import InputError
from interp.model.devices import documented
from interp.model.training import TrainingConfig, train

PAD_ID, BOS_ID, EOS_ID = (SPECIAL.index(each) for each in (PAD, BOS, EOS))
TRAINING = TrainingConfig(steps=800, batch_size=32, adamw_lr=0.005, weight_decay=0.01, warmup_steps=40)


@dataclass(frozen=True)
class AlignmentQuality:
    """How well attention finds the source words.

    Attributes:
        right: Share of target words whose largest weight lies on the word that they translate.
        diagonal: Share that a decoder would get that looks at source position ``i`` for target word ``i``.
        n_words: Target words that were looked at.
    """

    right: float
    diagonal: float
    n_words: int

    @property
    def error_rate(self) -> float:
        """Och & Ney's (2003) alignment error rate."""
        return 1 - self.right


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
    translator: Translator, pairs: Sequence[SentencePair], config: TrainingConfig = TRAINING, *, seed: int = 0
) -> list[float]:
    """Train in place; the default takes seconds on a CPU.

    Args:
        translator: Made for ``source_words()`` and ``target_words()``. Left in evaluation mode.
        pairs: What is trained on, each once before any comes again.
        config: How.
        seed: Of the order.

    Returns:
        The loss of each step, in nats a word.

    Raises:
        InputError: There are no pairs, one has an unknown word, or the loss is no longer a finite number.
    """
    source, target = source_ids(pairs), target_ids(pairs)
    rows = torch.cat([source, target], dim=1).tolist()
    return train(_Teaching(translator, source.shape[1]), _shuffled(rows, seed), config).train


def _shuffled(rows: list[list[int]], seed: int) -> Iterator[list[int]]:
    for epoch in count():
        yield from (rows[each] for each in np.random.default_rng([seed, epoch]).permutation(len(rows)))


def source_ids(pairs: Sequence[SentencePair]) -> Int[Tensor, "batch key_pos"]:
    """Ids of the source words, padded on the right.

    Raises:
        InputError: There are no pairs, or one has a word that is not in ``source_words()``.
    """
    return _ids([pair.source for pair in pairs], source_words())


def target_ids(pairs: Sequence[SentencePair]) -> Int[Tensor, "batch query_pos"]:
    """Ids of the target words between BOS and EOS, padded on the right.

    Raises:
        InputError: There are no pairs, or one has a word that is not in ``target_words()``.
    """
    return _ids([(BOS, *pair.target, EOS) for pair in pairs], target_words())


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
        following = translator(source, mask, written)[:, -1].argmax(-1, keepdim=True)
        written = torch.cat([written, following], dim=1)
        if (written == EOS_ID).any(dim=1).all():
            break
    return [tuple(words[each] for each in _before_the_end(row)) for row in written[:, 1:].tolist()]


def _before_the_end(row: list[int]) -> list[int]:
    return row[: row.index(EOS_ID)] if EOS_ID in row else row


@documented
@torch.inference_mode()
def alignment_frame(translator: Translator, pairs: Sequence[SentencePair]) -> pd.DataFrame:
    """Where each target word of `pairs` is looked for, with the true words before it given.

    Returns:
        One row a sentence, target word and source word: ``sentence``, ``query_pos`` and ``target``, ``key_pos`` and
        ``source``, ``weight`` (they sum to 1 over a target word's rows), and ``gold``: whether it translates that word.

    Raises:
        InputError: There are no pairs, or one has an unknown word.
    """
    source, read = source_ids(pairs), target_ids(pairs)[:, :-1]
    _, cache = translator.run_with_cache(source, source != PAD_ID, read, names_filter="hook_alignment")
    weights = cache["hook_alignment"].double().numpy()
    return pd.DataFrame(
        [
            {
                "sentence": number,
                "query_pos": query_pos,
                "target": target,
                "key_pos": key_pos,
                "source": word,
                "weight": weights[number, query_pos, key_pos],
                "gold": pair.alignment[query_pos] == key_pos,
            }
            for number, pair in enumerate(pairs)
            for query_pos, target in enumerate(pair.target)
            for key_pos, word in enumerate(pair.source)
        ]
    )


def alignment_quality(frame: pd.DataFrame) -> AlignmentQuality:
    """Hold alignments against the truth.

    Args:
        frame: From ``alignment_frame``.
    """
    words = frame.groupby(["sentence", "query_pos"])
    found = frame.loc[words["weight"].idxmax()]
    own = frame[frame["gold"] & (frame["query_pos"] == frame["key_pos"])]
    return AlignmentQuality(float(found["gold"].mean()), len(own) / words.ngroups, words.ngroups)
