"""The models that came before transformers, trained on rows of tokens."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from forerunners.language_model import Forerunner
from forerunners.ngram import NGramConfig, fit_ngram
from forerunners.recurrent import Recurrent, RecurrentConfig
from interp.model.training import TrainingConfig, train

WIDTH, ORDER = 256, 5
NGRAM, ELMAN, LSTM = f"{ORDER}-gram", "Elman network", "LSTM"
FORERUNNERS = (NGRAM, ELMAN, LSTM)


@dataclass(frozen=True)
class Lesson:
    """What a model is trained on.

    Attributes:
        rows: Gives the rows, each time from the beginning.
        d_vocab: Entries of the vocabulary; 0 is BOS where there is no tokenizer.
        training: How.
        n_gram_rows: How many rows are counted at most for n-grams.
        tokenizer: What made the tokens, if anything did.
    """

    rows: Callable[[], Iterator[list[int]]]
    d_vocab: int
    training: TrainingConfig
    n_gram_rows: int
    tokenizer: Any = None


def trained(name: str, lesson: Lesson) -> Forerunner:
    """A forerunner after this lesson."""
    started, tokenizer, d_vocab = time.perf_counter(), lesson.tokenizer, lesson.d_vocab
    model: Forerunner
    if name == NGRAM:
        bos = 0 if tokenizer is None else tokenizer.bos_token_id
        n_rows = min(lesson.n_gram_rows, lesson.training.batch_size * lesson.training.steps)
        model = fit_ngram(islice(lesson.rows(), n_rows), NGramConfig(ORDER, d_vocab, bos=bos), tokenizer)
    else:
        cell = "elman" if name == ELMAN else "lstm"
        model = Recurrent(RecurrentConfig(1, WIDTH, d_vocab, tied=False, cell=cell), tokenizer)
        train(model, lesson.rows(), lesson.training, progress=lambda step, loss: say(f"{name}: {step}, {loss:.3f}"))
    say(f"{name}: {time.perf_counter() - started:.0f} s")
    return model


def say(text: str) -> None:
    """Tell how far a training is, beside what is printed as a result."""
    print(text, file=sys.stderr, flush=True)
