"""Say that again: random words, a mark, and the same words (Graves et al. 2014; Jelassi et al. 2024).

Behind the mark each word can be told from the one that stood as many words back as the string is long, and from nothing
else. Who reads word after word has to keep all of the string.
"""

from collections.abc import Iterator
from itertools import count, cycle
from typing import Any

import numpy as np
import pandas as pd
import torch
from lessons import Lesson

from interp.model.config import TransformerConfig
from interp.model.training import TrainingConfig, packed_rows, train
from interp.model.transformer import HookedTransformer

BOS, MARK, N_WORDS, LONGEST, N_CTX = 0, 1, 39, 30, 64
D_VOCAB = 2 + N_WORDS
TRAINED_ON, MEASURED_ON = 0, 10_000
"""The seeds of the strings."""
LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 25, 30)
"""Of the strings that are measured on, as many each."""
SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 64, "d_head": 16, "d_mlp": 0, "d_vocab": D_VOCAB, "n_ctx": N_CTX}


def training_rows() -> Iterator[list[int]]:
    """Strings of 1 to ``LONGEST`` different words that come twice; of each length as many words."""
    dice, lengths = np.random.default_rng(TRAINED_ON), np.arange(1, LONGEST + 1)
    share = (1 / lengths) / (1 / lengths).sum()
    drawn = (_string(dice, int(dice.choice(lengths, p=share))) for _ in count())
    return packed_rows(([*string, MARK, *string] for string in drawn), bos=BOS, n_ctx=N_CTX)


def _string(dice: np.random.Generator, length: int) -> list[int]:
    return (2 + dice.permutation(N_WORDS)[:length]).tolist()


TRAINING = TrainingConfig(
    steps=3_000, batch_size=64, optimizer="adamw", adamw_lr=3e-3, weight_decay=0.01, warmup_steps=50, log_every=500
)
LESSON = Lesson(training_rows, D_VOCAB, TRAINING, n_gram_rows=30_000)


def attention_alone(lesson: Lesson) -> HookedTransformer:
    """Two layers of attention and nothing else, after this lesson."""
    model = HookedTransformer(TransformerConfig(**SIZES, positions="rotary", tied=False), seed=0)
    train(model, lesson.rows(), lesson.training)
    return model


@torch.inference_mode()
def recalled(model: Any, n: int) -> pd.DataFrame:
    """On `n` other strings than those trained on: the share of their words that are the model's first choice."""
    found, dice = [], np.random.default_rng(MEASURED_ON)
    for unit, length in zip(range(n), cycle(LENGTHS), strict=False):
        string = _string(dice, length)
        row = torch.tensor([[BOS, *string, MARK, *string[:-1]]])
        choices = model(row)[0, -len(string) :].argmax(-1)
        right = (choices == torch.tensor(string)).double().mean()
        labels = {"unit": unit, "cluster": unit, "template": "", "distance": length + 1}
        found.append({**labels, "correct": float(right)})
    return pd.DataFrame(found)
