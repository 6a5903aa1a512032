"""Is what can be read in a head also used there? See README.md.

python analyses/head_probing/run.py --out DIR
"""

import argparse
from pathlib import Path

import pandas as pd
import seaborn as sns
import torch
from matplotlib.figure import Figure

import interp
from interp.methods.erasure.erase import erase
from interp.methods.probes.probe import probe
from interp.methods.task_attention import task_attention
from interp.tasks.catalogue import TASKS
from interp.tasks.task import Task

FEATURES = {"agreement": "number", "coreference": "gender", "reflexive": "gender"}
METHODS = ("leace", "inlp", "random", "mean", "steer")
CONTROLS = ["majority", "embedding", "position", "untrained", "control", "permuted"]


def choose(model: interp.HookedTransformer, n: int, seed: int) -> pd.DataFrame:
    """Two heads a task, chosen on the split `select`.

    The one that attends most to the related word beyond its best baseline; and, of those that attend to it no more
    than their baseline has, the one in which the feature can be read best.
    """
    rows = []
    for name, feature in FEATURES.items():
        task = interp.load_task(name, n=n, seed=seed, split="select", tokenizer=model.tokenizer)
        attention = task_attention(model, task, seed=seed).strongest().set_index(["layer", "head"])["excess"]
        score = probe(model, task, feature, seed=seed, description_lengths=False).summary()
        score = score.set_index(["layer", "head"])["score"]
        decoy = score[attention <= 0].idxmax()
        for role, cell in (("attends", attention.idxmax()), ("decoy", decoy)):
            rows.append({"task": name, "feature": feature, "role": role, "layer": cell[0], "head": cell[1]})
    return pd.DataFrame(rows)


def read(tasks: dict[str, Task], model: interp.HookedTransformer, seed: int) -> pd.DataFrame:
    """What probes read in every head, beside their controls."""
    frames = [
        probe(model, tasks[name], feature, seed=seed).summary().assign(task=name, feature=feature)
        for name, feature in FEATURES.items()
    ]
    return pd.concat(frames, ignore_index=True)


def erased(tasks: dict[str, Task], model: interp.HookedTransformer, seed: int) -> pd.DataFrame:
    """What erasing the feature does to its task, as logits and as a share of the base run."""
    frames = [
        erase(model, tasks[name], feature, methods=METHODS, seed=seed).summary() for name, feature in FEATURES.items()
    ]
    table = pd.concat(frames, ignore_index=True)
    return table.assign(share=table["effect"] / table["base"])


def elsewhere(tasks: dict[str, Task], heads: pd.DataFrame, model: interp.HookedTransformer, seed: int) -> pd.DataFrame:
    """What erasing it in the chosen heads, and ablating these, does to the other tasks."""
    frames = []
    for name, feature in FEATURES.items():
        chosen = [(row.layer, row.head) for row in heads[heads["task"] == name].itertuples()]
        others = [task for other, task in tasks.items() if other != name]
        methods = ("leace", "mean")
        found = erase(
            model, tasks[name], feature, heads=chosen, methods=methods, others=others, seed=seed, probes=False
        )
        frames.append(found.summary().rename(columns={"task": "on"}).query("on != @name").assign(task=name))
    return pd.concat(frames, ignore_index=True)


def beside(table: pd.DataFrame, heads: pd.DataFrame) -> pd.DataFrame:
    """The rows of `table` about the chosen heads, with their roles."""
    found = heads.merge(table, on=["task", "layer", "head"], suffixes=("", "_"))
    named = found["layer"].astype(str) + "." + found["head"].astype(str)
    return found.assign(head=named).drop(columns="layer")


def draw(readings: pd.DataFrame, effects: pd.DataFrame, heads: pd.DataFrame) -> Figure:
    """Every head: what can be read there, and what erasing it costs the task."""
    own = effects[effects["method"] == "leace"]
    table = readings.merge(own, on=["task", "layer", "head"])
    roles = table.merge(heads[["task", "layer", "head", "role"]], how="left")["role"].fillna("other")
    figure = Figure(figsize=(6.4, 4.2), dpi=130, layout="constrained")
    ax = figure.subplots()
    sns.scatterplot(
        x=table["score"],
        y=table["share"],
        hue=table["task"].to_numpy(),
        style=roles.to_numpy(),
        style_order=["attends", "decoy", "other"],
        s=70,
        ax=ax,
    )
    ax.set(xlabel="accuracy of a probe, unseen words and structures", ylabel="effect of erasing it (share of the task)")
    sns.move_legend(ax, "center left", fontsize=8, frameon=False)
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
    model = interp.load_model()
    heads = choose(model, given.n, given.seed)
    tasks = {name: interp.load_task(name, n=given.n, seed=given.seed, tokenizer=model.tokenizer) for name in TASKS}
    readings, effects = read(tasks, model, given.seed), erased(tasks, model, given.seed)
    other = elsewhere(tasks, heads, model, given.seed)
    readings.to_csv(given.out / "probes.csv", index=False)
    effects.to_csv(given.out / "erasure.csv", index=False)
    draw(readings, effects, heads).savefig(given.out / "used.png")
    print("What can be read, on words and structures that the probe was not trained on:")
    columns = ["task", "role", "head", "score", "low", "high", "score_seen", *CONTROLS, "compression", "verdict"]
    print(beside(readings, heads)[columns].round(3).to_string(index=False))
    print("\nWhat erasing it there does to the task (logits):")
    found = beside(effects, heads)
    columns = ["task", "role", "head", "method", "base", "effect", "low", "high", "p_adjusted", "rank"]
    print(found[columns].round(3).to_string(index=False))
    print("\nWhat erasing it there (leace) and ablating the head (mean) do to other tasks (share of their logits):")
    found = beside(other.assign(share=(other["effect"] / other["base"]).round(3)), heads)
    wide = found.pivot(index=["task", "role", "head", "method"], columns="on", values="share")[list(TASKS)]
    print(wide.to_string(na_rep=""))
    carried = readings.loc[readings["verdict"] == "encodes", ["task", "layer", "head"]]
    own = effects[effects["method"] == "leace"]
    used = carried.merge(own, on=["task", "layer", "head"]).query(
        "share <= -0.1 and excess < 0 and excess_p_adjusted <= 0.05"
    )
    print(
        f"\nOf {len(readings)} heads and tasks the feature can be read in {len(carried)}, and is used in {len(used)}."
    )


if __name__ == "__main__":
    main()
