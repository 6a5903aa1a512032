"""Which of several trained seeds has the most specialised heads? See README.md.

python analyses/choosing_the_default/run.py SEED_FOLDER [SEED_FOLDER ...] --out DIR
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

import interp
from interp.tasks.catalogue import TASKS


def specialisation(frame: pd.DataFrame) -> tuple[float, dict[str, str]]:
    """How much a task depends on one head that nothing else depends on, averaged over tasks.

    For each task, the best head that is ``attends and causal`` scores its relative drop (effect over
    base) on the task less its mean relative drop on the other tasks, where a rise counts as no drop; a task without
    such a head scores 0.

    Returns:
        The score, at most about 1, and the best head of each task.
    """
    drop = frame.assign(drop=-frame["effect"] / frame["base"]).pivot(
        index=["layer", "head"], columns="task", values="drop"
    )
    tracks = frame.pivot(index=["layer", "head"], columns="task", values="verdict") == "attends and causal"
    scores, best = {}, {}
    for task in drop.columns:
        own = drop[task] - drop.drop(columns=task).clip(lower=0).mean(axis=1)
        own = own.where(tracks[task])
        scores[task] = own.max() if own.notna().any() else 0.0
        best[task] = "{}.{}".format(*own.idxmax()) if own.notna().any() else "-"
    return sum(scores.values()) / len(scores), best


def judge(folder: Path, n: int) -> dict[str, object]:
    """One row of the table: a seed's accuracies on the split `select`, its best heads and its score."""
    model = interp.load_model(folder)
    options = {"tokenizer": model.tokenizer, "n": n, "n_ctx": model.cfg.n_ctx, "split": "select"}
    tasks = [interp.load_task(name, **options) for name in TASKS]
    report = interp.heads(model, tasks, probes=False, anyway=True)
    base = report.tasks.set_index("task")
    score, best = specialisation(report.summary().merge(base["base"], left_on="task", right_index=True))
    accuracy = {f"{task} accuracy": round(float(base.loc[task, "accuracy_base"]), 3) for task in TASKS}
    heads = {f"{task} head": best[task] for task in TASKS}
    return {"seed": folder.name, "score": round(score, 3), **accuracy, **heads, "hash": model.hash[:12]}


def main() -> None:
    """Judge every folder and write the table, the best first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--n", type=int, default=200, help="minimal pairs a task")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)  # a model this small is fastest on one thread
    table = pd.DataFrame([judge(folder, given.n) for folder in given.folders])
    table = table.sort_values("score", ascending=False)
    given.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(given.out / "seeds.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
