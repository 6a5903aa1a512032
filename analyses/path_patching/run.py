"""Which heads tell the induction head where to look? See README.md.

python analyses/path_patching/run.py --out DIR
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
import torch
from matplotlib.figure import Figure

import interp
from interp.methods.path_patching import path_patch
from interp.methods.paths import paths_to
from interp.tasks.grammar.lexicon import vocabulary
from interp.tasks.task import Task

FRAMES = ((6, 1, 3), (8, 2, 5), (9, 3, 6), (10, 4, 7), (11, 2, 8), (12, 5, 9))
"""Length of the string, and the places of the two words that are exchanged; the first of them is the query."""
SHOWN = 4


def exchanged_strings(model: interp.HookedTransformer, n: int, seed: int) -> Task:
    """Random words and their beginning again; in the counterfactual the words *before* the two answers change places.

    So nothing at the answers' own positions differs but what stands before them: whoever tells the two prompts apart
    there has been told by a head that looks back.
    """
    generator = np.random.default_rng(seed)
    forms = np.array(sorted(word for word in vocabulary().forms if word.islower()))
    pairs = []
    for number in range(n):
        length, query, other = FRAMES[number % len(FRAMES)]
        string = generator.choice(forms, size=length, replace=False).tolist()
        swapped = list(string)
        swapped[query], swapped[other] = string[other], string[query]
        answers = string[query + 1], string[other + 1]
        again = string[: query + 1]
        item, twin = (
            _example([*first, *again], right, wrong, len(again), after, FRAMES[number % len(FRAMES)])
            for first, (right, wrong), after in (
                (string, answers, query + 1),
                (swapped, answers[::-1], other + 1),
            )
        )
        pairs.append(interp.MinimalPair(item, twin, cluster=string[query]))
    return interp.encode_task(
        pairs,
        tokenizer=model.tokenizer,
        name="exchanged strings",
        description="What followed this word the last time, where the words before the answers change places?",
        metric="logit_difference",
        n_ctx=model.cfg.n_ctx,
    )


def _example(words: list[str], right: str, wrong: str, n_again: int, after: int, frame: object) -> interp.Example:
    prompt = " ".join(words)
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    spans = [interp.Span(int(start), int(start) + len(word)) for start, word in zip(starts, words, strict=False)]
    relation = interp.Relation("word after the previous occurrence", spans[-1], spans[after])
    return interp.Example(prompt, f" {right}", f" {wrong}", relation, f"length {len(words)}", layout=str(frame))


def senders_of(model: interp.HookedTransformer, task: Task, head: str, seed: int) -> pd.DataFrame:
    """Everything that writes before `head` reads, patched into its queries, keys or values alone, edge by edge."""
    paths = [paths_to(model, f"{head}.{part}") for part in "qkv"]
    found = [path_patch(model, task, each, mlps="frozen", seed=seed).summary() for each in paths]
    return pd.concat(found, ignore_index=True)


def draw(table: pd.DataFrame, head: str) -> Figure:
    """Senders down, what they are patched into across; 1 is the clean run's answer."""
    figure = Figure(figsize=(4.2, 5), layout="constrained")
    ax = figure.subplots()
    wide = table.pivot(index="sender", columns="receiver", values="normalised")
    wide = wide[[f"{head}.{part}" for part in "qkv"]].reindex(table["sender"].drop_duplicates())
    sns.heatmap(wide, ax=ax, cmap="vlag", center=0, vmin=-1, vmax=1, annot=True, fmt=".2f")
    ax.set(xlabel="", ylabel="sender", title=f"Patched into head {head} alone")
    return figure


def print_paths(table: pd.DataFrame) -> None:
    """Every path with its share of the answer."""
    columns = ["sender", "via", "receiver", "normalised", "normalised_low", "normalised_high", "p_adjusted"]
    print(table[columns].round(3).to_string(index=False))


def main() -> None:
    """Measure, print the tables and write them with the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=240, help="minimal pairs")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)  # a model this small is fastest on one thread
    given.out.mkdir(parents=True, exist_ok=True)
    model = interp.load_model()
    task = exchanged_strings(model, given.n, given.seed)
    heads = interp.patch(model, task, site="z", by=("layer", "head"), seed=given.seed).summary()
    heads["name"] = heads["layer"].astype(str) + "." + heads["head"].astype(str)
    base = heads["accuracy_base"].iloc[0]
    print(
        f"The unpatched model answers {1 - base:.0%} right.\nHeads patched at all positions (0: corrupted, 1: clean):"
    )
    top = heads.reindex(heads["normalised"].abs().sort_values(ascending=False).index).head(SHOWN)
    print(
        top[["name", "normalised", "normalised_low", "normalised_high", "p_adjusted"]].round(3).to_string(index=False)
    )
    last = heads[heads["layer"] == heads["layer"].max()]
    induction = str(last.loc[last["normalised"].idxmax(), "name"])
    table = senders_of(model, task, induction, given.seed)
    table.to_csv(given.out / "senders.csv", index=False)
    draw(table, induction).savefig(given.out / "senders.png", dpi=120)
    print(f"\nWhat is patched into head {induction} alone:")
    ranked = table.sort_values("normalised", ascending=False).head(2 * SHOWN)
    columns = ["sender", "receiver", "normalised", "normalised_low", "normalised_high", "p_adjusted"]
    print(ranked[columns].round(3).to_string(index=False))
    sender = str(table.loc[table["normalised"].idxmax(), "sender"])
    routes = [[sender, f"{induction}.k", "logits"], [sender, "mlp.1", f"{induction}.k"], [sender, "logits"]]
    print("\nRoutes of its strongest sender, edge by edge:")
    print_paths(path_patch(model, task, routes, mlps="frozen", seed=given.seed).summary())
    through_mlps = [[sender, f"{induction}.k"], [sender, f"{induction}.k", "logits"]]
    print("\nThe same, whatever MLPs are between:")
    print_paths(path_patch(model, task, through_mlps, mlps="recomputed", seed=given.seed).summary())


if __name__ == "__main__":
    main()
