"""Which heads look from a word of a task to the word that it is related to, more than position explains?

1. Per head and example: the attention from the query to the related word, summed over its tokens. Examples whose
   related word does not stand before the query, or is the first token, are left out and counted, with their whole unit:
   half a unit is not balanced.
2. Each value of the task's feature is scored by itself: a head may look for one of them only. Values in too few
   clusters to decide anything are taken together, as ``other``.
3. On the reference set, each head and value gets the baseline that explains most of it: a fixed offset, an absolute
   position or a distractor (``attention_baselines.py``).
4. On the measured examples: ``excess = attention(related) - attention(baseline)``, over balanced units, with a cluster
   bootstrap. The baseline was chosen elsewhere, so the choice does not flatter it.

Attention to the query itself and to the first token is reported, but is no rival: heads put there what they have no use
for.

Clark et al. (2019), "What does BERT look at?"; Voita et al. (2019), "Analyzing multi-head self-attention".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.claim import Measured, claim
from interp.claims.units import UnitTable, by_stratum, estimates
from interp.interventions.provenance import task_provenance
from interp.interventions.rows import Batch, Row, example_labels
from interp.interventions.sweep import Progress
from interp.methods.attention_baselines import Baseline, Keys, is_in_the_prompt, is_testable, marked, toughest
from interp.methods.attention_maps import KeptQueries, query_attention
from interp.methods.task_arguments import as_task
from interp.model.devices import documented
from interp.model.provenance import model_provenance
from interp.model.sites import Site
from interp.result import Result
from interp.shapes import Pattern
from interp.tasks.task import EncodedExample, Task

BY = ("layer", "head", "feature_value")
"""What attention is scored by."""
OTHER = "other"
"""The value of examples whose own is too rare to be scored by itself."""
COLUMNS = (*BY, "unit", "example", "cluster", "template", "layout", "baseline")
RESTS = ("attention_self", "attention_first")
MEASURES = ("attention", "attention_baseline", "excess", "baseline_overlap", *RESTS)
_SUMMARY = [*BY, "attention", "attention_baseline", "baseline", "excess"]
_SUMMARY += ["low", "high", "p", *RESTS, "n", "n_clusters", "n_excluded"]


@dataclass(frozen=True, eq=False, repr=False)
class AttentionResult(Result):
    """Attention from query to related word, of every head on every scored example.

    Attributes:
        examples: One row per head and example: ``layer``, ``head``, ``feature_value`` (empty where the task names no
            feature), ``unit`` and ``example`` (their numbers in the task), ``cluster``, ``template``, ``layout``,
            ``baseline`` (its name), ``attention`` (to the related word, 0 to 1), ``attention_baseline``, ``excess``,
            ``baseline_overlap`` (the share of the related word's tokens at which the baseline looks, too); the latter
            three are NaN where the baseline is a distractor and the example has none. ``attention_self`` and
            ``attention_first`` rest on the query itself and on the first token. Empty where the task is not testable.
        provenance: How the numbers were made; ``n_untagged`` counts the examples without a relation,
            ``n_excluded`` those that cannot be scored, ``n_without_reference`` those whose reference set
            cannot.
    """

    shown_by: ClassVar[str] = "attention"

    @property
    def testable(self) -> bool:
        """Whether any example could be scored."""
        return not self.examples.empty

    def summary(self) -> pd.DataFrame:
        """One row per head and value, over balanced units; NaN where the task is not testable.

        Columns: ``layer``, ``head``, ``feature_value``, ``attention``, ``attention_baseline``, ``baseline``,
        ``excess`` with its interval ``low``, ``high`` (95 %, cluster bootstrap), ``p`` (one-sided,
        that it is not above 0, not corrected), ``attention_self``, ``attention_first``, ``n`` (units), ``n_clusters``,
        ``n_excluded`` (examples).
        """
        if not self.testable:
            return self.means().assign(low=np.nan, high=np.nan, p=np.nan)[_SUMMARY]
        (test,) = claim([Measured(self.table("excess"))], alternative="greater", seed=self.provenance["seed"])
        return self.means().assign(low=test.interval.low, high=test.interval.high, p=test.p)[_SUMMARY]

    def means(self) -> pd.DataFrame:
        """``summary`` without its interval and test, for who tests more than these heads together."""
        excluded = self.provenance["n_excluded"]
        if not self.testable:
            cells = [(layer, head) for layer, head in np.ndindex(*self.provenance["shape"])]
            frame = pd.DataFrame(cells, columns=["layer", "head"])
            frame[list(MEASURES)] = np.nan
            return frame.assign(feature_value="", baseline=None, n=0, n_clusters=0, n_excluded=excluded)
        table = self.table("excess")
        # Where the baseline is a distractor: of the examples that have one, so that the excess is the difference.
        judged = self.examples.assign(attention=self.examples["attention"].where(self.examples["excess"].notna()))
        columns = {name: estimates(UnitTable.from_frame(judged, name, by=BY)) for name in MEASURES}
        columns |= {"n": table.n_units, "n_clusters": table.n_clusters}
        frame = pd.DataFrame(columns, index=table.cells).reset_index().assign(n_excluded=excluded)
        names = self.examples.groupby(list(BY))["baseline"].unique().map(" / ".join).reset_index()
        return frame.merge(names, on=list(BY))

    def strongest(self) -> pd.DataFrame:
        """``means``, one row per head: of the value at which its excess is largest."""
        rows = self.means().sort_values("excess", kind="stable").drop_duplicates(["layer", "head"], keep="last")
        return rows.sort_values(["layer", "head"], ignore_index=True)

    def table(self, column: str) -> UnitTable:
        """A column by unit, of every head and value; of a task that is testable."""
        return UnitTable.from_frame(self.examples, column, by=BY)

    def has_room(self, minimum: float) -> Bool[np.ndarray, " cell"]:
        """Of which heads and values the baseline leaves room for a mean excess of `minimum` at the related word."""
        return estimates(self.table("baseline_overlap")) <= 1 - minimum

    def templates(self, minimum: float) -> pd.DataFrame:
        """In how many templates a head's mean excess is `minimum` at least: a mean over all can rest on a few of them.

        One row per head and value: ``layer``, ``head``, ``feature_value``, ``n_templates`` (those with a scored unit)
        and ``n_templates_attended``. Empty where the task is not testable.
        """
        if not self.testable:
            return pd.DataFrame(columns=[*BY, "n_templates", "n_templates_attended"])
        table = self.table("excess")
        means = by_stratum(table)
        columns = {
            "n_templates": np.isfinite(means).sum(axis=0),
            "n_templates_attended": (means >= minimum).sum(axis=0),
        }
        return pd.DataFrame(columns, index=table.cells).reset_index()


class ReferenceAttention:
    """Attention on a task's reference examples, as a run of the `rows` of its reference set passes by.

    Attributes:
        readers: By site, what takes the batches of the run; none where its rows are not what attention is scored on.
    """

    def __init__(self, model: Any, task: Task, rows: Sequence[Row]):
        self._folds = np.array([row.fold for row in rows])
        self._kept, self.readers = KeptQueries(model, [row.encoded for row in rows]), dict[Site, Any]()
        examples = [each for fold in np.unique(self._folds) for unit in task.references[fold] for each in unit.examples]
        self._testable = np.array([is_testable(each) for each in examples])
        tested = (each for each in examples if is_testable(each))
        if [row.tokens for row in rows] == [each.prompt for each in examples] and all(map(is_in_the_prompt, tested)):
            self.readers = {Site("pattern", layer): partial(self._take, layer) for layer in range(model.cfg.n_layers)}

    def _take(self, layer: int, batch: Batch, pattern: Pattern) -> None:
        self._kept.take(batch, layer, pattern)

    def of(self, fold: int) -> Float[np.ndarray, "example cell key_pos"] | None:
        """Of the testable examples of one set; None where nothing was taken."""
        return self._kept.weights()[(self._folds == fold) & self._testable] if self.readers else None


@documented
def task_attention(
    model: Any,
    task: Task | str,
    *,
    n: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    references_seen: ReferenceAttention | None = None,
) -> AttentionResult:
    """Score every head's attention against the task's relation.

    Args:
        model: Follows TransformerLens' protocol.
        task: A task, or the name of one.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw and the statistics.
        progress: Called with (folds done, folds in all).
        references_seen: Attention on the task's reference examples, of a run that was made for something else, too;
            None to run them.

    Returns:
        Attention of every head on every example; ``summary()`` has one row a head and value of the task's feature.

    Raises:
        InputError: An example that the model cannot carry.

    Examples:
        >>> import interp
        >>> from interp.methods.task_attention import task_attention
        >>> found = task_attention(interp.load_model(), "agreement", n=24)
        >>> found.strongest().nlargest(1, "excess")[["layer", "head"]].to_numpy().tolist()
        [[2, 2]]
    """
    given = as_task(task, model, n=n, seed=seed)
    encoded, folds = given.examples, np.array([unit.fold for unit in given.units for _ in unit.examples])
    labels = pd.DataFrame(example_labels(given)).assign(feature_value=[_value(given, each) for each in encoded])
    tagged = np.array([each.query is not None and bool(each.related) for each in encoded])
    whole = [all(map(is_testable, unit.examples)) for unit in given.units for _ in unit.examples]
    scored = _without_rare_values(labels[tagged & whole])
    special = frozenset(getattr(getattr(model, "tokenizer", None), "all_special_ids", ()))
    parts, n_without_reference = [], 0
    for done, fold in enumerate(np.unique(folds).tolist(), start=1):
        of_fold = scored[folds[scored["example"]] == fold]
        references = _testable_references(given, fold)
        if references and not of_fold.empty:
            seen = None if references_seen is None else references_seen.of(fold)
            parts.append(_fold_frame(model, given, of_fold, references, special, seen))
        n_without_reference += 0 if references else len(of_fold)
        if progress is not None:
            progress(done, len(np.unique(folds)))
    provenance = {
        **model_provenance(model),
        **task_provenance(given),
        "seed": seed,
        "shape": (model.cfg.n_layers, model.cfg.n_heads),
        "n_examples": len(encoded),
        "n_untagged": len(encoded) - int(tagged.sum()),
        "n_excluded": int(tagged.sum()) - len(scored),
        "n_without_reference": n_without_reference,
    }
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COLUMNS, *MEASURES])
    rows = rows[[*COLUMNS, *MEASURES]].sort_values(["layer", "head", "example"], ignore_index=True)
    return AttentionResult(rows, provenance)


def _value(task: Task, encoded: EncodedExample) -> str:
    """What the example's feature is; empty where the task names none."""
    return "" if task.feature is None else str(encoded.example.features.get(task.feature, OTHER))


def _without_rare_values(labels: pd.DataFrame) -> pd.DataFrame:
    """Values in too few clusters to be judged are one, with the next rarest until it can be; if all are, they are none.

    Else nothing could be said of a head that may look for a rare value only.
    """
    clusters = {value: set(rows) for value, rows in labels.groupby("feature_value")["cluster"]}
    rare, together = set[str](), set[str]()
    for value in sorted(clusters, key=lambda each: (len(clusters[each]), each)):
        if len(clusters[value]) >= FEWEST_CLUSTERS and (not rare or len(together) >= FEWEST_CLUSTERS):
            break
        rare.add(value)
        together |= clusters[value]
    pooled = "" if len(rare) == len(clusters) else OTHER
    return labels.assign(feature_value=labels["feature_value"].where(~labels["feature_value"].isin(rare), pooled))


def _testable_references(task: Task, fold: int) -> list[EncodedExample]:
    units = task.references[fold] if fold < len(task.references) else ()
    return [encoded for unit in units for encoded in unit.examples if is_testable(encoded)]


def _fold_frame(
    model: Any,
    task: Task,
    labels: pd.DataFrame,
    references: Sequence[EncodedExample],
    special: frozenset[int],
    seen: Float[np.ndarray, "example cell key_pos"] | None,
) -> pd.DataFrame:
    """Score examples against the baselines that their reference examples chose, value by value."""
    examples = [task.examples[number] for number in labels["example"]]
    values = [_value(task, each) for each in references]
    looked = query_attention(model, references) if seen is None else seen
    weights = query_attention(model, examples)
    parts = []
    for value in labels["feature_value"].unique():
        # Of values that are taken together, or of one without references: all of them.
        same = [at for at, own in enumerate(values) if own == value] or list(range(len(references)))
        chosen = toughest(looked[same], [references[at] for at in same], special)
        mine = np.flatnonzero(labels["feature_value"] == value)
        scores = _scores(weights[mine], [examples[at] for at in mine], chosen, special)
        layer, head = np.divmod(np.arange(len(chosen)), model.cfg.n_heads)
        cells = pd.DataFrame({"layer": layer, "head": head, "baseline": [each.name for each in chosen]})
        rows = cells.merge(labels.iloc[mine], how="cross")  # cell by cell
        parts.append(rows.assign(**{name: each.T.ravel() for name, each in scores.items()}))
    return pd.concat(parts, ignore_index=True)


def _scores(
    weights: Float[np.ndarray, "example cell key_pos"],
    examples: Sequence[EncodedExample],
    chosen: Sequence[Baseline],
    special: frozenset[int],
) -> dict[str, Float[np.ndarray, "example cell"]]:
    """``MEASURES`` of the examples with one value of the feature, whose cells have `chosen` their baselines."""
    n_keys = weights.shape[-1]
    keys, related = Keys.of(examples, n_keys, special), marked([each.related for each in examples], n_keys)
    attention = np.einsum("eck,ek->ec", weights, related)
    baseline, overlap = np.zeros_like(attention), np.zeros_like(attention)
    for rule in set(chosen):
        cells, looks = [cell for cell, each in enumerate(chosen) if each == rule], keys.mask(rule)
        baseline[:, cells] = np.einsum("eck,ek->ec", weights[:, cells], looks)
        overlap[:, cells] = ((related * looks).sum(axis=1) / related.sum(axis=1))[:, None]
    return {
        "attention": attention,
        "attention_baseline": baseline,
        "excess": attention - baseline,
        "baseline_overlap": overlap,
        "attention_self": weights[np.arange(len(examples)), :, keys.query[:, 0]],
        "attention_first": weights[:, :, 0],
    }
