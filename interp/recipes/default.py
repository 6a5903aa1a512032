"""What trains the embedded default model: this repository's own code on its own English.

1. The tokenizer gives each word of the lexicon one token (``recipes/tokenizer.py``).
2. The corpus is an endless, seeded stream of documents (``tasks/grammar/corpus.py``), less those that hold a
   published test sentence (``recipes/published.py``), packed into rows.
3. A small GPT-2 is trained on it (``model/training.py``) and saved with its weights rounded to float16.

The same seed on one thread gives the same weights, bit for bit, on the same machine and versions.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from interp.model.config import TransformerConfig
from interp.model.loading import save_model
from interp.model.training import TrainingConfig, packed_rows, train
from interp.model.transformer import HookedTransformer
from interp.recipes.published import without_published
from interp.recipes.tokenizer import build_tokenizer
from interp.tasks.grammar.corpus import documents
from interp.tasks.grammar.lexicon import english

SEED, STEPS = 3, 15_000
"""What ``interp train default`` does unless it is told otherwise."""
N_CTX = 64
ENCODE_AT_ONCE = 1_000


@dataclass(frozen=True)
class Training:
    """How a training went.

    Attributes:
        folder: Where the model lies.
        seed: Of the weights and of the corpus.
        tokens: Token positions seen.
        seconds: Wall time.
        loss: Mean loss over the last hundredth of the steps, in nats a token.
        hash: Of the saved weights.
    """

    folder: Path
    seed: int
    tokens: int
    seconds: float
    loss: float
    hash: str


def default_config(d_vocab: int) -> TransformerConfig:
    """The default model's shape: 3 layers of 4 heads, 128 wide, its unembedding not tied."""
    return TransformerConfig(
        n_layers=3,
        n_heads=4,
        d_model=128,
        d_head=32,
        d_mlp=512,
        d_vocab=d_vocab,
        n_ctx=N_CTX,
        tied=False,
        init_std=0.3,
    )


def train_default(
    out: str | Path,
    *,
    seed: int = SEED,
    steps: int = STEPS,
    threads: int = 1,
    progress: Callable[[int, float], None] | None = None,
) -> Training:
    """Train the default model anew and save it to `out`.

    Args:
        out: A folder, made where it is missing.
        seed: Of the weights and of the corpus.
        steps: Optimiser steps of 16 x 64 tokens.
        threads: CPU threads. More than one is rarely faster for a model this small, and other bits.
        progress: Called with the step and the mean loss since the last call.
    """
    before, started = torch.get_num_threads(), time.perf_counter()
    torch.set_num_threads(threads)
    try:
        tokenizer = build_tokenizer(english().words())
        model = HookedTransformer(
            default_config(len(tokenizer)), tokenizer, name=Path(out).name or "default", seed=seed
        )
        config = TrainingConfig(steps=steps)
        rows = packed_rows(
            encoded(without_published(documents(seed)), tokenizer), bos=tokenizer.bos_token_id, n_ctx=N_CTX
        )
        losses = train(model, rows, config, progress=progress)
    finally:
        torch.set_num_threads(before)
    folder = save_model(model, out, dtype=torch.float16)
    last = losses[-max(1, steps // 100) :]
    return Training(
        folder=folder,
        seed=seed,
        tokens=steps * config.batch_size * N_CTX,
        seconds=time.perf_counter() - started,
        loss=sum(last) / len(last),
        hash=model.to(torch.float16).hash,
    )


def encoded(texts: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> Iterator[list[int]]:
    """Token ids of each document, many at a time."""
    stream = iter(texts)
    while batch := list(islice(stream, ENCODE_AT_ONCE)):
        yield from tokenizer(batch, add_special_tokens=False)["input_ids"]
