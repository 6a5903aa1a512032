"""How much of a sentence's tree can be read off attention? The maximum spanning tree over the best heads, and its UAS.

1. Heads come from a corpus that is not parsed: for each dependency label and direction the one that ``attend`` chose.
   A head that looks from dependents at their heads speaks for the arc between the two; one that looks from heads at
   their dependents speaks for the same arc, read the other way.
2. An arc's weight is the sum, over the different heads, of the attention between its words times the head's accuracy.
3. The maximum spanning tree from the root (Edmonds 1967, by ``networkx``) is the parse. The root is given: attention
   does not say which word it is.
4. **UAS**: the share of the other words that have their head in it. **Baselines**: every word hangs on the word before
   it, or on the one after it, or on its neighbour towards the root.

Raganato & Tiedemann (2018), https://aclanthology.org/W18-5431; Clark et al. (2019), section 5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.arguments import named_arguments
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import ClusterTable
from interp.errors import InputError
from interp.interventions.sweep import Progress
from interp.methods.relations.words import ReadingRow, WordAttention, read_words, with_offsets
from interp.model.devices import documented
from interp.model.positions import looks_back_only
from interp.report.dots import dots_figure, series
from interp.report.drawing import Figure, require, require_rows
from interp.report.sections import Page, Picture, Sentences, Table
from interp.report.tables import Column
from interp.report.words import about, counted
from interp.residual.collecting import batched
from interp.result import Result
from interp.tasks.alignment import NONE, Window, Windows
from interp.tasks.corpus import Corpus, Documents
from interp.tasks.treebank import ROOT

CHAINS = ("word before", "word after", "towards the root")
_TIE = 1e-9
"""Weight of the arc to the neighbour towards the root: it decides where attention says nothing."""


def spanning_tree(weights: Float[np.ndarray, "word word"], root: int) -> list[int]:
    """Each word's head in the maximum spanning tree; ``ROOT`` for the root.

    Args:
        weights: From dependent to head, not below 0.
        root: The root.
    """
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(_arcs(weights, root))
    heads = [ROOT] * len(weights)
    for head, dependent in nx.maximum_spanning_arborescence(graph).edges:
        heads[dependent] = head
    return heads


def _arcs(weights: Float[np.ndarray, "word word"], root: int) -> Iterator[tuple[int, int, float]]:
    for dependent, row in enumerate(weights):
        for head, weight in enumerate(row):
            if dependent not in (root, head):
                towards = head == dependent + (1 if dependent < root else -1)
                yield head, dependent, float(weight) + _TIE * towards


def chains(n_words: int, root: int) -> dict[str, list[int]]:
    """By ``CHAINS``, each word's head in the chains of neighbours; at a chain's end it is the root."""
    before = [at - 1 if at else root for at in range(n_words)]
    after = [at + 1 if at + 1 < n_words else root for at in range(n_words)]
    towards = [at + 1 if at < root else at - 1 for at in range(n_words)]
    return dict(zip(CHAINS, (before, after, towards), strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class ParseResult(Result):
    """Trees from attention.

    Attributes:
        examples: One row per sentence: ``document``, ``sentence``, ``n`` (words without the root), ``right`` (words
            with their own head) and the same of each chain of neighbours.
        provenance: Words without tokens of their own (``n_unaligned``), sentences too long for the context.
        heads: What the weights came from: ``layer``, ``head``, ``looks``, ``accuracy``.
    """

    heads: pd.DataFrame

    shown_by: ClassVar[str] = "analyses.syntax_heads.parse"

    @named_arguments
    def summary(self, seed: int = 0) -> pd.DataFrame:
        """UAS of the parse and of each chain, and by how much the parse is better.

        Returns:
            One row each: ``parse``, ``uas`` with its interval ``low``, ``high`` (95 %, documents resampled), and
            ``better`` (the attention's UAS less this one's) with ``better_low``, ``better_high``.
        """
        summed = self.examples.drop(columns="sentence").groupby("document", sort=False).sum()
        names = ["attention", *CHAINS]
        right = summed[["right", *CHAINS]].to_numpy(dtype=float)
        counts = np.repeat(summed["n"].to_numpy(dtype=float)[:, None], len(names), axis=1)
        cells = pd.Index(names, name="parse")
        own = cluster_bootstrap(ClusterTable(right, counts, cells), seed=seed)
        better = cluster_bootstrap(ClusterTable(right[:, :1] - right, counts, cells), seed=seed)
        columns = {"uas": own.estimate, "low": own.low, "high": own.high}
        columns |= {"better": better.estimate, "better_low": better.low, "better_high": better.high}
        return pd.DataFrame(columns, index=cells).reset_index()


@documented
def attention_parse(
    model: Any, corpus: Documents | Corpus, heads: pd.DataFrame, *, progress: Progress | None = None
) -> ParseResult:
    """Parse every sentence of a corpus.

    Args:
        model: Follows TransformerLens' protocol, with a fast tokenizer.
        corpus: Files in CoNLL-U, or documents. Not what `heads` were chosen on.
        heads: With ``looks``, ``layer``, ``head`` and ``accuracy``, as ``attend(...).best()`` on another corpus gives
            them; of those that stand there twice, the more accurate, and none whose accuracy is not known.
        progress: Called with (words read, words to read).

    Raises:
        InputError: No head looks between dependents and their heads, the model does not have one, it has no tokenizer,
            a sentence has no tree, or nothing could be parsed.
        TaskError: The corpus cannot be read.
    """
    speaking, tokenizer = _speaking(heads, model), with_offsets(model, "attention parse")
    given = Corpus.of(corpus)
    n_all = sum(given.contents.documents.values())
    cutter = Windows(tokenizer, model.cfg.n_ctx, both_sides=not looks_back_only(model))
    windows = (window for document in given for window in cutter.sentences(document) if len(window.words) > 1)
    rows: dict[int, dict[str, Any]] = {}
    done, n_unaligned = 0, 0
    for batch in batched(
        _NumberedSentence(window, tuple(range(window.tokens.n_units)), number) for number, window in enumerate(windows)
    ):
        weights = _Weights(batch, speaking)
        read_words(model, batch, weights.take)
        for row, found in zip(batch, weights.sums, strict=True):
            rows[row.number] = _scored(row.window, found)
            n_unaligned += sum(row.window.tokens.unaligned.values())
            done += len(row.window.words)
        if progress is not None:
            progress(done, n_all)
    if progress is not None:  # what is too long, or a word by itself, was not counted
        progress(n_all, n_all)
    if not rows:
        raise InputError("attention parse: expected sentences of two words or more that fit into the context, got none")
    return ParseResult(
        pd.DataFrame([rows[number] for number in sorted(rows)]),
        {"n_unaligned": n_unaligned, "too_long": dict(cutter.too_long)},
        speaking,
    )


@dataclass(frozen=True)
class _NumberedSentence(ReadingRow):
    """A sentence and its place in the corpus: batches are in no order."""

    number: int


def _speaking(heads: pd.DataFrame, model: Any) -> pd.DataFrame:
    """The different heads that look between dependents and heads."""
    missing = {"looks", "layer", "head", "accuracy"} - {*getattr(heads, "columns", ())}
    if missing:
        raise InputError(
            "heads: expected a table with looks, layer, head and accuracy, got one without "
            f"{', '.join(sorted(missing))}; give attend(model, another_corpus).best()"
        )
    known = heads[heads["looks"].isin(["dependent to head", "head to dependent"])].dropna(subset="accuracy")
    if known.empty:
        raise InputError(
            "attention parse: expected heads that look between dependents and their heads, got none; choose them with "
            "attend(model, another_corpus).best()"
        )
    layers, per_layer = model.cfg.n_layers, model.cfg.n_heads
    if not (known["layer"].between(0, layers - 1) & known["head"].between(0, per_layer - 1)).all():
        raise InputError(
            f"attention parse: expected heads of {layers} layers x {per_layer} heads, the model's, got others"
        )
    ordered = known.sort_values("accuracy", ascending=False, kind="stable")
    return ordered.drop_duplicates(["layer", "head", "looks"])[["layer", "head", "looks", "accuracy"]]


class _Weights:
    """Sums of attention over the heads that speak: ``[unit unit]`` from dependent to head, for each row."""

    def __init__(self, rows: Sequence[ReadingRow], heads: pd.DataFrame):
        self._heads = heads
        self.sums = [np.zeros((row.window.tokens.n_units,) * 2) for row in rows]

    def take(self, layer: int, words: WordAttention) -> None:
        for each in self._heads[self._heads["layer"] == layer].itertuples():
            found = words[:, int(each.head)].double().cpu().numpy() * each.accuracy
            for total, own in zip(self.sums, found, strict=True):
                part = own[: len(total), : len(total)]
                total += part if each.looks == "dependent to head" else part.T


def _scored(window: Window, weights: Float[np.ndarray, "unit unit"]) -> dict[str, Any]:
    """One sentence's row of the result."""
    (sentence,) = window.sentences
    gold = [word.head for word in sentence.words]
    if gold.count(ROOT) != 1:
        raise InputError(
            f"attention parse: expected sentences with trees of one root, got {sentence.id} with {gold.count(ROOT)}"
        )
    root = gold.index(ROOT)
    found = {"attention": spanning_tree(_between_words(window, weights), root), **chains(len(gold), root)}
    hits = {
        name: sum(head == own for at, (head, own) in enumerate(zip(heads, gold, strict=True)) if at != root)
        for name, heads in found.items()
    }
    right = hits.pop("attention")
    return {"document": window.document, "sentence": sentence.id, "n": len(gold) - 1, "right": right, **hits}


def _between_words(window: Window, weights: Float[np.ndarray, "unit unit"]) -> Float[np.ndarray, "word word"]:
    """0 for words without tokens of their own."""
    units = window.tokens.unit_of_word
    own = units != NONE
    found = np.where(own[:, None] & own[None], weights[np.ix_(units, units)], 0.0)
    return np.asarray(found)


_MADE_BY = "analyses.syntax_heads.parse.attention_parse"


def parse_figure(result: Any) -> Figure:
    """UAS of the parse and of each chain of neighbours, with 95 % intervals.

    Args:
        result: What ``analyses.syntax_heads.parse.attention_parse`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    require(result, ("examples", "heads", "summary"), "parse", _MADE_BY)
    require_rows(result.examples, ("document", "sentence", "n", "right"), "parse", _MADE_BY)
    table = result.summary()
    title = f"trees over {len(result.examples):,} sentences: words that hang on their own head"
    return dots_figure(
        table["parse"].tolist(), {"UAS": series(table, "uas", "low", "high")}, "UAS (95 % interval)", title, None
    )


def page_of(result: Any) -> Page:
    """What a notebook shows of it, and what it is saved as."""
    table, sentences = result.summary(), result.examples
    documents = counted(sentences["document"].nunique(), "document")
    said = (
        f"{int(sentences['n'].sum()):,} words of {len(sentences):,} sentences in {documents}, parsed by "
        f"{len(result.heads)} heads."
    )
    columns = [Column("parse"), Column("uas", "UAS", "low", "high")]
    columns += [Column("better", "attention is better by", "better_low", "better_high")]
    sections = (
        Picture("Figure", "parse", lambda: parse_figure(result), said, inline=True),
        Sentences("Findings", [said]),
        Table("Parses", "Attention, and chains of neighbours", table, columns, "parses.csv"),
    )
    return Page(
        title="Trees from attention",
        kind="attention",
        sections=sections,
        provenance=result.provenance,
        about=about(result.provenance, documents),
        call="parse_figure(result)",
        frames={"parses": table, "heads": result.heads},
        draws={"parse": lambda: parse_figure(result)},
    )
