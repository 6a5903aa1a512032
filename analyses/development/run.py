"""When does each head of the embedded default begin to track? See README.md.

python analyses/development/run.py FOLDER --out DIR
"""

import argparse
import sys
from pathlib import Path

import pandas as pd
import torch

import interp
from analyses.development.development import (
    Development,
    development,
    development_figure,
    development_table,
    partial_note,
)
from interp.errors import InterpError
from interp.model.checkpoints import CHECKPOINTS, checkpoints
from interp.runs.executors import HERE, Processes
from interp.tasks.catalogue import TASKS

INTERRUPTED = 130


def able_since(tasks: pd.DataFrame) -> pd.Series:
    """The first step of each task from which on accuracy never falls below .95: the rule that heads begin by, too."""
    unable = tasks[tasks["accuracy_base"] < 0.95].groupby("task")["step"].max()
    steps = sorted(tasks["step"].unique())
    last = tasks.drop_duplicates("task")["task"].map(unable).fillna(-1).to_numpy()
    since = [next((step for step in steps if step > unable_at), None) for unable_at in last]
    return pd.Series(since, index=tasks["task"].unique(), name="step")


def save(found: Development, out: Path) -> None:
    """The frames, the figure, the table of steps, and the last checkpoint's report in the folder ``last``."""
    out.mkdir(parents=True, exist_ok=True)
    found.summary().to_csv(out / "development.csv", index=False)
    found.tasks.to_csv(out / "tasks.csv", index=False)
    found.begins().to_csv(out / "begins.csv", index=False)
    development_table(found).to_csv(out / "steps.csv", index=False)
    development_figure(found.summary(), found.tasks).savefig(out / "development.png", dpi=120)
    found.last.save(out / "last")


def judged(options: argparse.Namespace) -> Development:
    """Judge every checkpoint of the training in the folder."""
    inside = options.folder.expanduser() / CHECKPOINTS
    folders = checkpoints(inside if inside.is_dir() else inside.parent)
    executor = Processes(options.processes) if options.processes > 1 else HERE
    run = None if options.runs is None else interp.Run(options.runs, executor)
    tasks = options.task or TASKS
    how = {name: getattr(options, name) for name in ("n", "seed", "device", "dtype")}
    return development(folders, tasks, **how, run=run)


def main() -> int:
    """Judge every checkpoint, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="what python -m recipes wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--task", action="append", help="default: the five that the embedded models know")
    parser.add_argument("--n", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1, help="with --runs")
    parser.add_argument("--runs", type=Path, help="keep what is measured here; the same command goes on")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    try:
        found = judged(options)
    except InterpError as error:
        parser.error(str(error))
    save(found, options.out)
    print("From when on the model is right in 95 % of the items, up to the last checkpoint:")
    print(able_since(found.tasks).to_string(), end="\n\n")
    print("From when on heads attend and are causal, up to the last checkpoint:")
    print(found.begins().to_string(index=False))
    if found.unjudged:
        print(partial_note(found), file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
