"""Rows of token ids that a tiny model learns in a few steps."""

import itertools

import torch


def repeated_rows(n_ctx=8, d_vocab=30):
    """Endless random rows whose second half repeats the first."""
    generator = torch.Generator().manual_seed(0)
    while True:
        half = torch.randint(1, d_vocab, (n_ctx // 2,), generator=generator).tolist()
        yield half + half


def counting_rows(n_ctx=8, d_vocab=30):
    """Endless rows in which each token is the one before, plus 1."""
    for start in itertools.count():
        yield [(start + step) % d_vocab for step in range(n_ctx)]
