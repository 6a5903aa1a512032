"""Where does the information travel? Patch one activation from one run into another, and see what the answer does.

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
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, get_args

import numpy as np
import pandas as pd

from interp.arguments import named_arguments
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError, suggest
from interp.interventions.metrics import MetricName
from interp.interventions.replacement import Patch
from interp.interventions.rows import Direction
from interp.interventions.sweep import Cell, Progress, Sweep, SweepResult
from interp.methods.gradient_estimates import Method, estimate_cells
from interp.methods.grid import Axis, Grid, as_grid, grid_cells
from interp.methods.screen import SHARE, Screen, choose
from interp.methods.task_arguments import as_pairs
from interp.model.devices import documented
from interp.runs.run import Run, as_run
from interp.tasks.task import EncodedExample, Task

OTHER: dict[Direction, Direction] = {"denoise": "noise", "noise": "denoise"}


@dataclass(frozen=True, repr=False)
class PatchResult(SweepResult):
    """Effects of every patch on every example; ``base`` is the run that is patched, ``source`` the one patched from.

    Attributes:
        screen: What a screen estimated, chose and missed; None where every cell was measured. After one, the frame
            has the measured cells only.
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
    *,
    site: str = "z",
    by: Sequence[Axis] = ("layer", "head"),
    direction: Direction = "denoise",
    metric: MetricName | None = None,
    layers: Sequence[int] | None = None,
    n: int | None = None,
    seed: int = 0,
    memory_budget: int | None = None,
    progress: Progress | None = None,
    screen: bool | Method = False,
    top: int | float = SHARE,
    audit: int | float = SHARE,
    run: Run | str | PathLike[str] | None = None,
) -> PatchResult:
    """Patch activations between the two examples of every unit.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster, as does a bridge that we know.
        task: A task, or the name of one.
        site: What is patched: ``resid_pre``, ``resid_mid``, ``resid_post``, ``attn_out``, ``mlp_out``, ``z``,
            ``result``, ``q``, ``k``, ``v``, ``pattern``, ``mlp_pre``, ``mlp_post``.
        by: What makes a cell: ``layer``, ``pos``, ``head``, ``neuron`` (at ``mlp_pre`` and ``mlp_post``), ``key`` (the
            position attended to, at ``pattern``). What is left out is patched all at once.
        direction: ``denoise`` or ``noise``.
        metric: What is measured; None for the task's own.
        layers: Layers that are patched; None for all.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw, the statistics and the audit.
        memory_budget: Bytes beside the model's weights and the results; None for the device's default.
        progress: Called with (cells done, cells in all).
        screen: Whether to measure only the `top` cells by a gradient estimate and an `audit` of the others. True
            takes ``attribution``; ``integrated_gradients`` is nearer where the metric is curved.
        top: How many cells a screen measures for being first: a whole number, or as a float the share of all cells.
        audit: Likewise how many of the others it draws, to say what it missed.
        run: Where what is measured is kept at once, and found again: a folder of runs; or an ``interp.Run``, which also
            says who measures. None to keep nothing.

    Returns:
        One row per cell and example; ``summary()`` has one row per cell. Prompts of one length are resolved by
        position; others are aligned by the task's spans (``label_positions``). After a screen, ``result.screen`` has
        every cell's estimate, what was chosen, and the estimated recall with its interval.

    Raises:
        InputError: An unknown site, axis, direction or metric; no unit with a counterfactual; prompts
            that nothing aligns; a budget too small for one cell; a screen by a metric without a gradient.
        AuditError: The engine's numbers are not those of the plain way.
        OutputError: What is measured cannot be kept.
    """
    if direction not in get_args(Direction):
        raise InputError(f"direction: {direction!r} is unknown; {suggest(str(direction), get_args(Direction))}")
    method = _screen_method(screen)
    grid = as_grid(site, by, layers)
    given = as_pairs(task, model, n=n, seed=seed, metric=metric)
    cells = patch_cells(model, given, grid, direction)
    how: dict[str, Any] = {"metric": metric, "direction": direction, "memory_budget": memory_budget}
    choice = None
    if method is not None:
        estimated = estimate_cells(model, given, grid, cells, method=method, **how)
        choice = choose(estimated, top=top, audit=audit, seed=seed)
        cells = [cells[number] for number in choice.measured]
    result = Sweep(cells).run(model, given, seed=seed, progress=progress, run=as_run(run), **how)
    provenance = {**result.provenance, "direction": direction, "dropped": dict(given.dropped)}
    if choice is None:
        return PatchResult(result.examples, provenance, result.labels)
    screened = choice.judge(result)
    return PatchResult(result.examples, provenance | {"screen": screened.provenance()}, result.labels, screened)


def _screen_method(screen: Any) -> Method | None:
    """How a screen estimates; None where there is none."""
    if isinstance(screen, bool | np.bool_):
        return "attribution" if screen else None
    if screen not in get_args(Method):
        raise InputError(
            f"screen: expected True, False or a method, got {screen!r}; {suggest(str(screen), get_args(Method))}"
        )
    method: Method = screen
    return method


@named_arguments
def patch_cells(model: Any, task: Task, grid: Grid, direction: Direction) -> list[Cell]:
    """The cells of a patching sweep."""
    runs, sources = run_examples(task, direction), run_examples(task, OTHER[direction])
    return grid_cells(model, task, grid, Patch(model, tuple(grid.sites(model))), runs, sources)


def run_examples(task: Task, direction: Direction) -> list[EncodedExample]:
    """For every example, the one of its unit whose prompt is run."""
    runs: list[EncodedExample] = []
    for unit in task.units:
        pair = unit.examples
        runs += pair if direction == "noise" or len(pair) == 1 else pair[::-1]
    return runs
