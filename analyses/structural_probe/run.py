"""Is the tree in the residual stream? See README.md.

python analyses/structural_probe/run.py --fit-on EWT_DEV --data EWT_TEST --out DIR
"""

import argparse
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn.utils.rnn import pad_sequence

import interp
from analyses.structural_probe.estimators import padded
from analyses.structural_probe.probes import fit_structural, squared_distances, squared_norms
from analyses.structural_probe.trees import structural_scores, structural_summary, tree_depths, tree_distances
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import ClusterTable
from interp.methods.probes.data import held
from interp.methods.probes.scores import untrained
from interp.model.sites import Site
from interp.tasks.alignment import Windows
from interp.tasks.corpus import Corpus
from interp.tasks.passages import CorpusPassages
from interp.tasks.treebank import Document, Sentence

GEOMETRIES = {"distances": (tree_distances, squared_distances), "depths": (tree_depths, squared_norms)}
RANKS = [1, 2, 4, 8, 16, 32, 64]
STOPS = 8
"""One document in so many says when a probe's training is to stop."""


@dataclass(frozen=True)
class Text:
    """Sentences of two words or more, all of which have tokens of their own.

    Attributes:
        documents: With these sentences alone.
        windows: How a model reads them.
    """

    documents: list[Document]
    windows: Windows

    @cached_property
    def sentences(self) -> list[Sentence]:
        """All of them, in order."""
        return [sentence for document in self.documents for sentence in document.sentences]

    @cached_property
    def document_of(self) -> np.ndarray:
        """The number of each sentence's document, from 0."""
        return np.repeat(np.arange(len(self.documents)), [len(each.sentences) for each in self.documents])

    def vectors(self, model: Any, sites: list[Site]) -> torch.Tensor:
        """The means over words' tokens ``[site sentence word d_model]``, every sentence read by itself."""
        found = held(model, CorpusPassages(self.documents, self.windows, [], "sentence"), sites, "mean")
        lengths = [len(each.words) for each in self.sentences]
        return torch.stack([pad_sequence(found.values[site].split(lengths), batch_first=True) for site in sites])


def read(model: Any, files: list[Path], n: int | None) -> Text:
    """The first `n` documents (None: all), as far as they can be read word by word."""
    windows = Windows(model.tokenizer, model.cfg.n_ctx, both_sides=False)
    documents, n_all = [], 0
    for document in list(Corpus.of(files))[:n]:
        kept = [each for each in windows.sentences(document) if len(each.words) > 1 and not each.tokens.unaligned]
        n_all += len(document.sentences)
        if kept:
            documents.append(Document(document.id, tuple(each.sentences[0] for each in kept)))
    text = Text(documents, windows)
    names = ", ".join(each.name for each in files)
    print(f"{names}: {len(text.sentences)} of {n_all} sentences are read, in {len(documents)} documents", flush=True)
    return text


def predicted(
    fit_on: Text, test: Text, given: torch.Tensor, asked: torch.Tensor, ranks: list[int] | None = None
) -> tuple[dict[str, list[np.ndarray]], dict[str, torch.Tensor]]:
    """What probes fitted to one text predict of another, ``[probe word ...]`` by sentence; and the stopping losses."""
    lengths = torch.tensor([len(each.words) for each in fit_on.sentences])
    stops = torch.from_numpy(fit_on.document_of % STOPS == STOPS - 1)
    found, losses = {}, {}
    for name, (truth, geometry) in GEOMETRIES.items():
        gold = torch.from_numpy(padded([truth(each) for each in fit_on.sentences]))
        probes = fit_structural(given, gold, lengths, stops, ranks=ranks)
        numbers = geometry(probes.projected(asked)).numpy()
        inside = [(slice(None), *[slice(len(each.words))] * (gold.ndim - 1)) for each in test.sentences]
        found[name] = [numbers[:, number][part] for number, part in enumerate(inside)]
        losses[name] = probes.dev_loss
    return found, losses


def chain(sentence: Sentence) -> dict[str, np.ndarray]:
    """Every word hangs on the next one, the last is the root."""
    places = np.arange(len(sentence.words), dtype=float)
    return {"distances": np.abs(places[:, None] - places)[None], "depths": places[None, ::-1]}


def table(parts: list[dict[str, list[np.ndarray]]], test: Text, names: list[str]) -> pd.DataFrame:
    """Scores of all cells, after those of the chain, with intervals over documents."""
    chains = [chain(each) for each in test.sentences]
    every = [{name: [each[name] for each in chains] for name in GEOMETRIES}, *parts]
    by_sentence = {name: zip(*(part[name] for part in every), strict=True) for name in GEOMETRIES}
    joined = {name: [np.concatenate(cells) for cells in each] for name, each in by_sentence.items()}
    scores = structural_scores(test.sentences, **joined)
    scores = scores.assign(document=test.document_of[scores["sentence"]], n_roots=scores["root"].notna())
    sums = scores.groupby(["document", "cell"])[["right", "n_edges", "root", "n_roots"]].sum().unstack("cell")
    right, edges, roots, asked = (sums[name].to_numpy(dtype=float) for name in ("right", "n_edges", "root", "n_roots"))
    cells = pd.Index(["chain", *names], name="cell")
    found = structural_summary(scores).drop(columns="cell").set_index(cells)
    for name, values, counts in (
        ("uuas", right, edges),
        ("better", right - right[:, :1], edges),
        ("root_accuracy", roots, asked),
    ):
        interval = cluster_bootstrap(ClusterTable(values, counts, cells))
        found[name], found[f"{name}_low"], found[f"{name}_high"] = interval.estimate, interval.low, interval.high
    return found.reset_index()


def shown(found: pd.DataFrame) -> str:
    """The table with intervals in brackets."""
    columns = {"cell": found["cell"]}
    for name in ("uuas", "better", "root_accuracy"):
        ends = zip(found[name], found[f"{name}_low"], found[f"{name}_high"], strict=True)
        columns[name] = pd.Series([f"{value:.3f} [{low:.3f}, {high:.3f}]" for value, low, high in ends])
    spearman = {name: found[name].round(3) for name in ("distance_spearman", "depth_spearman")}
    return pd.DataFrame({**columns, **spearman}).to_string(index=False)


def main() -> None:
    """Fit, score and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fit-on", type=Path, action="append", required=True)
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, help="documents of each, instead of all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    model = interp.load_model("books")
    fit_on, test = read(model, options.fit_on, options.n), read(model, options.data, options.n)
    sites = [Site("resid_pre", 0), *(Site("resid_post", layer) for layer in range(model.cfg.n_layers))]
    names = ["embedding", *(f"layer {site.layer}" for site in sites[1:])]
    parts, losses = [], {}
    for each in (untrained(model), model):
        given, asked = fit_on.vectors(each, sites), test.vectors(each, sites)
        found, losses = predicted(fit_on, test, given, asked)
        parts.append(found)
    layers = table(parts, test, [*(f"untrained {name}" for name in names), *names])
    best = int(losses["distances"].argmin())
    found, _ = predicted(fit_on, test, given[[best]], asked[[best]], RANKS)
    ranks = table([found], test, [f"rank {rank}" for rank in RANKS])
    for name, rows in (("layers", layers), ("ranks", ranks)):
        rows.to_csv(options.out / f"{name}.csv", index=False)
    print(
        f"\nThe layers\n\n{shown(layers)}\n\nBy rank, at {names[best]}, whose stopping loss is least\n\n{shown(ranks)}"
    )


if __name__ == "__main__":
    main()
