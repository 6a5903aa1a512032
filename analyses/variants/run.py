"""Is the same relation found with other kinds of position embeddings? See README.md.

python analyses/variants/run.py FOLDER [FOLDER ...] --out DIR
"""

import argparse
from pathlib import Path

import pandas as pd
import seaborn as sns
import torch

import interp

TASKS = ("agreement", "coreference", "induction")


def best_heads(folder: Path, n: int) -> pd.DataFrame:
    """For each task the head whose ablation costs most: its verdict, what it looks at, what of the task it takes.

    It is chosen on the split ``select`` and judged on ``test``, so that nothing speaks for it but what it does.
    """
    model = interp.load_model(folder)
    asked = {"tokenizer": model.tokenizer, "n": n, "n_ctx": model.cfg.n_ctx}
    chosen, report = (
        interp.heads(model, [interp.load_task(task, split=split, **asked) for task in TASKS], probes=False, anyway=True)
        for split in ("select", "test")
    )
    effects = chosen.summary()
    most = effects.loc[effects.groupby("task")["effect"].idxmin()].set_index("task")[["layer", "head"]]
    base = report.tasks.set_index("task")
    whole = base["base"].where(base["base_low"] > 0)  # a share of what may be nothing says nothing
    rows = []
    for task, heads in report.summary().groupby("task", sort=False):
        layer, head = most.loc[task]
        (best,) = (row for _, row in heads[(heads["layer"] == layer) & (heads["head"] == head)].iterrows())
        rows.append(
            {
                "model": folder.name,
                "positions": model.config.positions,
                "task": task,
                "accuracy": base.loc[task, "accuracy_base"],
                "head": f"{best['layer']}.{best['head']}",
                "verdict": best["verdict"],
                "attention": best["attention"],
                "baseline": best["attention_baseline"],
                "effect": best["effect"] / whole[task],
                "low": best["effect_low"] / whole[task],
                "high": best["effect_high"] / whole[task],
                "heads that attend and are causal": int((heads["verdict"] == "attends and causal").sum()),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Judge, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=240)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    table = pd.concat([best_heads(folder, options.n) for folder in options.folders], ignore_index=True)
    table.to_csv(options.out / "heads.csv", index=False)
    print(table.round(2).to_string(index=False))
    shown = table.melt(["model", "task"], ["attention", "baseline", "effect"], var_name="evidence", value_name="share")
    grid = sns.catplot(
        shown,
        x="model",
        y="share",
        hue="evidence",
        col="task",
        kind="bar",
        palette="colorblind",
        height=3.4,
        aspect=0.9,
    )
    grid.set(xlabel="", ylabel="share of attention, or of the task's metric")
    grid.savefig(options.out / "heads.png", dpi=150)


if __name__ == "__main__":
    main()
