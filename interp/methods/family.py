"""Could any of it be chance? One family of tests per kind of evidence, over layers x heads x tasks.

1. Sign flips with max-T correction (family-wise), or Benjamini-Hochberg as the exploratory alternative. Probes are
   corrected by max-T over the heads of a task, and by Bonferroni over tasks.
2. A joint claim's p is the largest of its kinds' raw p (an intersection-union test; Berger 1982), Holm-corrected.
3. Of what was chosen on other items (``choosing.py``), only that is a hypothesis.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.methods.choosing import Chosen
from interp.methods.evidence import TaskEvidence
from interp.stats.intervals import FEWEST_CLUSTERS
from interp.stats.multiplicity import Correction, benjamini_hochberg, holm
from interp.stats.permutation import Alternative, sign_flip_test
from interp.stats.units import UnitTable


def tested(
    evidence: Sequence[TaskEvidence],
    chosen: Chosen | None,
    *,
    minima: tuple[float, float, float],
    flips: int,
    correction: Correction,
    seed: int,
) -> pd.DataFrame:
    """The evidence, with raw and corrected p of all kinds and of the joint claims.

    Args:
        evidence: Of every task.
        chosen: The rows that are tested, by kind of evidence; None for all.
        minima: Of attention, effect and probe, as of ``TaskEvidence.heads``.
        flips: Of signs, in a test.
        correction: Over all rows.
        seed: Of the signs.

    Returns:
        One row per task, layer and head: the columns of ``TaskEvidence.heads``, ``effect_p``, ``effect_q``,
        ``attention_p``, ``attention_q``, ``probe_q``, ``joint_q`` (attention, effect and that of the values at the
        related word) and ``tracks_q`` (all kinds); NaN where nothing was tested.
    """
    frame = pd.concat([each.heads(*minima) for each in evidence], ignore_index=True)
    rows = [(frame["task"] == each.task.name).to_numpy() for each in evidence]
    columns: dict[str, np.ndarray] = {}
    tables: dict[str, list[UnitTable | None]] = {
        "effect": [each.effects for each in evidence],
        "attention": [each.excess for each in evidence],
    }
    decidable = {}
    for number, (kind, own) in enumerate(tables.items()):
        there = [(here, table) for here, table in zip(rows, own, strict=True) if table is not None]
        if chosen is not None:
            there = [(here, table.only(chosen[kind][here])) for here, table in there]
        p, family = _flipped(there, len(frame), "greater" if kind == "attention" else "two-sided", flips, seed + number)
        # What has too few clusters to be decided is no hypothesis, and costs the others nothing.
        decidable[kind] = np.where(np.isnan(family), np.nan, p)
        columns[f"{kind}_p"] = p
        columns[f"{kind}_q"] = benjamini_hochberg(decidable[kind]) if correction == "fdr" else family
    # NaN where attention is not testable: there is no joint claim to make.
    both = np.maximum(decidable["effect"], decidable["attention"])
    # Where values were not ablated, nothing is claimed of them.
    both = np.where(np.isnan(both), np.nan, np.fmax(both, frame["related_p"].to_numpy()))
    probes = frame["probe_p"].where(frame["n_probe_clusters"] >= FEWEST_CLUSTERS).to_numpy()
    if chosen is not None:
        probes = np.where(chosen["probe"], probes, np.nan)
    # 1 where no probe read the feature, so that it was not erased.
    every = np.maximum(both, np.maximum(probes, frame["erasure_p"].fillna(1.0).to_numpy()))
    columns |= {"probe_q": _probe_q(frame, probes, chosen, correction), "joint_q": holm(both), "tracks_q": holm(every)}
    return frame.assign(**columns)


def _flipped(
    tables: Sequence[tuple[np.ndarray, UnitTable]], n_rows: int, alternative: Alternative, flips: int, seed: int
) -> tuple[Float[np.ndarray, " row"], Float[np.ndarray, " row"]]:
    """Raw and family-wise p of one kind of evidence, row by row; NaN where it was not measured."""
    p, family = np.full((2, n_rows), np.nan)
    found = [table for _, table in tables]
    tests = sign_flip_test(found, alternative=alternative, flips=flips, seed=seed) if found else []
    for (here, _), test in zip(tables, tests, strict=True):
        p[here], family[here] = test.p, test.p_family
    return p, family


def _probe_q(
    frame: pd.DataFrame, probes: Float[np.ndarray, " row"], chosen: Chosen | None, correction: Correction
) -> Float[np.ndarray, " row"]:
    if chosen is not None:
        return holm(probes)
    if correction == "fdr":
        return benjamini_hochberg(probes)
    # They are corrected over a task's heads, and not over tasks yet.
    n_tasks = frame.loc[np.isfinite(probes), "task"].nunique()
    return np.minimum(1.0, n_tasks * frame["probe_q"]).to_numpy()
