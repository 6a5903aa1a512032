"""Which heads of a real language model carry agreement, indirect objects and induction? See README.md.

interp model fetch smollm2
python analyses/smollm2/run.py --out DIR
"""

import argparse
import time
from pathlib import Path

import pandas as pd

import interp
from interp.methods.function_heads import function_heads

TASKS = ("agreement", "ioi", "induction")
FUNCTIONS = ("induction", "previous token")
NAMED = ("tracks", "attends and causal", "needed", "causal, by another route")


def by_function(model: object, top: int) -> pd.DataFrame:
    """The heads that score highest on random tokens said twice, by what they do there."""
    scores = function_heads(model).summary()
    kept = scores[scores["function"].isin(FUNCTIONS)]
    best = kept.sort_values("score", ascending=False).groupby("function").head(top)
    return best.set_index(["layer", "head"])[["function", "score"]]


def main() -> None:
    """Measure, compare with what the heads do on random tokens, print and save."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--n", type=int, default=60)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    parser.add_argument("--runs", type=Path, help="where what is measured is kept, so that it goes on")
    options = parser.parse_args()
    started = time.perf_counter()
    model = interp.load_model(options.model)
    functions = by_function(model, top=4)
    report = interp.heads(model, tasks=options.tasks, n=options.n, run=options.runs)
    report.save(options.out)
    found = report.summary().set_index(["layer", "head"])
    functions.to_csv(options.out / "functions.csv")
    print(pd.crosstab(found["verdict"], found["task"]).to_string())
    print()
    columns = ["task", "verdict", "attention", "effect", "mean_effect", "exchange"]
    named = found[found["verdict"].isin(NAMED)]
    print(named[columns].sort_values(["task", "verdict"]).round(2).to_string())
    print()
    print(functions.join(found[found["task"] == "induction"][columns[1:]]).round(2).to_string())
    print(f"\n{(time.perf_counter() - started) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
