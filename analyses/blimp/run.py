"""How well does the embedded model do on published minimal pairs? See README.md.

python analyses/blimp/run.py BLIMP_FOLDER [--model NAME]
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

import interp
from interp.methods.behaviour import behaviour
from recipes.text import PARADIGMS


def accuracy(model: interp.HookedTransformer, name: str, *, known_words_only: bool) -> tuple[int, float]:
    """Items of a file, and the share whose acceptable sentence is the more probable one."""
    task = interp.load_task(name, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx, known_words_only=known_words_only)
    answers = behaviour(model, task).query("not counterfactual")
    return len(answers), answers["correct"].mean()


def table(model: interp.HookedTransformer, folder: Path) -> pd.DataFrame:
    """One row a paradigm: coverage, and accuracy on the items whose words were trained on and on all."""
    rows = []
    for paradigm in PARADIGMS:
        name = f"blimp:{folder / paradigm}.jsonl"
        known, on_known = accuracy(model, name, known_words_only=True)
        items, on_all = accuracy(model, name, known_words_only=False)
        rows.append((paradigm, items, 100 * known / items, on_known, on_all))
    columns = ["paradigm", "items", "known words %", "accuracy (known words)", "accuracy (all)"]
    return pd.DataFrame(rows, columns=columns)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", help="the embedded default unless given")
    given = parser.parse_args()
    torch.set_num_threads(1)  # a model this small is fastest on one thread
    result = table(interp.load_model(given.model), given.folder)
    print(result.round({"known words %": 1, "accuracy (known words)": 3, "accuracy (all)": 3}).to_string(index=False))


if __name__ == "__main__":
    main()
