"""When does each head of the embedded default begin to track? See README.md.

python analyses/development/run.py FOLDER --out DIR
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

from interp.methods.development import development
from interp.methods.dossier import TASKS
from interp.model.checkpoints import CHECKPOINTS, checkpoints
from interp.report.development import development_figure


def able_since(tasks: pd.DataFrame) -> pd.Series:
    """The first step of each task from which on accuracy never falls below .95: the rule that heads begin by, too."""
    unable = tasks[tasks["accuracy_base"] < 0.95].groupby("task")["step"].max()
    steps = sorted(tasks["step"].unique())
    last = tasks.drop_duplicates("task")["task"].map(unable).fillna(-1).to_numpy()
    since = [next((step for step in steps if step > unable_at), None) for unable_at in last]
    return pd.Series(since, index=tasks["task"].unique(), name="step")


def main() -> None:
    """Judge every checkpoint, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="what interp train wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=120)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    found = development(checkpoints(options.folder / CHECKPOINTS), TASKS, n=options.n)
    print("From when on the model is right in 95 % of the items, up to the last checkpoint:")
    print(able_since(found.tasks).to_string(), end="\n\n")
    print("From when on heads attend and are causal, up to the last checkpoint:")
    print(found.begins().to_string(index=False))
    found.frame.to_csv(options.out / "development.csv", index=False)
    found.tasks.to_csv(options.out / "tasks.csv", index=False)
    development_figure(found.frame, found.tasks).savefig(options.out / "development.png", dpi=120)


if __name__ == "__main__":
    main()
