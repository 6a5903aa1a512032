"""How often does a head that knows nothing get a claim? See README.md.

python analyses/false_claims/run.py --data GUM_TEST --out DIR [--runs 1000]
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.stats import binomtest, kstest

import interp
from interp.methods.attention import attend, default_relations
from interp.methods.relations.clusters import clusters_of
from interp.methods.relations.counts import Counted, RelationCounts, count
from interp.methods.relations.judging import tabulate
from interp.model.config import TransformerConfig
from interp.tasks.corpus import Corpus
from interp.tasks.relations import directions
from interp.tasks.treebank import Document, Link, Sentence
from interp.tasks.windows import Windows

AT_ONCE = 20
"""Trees for which the attention to a sentence is read once."""
SENTENCES = 6
"""Of each document, where trees are put at random places."""
SHAPE = {"n_layers": 2, "n_heads": 3, "d_model": 12, "d_head": 5, "d_mlp": 20, "n_ctx": 256}
FURTHER = ["coref:nearest", "pos:PROPN", "pos:NOUN", "entity:person"]


def untrained(*, causal: bool, seed: int) -> interp.HookedTransformer:
    """A model whose attention is anything but even, and was never trained."""
    tokenizer = interp.load_model("books").tokenizer
    model = interp.HookedTransformer(TransformerConfig(**SHAPE, d_vocab=len(tokenizer), causal=causal), tokenizer)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def replanted(sentence: Sentence, generator: np.random.Generator) -> Sentence:
    """The sentence's tree, put on its words in other orders: the structure is kept, who is whose head is not."""
    links = []
    for tree in range(AT_ONCE):
        place = generator.permutation(len(sentence.words)).tolist()
        arcs = [(place[at], place[word.head]) for at, word in enumerate(sentence.words) if word.head >= 0]
        links += [Link(f"tree {tree}", dependent, head) for dependent, head in arcs]
    return replace(sentence, links=tuple(links))


def frames(
    model: interp.HookedTransformer, documents: Sequence[Document], generator: np.random.Generator, *, causal: bool
) -> Iterator[pd.DataFrame]:
    """What `attend` says of each tree by itself."""
    corpus = Corpus.of(
        [replace(each, sentences=tuple(replanted(one, generator) for one in each.sentences)) for each in documents]
    )
    there = corpus.contents
    asked = directions([f"tree {number}" for number in range(AT_ONCE)], there.relations)
    cutter = Windows(model.tokenizer, model.cfg.n_ctx, both_sides=not causal)
    windows = (window for each in corpus for window in cutter.sentences(each))
    shape, clusters, counted = (model.cfg.n_layers, model.cfg.n_heads), clusters_of(there.documents), Counted()
    count(model, windows, dict(enumerate(asked)), clusters, causal=causal, exclude=("special", "self"), into=counted)
    how = {"attention_dir": "causal" if causal else "bidirectional", "minimum": 0.1, "alpha": 0.05}
    for number in range(AT_ONCE):
        own = [at for at, each in enumerate(asked) if each.relation == f"tree {number}"]
        sums = {(name, own.index(at)): each for (name, at), each in counted.sums.items() if at in own}
        part = RelationCounts([asked[at] for at in own], shape, clusters, Counted(sums))
        seed = int(generator.integers(2**31))
        yield tabulate(part, None, there.documents, {**how, "correction": "max-T", "seed": seed}).frame


def at_random_places(documents: Sequence[Document], runs: int, *, causal: bool) -> dict[str, object]:
    """How p of one random head a run is spread, and how many runs claim anything of any head."""
    model, generator = untrained(causal=causal, seed=0), np.random.default_rng(0)
    beginnings = [replace(each, sentences=each.sentences[:SENTENCES], mentions=()) for each in documents]
    p, claims, tracks = [], 0, 0
    while len(p) < runs:
        for frame in frames(model, beginnings, generator, causal=causal):
            p.append(frame["p"].sample(1, random_state=len(p)).item())
            claims += bool((frame["q"] <= 0.05).any())
            tracks += "tracks" in set(frame["verdict"])
    below = {f"p <= {bound}": np.mean(np.array(p) <= bound) for bound in (0.05, 0.25, 0.5, 0.75)}
    return {
        "model": "causal" if causal else "bidirectional",
        "runs": len(p),
        "KS p, 200 runs": kstest(p[:200], "uniform").pvalue,
        "KS p, all": kstest(p, "uniform").pvalue,
        **below,
        "q <= .05": claims / len(p),
        "upper 95 % bound": binomtest(claims, len(p)).proportion_ci(0.9).high,
        "track": tracks / len(p),
    }


def untrained_models(documents: Sequence[Document], seeds: int) -> pd.DataFrame:
    """Heads of untrained models against the relations of the treebank itself."""
    names = [*default_relations(Corpus.of(documents).contents), *FURTHER]
    rows = []
    for causal in (True, False):
        for seed in range(seeds):
            frame = attend(untrained(causal=causal, seed=seed), documents, names).frame
            said = {"model": "causal" if causal else "bidirectional", "seed": seed, "hypotheses": len(frame)}
            largest = frame.loc[frame["n_documents"] >= 20, "excess"].max()
            rows.append({**said, "track": int((frame["verdict"] == "tracks").sum()), "largest excess": largest})
    return pd.DataFrame(rows)


def main() -> None:
    """Run, print and write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    pd.set_option("display.width", 200)
    options.out.mkdir(parents=True, exist_ok=True)
    documents = list(Corpus.of(options.data))
    random = pd.DataFrame([at_random_places(documents, options.runs, causal=causal) for causal in (True, False)])
    never = untrained_models(documents, options.seeds)
    for name, table in (("trees at random places", random), ("untrained models", never)):
        table.to_csv(options.out / f"{name.replace(' ', '-')}.csv", index=False)
        print(f"{name}\n\n{table.round(4).to_string(index=False)}\n")


if __name__ == "__main__":
    main()
