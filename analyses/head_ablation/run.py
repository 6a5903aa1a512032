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
from interp.methods.replacements_compared import ReplacementComparison, compare_replacements
from interp.tasks.catalogue import TASKS

REPLACEMENTS = ("zero", "mean", "positional_mean", "resample")
MODELS = ("default", "sibling-1", "sibling-2")
CAUSAL = ("tracks", "attends and causal", "causal, by another route", "causal", "general")
MINIMUM = 0.1
"""Share of the base run's logit difference that counts, as in ``interp.heads``."""


def compare(model: interp.HookedTransformer, n: int, seed: int) -> dict[str, ReplacementComparison]:
    """Every head's effect on every task under every replacement."""
    return {name: compare_replacements(model, name, replacements=REPLACEMENTS, n=n, seed=seed) for name in TASKS}


def effects(compared: dict[str, ReplacementComparison]) -> pd.DataFrame:
    """The effects of all tasks with their intervals, and as shares of the base run."""
    frames = []
    for name, each in compared.items():
        found, base = each.summary(), each.examples["base"].mean()
        frames.append(found.assign(task=name, share=-found["effect"] / base))
    return pd.concat(frames, ignore_index=True)


def heads_that_matter(table: pd.DataFrame) -> pd.DataFrame:
    """Share of the task that is lost, by replacement, of every head that loses the minimum or more under one or more.

    Smaller effects are left out: their order says nothing. ``passed`` counts those that pass the minimum.
    """
    named = table.assign(head=table["layer"].astype(str) + "." + table["head"].astype(str))
    wide = named.pivot(index=["task", "head"], columns="replacement", values="share")[list(REPLACEMENTS)]
    beyond = wide >= MINIMUM
    return wide[beyond.any(axis=1)].round(2).assign(passed=beyond.sum(axis=1))


def flips(compared: dict[str, ReplacementComparison]) -> pd.DataFrame:
    """The heads about which two replacements reach different conclusions."""
    found = pd.concat([each.flips().assign(task=name) for name, each in compared.items()], ignore_index=True)
    found["head"] = found["layer"].astype(str) + "." + found["head"].astype(str)
    return found[["task", "head", *REPLACEMENTS]]


def agreement(compared: dict[str, ReplacementComparison]) -> pd.DataFrame:
    """How alike two replacements rank the heads: Kendall's tau, with its interval, by task."""
    found = pd.concat([each.agreement().assign(task=name) for name, each in compared.items()], ignore_index=True)
    found["replacements"] = found["first"] + ", " + found["second"]
    found["tau"] = [f"{row.kendall:.2f} [{row.low:.2f}, {row.high:.2f}]" for row in found.itertuples()]
    return found.pivot(index="replacements", columns="task", values="tau")[list(TASKS)]


def verdicts(n: int, seed: int) -> pd.DataFrame:
    """What each replacement comes to in ``interp.heads``, of heads that some replacement finds to have an effect."""
    found = []
    for name in MODELS:
        frame = interp.heads(interp.load_model(name), n=n, seed=seed).summary().assign(model=name)
        found.append(frame[~frame[["resample_state", "mean_state"]].isin(["none", "undecided"]).all(axis=1)])
    table = pd.concat(found, ignore_index=True)
    table["head"] = table["layer"].astype(str) + "." + table["head"].astype(str)
    shares = table[["effect", "mean_effect"]].div(table["min_effect"] / MINIMUM, axis=0).round(2)
    table = table.assign(resample=shares["effect"], mean=shares["mean_effect"])
    return table[["model", "task", "head", "resample", "mean", "resample_state", "mean_state", "verdict"]]


def draw(table: pd.DataFrame) -> Figure:
    """One panel a task: heads down, replacements across, the share of the task that is lost."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    axes = figure.subplots(1, len(TASKS), sharey=True)
    named = table.assign(head=table["layer"].astype(str) + "." + table["head"].astype(str))
    for ax, task in zip(axes, TASKS, strict=True):
        wide = named[named["task"] == task].pivot(index="head", columns="replacement", values="share")[
            list(REPLACEMENTS)
        ]
        sns.heatmap(wide, ax=ax, cmap="vlag", center=0, vmin=-1, vmax=1, cbar=task == TASKS[-1], square=True)
        ax.set(title=task, xlabel="", ylabel="head" if task == TASKS[0] else "")
    return figure


def main() -> None:
    """Measure, print the tables and write them with the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=200, help="minimal pairs a task")
    parser.add_argument("--seed", type=int, default=4000, help="of words and names that no training was judged on")
    given = parser.parse_args()
    torch.set_num_threads(1)  # a model this small is fastest on one thread
    given.out.mkdir(parents=True, exist_ok=True)
    compared = compare(interp.load_model(), given.n, given.seed)
    table = effects(compared)
    table.to_csv(given.out / "effects.csv", index=False)
    draw(table).savefig(given.out / "replacements.png", dpi=120)
    matter = heads_that_matter(table)
    print(f"Heads that lose {MINIMUM:.0%} or more of a task under some replacement, and under how many:")
    print(matter.to_string())
    print(f"\n{(matter['passed'] == len(REPLACEMENTS)).sum()} of {len(matter)} matter under every replacement.")
    print("\nHeads about which the replacements reach different conclusions:")
    print(flips(compared).to_string(index=False))
    print("\nHow alike two replacements rank the twelve heads, Kendall's tau:")
    print(agreement(compared).to_string())
    judged = verdicts(given.n, given.seed)
    judged.to_csv(given.out / "verdicts.csv", index=False)
    print("\nHeads with an effect under some replacement, as a share of the logit difference, and their verdicts:")
    print(judged.to_string(index=False))
    causal = judged[judged["verdict"].isin(CAUSAL)]
    excluded = (causal[["resample_state", "mean_state"]] == "none").any(axis=1).sum()
    print(f"\n{len(causal)} causal verdicts; the other replacement shows the effect of {excluded} to be absent.")


if __name__ == "__main__":
    main()
