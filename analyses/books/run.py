"""What does the embedded model of real English know? See README.md.

python analyses/books/run.py BLIMP_FOLDER --published FILE [--model NAME] [--training DIR --text FILE]
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch

import interp
from interp.methods.behaviour import behaviour
from interp.model.checkpoints import CHECKPOINTS, checkpoints
from interp.model.training import packed_rows
from interp.tasks.blimp_task import blimp_pair
from interp.tasks.readers.blimp import read_blimp
from recipes.recipe import read_recipe
from recipes.text import read_paragraphs
from recipes.train import encoded

ROWS, ROWS_AT_ONCE = 256, 16


def by_paradigm(model: interp.HookedTransformer, folder: Path, published: Path) -> pd.DataFrame:
    """One row a paradigm in `folder`: how often the acceptable sentence is more probable, here and as published."""
    known = pd.read_json(published, lines=True)
    known = known[[(folder / f"{paradigm}.jsonl").is_file() for paradigm in known["UID"]]]
    ours = [accuracy(model, folder / f"{paradigm}.jsonl") for paradigm in known["UID"]]
    known.insert(2, "books", ours)
    named = {"UID": "paradigm", "linguistics_term": "phenomenon", "ngram": "5-gram", "lstm": "LSTM", "gpt2": "GPT-2"}
    return known.rename(columns={**named, "txl": "Transformer-XL"}).sort_values(["phenomenon", "paradigm"])


def by_phenomenon(paradigms: pd.DataFrame) -> pd.DataFrame:
    """Means over the paradigms of a phenomenon, and over all."""
    groups = paradigms.drop(columns="paradigm").groupby("phenomenon")
    means = groups.mean().assign(paradigms=groups.size())
    means.loc["all"] = paradigms.drop(columns=["paradigm", "phenomenon"]).mean().to_dict() | {
        "paradigms": len(paradigms)
    }
    return means.astype({"paradigms": int}).reset_index()


def accuracy(model: interp.HookedTransformer, path: Path) -> float:
    """The share of a file's items whose acceptable sentence is the more probable one; two equal ones are not right."""
    pairs = [replace(blimp_pair(item), counterfactual=None) for item in read_blimp(path)]
    task = interp.encode_task(
        pairs,
        tokenizer=model.tokenizer,
        name=path.stem,
        description="Which sentence is acceptable?",
        metric="sentence_log_probability",
        n_ctx=model.cfg.n_ctx,
    )
    assert set(task.dropped) <= {"right and wrong are the same token"}, task.dropped
    return float(behaviour(model, task)["correct"].sum() / len(pairs))


def loss_by_tokens(training: Path, text: Path) -> pd.DataFrame:
    """One row a checkpoint: token positions seen, and the loss on paragraphs of the whole text that are held out."""
    recipe = read_recipe("books")
    held_out = read_paragraphs(text, recipe.held_out).held_out
    found, rows = [], None
    for step, path in checkpoints(training / CHECKPOINTS).items():
        model = interp.load_model(path)
        rows = rows or _rows(model, held_out)
        tokens = step * recipe.training.batch_size * model.cfg.n_ctx
        found.append({"step": step, "million tokens": tokens / 1e6, "nats a token": _loss(model, rows)})
        print(found[-1], file=sys.stderr)
    return pd.DataFrame(found)


def _rows(model: interp.HookedTransformer, texts: list[str]) -> list[list[int]]:
    tokenizer = model.tokenizer
    packed = packed_rows(encoded(texts, tokenizer), bos=tokenizer.bos_token_id, n_ctx=model.cfg.n_ctx)
    return [row for row, _ in zip(packed, range(ROWS), strict=False)]


@torch.inference_mode()
def _loss(model: interp.HookedTransformer, rows: list[list[int]]) -> float:
    parts = [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]
    return sum(len(part) * model(torch.tensor(part), return_type="loss").item() for part in parts) / len(rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--published", type=Path, required=True, help="BLiMP's models_summary.jsonl")
    parser.add_argument("--model", default="books")
    parser.add_argument("--training", type=Path, help="what `interp train books` wrote: the loss of its checkpoints")
    parser.add_argument("--text", type=Path, help="what it was trained on")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.training is not None:
        print(loss_by_tokens(given.training, given.text).round(3).to_string(index=False), end="\n\n")
    paradigms = by_paradigm(interp.load_model(given.model), given.folder, given.published)
    print(paradigms.round(3).to_string(index=False), end="\n\n")
    print(by_phenomenon(paradigms).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
