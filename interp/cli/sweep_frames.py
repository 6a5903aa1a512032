"""What does a report need to know of a sweep? Its frames, the runs it is held against, and the prompts' tokens."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.effects import DIFFERENCES
from interp.claims.units import UnitTable, estimates
from interp.interventions.sweep import SweepResult
from interp.report.sweep_frames import SweepFrames
from interp.tasks.task import Task


def frames_of(result: SweepResult, task: Task, tokenizer: Any) -> SweepFrames:
    """The report's frames of `result`.

    Args:
        result: Of an ablation or of patching.
        task: What it was measured on.
        tokenizer: Of the model, to name the positions.
    """
    dropped = result.provenance.get("dropped", task.dropped)
    return SweepFrames(
        cells=result.summary(),
        examples=result.frame,
        labels=result.labels,
        runs=runs_of(result),
        tokens=tokens_of(result, task, tokenizer),
        estimates=estimates_of(result),
        task={
            "Question": task.description,
            "Left out": "; ".join(f"{name}: {n}" for name, n in dropped.items()),
            "Coverage": "; ".join(f"{name}: {share:.0f} %" for name, share in task.coverage.items()),
        },
        n_examples=len(task.examples),
        provenance=result.provenance,
    )


def runs_of(result: SweepResult) -> pd.DataFrame:
    """The unablated model, or the clean and the corrupted run; columns as ``SweepFrames.runs``.

    Of a run that is patched from, the accuracy is known only where the metric tells it; else it is NaN.
    """
    names = {"unablated": "base"}
    if "direction" in result.provenance:
        noised = result.provenance["direction"] == "noise"
        names = {"clean": "base" if noised else "source", "corrupted": "source" if noised else "base"}
    once = result.frame.drop_duplicates("example").assign(run="")
    return pd.DataFrame([_run(name, column, once, result.provenance) for name, column in names.items()])


def _run(name: str, column: str, examples: pd.DataFrame, provenance: Mapping[str, Any]) -> dict[str, Any]:
    metric, seed = provenance["metric"], provenance["seed"]
    examples = examples.assign(correct=_correct(examples, column, metric))
    values, correct = (UnitTable.from_frame(examples, each, by=("run",)) for each in (column, "correct"))
    interval = cluster_bootstrap(values, seed=seed)
    # A difference of answers is above chance above 0, a share of right answers above a half.
    low = interval.low[0] if metric in DIFFERENCES else cluster_bootstrap(correct, seed=seed).low[0] - 0.5
    return {
        "run": name,
        "mean": interval.estimate[0],
        "low": interval.low[0],
        "high": interval.high[0],
        "accuracy": estimates(correct)[0],
        "above_chance": None if np.isnan(low) else bool(low > 0),
        "n_units": int(values.n_units[0]),
        "n_clusters": int(values.n_clusters[0]),
    }


def _correct(examples: pd.DataFrame, column: str, metric: str) -> pd.Series | float:
    if column == "base":
        return examples["base_correct"]
    if metric in DIFFERENCES:
        return (examples[column] > 0).astype(float)
    return examples[column] if metric == "accuracy" else np.nan


def estimates_of(result: SweepResult) -> pd.DataFrame | None:
    """What a screen estimated of every cell; None without one."""
    screen = getattr(result, "screen", None)
    return None if screen is None else screen.frame[[*result.labels, "estimate", "chosen"]]


def tokens_of(result: SweepResult, task: Task, tokenizer: Any) -> pd.DataFrame:
    """The commonest token at each position, and its share, where the prompts have one length and a cell a position."""
    prompts = [each.prompt for each in task.examples]
    if not {"pos", "key"} & set(result.labels) or len(set(map(len, prompts))) > 1:
        return pd.DataFrame(columns=["pos", "token", "share"])
    n_before, rows = min(each.n_before for each in task.examples), []
    for position, tokens in enumerate(zip(*prompts, strict=True)):
        token, n = Counter(tokens).most_common(1)[0]
        text = "BOS" if position < n_before and token == tokenizer.bos_token_id else tokenizer.decode([token])
        rows.append({"pos": position, "token": text, "share": n / len(tokens)})
    return pd.DataFrame(rows)
