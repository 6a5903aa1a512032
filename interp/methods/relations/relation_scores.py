"""From counts to accuracies, baselines, tests and verdicts.

1. The documents fall into two halves, about as many words in each; the rule that each half is held against is chosen
   on the other one. Where another corpus chooses, it chooses for all documents.
2. Three baselines: the best **offset** (or first or last word), the best **nearest** word of a part of speech, and the
   **toughest**: the best of all rules. The nearest word of a part of speech is no rule for finding words of that part
   of speech: it would be the answer.
3. Documents whose rules nothing could choose are not scored.
4. All excesses are tested together; see ``attend.py``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.claim import Claims, Measured, claim
from interp.claims.rules import Evidence
from interp.claims.units import ClusterTable
from interp.methods.relations.counts import RelationCounts
from interp.methods.relations.words import CHANCE, MOST_TOKENS, REASONS, rule_names
from interp.options import AttendOptions
from interp.result import Result
from interp.tasks.relations import Direction
from interp.tasks.task import deal

FAMILIES = OFFSET, NEAREST, TOUGHEST = ("offset", "nearest", "toughest")
DIRECTION = ["relation", "looks"]
CELL = [*DIRECTION, "layer", "head"]
VERDICT = {"shown": "attends", "none": "none", "undecided": "undecided", "not testable": "not testable"}
_COLUMNS = ["accuracy", "attention", "baseline", "accuracy_baseline", "excess", "low", "high", "p", "p_adjusted"]
_COLUMNS += ["p_absent", "accuracy_random_head", "n", "n_documents", "chosen", "verdict"]


@dataclass(frozen=True, eq=False, repr=False)
class RelationResult(Result):
    """How well every head finds every relation.

    Attributes:
        examples: One row per relation, direction, layer, head and ``document`` (of more than 1,000 in the corpus,
            groups of neighbours, each by its first): ``pairs`` that were scored, how often the head was ``right``
            (a fraction where it attends to several words alike), how often the baseline was (``right_baseline``), and
            the mean ``attention`` on the related words.
        provenance: How the numbers were made.
        cells: What ``summary()`` gives.
        relations: One row per relation and direction: ``n_pairs``, ``n`` (scored), how many were not by reason
            (``ahead``: a causal model cannot look there; ``unaligned``; ``outside`` of the window; ``no choice``;
            ``no baseline``: in documents whose baseline nothing else could choose), ``n_documents``, the baselines
            ``offset`` (a position or fixed distance) and ``nearest`` (the nearest word of a part of speech) with their
            accuracies, and ``chance``.
        maps: Example sentences for the page and the notebook, of ``relation_maps``; None for none.
    """

    cells: pd.DataFrame
    relations: pd.DataFrame
    maps: pd.DataFrame | None = None

    shown_by: ClassVar[str] = "relations"

    def __repr__(self) -> str:
        verdicts = "; ".join(f"{n} {verdict}" for verdict, n in self.cells["verdict"].value_counts().items())
        return f"RelationResult({len(self.relations)} directions, heads in them: {verdicts}; the best of each: .best())"

    def summary(self) -> pd.DataFrame:
        """One row per relation, direction, layer and head.

        Columns: ``relation``, ``looks`` (who at whom), ``layer``, ``head``, ``accuracy`` (share of the pairs whose most
        attended other word is a related one), ``attention`` (mean on the related words), ``baseline`` (its name),
        ``accuracy_baseline``, ``excess`` with its interval ``low``, ``high`` (95 %, documents resampled), ``p`` (that
        the excess is no more than ``min_effect``), ``p_adjusted`` (over all that was tested), ``p_absent`` (that it is
        ``min_effect`` at least), ``accuracy_random_head`` (mean of the layer's other heads), ``n`` (pairs scored),
        ``n_documents``, ``chosen`` and ``verdict``. Where heads were chosen on another corpus, the others have no p and
        no verdict. What could not be measured is NaN.
        """
        return self.cells

    def best(self) -> pd.DataFrame:
        """The head of each relation and direction: the chosen one; of several, one that attends, by its excess."""
        return self.relations[DIRECTION].merge(self.leading(), on=DIRECTION)

    def leading(self) -> pd.DataFrame:
        """The rows of ``best()``, the most telling first: in the order of ``ranked()``."""
        scored = self.ranked()
        return scored[scored["chosen"].astype(bool)].drop_duplicates(DIRECTION).reset_index(drop=True)

    def ranked(self) -> pd.DataFrame:
        """The rows of ``summary()`` in which anything was scored.

        First the heads that attend, then those with enough documents for a verdict, each by their excess.
        """
        scored = self.cells.dropna(subset="excess")
        order = {"_attends": scored["verdict"] == "attends", "_enough": scored["n_documents"] >= FEWEST_CLUSTERS}
        rows = scored.assign(**order).sort_values([*order, "excess"], ascending=False, kind="stable")
        return rows.drop(columns=list(order))

    def save(self, folder: str | Path, maps: pd.DataFrame | None = None, *, command: str | None = None) -> Path:
        """Write the tables, the figures, a page (``report.html``) and a manifest into a folder.

        Args:
            folder: Made, with its parents, or replaced where it holds an older report and nothing else.
            maps: Example sentences, as ``relation_maps`` gives them; None for those that the result has.
            command: The command line that asked for the result, for the page and the manifest.

        Returns:
            The folder, as an absolute path.

        Raises:
            OutputError: The folder cannot be used.
        """
        shown = self if maps is None else replace(self, maps=maps)
        return super(RelationResult, shown).save(folder, command=command)


@dataclass(frozen=True)
class Sums:
    """What was counted of every direction in every document, 0 where one has nothing of it. The last rule is chance."""

    n: Float[np.ndarray, "direction document"]
    hits: Float[np.ndarray, "direction document cell"]
    attention: Float[np.ndarray, "direction document cell"]
    rules: Float[np.ndarray, "direction document rule"]

    @classmethod
    def of(cls, counts: RelationCounts, documents: Iterable[str]) -> "Sums":
        """The sums of these documents."""
        place = {name: at for at, name in enumerate(documents)}
        sums, n_cells = counts.counted.sums, counts.shape[0] * counts.shape[1]
        table = np.zeros((len(counts.directions), len(place), len(next(iter(sums.values())))))
        for (document, number), own in sums.items():
            table[number, place[document]] = own
        return cls(table[..., 0], *np.split(table[..., 1:], [n_cells, 2 * n_cells], axis=-1))

    def only(self, kept: Bool[np.ndarray, "direction document"]) -> "Sums":
        """The same, with 0 where it is not to be kept."""
        tables = (np.where(kept[..., None], each, 0.0) for each in (self.hits, self.attention, self.rules))
        return Sums(np.where(kept, self.n, 0.0), *tables)


Baseline = tuple[list[str], Float[np.ndarray, "direction document"]]
"""A rule of each direction (both halves' rules, where they differ), and its hits: NaN where nothing could choose it."""


def baseline(
    family: str,
    directions: Sequence[Direction],
    rules: Float[np.ndarray, "direction document rule"],
    choosing: Float[np.ndarray, "half direction rule"],
    second: Bool[np.ndarray, " document"],
    causal: bool,
) -> Baseline:
    """The best rules of a family.

    `choosing` are the hits by which each half's rule is chosen, `second` are the documents of the second half.
    """
    names = [*rule_names(causal=causal), CHANCE]
    hits, said = np.full(rules.shape[:2], np.nan), []
    for number, direction in enumerate(directions):
        columns = [at for at, name in enumerate(names) if _belongs(name, family, direction)]
        chosen = []
        for here, sums in zip((~second, second), choosing[:, number, columns], strict=True):
            if here.any() and sums.sum() > 0:
                best = columns[int(sums.argmax())]
                hits[number, here] = rules[number, here, best]
                chosen.append(names[best])
        said.append(" / ".join(dict.fromkeys(chosen)))
    return said, hits


def _belongs(rule: str, family: str, direction: Direction) -> bool:
    nearest = rule.startswith("nearest")
    if nearest and direction.part_of_speech and rule.split()[1] == direction.part_of_speech:
        return False
    return family == TOUGHEST or (rule not in (CHANCE, MOST_TOKENS) and nearest == (family == NEAREST))


def _share(hits: Float[np.ndarray, "*cells"], n: Float[np.ndarray, "*#cells"]) -> Float[np.ndarray, "*cells"]:
    """Hits as a share; NaN of nothing."""
    return np.divide(hits, n, out=np.full(hits.shape, np.nan), where=n > 0)


def _others(accuracy: Float[np.ndarray, "direction layer head"]) -> Float[np.ndarray, "direction layer head"]:
    """What a random other head of the same layer is expected to reach; NaN where there is none."""
    n_heads = accuracy.shape[-1]
    others = accuracy.sum(axis=-1, keepdims=True) - accuracy
    return others / (n_heads - 1) if n_heads > 1 else np.full(accuracy.shape, np.nan)


def tabulate(
    counts: RelationCounts,
    choosing: RelationCounts | None,
    documents: Mapping[str, int],
    asked: AttendOptions,
    how: Mapping[str, Any],
) -> RelationResult:
    """Turn counts into estimates, tests and verdicts.

    `choosing` was counted in the corpus that chooses baselines and heads; None where the halves choose baselines.
    `documents` are the words of each that is scored, `how` is the provenance.
    """
    words: Counter[str] = Counter()
    for name, n_words in documents.items():
        words[counts.clusters[name]] += n_words
    own = Sums.of(counts, words)
    half = deal(words)  # the largest documents are dealt out first, each to the side with fewer words
    second = np.array([half[name] == 1 for name in words])
    if choosing is None:
        chosen = np.ones((len(own.hits), own.hits.shape[2]), dtype=bool)
        totals = np.stack([own.rules[:, each].sum(axis=1) for each in (second, ~second)])
    else:
        there = Sums.of(choosing, {name for name, _ in choosing.counted.sums})
        best = there.hits.sum(axis=1).argmax(axis=1)
        chosen = np.arange(own.hits.shape[2]) == best[:, None]
        totals = np.stack([there.rules.sum(axis=1)] * 2)
    causal = how["attention_dir"] == "causal"
    baselines = {each: baseline(each, counts.directions, own.rules, totals, second, causal) for each in FAMILIES}
    toughest = baselines[TOUGHEST]
    kept = own.only(np.isfinite(toughest[1]))
    excess = kept.hits - np.nan_to_num(toughest[1])[..., None]
    return RelationResult(
        examples=_examples(counts, kept, toughest[1], list(words)),
        provenance={**how, "shape": counts.shape, "n_clusters": len(words)},
        cells=_tested(_cells(counts, kept, toughest, chosen), excess, kept.n, asked),
        relations=_relations(counts, own, kept, baselines),
    )


def _labels(counts: RelationCounts) -> pd.DataFrame:
    """One row a direction."""
    return pd.DataFrame({name: [getattr(each, name) for each in counts.directions] for name in DIRECTION})


def _examples(
    counts: RelationCounts, kept: Sums, right: Float[np.ndarray, "direction document"], documents: Sequence[str]
) -> pd.DataFrame:
    """One row per direction, head and document that has pairs."""
    by_cell = np.broadcast_to(kept.n[:, None] > 0, (len(kept.n), kept.hits.shape[2], len(documents)))
    number, cell, document = by_cell.nonzero()
    layer, head = np.indices(counts.shape, dtype=np.int32).reshape(2, -1)
    pairs = kept.n[number, document]
    measured = {
        "layer": layer[cell],
        "head": head[cell],
        "document": np.array(documents, dtype=object)[document],
        "pairs": pairs.astype(int),
        "right": kept.hits[number, document, cell],
        "right_baseline": right[number, document],
        "attention": kept.attention[number, document, cell] / pairs,
    }
    rows = _labels(counts).loc[number].reset_index(drop=True).assign(**measured)
    return rows.astype(dict.fromkeys([*DIRECTION, "document"], "category"))  # of a large treebank there are millions


def _cells(
    counts: RelationCounts, kept: Sums, toughest: Baseline, chosen: Bool[np.ndarray, "direction cell"]
) -> pd.DataFrame:
    """One row per direction and head, untested."""
    n = kept.n.sum(axis=1)[:, None]
    accuracy = _share(kept.hits.sum(axis=1), n)
    of_baseline = _share(np.nansum(toughest[1], axis=1)[:, None], n)
    layer, head = np.indices(counts.shape).reshape(2, -1)
    measured = {
        "layer": layer,
        "head": head,
        "accuracy": accuracy,
        "attention": _share(kept.attention.sum(axis=1), n),
        "baseline": np.array(toughest[0], dtype=object)[:, None],
        "accuracy_baseline": of_baseline,
        "excess": accuracy - of_baseline,
        "accuracy_random_head": _others(accuracy.reshape(-1, *counts.shape)).reshape(accuracy.shape),
        "n": n.astype(int),
        "n_documents": (kept.n > 0).sum(axis=1)[:, None],
        "chosen": chosen,
    }
    labels = _labels(counts)
    rows = labels.loc[labels.index.repeat(accuracy.shape[1])].reset_index(drop=True)
    return rows.assign(**{name: np.broadcast_to(each, accuracy.shape).ravel() for name, each in measured.items()})


def _tested(
    cells: pd.DataFrame,
    excess: Float[np.ndarray, "direction document cell"],
    n: Float[np.ndarray, "direction document"],
    asked: AttendOptions,
) -> pd.DataFrame:
    """The rows with intervals, tests and verdicts, from the summed excesses of `n` pairs."""
    tested = (cells["chosen"] & (cells["n"] > 0)).to_numpy()
    columns = Claims.columns("excess")[1:]
    found = cells.reindex(columns=[*cells.columns, *columns])
    if tested.any():
        of_cells = np.broadcast_to(n[..., None], excess.shape)
        sums, pairs = (np.moveaxis(each, 1, 0).reshape(excess.shape[1], -1)[:, tested] for each in (excess, of_cells))
        table = ClusterTable(sums, pairs, pd.MultiIndex.from_frame(cells.loc[tested, CELL]))
        how: Any = {"correction": asked.correction, "alpha": asked.alpha, "seed": asked.seed}
        (claims,) = claim([Measured(table, asked.min_effect, counted=True)], alternative="greater", **how)
        found.loc[tested, columns] = claims.frame("excess")[columns].to_numpy()
    verdicts = [_verdict(row, asked) if row["chosen"] else None for row in found.to_dict("records")]
    named = found.rename(columns=lambda name: name.removeprefix("excess_")).assign(verdict=verdicts)
    return named[[*CELL, *_COLUMNS]]


def _verdict(row: Mapping[Any, Any], asked: AttendOptions) -> str:
    """Where the baseline leaves less than the minimum, an excess that is smaller says nothing about a head."""
    if row["accuracy_baseline"] > 1 - asked.min_effect:
        return "undecided"
    return VERDICT[Evidence.of(row, "excess").excess(asked.alpha)]


def _relations(counts: RelationCounts, own: Sums, kept: Sums, baselines: Mapping[str, Baseline]) -> pd.DataFrame:
    """What is known of each direction as a whole."""
    n, left_out = kept.n.sum(axis=1), counts.counted.left_out
    reasons = {each: [left_out[number, each] for number in range(len(n))] for each in REASONS}
    reasons["no baseline"] = (own.n - kept.n).sum(axis=1).astype(int)
    counted = {"n_pairs": n.astype(int) + np.sum(list(reasons.values()), axis=0), "n": n.astype(int), **reasons}
    rules: dict[str, Any] = {}
    for family in (OFFSET, NEAREST):
        names, hits = baselines[family]
        known = np.where(np.isfinite(hits), kept.n, 0.0).sum(axis=1)
        rules |= {family: names, f"accuracy_{family}": _share(np.nansum(hits, axis=1), known)}
    chance = _share(kept.rules[..., -1].sum(axis=1), n)
    return _labels(counts).assign(**counted, n_documents=(kept.n > 0).sum(axis=1), **rules, chance=chance)
