"""Say that again: random words, a mark, and the same words (Graves et al. 2014; Jelassi et al. 2024).

Behind the mark each word can be told from the one that stood as many words back as the string is long, and from nothing
else. Who reads word after word has to keep all of the string.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import torch
from forerunners import Lesson

from interp.model.config import TransformerConfig
from interp.model.training import TrainingConfig, packed_rows, train
from interp.model.transformer import HookedTransformer

BOS, MARK, N_WORDS, LONGEST, N_CTX = 0, 1, 39, 16, 40
D_VOCAB = 2 + N_WORDS
TRAINED_ON, MEASURED_ON = 0, 10_000
"""The seeds of the strings."""
SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 64, "d_head": 16, "d_mlp": 0, "d_vocab": D_VOCAB, "n_ctx": N_CTX}


def strings(seed: int) -> Iterator[list[int]]:
    """Endless strings of 1 to ``LONGEST`` different words; of each length as many words."""
    dice, lengths = np.random.default_rng(seed), np.arange(1, LONGEST + 1)
    share = 1 / lengths
    while True:
        length = int(dice.choice(lengths, p=share / share.sum()))
        yield (2 + dice.permutation(N_WORDS)[:length]).tolist()


def training_rows() -> Iterator[list[int]]:
    """What is trained on: strings that come twice, one behind the other."""
    said_again = ([*string, MARK, *string] for string in strings(TRAINED_ON))
    return packed_rows(said_again, bos=BOS, n_ctx=N_CTX)


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
    """On `n` strings that were not trained on: the share of their words that are the model's first choice."""
    found = []
    for unit, string in enumerate(islice(strings(MEASURED_ON), n)):
        row = torch.tensor([[BOS, *string, MARK, *string[:-1]]])
        choices = model(row)[0, -len(string) :].argmax(-1)
        right = (choices == torch.tensor(string)).double().mean()
        distance = len(string) + 1
        found.append({"unit": unit, "cluster": unit, "template": "", "distance": distance, "correct": float(right)})
    return pd.DataFrame(found)
