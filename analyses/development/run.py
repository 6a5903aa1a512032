"""When does each head of the embedded default begin to track? See README.md.

python analyses/development/run.py FOLDER --out DIR
"""

import argparse
from pathlib import Path

import torch

from interp.methods.development import development
from interp.methods.dossier import TASKS
from interp.model.checkpoints import checkpoints
from interp.report.development import development_figure


def main() -> None:
    """Judge every checkpoint, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="what interp train wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=120)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    found = development(checkpoints(options.folder / "checkpoints"), TASKS, n=options.n)
    able = found.tasks[found.tasks["accuracy_base"] >= 0.95].groupby("task", sort=False)["step"].min()
    print("The first checkpoint that is right in 95 % of the items:")
    print(able.to_string(), end="\n\n")
    print("From when on heads attend and are causal, up to the last checkpoint:")
    print(found.begins().to_string(index=False))
    found.frame.to_csv(options.out / "development.csv", index=False)
    development_figure(found.frame, found.tasks).savefig(options.out / "development.png", dpi=120)


if __name__ == "__main__":
    main()
