"""Does it matter what replaces an ablated head? See README.md.

python analyses/head_ablation/run.py --out DIR
"""

import argparse
from pathlib import Path

import pandas as pd
import seaborn as sns
import torch
from matplotlib.figure import Figure

import interp
from interp.methods.dossier import TASKS

KINDS = ("zero", "mean", "positional_mean", "resample")
MINIMUM = 0.1
"""Share of the base run's logit difference that counts, as in ``interp.heads``."""


def effects(model: interp.HookedTransformer, n: int, seed: int) -> pd.DataFrame:
    """Every head's effect on every task under every kind of ablation, with its interval."""
    frames = []
    for name in TASKS:
        task = interp.load_task(name, n=n, seed=seed, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)
        for kind in KINDS:
            summary = interp.ablate(model, task, kind=kind, seed=seed).summary()
            frames.append(summary.assign(task=name, kind=kind, share=-summary["effect"] / summary["base"]))
    return pd.concat(frames, ignore_index=True)


def heads_that_matter(table: pd.DataFrame) -> pd.DataFrame:
    """Share of the task that is lost, by kind, of every head that loses the minimum or more under some kind.

    Smaller effects are left out: their order says nothing. ``kinds`` counts those that pass the minimum.
    """
    named = table.assign(head=table["layer"].astype(str) + "." + table["head"].astype(str))
    wide = named.pivot(index=["task", "head"], columns="kind", values="share")[list(KINDS)]
    beyond = wide >= MINIMUM
    return wide[beyond.any(axis=1)].round(2).assign(kinds=beyond.sum(axis=1))


def top_heads(table: pd.DataFrame) -> pd.DataFrame:
    """For each task and kind, the head whose ablation costs the largest share of the task."""
    worst = table.loc[table.groupby(["task", "kind"])["share"].idxmax()].copy()
    worst["head"] = worst["layer"].astype(str) + "." + worst["head"].astype(str)
    worst["interval"] = [f"{row.effect:.2f} [{row.low:.2f}, {row.high:.2f}]" for row in worst.itertuples()]
    worst["accuracy"] = [f"{row.accuracy_base:.2f} -> {row.accuracy_intervened:.2f}" for row in worst.itertuples()]
    columns = ["task", "kind", "head", "interval", "share", "accuracy"]
    return worst[columns].sort_values(["task", "kind"]).round({"share": 2})


def draw(table: pd.DataFrame) -> Figure:
    """One panel a task: heads down, kinds across, the share of the task that is lost."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    axes = figure.subplots(1, len(TASKS), sharey=True)
    named = table.assign(head=table["layer"].astype(str) + "." + table["head"].astype(str))
    for ax, task in zip(axes, TASKS, strict=True):
        wide = named[named["task"] == task].pivot(index="head", columns="kind", values="share")[list(KINDS)]
        sns.heatmap(wide, ax=ax, cmap="vlag", center=0, vmin=-1, vmax=1, cbar=task == TASKS[-1], square=True)
        ax.set(title=task, xlabel="", ylabel="head" if task == TASKS[0] else "")
    return figure


def main() -> None:
    """Measure, print the tables and write them with the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=200, help="minimal pairs a task")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)  # a model this small is fastest on one thread
    given.out.mkdir(parents=True, exist_ok=True)
    table = effects(interp.load_model(), given.n, given.seed)
    table.to_csv(given.out / "effects.csv", index=False)
    draw(table).savefig(given.out / "kinds.png", dpi=120)
    print(top_heads(table).to_string(index=False))
    matter = heads_that_matter(table)
    print(f"\nHeads that lose {MINIMUM:.0%} or more of a task under some kind, and under how many:")
    print(matter.to_string())
    print(f"\n{(matter['kinds'] == len(KINDS)).sum()} of {len(matter)} matter under every kind.")


if __name__ == "__main__":
    main()
