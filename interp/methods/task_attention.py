"""Does a head look from the word to the word that it is related to, more than position explains?

1. Per head and example: the attention from the query to the related word, summed over its tokens.
2. Examples whose query is the related word itself, or stands before it, are left out and counted, with
   their whole unit: half a unit is not balanced. None left: the task is not testable by attention.
3. On the reference set, each head gets the baseline that explains most of it, so that the least excess is
   left: a fixed offset, an absolute position or a distractor (``methods/baselines.py``).
4. On the measured examples: ``excess = attention(related) - attention(baseline)``. The baseline was
   chosen elsewhere, so the choice does not flatter it.
5. Balanced units, cluster bootstrap, one-sided.

Clark et al. (2019), "What does BERT look at?"; Voita et al. (2019), "Analyzing multi-head
self-attention".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.claim import Measured, claim
from interp.claims.units import UnitTable, by_stratum, estimates
from interp.interventions.provenance import model_provenance, task_provenance
from interp.interventions.rows import example_labels
from interp.interventions.sweep import Progress
from interp.methods.baselines import Keys, related_mask, toughest
from interp.methods.given_task import as_task
from interp.methods.in_one_line import InOneLine
from interp.methods.query_attention import query_attention
from interp.tasks.task import EncodedExample, Task, Unit

COLUMNS = ("layer", "head", "unit", "example", "cluster", "template", "layout", "baseline")
MEASURES = ("attention", "attention_baseline", "excess", "baseline_overlap")
_SUMMARY = ["layer", "head", "attention", "attention_baseline", "baseline", "excess"]
_SUMMARY += ["low", "high", "p", "n", "n_clusters", "n_excluded"]


@dataclass(frozen=True, repr=False)
class AttentionResult(InOneLine):
    """Attention from query to related word, of every head on every scored example.

    Attributes:
        frame: One row per head and example: ``layer``, ``head``, ``unit`` and ``example`` (their
            numbers in the task), ``cluster``, ``template``, ``layout``, ``baseline`` (its name), ``attention``
            (to the related word, 0 to 1), ``attention_baseline``, ``excess``, ``baseline_overlap`` (the share of the
            related word's tokens at which the baseline looks, too); the latter three are NaN where the baseline is a
            distractor and the example has none. Empty where the task is not testable.
        provenance: How the numbers were made; ``n_untagged`` counts the examples without a relation,
            ``n_excluded`` those that cannot be scored, ``n_without_reference`` those whose reference set
            cannot.
    """

    frame: pd.DataFrame
    provenance: Mapping[str, Any]

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.results.task_attention import task_attention_glance

        return as_html(task_attention_glance(self))

    @property
    def testable(self) -> bool:
        """Whether any example could be scored."""
        return not self.frame.empty

    def summary(self) -> pd.DataFrame:
        """One row per head, over balanced units; NaN where the task is not testable.

        Columns: ``layer``, ``head``, ``attention``, ``attention_baseline``, ``baseline``,
        ``excess`` with its interval ``low``, ``high`` (95 %, cluster bootstrap), ``p`` (one-sided,
        that it is not above 0, not corrected), ``n`` (units), ``n_clusters``, ``n_excluded`` (examples).
        """
        if not self.testable:
            return self.estimates().assign(p=np.nan)[_SUMMARY]
        excess = UnitTable.from_frame(self.frame, "excess")
        (test,) = claim([Measured(excess)], alternative="greater", seed=self.provenance["seed"])
        return self.estimates().assign(p=test.p)[_SUMMARY]

    def estimates(self) -> pd.DataFrame:
        """``summary`` without its test, for who tests more than these heads together."""
        excluded = self.provenance["n_excluded"]
        if not self.testable:
            cells = [(layer, head) for layer, head in np.ndindex(*self.provenance["shape"])]
            frame = pd.DataFrame(cells, columns=["layer", "head"])
            frame[[*MEASURES, "low", "high"]] = np.nan
            return frame.assign(baseline=None, n=0, n_clusters=0, n_excluded=excluded)
        table = UnitTable.from_frame(self.frame, "excess")
        interval = cluster_bootstrap(table, seed=self.provenance["seed"])
        # Where the baseline is a distractor: of the examples that have one, so that the excess is the difference.
        judged = self.frame.assign(attention=self.frame["attention"].where(self.frame["excess"].notna()))
        columns = {name: estimates(UnitTable.from_frame(judged, name)) for name in MEASURES}
        columns |= {"low": interval.low, "high": interval.high}
        columns |= {"n": table.n_units, "n_clusters": table.n_clusters}
        frame = pd.DataFrame(columns, index=table.cells).reset_index().assign(n_excluded=excluded)
        names = self.frame.groupby(["layer", "head"])["baseline"].unique().map(" / ".join).reset_index()
        return frame.merge(names, on=["layer", "head"])

    def has_room(self, minimum: float) -> Bool[np.ndarray, " cell"]:
        """Of which heads the baseline looks at the related word seldom enough for an excess to be possible.

        Args:
            minimum: The smallest mean excess that counts.
        """
        return estimates(UnitTable.from_frame(self.frame, "baseline_overlap")) <= 1 - minimum

    def templates(self, minimum: float) -> pd.DataFrame:
        """In how many templates a head attends: a mean over templates can rest on a few of them.

        Args:
            minimum: The smallest mean excess that counts.

        Returns:
            One row per head: ``layer``, ``head``, ``n_templates`` (those with a scored unit) and
            ``n_templates_attended``. Empty where the task is not testable.
        """
        if not self.testable:
            return pd.DataFrame(columns=["layer", "head", "n_templates", "n_templates_attended"])
        table = UnitTable.from_frame(self.frame, "excess")
        means = by_stratum(table)
        columns = {
            "n_templates": np.isfinite(means).sum(axis=0),
            "n_templates_attended": (means >= minimum).sum(axis=0),
        }
        return pd.DataFrame(columns, index=table.cells).reset_index()


def task_attention(
    model: Any,
    task: Task | str,
    *,
    n: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> AttentionResult:
    """Score every head's attention against the task's relation.

    Args:
        model: Follows TransformerLens' protocol.
        task: A task, or the name of one.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw and the statistics.
        progress: Called with (folds done, folds in all).

    Raises:
        InputError: An example that the model cannot carry.
    """
    given = as_task(task, model, n=n, seed=seed)
    owners = [(number, unit) for number, unit in enumerate(given.units) for _ in unit.examples]
    numbered = [
        (example, unit_number, unit, encoded)
        for example, ((unit_number, unit), encoded) in enumerate(zip(owners, given.examples, strict=True))
    ]
    special = frozenset(getattr(getattr(model, "tokenizer", None), "all_special_ids", ()))
    folds = sorted({unit.fold for unit in given.units})
    parts, n_without_reference = [], 0
    for done, fold in enumerate(folds, start=1):
        scored = [each for each in numbered if each[2].fold == fold and _scorable(each[2])]
        references = _testable_references(given, fold)
        if scored and references:
            parts.append(_fold_frame(model, scored, references, special))
        n_without_reference += 0 if references else len(scored)
        if progress is not None:
            progress(done, len(folds))
    labels = example_labels(given)
    n_untagged = sum(not _tagged(encoded) for encoded in given.examples)
    n_excluded = sum(_tagged(encoded) for *_, unit, encoded in numbered if not _scorable(unit))
    provenance = {
        **model_provenance(model),
        **task_provenance(given),
        "seed": seed,
        "shape": (model.cfg.n_layers, model.cfg.n_heads),
        "n_examples": len(given.examples),
        "n_untagged": n_untagged,
        "n_excluded": n_excluded,
        "n_without_reference": n_without_reference,
    }
    frame = pd.DataFrame(columns=[*COLUMNS, *MEASURES])
    if parts:
        frame = pd.concat(parts, ignore_index=True).merge(pd.DataFrame(labels)[["example", "layout"]], on="example")
        frame = frame[[*COLUMNS, *MEASURES]].sort_values(["layer", "head", "example"], ignore_index=True)
    return AttentionResult(frame, provenance)


def is_testable(encoded: EncodedExample) -> bool:
    """Whether the related word stands wholly before the query, where a causal model can look."""
    query = encoded.query
    return query is not None and bool(encoded.related) and max(encoded.related) < query


def _scorable(unit: Unit) -> bool:
    return all(is_testable(each) for each in unit.examples)


def _tagged(encoded: EncodedExample) -> bool:
    return encoded.query is not None and bool(encoded.related)


def _testable_references(task: Task, fold: int) -> list[EncodedExample]:
    units = task.references[fold] if fold < len(task.references) else ()
    return [encoded for unit in units for encoded in unit.examples if is_testable(encoded)]


def _fold_frame(
    model: Any,
    scored: Sequence[tuple[int, int, Unit, EncodedExample]],
    references: Sequence[EncodedExample],
    special: frozenset[int],
) -> pd.DataFrame:
    """Score examples against the baselines that their reference examples chose."""
    chosen = toughest(query_attention(model, references), references, special)
    examples = [encoded for *_, encoded in scored]
    weights = query_attention(model, examples)
    n_cells, n_keys = weights.shape[1:]
    keys, related = Keys.of(examples, n_keys, special), related_mask(examples, n_keys)
    attention = np.einsum("eck,ek->ec", weights, related)
    baseline, overlap = np.zeros_like(attention), np.zeros_like(attention)
    for rule in set(chosen):
        cells, looks = [cell for cell, each in enumerate(chosen) if each == rule], keys.mask(rule)
        baseline[:, cells] = np.einsum("eck,ek->ec", weights[:, cells], looks)
        overlap[:, cells] = ((related * looks).sum(axis=1) / related.sum(axis=1))[:, None]
    layer, head = np.divmod(np.arange(n_cells), model.cfg.n_heads)
    return pd.DataFrame(
        {
            "layer": layer.repeat(len(scored)),
            "head": head.repeat(len(scored)),
            "unit": np.tile([unit for _, unit, _, _ in scored], n_cells),
            "example": np.tile([example for example, *_ in scored], n_cells),
            "cluster": np.tile(np.array([unit.cluster for *_, unit, _ in scored], dtype=object), n_cells),
            "template": np.tile(np.array([encoded.example.template for encoded in examples], dtype=object), n_cells),
            "baseline": np.array([each.name for each in chosen], dtype=object).repeat(len(scored)),
            "attention": attention.T.ravel(),
            "attention_baseline": baseline.T.ravel(),
            "excess": (attention - baseline).T.ravel(),
            "baseline_overlap": overlap.T.ravel(),
        }
    )
