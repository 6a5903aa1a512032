"""Activation patching: one activation of one run is put into another, to see what the answer does.

1. A unit's two examples are the clean and the corrupted prompt, each in turn; the clean one's answers are scored.
2. **Denoising** runs the corrupted prompt with an activation of the clean run: what suffices to bring the answer back.
   **Noising** runs the clean prompt with an activation of the corrupted run: what is needed for the answer.
3. The effect is normalised so that 0 is the corrupted and 1 the clean run: a ratio of means over balanced units, with
   its bootstrap interval.
4. A **screen** estimates all cells by gradients first, and measures the largest and a random audit (``screen.py``).

Vig et al. (2020), "Investigating gender bias in language models using causal mediation analysis"; Meng et al. (2022),
"Locating and editing factual associations in GPT"; Heimersheim & Nanda (2024), "How to use and interpret activation
patching" (denoising and noising).
"""

import warnings
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, get_args

import numpy as np
import pandas as pd

from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError, shown, suggest
from interp.interventions.sweep import Progress, SweepResult
from interp.methods.ablation import measure
from interp.methods.attribution import attribute
from interp.methods.grid import as_grid, patch_cells
from interp.methods.screen import Screen, choose
from interp.methods.task_arguments import as_pairs
from interp.model.devices import documented
from interp.options import AttributeOptions, GradientMethod, GridOptions, PatchOptions
from interp.runs.run import Run
from interp.tasks.task import Task


@dataclass(frozen=True, eq=False, repr=False)
class PatchResult(SweepResult):
    """Effects of every patch on every example; ``base`` is the run that is patched, ``source`` the one patched from.

    Attributes:
        screen: What a screen estimated, chose and missed; None where every cell was measured. After one, the
            examples are of the measured cells only.
    """

    screen: Screen | None = None

    def summary(self) -> pd.DataFrame:
        """One row per cell, over balanced units.

        The columns of ``SweepResult.summary``, and ``clean`` and ``corrupted`` (the metric's means there),
        ``normalised``, ``normalised_low``, ``normalised_high``: ``(value - corrupted) / (clean - corrupted)``, a ratio
        of means with its 95 % cluster bootstrap. They are NaN, with a warning, where the interval of
        ``clean - corrupted`` contains 0: then there is nothing to recover. Where that interval is not known (a
        template has a single cluster), ``normalised`` is given however near 0 its denominator is, and its own interval
        is NaN: read it with ``clean`` and ``corrupted``. After a screen ``p_adjusted`` is NaN: the cells were chosen on
        the same units, so the family is all cells, and most were not measured. Patch the chosen ones on other units to
        test them.
        """
        found = super().summary() if self.screen is None else super().summary().assign(p_adjusted=np.nan)
        return found.merge(self.normalised(), on=list(self.labels))

    def normalised(self) -> pd.DataFrame:
        """The normalised effects alone, by cell, with ``clean`` and ``corrupted``.

        NaN where the two runs are not shown to differ; without an interval where that cannot be told. See ``summary``.
        """
        clean, corrupted = ("source", "base") if self.provenance["direction"] == "denoise" else ("base", "source")
        frame = self.examples.assign(
            _gap=self.examples[clean] - self.examples[corrupted],
            _moved=self.examples["value"] - self.examples[corrupted],
        )
        gap, moved = (UnitTable.from_frame(frame, name, by=self.labels) for name in ("_gap", "_moved"))
        seed = self.provenance["seed"]
        interval = cluster_bootstrap(gap, seed=seed)
        ratio = cluster_bootstrap(moved, per=gap, seed=seed)
        nothing = ~((interval.low > 0) | (interval.high < 0)) & ~np.isnan(interval.low)
        if nothing.any():
            warnings.warn(
                f"normalised effects: in {nothing.sum()} of {len(nothing)} cells the clean and the corrupted run are "
                "not shown to differ, so there is nothing to recover; these are NaN",
                RuntimeWarning,
                stacklevel=3,
            )
        columns = {
            "clean": estimates(self.table(clean)),
            "corrupted": estimates(self.table(corrupted)),
            "normalised": np.where(nothing, np.nan, ratio.estimate),
            "normalised_low": np.where(nothing, np.nan, ratio.low),
            "normalised_high": np.where(nothing, np.nan, ratio.high),
        }
        return pd.DataFrame(columns, index=gap.cells).reset_index()


@documented
def patch(
    model: Any,
    task: Task | str,
    options: PatchOptions | None = None,
    *,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> PatchResult:
    """Patch activations between the two examples of every unit.

    ``effect`` is in the units of the metric, such as logits. ``normalised`` has no unit: it is 0 where the metric is
    that of the corrupted run, and 1 where it is that of the clean run.

    Source: Vig et al. (2020), "Investigating gender bias in language models using causal mediation analysis"; Meng et
    al. (2022), "Locating and editing factual associations in GPT".

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster, as does a bridge that we know.
        task: A task, or the name of one.
        options: What is asked; or its fields by name: see ``PatchOptions``.
        progress: Called with (cells done, cells in all).
        run: Where what is measured is kept at once, and found again: a folder of runs; or an ``interp.Run``, which also
            says who measures. None to keep nothing.
        fields: Those of `options` that are given by name.

    Returns:
        One row per cell and example; ``summary()`` has one row per cell. Prompts of one length are resolved by
        position; others are aligned by the task's spans (``label_positions``). After a screen, ``result.screen`` has
        every cell's estimate, what was chosen, and the estimated recall with its interval.

    Raises:
        InputError: An unknown site, axis, direction or metric; no unit with a counterfactual; prompts
            that nothing aligns; a budget too small for one cell; a screen by a metric without a gradient.
        AuditError: The engine's numbers are not those of the plain way.
        OutputError: What is measured cannot be kept.

    Examples:
        >>> result = interp.patch(interp.load_model(), "agreement", by=("layer", "head"), n=24)
        >>> "normalised" in result.summary()
        True
    """
    asked = PatchOptions.of(options, fields)
    grid = as_grid(asked.site, asked.by, asked.layers)
    given = as_pairs(task, model, n=asked.n, seed=asked.seed, metric=asked.metric)
    cells = patch_cells(model, given, grid, asked.direction)
    choice = None
    if asked.screen:
        estimated = attribute(model, given, _estimated(asked))
        choice = choose(estimated, top=asked.top, audit=asked.audit, seed=asked.seed)
        cells = [cells[number] for number in choice.measured]
    result = measure(model, given, cells, asked, progress=progress, run=run, direction=asked.direction)
    provenance = {**result.provenance, "direction": asked.direction, "dropped": dict(given.dropped)}
    if choice is None:
        return PatchResult(result.examples, provenance, result.labels)
    screened = choice.judge(result)
    return PatchResult(result.examples, provenance | {"screen": screened.facts()}, result.labels, screened)


def _estimated(asked: PatchOptions) -> AttributeOptions:
    """How a screen estimates."""
    method: Any = "attribution" if asked.screen is True else asked.screen
    if method not in get_args(GradientMethod):
        known = suggest(str(method), get_args(GradientMethod))
        raise InputError(f"screen: expected True, False or a method, got {shown(method)}; {known}")
    shared = {each.name: getattr(asked, each.name) for each in fields(GridOptions) if each.name != "n"}
    return AttributeOptions(method=method, **shared)
