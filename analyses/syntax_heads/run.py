"""Which heads look along syntax? See README.md.

python analyses/syntax_heads/run.py --choose-on GUM_TRAIN --data EWT_TEST [--data ...] --out DIR
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

import interp
from analyses.syntax_heads.parse import attention_parse
from interp.methods.relations.examples import relation_maps
from interp.methods.relations.relation_scores import RelationResult
from interp.tasks import agreement
from interp.tasks.generated_corpus import linked_documents

SHOWN = ["relation", "looks", "name", "n", "accuracy", "attention", "baseline", "accuracy_baseline", "excess"]
SHOWN += ["low", "high", "p_adjusted", "verdict"]


def shown(result: RelationResult) -> str:
    """The chosen heads as a table, the largest excess first."""
    best = result.best().assign(name=lambda rows: rows["layer"].astype(str) + "." + rows["head"].astype(str))
    best = best.merge(result.relations[["relation", "looks", "offset", "accuracy_offset"]], on=["relation", "looks"])
    table = best.sort_values("excess", ascending=False)[[*SHOWN, "accuracy_offset"]]
    return table.round(3).to_string(index=False)


def on_its_own_grammar(n: int) -> None:
    """The embedded default on the generator's sentences: from the place of the verb to the subject."""
    choose, score = (list(linked_documents(agreement.pairs(n, seed=0, split=each))) for each in ("select", "test"))
    result = interp.attend(interp.load_model(), score, ["subject"], choose_on=choose)
    print(f"The embedded default on its own grammar\n\n{shown(result)}\n")


def on_treebanks(choose_on: list[Path], data: list[Path], out: Path) -> None:
    """`books` on real sentences: labels, and the tree that they make."""
    model = interp.load_model("books")
    result = interp.attend(model, data, choose_on=choose_on)
    syntax = result.cells["looks"].isin(["dependent to head", "head to dependent"])
    print(f"books, heads chosen on one treebank and scored on another\n\n{shown(result)}\n")
    result.cells[syntax].to_csv(out / "heads.csv", index=False)
    result.save(out / "page", relation_maps(model, data, result))
    tracking = result.best().query("verdict == 'attends'")
    for name, heads in (("all chosen heads", result.best()), ("chosen heads that attend", tracking)):
        if heads.empty:
            print(f"There are no {name}.\n")
            continue
        summary = attention_parse(model, data, heads).summary()
        summary.to_csv(out / f"parse-{name.replace(' ', '-')}.csv", index=False)
        print(f"The tree of {name}\n\n{summary.round(3).to_string(index=False)}\n")


def on_minimal_pairs(treebank: Path) -> None:
    """Agreement in real sentences: where the heads look, and what their ablation costs."""
    report = interp.heads(interp.load_model("books"), [f"agreement:{treebank}"], probes=False, anyway=True)
    columns = ["layer", "head", "verdict", "attention", "attention_baseline", "effect", "effect_low", "effect_high"]
    frame = report.summary().assign(size=report.summary()["effect"].abs()).nlargest(6, "size")
    base = report.tasks[["n_units", "n_clusters", "base", "base_low", "base_high", "accuracy_base"]]
    print(f"Agreement in real sentences\n\n{base.round(3).to_string(index=False)}\n")
    print(frame[columns].round(3).to_string(index=False))


def main() -> None:
    """Score, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--choose-on", type=Path, action="append", required=True)
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=400)
    options = parser.parse_args()
    torch.set_num_threads(1)
    pd.set_option("display.width", 200)
    options.out.mkdir(parents=True, exist_ok=True)
    on_its_own_grammar(options.n)
    on_treebanks(options.choose_on, options.data, options.out)
    on_minimal_pairs(options.choose_on[0])


if __name__ == "__main__":
    main()
