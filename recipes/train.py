"""Follows a recipe: from text to a model in a folder.

1. The tokenizer is built or learned (``tokenizer.py``).
2. The text is an endless, seeded stream of documents, packed into rows: of our own English
   (``tasks/grammar/training_text.py``), less the documents with a published test sentence, or of a file
   (``text.py`` has both).
3. A model is trained on the rows (``model/training.py``) and saved beside its checkpoints, which
   say how it was trained.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path

import pandas as pd
import torch
from transformers import PreTrainedTokenizerBase

from interp.errors import InputError
from interp.model.checkpoints import CHECKPOINTS
from interp.model.devices import documented, resolve_device, resolve_dtype
from interp.model.loading import save_model
from interp.model.training import LossCurve, packed_rows, train
from interp.model.transformer import HookedTransformer
from interp.model.weights import tokenizer_hash
from interp.tasks.grammar.lexicon import english
from interp.tasks.grammar.training_text import documents
from recipes.recipe import Recipe
from recipes.text import Paragraphs, read_paragraphs, without_published
from recipes.tokenizer import build_tokenizer, learn_tokenizer

ENCODE_AT_ONCE = 1_000
HELD_OUT_ROWS = 128


@dataclass(frozen=True)
class Training:
    """How a training went.

    Attributes:
        folder: Where the model lies.
        seed: Of the weights and of the order of the text.
        tokens: Token positions seen.
        seconds: Wall time of this run; of a training that went on, not of what came before.
        loss: Mean loss over the last hundredth of the steps, in nats a token.
        hash: Of the saved weights.
        curve: The loss step by step.
        tokens_per_step: Token positions of one step.
    """

    folder: Path
    seed: int
    tokens: int
    seconds: float
    loss: float
    hash: str
    curve: LossCurve
    tokens_per_step: int

    def frame(self) -> pd.DataFrame:
        """The loss in nats a token: ``step, tokens, split, loss``; what is held out was measured after the step."""
        train = pd.DataFrame({"step": range(1, len(self.curve.train) + 1), "split": "train", "loss": self.curve.train})
        measured = {"step": list(self.curve.held_out), "split": "held out", "loss": list(self.curve.held_out.values())}
        frame = pd.concat([train, pd.DataFrame(measured)], ignore_index=True)
        frame.insert(1, "tokens", frame["step"] * self.tokens_per_step)
        return frame


@documented
def train_recipe(
    recipe: Recipe,
    out: str | Path,
    *,
    text: str | Path | None = None,
    seed: int | None = None,
    steps: int | None = None,
    threads: int = 1,
    device: str | torch.device | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Training:
    """Train a recipe's model and save it to `out`.

    Checkpoints are kept in ``out/checkpoints``: as often as the recipe asks for them, and when the training ends or is
    interrupted. Where there are some of the same training, it goes on from the newest.

    Args:
        recipe: From ``read_recipe``.
        out: A folder, made where it is missing.
        text: The file to train on, in the place of the recipe's.
        seed: In the place of the recipe's.
        steps: In the place of the recipe's.
        threads: CPU threads. Another number gives other last bits.
        device: ``cpu`` (default), ``cuda``, ``cuda:N`` or ``auto``.
        progress: Called with the step and the mean loss since the last call.

    Raises:
        InputError: There is no text, or it cannot be used.
        LoadError: `out` holds checkpoints of another training.
        OutputError: `out` cannot be written to.
    """
    training = recipe.training if steps is None else replace(recipe.training, steps=steps)
    seed = recipe.seed if seed is None else seed
    before, started = torch.get_num_threads(), time.perf_counter()
    torch.set_num_threads(threads)
    try:
        path = recipe.text if text is None else Path(os.path.expanduser(text))
        tokenizer, rows, held_out = _material(recipe, path, seed)
        name = Path(out).name or recipe.name
        model = HookedTransformer(recipe.config(len(tokenizer)), tokenizer, name=name, seed=seed)
        model.to(resolve_device(device))
        material = {
            "seed": seed,
            "source": recipe.source,
            "text": None if path is None else sha256(path.read_bytes()).hexdigest(),
            "held_out": recipe.held_out,
            "tokenizer": tokenizer_hash(tokenizer),
        }
        curve = train(
            model,
            rows,
            training,
            held_out=held_out,
            folder=Path(out) / CHECKPOINTS,
            material=material,
            progress=progress,
        )
    finally:
        torch.set_num_threads(before)
    saved = save_model(model, out, dtype=recipe.save_as)
    last = curve.train[-max(1, training.steps // 100) :]
    tokens_per_step = training.batch_size * model.config.n_ctx
    return Training(
        folder=saved,
        seed=seed,
        tokens=training.steps * tokens_per_step,
        tokens_per_step=tokens_per_step,
        seconds=time.perf_counter() - started,
        loss=sum(last) / len(last),
        hash=model.to(resolve_dtype(recipe.save_as)).hash,
        curve=curve,
    )


Material = tuple[PreTrainedTokenizerBase, Iterator[list[int]], list[list[int]]]


def _material(recipe: Recipe, path: Path | None, seed: int) -> Material:
    """The tokenizer, the rows to train on, and those held out."""
    paragraphs = _paragraphs(recipe, path)
    if paragraphs is None:
        tokenizer = build_tokenizer(english().words())
        return tokenizer, _rows(recipe, without_published(documents(seed)), tokenizer), []
    words = recipe.kind == "lexicon"
    tokenizer = build_tokenizer(english().words()) if words else learn_tokenizer(paragraphs.trained, recipe.size)
    held_out = list(islice(_rows(recipe, paragraphs.held_out, tokenizer), HELD_OUT_ROWS))
    return tokenizer, _rows(recipe, paragraphs.shuffled(seed), tokenizer), held_out


def _paragraphs(recipe: Recipe, path: Path | None) -> Paragraphs | None:
    if recipe.source == "grammar":
        if path is not None:
            raise InputError(f"{recipe.name}: is trained on this project's own English, but got the text {path}")
        return None
    if path is None:
        raise InputError(f"{recipe.name}: is trained on a text; name its file with --text, or in the recipe")
    return read_paragraphs(path, recipe.held_out)


def _rows(recipe: Recipe, texts: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> Iterator[list[int]]:
    return packed_rows(encoded(texts, tokenizer), bos=tokenizer.bos_token_id, n_ctx=recipe.model["n_ctx"])


def encoded(texts: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> Iterator[list[int]]:
    """Token ids of each document, many at a time."""
    stream = iter(texts)
    while batch := list(islice(stream, ENCODE_AT_ONCE)):
        yield from tokenizer(batch, add_special_tokens=False)["input_ids"]
