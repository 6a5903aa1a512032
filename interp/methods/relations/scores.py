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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.claims.claim import Measured, claim
from interp.claims.rules import Evidence
from interp.claims.units import ClusterTable
from interp.methods.relations.counts import SUMMED, RelationCounts
from interp.methods.relations.words import CHANCE, MOST_TOKENS, rule_names
from interp.options import AttendOptions
from interp.report.relations_sentences import leading
from interp.result import Result
from interp.tasks.relations import Direction
from interp.tasks.task import deal

Family = Literal["offset", "nearest", "toughest"]
DIRECTION = ["relation", "looks"]
CELL = [*DIRECTION, "layer", "head"]
VERDICT = {"shown": "attends", "none": "none", "undecided": "undecided", "not testable": "not testable"}
_TESTED = ("p", "p_adjusted", "p_absent", "standard_error", "critical")
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
        return self.relations[DIRECTION].merge(leading(self.cells), on=DIRECTION)

    def save(self, folder: str | Path, maps: pd.DataFrame | None = None, *, command: str | None = None) -> Path:
        """Write the tables, the figures, a page (``report.html``) and a manifest into a folder.

        Args:
            folder: Made, with its parents, or replaced where it holds an older report and nothing else.
            maps: Example sentences, as ``relation_maps`` gives them; None for those that the result has.
            command: The command line that asked for the result, for the page and the manifest.

        Raises:
            OutputError: The folder cannot be used.
        """
        shown = self if maps is None else replace(self, maps=maps)
        return super(RelationResult, shown).save(folder, command=command)


@dataclass(frozen=True)
class DirectionCounts:
    """The sums of one direction by document, 0 where one has nothing of it. The last rule is chance."""

    direction: Direction
    n: Float[np.ndarray, " document"]
    hits: Float[np.ndarray, "document cell"]
    attention: Float[np.ndarray, "document cell"]
    rules: Float[np.ndarray, "document rule"]

    @classmethod
    def of(cls, counts: RelationCounts, number: int, documents: Sequence[str], causal: bool) -> "DirectionCounts":
        """The sums of the direction with this number."""
        n_cells, n_rules = counts.shape[0] * counts.shape[1], len(rule_names(causal=causal))
        zeros = (0, np.zeros(n_cells), np.zeros(n_cells), np.zeros(n_rules), 0.0)
        nothing = dict(zip(SUMMED, zeros, strict=True))
        found = [counts.counted.sums.get((document, number), nothing) for document in documents]
        return cls(
            counts.directions[number],
            np.array([each["n"] for each in found], dtype=float),
            np.stack([each["hits"] for each in found]),
            np.stack([each["attention"] for each in found]),
            np.stack([np.append(each["rules"], each["chance"]) for each in found]),
        )

    def only(self, kept: Bool[np.ndarray, " document"]) -> "DirectionCounts":
        """The same, with 0 for all other documents."""
        tables = (np.where(kept[:, None], each, 0.0) for each in (self.hits, self.attention, self.rules))
        return DirectionCounts(self.direction, np.where(kept, self.n, 0.0), *tables)


Baseline = tuple[str, Float[np.ndarray, " document"]]
"""A rule (both halves' rules, where they differ), and its hits: NaN in documents whose rule nothing could choose."""


def baseline(
    own: DirectionCounts,
    chooser: DirectionCounts | None,
    second: Bool[np.ndarray, " document"],
    family: Family,
    *,
    causal: bool,
) -> Baseline:
    """The best rule of a family; `second` are the documents of the second half, for which the first one chooses."""
    names = [*rule_names(causal=causal), CHANCE]
    columns = [at for at, name in enumerate(names) if _belongs(name, family, own.direction)]
    hits, chosen = np.full(len(own.n), np.nan), []
    for half in (False, True):
        here = second == half
        there = own.rules[~here] if chooser is None else chooser.rules
        if here.any() and there[:, columns].sum() > 0:
            best = columns[int(there[:, columns].sum(axis=0).argmax())]
            hits[here] = own.rules[here, best]
            chosen.append(names[best])
    return " / ".join(dict.fromkeys(chosen)), hits


def _belongs(rule: str, family: Family, direction: Direction) -> bool:
    nearest = rule.startswith("nearest")
    if nearest and direction.part_of_speech and rule.split()[1] == direction.part_of_speech:
        return False
    return family == "toughest" or (rule not in (CHANCE, MOST_TOKENS) and nearest == (family == "nearest"))


@dataclass(frozen=True)
class DirectionScores:
    """One direction's estimates, before any test.

    Attributes:
        own: What was counted, of the documents that have a baseline.
        baselines: By family.
        chosen: Which heads are tested.
        n_unscored: Pairs of the documents that have no baseline.
    """

    own: DirectionCounts
    baselines: Mapping[Family, Baseline]
    chosen: Bool[np.ndarray, " cell"]
    n_unscored: int

    @classmethod
    def of(
        cls,
        counts: RelationCounts,
        choosing: RelationCounts | None,
        number: int,
        words: Mapping[str, int],
        *,
        causal: bool,
    ) -> "DirectionScores":
        """Hold a direction's counts against its baselines; `words` are those of each document that is scored."""
        own = DirectionCounts.of(counts, number, list(words), causal)
        chooser, chosen = None, np.ones(own.hits.shape[1], dtype=bool)
        if choosing is not None:
            there = sorted({name for name, _ in choosing.counted.sums})
            chooser = DirectionCounts.of(choosing, number, there, causal)
            chosen = np.arange(len(chosen)) == chooser.hits.sum(axis=0).argmax()
        half = deal(words)  # the largest documents are dealt out first, each to the side with fewer words
        second = np.array([half[name] == 1 for name in words])
        families: tuple[Family, ...] = ("offset", "nearest", "toughest")
        found = {each: baseline(own, chooser, second, each, causal=causal) for each in families}
        scored = np.isfinite(found["toughest"][1])
        return cls(own.only(scored), found, chosen, int(own.n[~scored].sum()))

    @property
    def right_baseline(self) -> Float[np.ndarray, " document"]:
        """Hits of the baseline."""
        return np.nan_to_num(self.baselines["toughest"][1])

    @property
    def excess(self) -> Float[np.ndarray, "document cell"]:
        """Hits less the baseline's, summed."""
        return self.own.hits - self.right_baseline[:, None]

    @property
    def said(self) -> dict[str, str]:
        """The direction's labels."""
        return {"relation": self.own.direction.relation, "looks": self.own.direction.looks}

    def examples(self, documents: Sequence[str], shape: tuple[int, int]) -> pd.DataFrame:
        """One row per head and document that has pairs."""
        there = np.flatnonzero(self.own.n)
        layer, head = np.indices(shape, dtype=np.int32).reshape(2, -1).repeat(len(there), axis=1)
        pairs, names = self.own.n[there], np.array(documents, dtype=object)[there]
        once = {"document": names, "pairs": pairs.astype(int), "right_baseline": self.right_baseline[there]}
        tiled = {name: np.tile(values, shape[0] * shape[1]) for name, values in once.items()}
        measured = {"right": self.own.hits[there].T.ravel(), "attention": (self.own.attention[there].T / pairs).ravel()}
        frame = pd.DataFrame({"layer": layer, "head": head, **tiled, **measured}).assign(**self.said)
        return frame[[*CELL, "document", "pairs", "right", "right_baseline", "attention"]]

    def frame(self, shape: tuple[int, int]) -> pd.DataFrame:
        """One row per head, untested."""
        n, (name, hits) = self.own.n.sum(), self.baselines["toughest"]
        accuracy, of_baseline = _share(self.own.hits.sum(axis=0), n), float(_share(np.nansum(hits), n))
        layer, head = np.divmod(np.arange(len(accuracy)), shape[1])
        measured = {
            "accuracy": accuracy,
            "attention": _share(self.own.attention.sum(axis=0), n),
            "baseline": name,
            "accuracy_baseline": of_baseline,
            "excess": accuracy - of_baseline,
            "accuracy_random_head": _others(accuracy.reshape(shape)).ravel(),
        }
        counted = {"n": int(n), "n_documents": int((self.own.n > 0).sum()), "chosen": self.chosen}
        return pd.DataFrame({**self.said, "layer": layer, "head": head, **measured, **counted})

    def row(self, left_out: Mapping[str, int]) -> dict[str, Any]:
        """What is known of the direction as a whole."""
        n = self.own.n.sum()
        reasons = {**left_out, "no baseline": self.n_unscored}
        counted = {"n_pairs": int(n) + sum(reasons.values()), "n": int(n), **reasons}
        rules: dict[str, Any] = {}
        for family in ("offset", "nearest"):
            name, hits = self.baselines[family]
            known = np.isfinite(hits)
            rules |= {family: name, f"accuracy_{family}": float(_share(hits[known].sum(), self.own.n[known].sum()))}
        chance = float(_share(self.own.rules[:, -1].sum(), n))
        return {**self.said, **counted, "n_documents": int((self.own.n > 0).sum()), **rules, "chance": chance}


def _share(hits: Any, n: float) -> Any:
    """Hits as a share; NaN of nothing."""
    return hits / n if n else hits * np.nan


def _others(accuracy: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, "layer head"]:
    """What a random other head of the same layer is expected to reach; NaN where there is none."""
    n_heads = accuracy.shape[1]
    others = accuracy.sum(axis=1, keepdims=True) - accuracy
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
    causal = how["attention_dir"] == "causal"
    parts = [
        DirectionScores.of(counts, choosing, number, words, causal=causal) for number in range(len(counts.directions))
    ]
    cells = pd.concat([part.frame(counts.shape) for part in parts], ignore_index=True)
    tested = cells["chosen"].to_numpy() & (cells["n"].to_numpy() > 0)
    cells[["low", "high", *_TESTED]] = np.nan
    if tested.any():
        table = ClusterTable(
            np.concatenate([part.excess for part in parts], axis=1)[:, tested],
            np.concatenate([np.broadcast_to(part.own.n[:, None], part.own.hits.shape) for part in parts], 1)[:, tested],
            pd.MultiIndex.from_frame(cells.loc[tested, CELL]),
        )
        (found,) = claim(
            [Measured(table, asked.min_effect, counted=True)],
            alternative="greater",
            correction=asked.correction,
            alpha=asked.alpha,
            seed=asked.seed,
        )
        cells.loc[tested, ["low", "high"]] = np.stack([found.interval.low, found.interval.high], axis=1)
        for name in _TESTED:
            cells.loc[tested, name] = getattr(found, name)
    cells["verdict"] = [_verdict(row, asked) if row["chosen"] else None for row in cells.to_dict("records")]
    examples = pd.concat([part.examples(list(words), counts.shape) for part in parts], ignore_index=True)
    return RelationResult(
        # Of a large treebank there are millions of rows.
        examples=examples.astype(dict.fromkeys([*DIRECTION, "document"], "category")),
        provenance={**how, "shape": counts.shape, "n_clusters": len(words)},
        cells=cells[[*CELL, *_COLUMNS]],
        relations=pd.DataFrame([part.row(counts.reasons(number)) for number, part in enumerate(parts)]),
    )


def _verdict(row: Mapping[Any, Any], asked: AttendOptions) -> str:
    """Where the baseline leaves less than the minimum, an excess that is smaller says nothing about a head."""
    if row["accuracy_baseline"] > 1 - asked.min_effect:
        return "undecided"
    numbers = (row[name] for name in ("standard_error", "p_adjusted", "p_absent", "critical", "n", "n_documents"))
    return VERDICT[Evidence(row["excess"], asked.min_effect, *numbers).excess(asked.alpha)]
