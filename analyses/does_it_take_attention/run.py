"""Does it take attention to agree across attractors? See README.md.

python analyses/does_it_take_attention/run.py --out DIR
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import seaborn as sns
import torch
from scipy.stats import binomtest

import interp
from interp.baselines.convolution import Convolution, ConvolutionConfig
from interp.baselines.ngram import NGramConfig, fit_ngram
from interp.baselines.recurrent import Recurrent, RecurrentConfig
from interp.methods.behaviour import behaviour
from interp.model.training import TrainingConfig, packed_rows, train
from interp.recipes.published import without_published
from interp.recipes.train import encoded
from interp.stats.intervals import cluster_bootstrap
from interp.stats.units import UnitTable
from interp.tasks.grammar.corpus import documents
from interp.tasks.task import Task

SEED, WIDTH, ORDER, ROWS_OF_NGRAM = 3, 256, 5, 60_000
ATTRACTORS = {
    "simple": 0,
    "prepositional": 1,
    "subject relative": 1,
    "object relative": 1,
    "two prepositional": 2,
    "object relative prepositional": 2,
}
"""How many nouns stand between subject and verb, by structure."""


def rows(tokenizer: Any, n_ctx: int) -> Iterator[list[int]]:
    """What the embedded default was trained on, row by row."""
    return packed_rows(encoded(without_published(documents(SEED)), tokenizer), bos=tokenizer.bos_token_id, n_ctx=n_ctx)


def forerunners(tokenizer: Any, n_ctx: int, steps: int) -> Iterator[tuple[str, Any]]:
    """Each of them, trained on as many of these rows as the default in as many steps; the n-grams on fewer."""
    d_vocab = len(tokenizer)
    n_rows = min(ROWS_OF_NGRAM, 16 * steps)
    config = NGramConfig(ORDER, d_vocab, bos=tokenizer.bos_token_id)
    yield f"{ORDER}-gram", fit_ngram(islice(rows(tokenizer, n_ctx), n_rows), config, tokenizer)
    made = {
        "Elman network": Recurrent(RecurrentConfig(1, WIDTH, d_vocab, tied=False, cell="elman"), tokenizer),
        "LSTM": Recurrent(RecurrentConfig(1, WIDTH, d_vocab, tied=False), tokenizer),
        "convolution": Convolution(ConvolutionConfig(4, WIDTH, d_vocab, tied=False), tokenizer),
    }
    for name, model in made.items():
        train(model, rows(tokenizer, n_ctx), TrainingConfig(steps, optimizer="adamw", adamw_lr=2e-3, weight_decay=0.01))
        yield name, model


def measured(name: str, model: Any, task: Task) -> pd.DataFrame:
    """How often `model` prefers the right verb, by distance to the subject and attractors in the other number.

    Items whose attractors have the subject's number are left out: they help whoever looks at the nearest noun.
    """
    frame = behaviour(model, task)
    examples = task.examples
    frame["distance"] = [each.query - max(each.related) + 1 for each in examples]
    frame["attractors"] = frame["template"].map(ATTRACTORS)
    other = [each.example.features["congruent"] != "yes" for each in examples]
    return frame[other].assign(model=name)


def summary(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Accuracy with its 95 % interval over subjects' lemmas, for each value of `by`."""
    found = []
    for (model, value), cell in frame.groupby(["model", by], sort=False):
        # One stratum: what is asked is how the items at this distance go, whatever their structure.
        table = UnitTable.from_frame(
            cell.assign(template="all", correct=cell["correct"].astype(float)), "correct", ("model",)
        )
        low, accuracy, high = _interval(table, cell["cluster"].nunique())
        found.append({"model": model, by: value, "items": len(cell), "accuracy": accuracy, "low": low, "high": high})
    return pd.DataFrame(found).sort_values(["model", by], ignore_index=True)


def _interval(table: UnitTable, n_clusters: int) -> tuple[float, float, float]:
    """Low end, estimate and high end; where all items agree, which no resampling changes, Wilson's over clusters."""
    found = cluster_bootstrap(table)
    estimate = float(found.estimate[0])
    if estimate not in (0.0, 1.0):
        return float(found.low[0]), estimate, float(found.high[0])
    wilson = binomtest(round(estimate * n_clusters), n_clusters).proportion_ci(method="wilson")
    return float(wilson.low), estimate, float(wilson.high)


def main() -> None:
    """Train, measure, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--n", type=int, default=1200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    default = interp.load_model()
    task = interp.load_task("agreement", n=options.n, tokenizer=default.tokenizer)
    frames = [measured("transformer", default, task)]
    started = time.perf_counter()
    for name, model in forerunners(default.tokenizer, default.config.n_ctx, options.steps):
        frames.append(measured(name, model, task))
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
        pd.concat(frames, ignore_index=True).to_parquet(options.out / "items.parquet")
    frame = pd.read_parquet(options.out / "items.parquet")
    frame["distance"] = frame["distance"].clip(upper=9)
    for by in ("attractors", "distance"):
        table = summary(frame, by)
        table.to_csv(options.out / f"{by}.csv", index=False)
        wide = table.assign(
            shown=[f"{row.accuracy:.2f} [{row.low:.2f}, {row.high:.2f}]" for row in table.itertuples()]
        ).pivot(index="model", columns=by, values="shown")
        print(f"accuracy by {by}\n{wide.to_string()}\n")
        draw(table, by).savefig(options.out / f"{by}.png", dpi=150)


def draw(table: pd.DataFrame, by: str) -> sns.FacetGrid:
    """Accuracy over `by`, with its intervals."""
    grid = sns.relplot(
        table, x=by, y="accuracy", hue="model", style="model", kind="line", markers=True, dashes=False,
        palette="colorblind", height=4.2, aspect=1.3,
    )  # fmt: skip
    ax = grid.ax
    for line, (_, rows_) in zip(ax.get_lines(), table.groupby("model", sort=False), strict=False):
        ax.fill_between(rows_[by], rows_["low"], rows_["high"], color=line.get_color(), alpha=0.15, linewidth=0)
    ax.axhline(0.5, color="0.5", linewidth=0.8, linestyle=":")
    labels = {
        "attractors": "nouns of the other number between subject and verb",
        "distance": "words from subject to verb",
    }
    grid.set(xlabel=labels[by], ylim=(None, 1.02))
    return grid


if __name__ == "__main__":
    main()
