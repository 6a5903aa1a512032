"""Which heads look from a pronoun to its antecedent? See README.md.

python analyses/coreference_heads/run.py --choose-on GUM_TRAIN --data GUM_TEST --gap GAP_FOLDER --out DIR
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

import interp
from analyses.coreference_heads.gap import gap
from analyses.coreference_heads.gap_figure import gap_figure
from interp.methods.relations.examples import relation_maps
from interp.tasks import coreference, reflexive
from interp.tasks.generated_corpus import linked_documents

RELATIONS = ["coref", "coref:nearest", "coref:pronoun", "coref:proper", "coref:nominal", "entity:person", "pos:PROPN"]
SHOWN = ["relation", "name", "n", "accuracy", "attention", "baseline", "accuracy_baseline", "excess", "low", "high"]
SHOWN += ["p_adjusted", "verdict"]


def shown(best: pd.DataFrame) -> str:
    """The chosen heads that look back, as a table."""
    table = best[best["looks"] != "antecedent to anaphor"]
    table = table.assign(name=table["layer"].astype(str) + "." + table["head"].astype(str))
    return table[SHOWN].round(3).to_string(index=False)


def on_its_own_grammar(n: int) -> None:
    """The embedded default on the generator's sentences: from the place of a pronoun to its antecedent."""
    for task in (coreference, reflexive):
        choose, score = (list(linked_documents(task.pairs(n, seed=0, split=each))) for each in ("select", "test"))
        best = interp.attend(interp.load_model(), score, ["antecedent"], choose_on=choose).best()
        best = best[best["looks"] == "query to related"]
        print(f"The embedded default on its own grammar: {task.__name__.split('.')[-1]}\n\n{shown(best)}\n")


def on_documents(choose_on: list[Path], data: list[Path], out: Path) -> None:
    """`books` on real documents."""
    model = interp.load_model("books")
    result = interp.attend(model, data, RELATIONS, choose_on=choose_on)
    print(f"books, heads chosen on some documents and scored on others\n\n{shown(result.best())}\n")
    result.cells.to_csv(out / "heads.csv", index=False)
    result.save(out / "page", relation_maps(model, data, result))


def on_gap(folder: Path, out: Path) -> None:
    """Ambiguous pronouns, by the official measure."""
    found = gap(interp.load_model("books"), folder / "gap-test.tsv", choose_on=folder / "gap-development.tsv")
    found.summary().to_csv(out / "gap.csv", index=False)
    gap_figure(found).savefig(out / "gap.png", dpi=120)
    rules = found.summary()[found.summary()["layer"].isna()][["name", "f1", "f1_masculine", "f1_feminine", "bias"]]
    print(f"GAP: {found.left_out}\n\n{pd.Series(found.best).to_string()}\n\n{rules.round(3).to_string(index=False)}\n")


def on_minimal_pairs(treebank: Path) -> None:
    """Pronouns in real text: where the heads look, and what their ablation costs."""
    tasks = [f"coreference:{treebank}", f"anaphora:{treebank}"]
    report = interp.heads(interp.load_model("books"), tasks, probes=False, anyway=True)
    base = report.tasks.assign(task=[each.split(":")[0] for each in report.tasks["task"]])
    columns = ["task", "n_units", "n_clusters", "base", "base_low", "base_high", "accuracy_base"]
    print(f"Pronouns in real text\n\n{base[columns].round(3).to_string(index=False)}\n")
    frame = report.summary().assign(task=[each.split(":")[0] for each in report.summary()["task"]])
    frame = frame.assign(size=frame["effect"].abs()).sort_values("size", ascending=False).groupby("task").head(5)
    columns = ["task", "layer", "head", "verdict", "attention", "attention_baseline", "excess", "excess_low"]
    columns += [
        "excess_high",
        "effect",
        "effect_low",
        "effect_high",
        "effect_p_adjusted",
        "min_effect",
        "n_to_decide",
    ]
    print(frame[[*columns, "mean_effect", "exchange"]].round(3).to_string(index=False))


def main() -> None:
    """Score, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--choose-on", type=Path, action="append", required=True)
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--gap", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=400)
    options = parser.parse_args()
    torch.set_num_threads(1)
    pd.set_option("display.width", 200)
    options.out.mkdir(parents=True, exist_ok=True)
    on_its_own_grammar(options.n)
    on_documents(options.choose_on, options.data, options.out)
    on_gap(options.gap, options.out)
    on_minimal_pairs(options.choose_on[0])


if __name__ == "__main__":
    main()
