"""Self-repair: how much of what a head does is made up for when it is gone, its direct against its total effect.

Of ablating a head, ``z -> z'``, with ``d = (z' - z) W_O`` at the position that predicts:

1. **direct** effect: the change of the logit difference when ``d`` alone is added to the last residual stream, and the
   last LayerNorm keeps its scale (the change of the head's direct logit attribution; where the model caps logits,
   through the cap).
2. **total** effect: the change when the head is ablated and everything after it runs anew.
3. **self-repair** = total - direct: above 0 where later parts make up for an ablation that costs. It is the sum of what
   the **last LayerNorm** does by taking another scale, and of what **later heads and MLPs** do by reading another
   stream.

Rushing & Nanda (2024), "Explorations of self-repair in language models" (the frozen scale, and LayerNorm's part);
McGrath et al. (2023), "The Hydra effect: emergent self-repair in language model computations".
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.claim import Measured, claim
from interp.claims.units import UnitTable, estimates
from interp.interventions.engine.plan import rows_in_one_run
from interp.interventions.metrics import Answers, as_numbers
from interp.interventions.replacement import Replacement
from interp.interventions.rows import Batch, batches, task_rows
from interp.interventions.sweep import Progress
from interp.methods.ablation import Component, as_replacement, choose_components, measure, sites_of
from interp.methods.task_arguments import as_predicted, require_single_answers
from interp.model.devices import documented
from interp.model.loading.bridge import require_ours
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.options import SelfRepairOptions
from interp.residual.collecting import read
from interp.result import Result
from interp.tasks.task import Task


@documented
def direct_effects(
    model: HookedTransformer,
    task: Task,
    heads: Sequence[Component],
    replacement: Replacement,
    memory_budget: int | None = None,
) -> pd.DataFrame:
    """The direct effect of heads (components of one each) on every example, averaged over the replacement's draws.

    One row per head and example: ``layer``, ``head``, ``example``, ``direct`` (the scale frozen) and
    ``direct_renormalised`` (the scale taken anew), in logits.
    """
    last = Site("resid_post", model.config.n_layers - 1)
    sites, rows = [*sites_of(heads), last], task_rows("logit_difference", task.units)
    names = [site.hook_name for site in sites]
    blocks, parts = list(model.blocks), []
    for batch in batches(model, rows, size=rows_in_one_run(model, rows, sites, memory_budget)):
        kept = read(model, batch.tokens, names)
        answers, stream = Answers.of("logit_difference", batch), kept[last.hook_name][:, batch.deciding].double()
        difference = _difference(model, torch.cat([answers.right, answers.wrong], dim=1))
        for each in heads:
            (part,) = each.parts
            layer, (head,) = part.site.layer or 0, part.heads or ()
            z, block = kept[part.site.hook_name][:, batch.deciding], blocks[layer]
            written = (
                (new.to(z) - z[:, head]) @ block.attn.W_O[head] for new in _values(replacement, part.site, head, batch)
            )
            added = (block.added_to_the_stream(z, change) for change in written)
            frozen, anew = _changes(model.ln_final, stream, difference, added)
            labels = {"layer": layer, "head": head, "example": batch.examples}
            parts.append(pd.DataFrame({**labels, "direct": frozen, "direct_renormalised": anew}))
    return pd.concat(parts, ignore_index=True)


def _values(replacement: Replacement, site: Site, head: int, batch: Batch) -> Iterator[Float[Tensor, "#batch d_head"]]:
    """What takes the place of a head's ``z`` at the deciding position, draw by draw."""
    for draw in range(replacement.draws):
        values = replacement.values(site, batch, draw)
        at = batch.deciding if values.shape[1] > 1 else 0
        yield values[:, at, head if values.shape[2] > 1 else 0]


def _difference(
    model: HookedTransformer, ids: Int[Tensor, "batch 2"]
) -> Callable[[Float[Tensor, "batch d_model"]], Float[Tensor, " batch"]]:
    """Of a normalised stream, the first token's logit less the second's, capped where the model caps logits."""
    columns, biases = model.W_U.detach().T[ids].double(), model.b_U.detach()[ids].double()

    def of(normalised: Float[Tensor, "batch d_model"]) -> Float[Tensor, " batch"]:
        right, wrong = model.unembed.capped(torch.einsum("bd,bad->ba", normalised, columns) + biases).unbind(1)
        return right - wrong

    return of


@torch.inference_mode()
def _changes(
    norm: Any,
    stream: Float[Tensor, "batch d_model"],
    difference: Callable[[Float[Tensor, "batch d_model"]], Float[Tensor, " batch"]],
    added: Iterator[Float[Tensor, "batch d_model"]],
) -> tuple[Float[np.ndarray, " batch"], Float[np.ndarray, " batch"]]:
    """How the logit difference changes by what is added to the last `stream`: the scale frozen, and anew.

    Averaged over what is `added`, in 64-bit floats: the effects are small differences of large sums.
    """
    scale, frozen, anew = norm.scale(stream), [], []
    base = difference(norm.share(stream, scale) + norm.b)
    for each in added:
        moved = stream + each.double()
        frozen.append(difference(norm.share(moved, scale) + norm.b) - base)
        anew.append(difference(norm.share(moved, norm.scale(moved)) + norm.b) - base)
    return as_numbers(torch.stack(frozen).mean(0)), as_numbers(torch.stack(anew).mean(0))


CELL = ("layer", "head")
MEASURES = ("direct", "total", "repair", "repair_by_norm", "repair_by_later")


@dataclass(frozen=True, eq=False, repr=False)
class SelfRepairResult(Result):
    """Direct and total effects of ablating heads, in logits.

    Attributes:
        examples: One row per head and example: ``layer``, ``head``, ``unit``, ``example``, ``cluster``, ``template``,
            ``layout``, ``base``, ``direct``, ``total``, ``repair`` (total - direct), ``repair_by_norm`` and
            ``repair_by_later``, which sum to ``repair``.
        provenance: How the numbers were made.
    """

    shown_by: ClassVar[str] = "results.effects"

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
        tables = {name: UnitTable.from_frame(self.examples, name, by=CELL) for name in MEASURES}
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
        base = estimates(UnitTable.from_frame(self.examples, "base", by=CELL))
        clear = (found["direct_low"] > 0) | (found["direct_high"] < 0)
        heads = found.index[clear & (found["direct"].abs() >= self.provenance["min_effect"] * np.abs(base))]
        if heads.empty:
            return pd.DataFrame(np.nan, index=found.index, columns=["repaired", "repaired_low", "repaired_high"])
        frame = self.examples.assign(_lost=-self.examples["direct"])
        frame = frame[frame.set_index(list(CELL)).index.isin(heads)]
        repair, lost = (UnitTable.from_frame(frame, name, by=CELL) for name in ("repair", "_lost"))
        share = cluster_bootstrap(repair, per=lost, seed=self.provenance["seed"])
        columns = {"repaired": share.estimate, "repaired_low": share.low, "repaired_high": share.high}
        return pd.DataFrame(columns, index=repair.cells)


@documented
def self_repair(
    model: HookedTransformer,
    task: Task | str,
    options: SelfRepairOptions | None = None,
    *,
    progress: Progress | None = None,
    **fields: Any,
) -> SelfRepairResult:
    """Compare what ablating each head does directly to the logits with all that it does.

    Args:
        model: One of ours: its last LayerNorm is taken apart.
        task: A task whose answers are single tokens, or the name of one; the logit difference is measured.
        options: What is asked; or its fields by name: see ``SelfRepairOptions``.
        progress: Called with (heads done, heads in all).
        fields: Those of `options` that are given by name.

    Returns:
        Effects by head and example. Interrupted (Ctrl-C), they are those of the examples that are complete, and
        ``provenance["complete"]`` is False.

    Raises:
        InputError: A model of others, a head that the model does not have, answers of several tokens, sets of
            answers, a replacement that the task cannot provide, or a share out of range.
        AuditError: The engine's numbers are not those of the plain way.

    Examples:
        >>> from interp.methods.self_repair import self_repair
        >>> found = self_repair(interp.load_model(), "agreement", heads=[(2, 2)], n=24).summary()
        >>> list(found.columns[:3])
        ['layer', 'head', 'direct']
    """
    require_ours(model, "self_repair")  # whose last LayerNorm is known
    asked = SelfRepairOptions.of(options, fields)
    chosen = choose_components(model, heads=asked.heads)
    given = as_predicted(task, model, n=asked.n, seed=asked.seed)
    require_single_answers(given, "self_repair")
    replacement = as_replacement(asked.replacement, model, given, asked, sites_of(chosen))
    direct = direct_effects(model, given, chosen, replacement, asked.memory_budget)
    cells = [each.cell(replacement) for each in chosen]
    result = measure(model, given, cells, asked, progress=progress, metric="logit_difference")
    columns = [*CELL, "unit", "example", "cluster", "template", "layout", "base"]
    total = result.examples[columns].assign(total=result.examples["effect"])
    frame = total.merge(direct, on=[*CELL, "example"], how="left")
    frame["repair"] = frame["total"] - frame["direct"]
    frame["repair_by_norm"] = frame["direct_renormalised"] - frame["direct"]
    frame["repair_by_later"] = frame["total"] - frame["direct_renormalised"]
    used = {"replacement": replacement.name, "reference_hash": replacement.reference_hash}
    how = {"min_effect": asked.min_effect, **used}
    return SelfRepairResult(frame[[*columns, *MEASURES]], {**result.provenance, **how})
