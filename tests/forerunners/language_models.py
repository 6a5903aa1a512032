"""Small models of each kind, and a toy language that takes a memory to predict."""

import itertools

import torch

from forerunners.convolution import Convolution, ConvolutionConfig
from forerunners.ngram import NGramConfig, fit_ngram
from forerunners.recurrent import Bidirectional, Recurrent, RecurrentConfig
from interp.model.training import TrainingConfig

NEURAL = {
    "elman": (Recurrent, RecurrentConfig, {"n_layers": 1, "cell": "elman"}),
    "lstm": (Recurrent, RecurrentConfig, {"n_layers": 1}),
    "deep lstm": (Recurrent, RecurrentConfig, {"n_layers": 2, "tied": False}),
    "peephole lstm": (Recurrent, RecurrentConfig, {"n_layers": 2, "cell": "peephole"}),
    "bidirectional": (Bidirectional, RecurrentConfig, {"n_layers": 2}),
    "convolution": (Convolution, ConvolutionConfig, {"n_layers": 2, "tied": False}),
}
CAUSAL = [kind for kind in NEURAL if kind != "bidirectional"]


def neural_model(kind, d_vocab=11, tokenizer=None, *, d_model=16, seed=0, dtype=torch.float64):
    model, config, fields = NEURAL[kind]
    return model(config(d_model=d_model, d_vocab=d_vocab, **fields), tokenizer, name=kind, seed=seed).to(dtype)


def random_tokens(rows=4, length=9, d_vocab=11, seed=1):
    return torch.randint(d_vocab, (rows, length), generator=torch.Generator().manual_seed(seed))


def remembering_rows(d_vocab=11, length=8):
    """Endless rows: BOS (0), a word, its followers in turn, and at the end the first word again.

    The follower of ``w`` is ``w + 1``, that of the vocabulary's last word is 1.
    """
    for start in itertools.cycle(range(1, d_vocab)):
        words = [1 + (start - 1 + step) % (d_vocab - 1) for step in range(length - 2)]
        yield [0, *words, start]


def small_ngram(rows, *, order=3, d_vocab=11, tokenizer=None):
    return fit_ngram(rows, NGramConfig(order, d_vocab), tokenizer)


QUICK = TrainingConfig(steps=150, batch_size=10, optimizer="adamw", adamw_lr=0.02, warmup_steps=10)
