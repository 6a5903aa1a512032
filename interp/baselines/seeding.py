"""Weights that a seed decides, of layers that draw from torch's global generator by themselves."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Within it, what is drawn on the CPU comes from `seed`; behind it, the global generator goes on as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
