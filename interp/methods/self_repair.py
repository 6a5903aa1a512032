"""How much of what a head does is made up for when it is gone? Its direct effect against its total effect.

Of ablating a head, ``z -> z'``, with ``d = (z' - z) W_O`` at the position that predicts:

1. **direct** effect: the change of the logit difference when ``d`` alone is added to the last residual stream ``x`` and
   the last LayerNorm keeps its scale ``s(x)``: ``(d - mean(d)) / s(x) * w @ (W_U[right] - W_U[wrong])``. It is the
   change of the head's direct logit attribution.
2. **total** effect: the change when the head is ablated and everything after it runs anew.
3. **self-repair** = total - direct: above 0 where ablation costs and later parts make up for it.
   It is the sum of two: what the **last LayerNorm** does by taking another scale, ``LN(x + d)`` in place of the frozen
   one; and what **later heads and MLPs** do by reading another stream, ``total - (LN(x + d)'s change)``.

The frozen scale, and LayerNorm as a part of self-repair, are Rushing & Nanda's (2024), "Explorations of self-repair in
language models"; the effect itself McGrath et al.'s (2023), "The Hydra effect: emergent self-repair in language model
computations".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.claim import Measured, claim
from interp.claims.effects import check_share
from interp.claims.units import UnitTable, estimates
from interp.interventions.preparing import make_replacement
from interp.interventions.replacement import DRAWS, Kind
from interp.interventions.sweep import Progress, Sweep
from interp.methods.ablation import as_measured
from interp.methods.components import Head, check_heads, choose_components, sites_of
from interp.methods.direct_effect import direct_effects
from interp.methods.given_task import as_predicted
from interp.methods.in_one_line import InOneLine
from interp.model.given_model import require_ours
from interp.model.modes import documented
from interp.model.transformer import HookedTransformer
from interp.tasks.task import Task

CELL = ("layer", "head")
MEASURES = ("direct", "total", "repair", "repair_by_norm", "repair_by_later")


@dataclass(frozen=True, repr=False)
class SelfRepairResult(InOneLine):
    """Direct and total effects of ablating heads, in logits.

    Attributes:
        frame: One row per head and example: ``layer``, ``head``, ``unit``, ``example``, ``cluster``, ``template``,
            ``layout``, ``base``, ``direct``, ``total``, ``repair`` (total - direct), ``repair_by_norm`` and
            ``repair_by_later``, which sum to ``repair``.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    provenance: Mapping[str, Any]

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.results.self_repair import self_repair_glance

        return as_html(self_repair_glance(self))

    def summary(self) -> pd.DataFrame:
        """One row per head, over balanced units.

        Columns: ``layer``, ``head``; ``direct``, ``total``, ``repair``, ``repair_by_norm``, ``repair_by_later``, each
        with ``_low`` and ``_high`` (95 %, cluster bootstrap); ``p`` and ``p_adjusted`` of the repair
        (that it is 0; family-wise over the heads, max-T); ``repaired``, the share ``-repair / direct`` (a ratio of
        means) with its interval; ``n_units``, ``n_clusters``. The share is NaN where the direct effect is smaller than
        the minimum or its interval contains 0: then there is nothing to repair. Above 1, the model does better without
        the head; below 0, later parts of the model use what it writes, and fail with it.
        """
        seed = self.provenance["seed"]
        tables = {name: UnitTable.from_frame(self.frame, name, by=CELL) for name in MEASURES}
        columns: dict[str, np.ndarray] = {}
        for name, table in tables.items():
            found = cluster_bootstrap(table, seed=seed)
            columns |= {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}
        (test,) = claim([Measured(tables["repair"])], seed=seed)
        counts = {"n_units": tables["repair"].n_units, "n_clusters": tables["repair"].n_clusters}
        columns |= {"p": test.p, "p_adjusted": test.p_adjusted} | counts
        found = pd.DataFrame(columns, index=tables["repair"].cells)
        return found.join(self._repaired(found)).reset_index()

    def _repaired(self, found: pd.DataFrame) -> pd.DataFrame:
        """The repaired shares, of the heads that have a direct effect to repair."""
        base = estimates(UnitTable.from_frame(self.frame, "base", by=CELL))
        clear = (found["direct_low"] > 0) | (found["direct_high"] < 0)
        heads = found.index[clear & (found["direct"].abs() >= self.provenance["minimum_effect"] * np.abs(base))]
        frame = self.frame.assign(_lost=-self.frame["direct"])
        frame = frame[frame.set_index(list(CELL)).index.isin(heads)]
        repair, lost = (UnitTable.from_frame(frame, name, by=CELL) for name in ("repair", "_lost"))
        share = cluster_bootstrap(repair, per=lost, seed=self.provenance["seed"])
        columns = {"repaired": share.estimate, "repaired_low": share.low, "repaired_high": share.high}
        return pd.DataFrame(columns, index=repair.cells)


@documented
def self_repair(
    model: HookedTransformer,
    task: Task | str,
    *,
    heads: Sequence[Head] | None = None,
    kind: Kind = "mean",
    n: int | None = None,
    seed: int = 0,
    draws: int = DRAWS,
    minimum_effect: float = 0.1,
    memory_budget: int | None = None,
    progress: Progress | None = None,
) -> SelfRepairResult:
    """Compare what ablating each head does directly to the logits with all that it does.

    Args:
        model: One of ours: its last LayerNorm is taken apart.
        task: A task whose answers are single tokens, or the name of one; the logit difference is measured.
        heads: ``(layer, head)`` pairs; None for all of the model's.
        kind: What takes their place.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw, the resamples and the statistics.
        draws: How many resamples to average the effects of.
        minimum_effect: The smallest direct effect whose repaired share is told, as a share of the base run's mean logit
            difference.
        memory_budget: Bytes beside the model's weights; None for the device's default.
        progress: Called with (heads done, heads in all).

    Returns:
        Effects by head and example. Interrupted (Ctrl-C), they are those of the examples that are complete, and
        ``provenance["complete"]`` is False.

    Raises:
        InputError: A model of others, a head that the model does not have, answers of several tokens, a
            replacement that the task cannot provide, or a share out of range.
        AuditError: The engine's numbers are not those of the plain way.
    """
    require_ours(model, "self_repair")  # whose last LayerNorm is known
    check_share("minimum_effect", minimum_effect)
    chosen = choose_components(model, heads=check_heads(model, heads))
    given = as_predicted(task, model, n=n, seed=seed)
    measured = as_measured(given, "logit_difference")
    replacement = make_replacement(
        kind, model, measured, sites=sites_of(chosen), draws=draws, seed=seed, memory_budget=memory_budget
    )
    direct = direct_effects(model, given, chosen, replacement, memory_budget)
    result = Sweep([each.cell(replacement) for each in chosen]).run(
        model, given, metric="logit_difference", seed=seed, memory_budget=memory_budget, progress=progress
    )
    columns = [*CELL, "unit", "example", "cluster", "template", "layout", "base"]
    total = result.frame[columns].assign(total=result.frame["effect"])
    frame = total.merge(direct, on=[*CELL, "example"], how="left")
    frame["repair"] = frame["total"] - frame["direct"]
    frame["repair_by_norm"] = frame["direct_renormalised"] - frame["direct"]
    frame["repair_by_later"] = frame["total"] - frame["direct_renormalised"]
    used = {"replacement": replacement.kind, "reference_hash": replacement.reference_hash}
    how = {"minimum_effect": minimum_effect, **used}
    return SelfRepairResult(frame[[*columns, *MEASURES]], {**result.provenance, **how})
