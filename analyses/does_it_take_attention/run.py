"""Does it take attention to agree across attractors? See README.md.

python analyses/does_it_take_attention/run.py --out DIR
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import seaborn as sns
import torch
from lessons import FORERUNNERS, Lesson, trained
from long_subjects import long_subjects
from recall import LESSON, N_WORDS, attention_alone, recalled
from scipy.stats import binomtest

import interp
from forerunners.language_model import Forerunner
from forerunners.saved import load_forerunner, save_forerunner
from interp.claims.bootstrap import FEWEST_CLUSTERS, cluster_bootstrap
from interp.claims.units import UnitTable
from interp.methods.behaviour import behaviour
from interp.model.training import TrainingConfig, packed_rows
from interp.tasks.agreement import ATTRACTORS
from interp.tasks.grammar.training_text import documents
from interp.tasks.task import Task
from recipes.text import without_published
from recipes.train import encoded

SEED, ROWS_OF_NGRAM = 3, 60_000
TRANSFORMER = "transformer"
MODELS = (*FORERUNNERS, TRANSFORMER)
LONGEST = 8
"""Nouns between subject and verb; training has at most two."""
LABELS = {
    "attractors": "nouns of the other number between subject and verb",
    "distance": "words from what tells the answer to the answer",
}


def rows(tokenizer: Any, n_ctx: int) -> Iterator[list[int]]:
    """What the embedded default was trained on, row by row."""
    return packed_rows(encoded(without_published(documents(SEED)), tokenizer), bos=tokenizer.bos_token_id, n_ctx=n_ctx)


def corpus_lesson(tokenizer: Any, n_ctx: int, steps: int) -> Lesson:
    """As many of the default's rows as it was trained on in as many steps; fewer for the n-grams."""
    training = TrainingConfig(steps, optimizer="adamw", adamw_lr=2e-3, weight_decay=0.01, log_every=500)
    return Lesson(partial(rows, tokenizer, n_ctx), len(tokenizer), training, ROWS_OF_NGRAM, tokenizer)


def forerunner(name: str, folder: Path, lesson: Lesson) -> Forerunner:
    """The one that lies in `folder`, or one that is trained now and kept there."""
    kept = folder / f"{name.replace(' ', '-')}-{lesson.training.steps}"
    if not kept.is_dir():
        save_forerunner(trained(name, lesson), kept)
    return load_forerunner(kept)


def questions(n: int, tokenizer: Any) -> dict[str, Task]:
    """What is asked after the corpus: sentences as in training, longer ones, and strings of words that come again."""
    agreement = interp.load_task("agreement", n=n, tokenizer=tokenizer)
    induction = interp.load_task("induction", n=n, tokenizer=tokenizer)
    pairs = [pair for n_nouns in range(LONGEST + 1) for pair in long_subjects(n // (LONGEST + 1), n_nouns)]
    about = "Does the verb agree with a subject that is farther away than in training?"
    longer = interp.encode_task(pairs, tokenizer=tokenizer, name="longer", description=about, metric="logit_difference")
    return {"agreement": agreement, "longer": longer, "strings": induction}


def measured(name: str, model: Any, task: Task) -> pd.DataFrame:
    """Whether `model` prefers the right word, item by item, with what lies between it and what tells it.

    Items whose nouns in between all have the subject's number are left out: they help whoever looks at the nearest.
    """
    frame, examples = behaviour(model, task), task.examples
    frame["distance"] = [each.query - max(each.related) + 1 for each in examples]
    frame["attractors"] = [
        int(each.example.features.get("attractors", ATTRACTORS.get(each.example.template, 0))) for each in examples
    ]
    misled = [each.example.features.get("congruent") != "yes" for each in examples]
    return frame[misled].assign(model=name)


def summary(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Accuracy with its 95 % interval over clusters, for each value of `by` that enough clusters have."""
    found = []
    for (model, value), cell in frame.groupby(["model", by], sort=False):
        if cell["cluster"].nunique() < FEWEST_CLUSTERS:
            continue
        # One stratum: what is asked is how the items at this distance go, whatever their structure.
        table = UnitTable.from_frame(
            cell.assign(template="all", correct=cell["correct"].astype(float)), "correct", ("model",)
        )
        low, accuracy, high = _interval(table, cell["cluster"].nunique())
        found.append(
            {"model": model, by: int(value), "items": len(cell), "accuracy": accuracy, "low": low, "high": high}
        )
    return pd.DataFrame(found).sort_values(["model", by], ignore_index=True)


def _interval(table: UnitTable, n_clusters: int) -> tuple[float, float, float]:
    """Low end, estimate and high end; where all items agree, which no resampling changes, Wilson's over clusters."""
    found = cluster_bootstrap(table)
    estimate = float(found.estimate[0])
    if estimate not in (0.0, 1.0):
        return float(found.low[0]), estimate, float(found.high[0])
    wilson = binomtest(round(estimate * n_clusters), n_clusters).proportion_ci(method="wilson")
    return float(wilson.low), estimate, float(wilson.high)


def falls(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """How much less often each model is right at the largest value of `by` than at the smallest.

    The interval is made of the two accuracies' own (Zou & Donner 2008), as of independent ones.
    """
    found = []
    for model, rows_ in table.groupby("model", sort=False):
        near, far = rows_.iloc[0], rows_.iloc[-1]
        fall = near["accuracy"] - far["accuracy"]
        below = math.hypot(near["accuracy"] - near["low"], far["high"] - far["accuracy"])
        above = math.hypot(near["high"] - near["accuracy"], far["accuracy"] - far["low"])
        found.append({"model": model, "fall": fall, "low": fall - below, "high": fall + above})
    return pd.DataFrame(found)


def main() -> None:
    """Train what is missing, measure, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--n", type=int, default=2700)
    parser.add_argument("--recall-steps", type=int, default=LESSON.training.steps)
    parser.add_argument("--train", choices=FORERUNNERS, help="only train this one on the corpus, and keep it in DIR")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    default = interp.load_model()
    tokenizer, n_ctx = default.tokenizer, default.config.n_ctx
    corpus = corpus_lesson(tokenizer, n_ctx, options.steps)
    wanted = [options.train] if options.train else FORERUNNERS
    models: dict[str, Any] = {name: forerunner(name, options.out, corpus) for name in wanted}
    if options.train:
        return
    models[TRANSFORMER] = default
    frames = {
        question: pd.concat([measured(name, model, task) for name, model in models.items()], ignore_index=True)
        for question, task in questions(options.n, tokenizer).items()
    }
    lesson = replace(LESSON, training=replace(LESSON.training, steps=options.recall_steps))
    models = {name: trained(name, lesson) for name in FORERUNNERS} | {TRANSFORMER: attention_alone(lesson)}
    answers = [recalled(model, options.n).assign(model=name) for name, model in models.items()]
    frames["recall"] = pd.concat(answers, ignore_index=True)
    for question, frame in frames.items():
        frame.to_parquet(options.out / f"{question}.parquet")
        for by in ("attractors", "distance") if question in ("agreement", "longer") else ("distance",):
            report(summary(frame, by), question, by, options.out)


def report(table: pd.DataFrame, question: str, by: str, out: Path) -> None:
    """Print a table of accuracies, and write and draw it."""
    shown = table.assign(shown=_with_interval(table, "accuracy")).pivot(index="model", columns=by, values="shown")
    fallen = falls(table, by)
    shown["fall"] = fallen.assign(shown=_with_interval(fallen, "fall")).set_index("model")["shown"]
    print(f"{question}: accuracy by {LABELS[by]}\n{shown.loc[list(MODELS)].T.to_string()}\n")
    table.to_csv(out / f"{question}-{by}.csv", index=False)
    chance = 1 / N_WORDS if question == "recall" else 0.5
    draw(table, by, chance).savefig(out / f"{question}-{by}.png", dpi=150)


def _with_interval(table: pd.DataFrame, column: str) -> list[str]:
    rounded = table[[column, "low", "high"]].astype(float).round(2) + 0.0  # no -0.00
    return [f"{value:.2f} [{low:.2f}, {high:.2f}]" for value, low, high in rounded.to_numpy()]


def draw(table: pd.DataFrame, by: str, chance: float) -> sns.FacetGrid:
    """Accuracy over `by`, with its intervals, and what guessing gets."""
    grid = sns.relplot(
        table, x=by, y="accuracy", hue="model", hue_order=MODELS, style="model", style_order=MODELS, kind="line",
        markers=True, dashes=False, palette="colorblind", height=4.2, aspect=1.3,
    )  # fmt: skip
    ax = grid.ax
    colours = dict(zip(MODELS, sns.color_palette("colorblind"), strict=False))
    for model, rows_ in table.groupby("model", sort=False):
        ax.fill_between(rows_[by], rows_["low"], rows_["high"], color=colours[model], alpha=0.15, linewidth=0)
    ax.axhline(chance, color="0.5", linewidth=0.8, linestyle=":")
    grid.set(xlabel=LABELS[by], ylim=(-0.02, 1.02))
    return grid


if __name__ == "__main__":
    main()
