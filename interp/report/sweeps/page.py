"""How does a reader see a sweep? One self-contained HTML page, as the dossier's.

1. How well the model does unchanged comes first, then the findings in sentences; then what was asked.
2. The heatmap is a table with colours; hovering over a cell tells its interval.
3. The table of cells can be sorted; of very many cells it has the strongest.
4. Provenance is folded away.
"""

import numpy as np
import pandas as pd

from interp.report.amounts import decimal
from interp.report.colours import paint, reach
from interp.report.document import flatten, model_with_hash, render
from interp.report.heatmap import Cell, Heatmap
from interp.report.metrics import METRICS
from interp.report.sortable import Table, sortable
from interp.report.sweeps.cells import (
    ALPHA,
    LARGE,
    MARKS,
    MEANINGS,
    MINIMUM,
    SMALL,
    described,
    minimum,
    origin,
    strongest_first,
)
from interp.report.sweeps.frames import NORMALISED, SweepFrames
from interp.report.sweeps.panel import Panel, panel
from interp.report.sweeps.sentences import at_chance, audited, evidence, findings, nothing_changed, partial, unchanged
from interp.report.sweeps.states import STATES, UNMEASURED
from interp.report.sweeps.words import done, scale, task_name, title
from interp.report.verdicts import FEWEST_CLUSTERS

_MOST_ROWS = 200
_COLUMNS = (
    "effect",
    "low",
    "high",
    "p_adjusted",
    "value",
    "accuracy_intervened",
    "change_norm",
    "n_units",
    "n_clusters",
)
_SCREENED = ("estimate", "chosen")


def render_sweep(frames: SweepFrames, *, command: str | None = None) -> str:
    """The report of a sweep as one HTML document.

    Args:
        frames: Of the sweep.
        command: The command line that asked for it, shown for whoever wants to repeat it.
    """
    cells, provenance = described(frames), flatten(frames.provenance)
    placed = panel(frames, cells)
    table, caption = _table(frames, cells)
    return render(
        "sweep.html",
        title=title(frames),
        partial=partial(frames),
        asked=_asked(frames, dict(provenance)),
        unchanged=[*unchanged(frames), *filter(None, [at_chance(frames)])],
        findings=findings(frames, cells),
        heatmap=None if placed is None else _coloured(frames, cells, placed),
        heatmap_caption=f"{scale(frames)[0].upper()}{scale(frames)[1:]}",
        marks=_marks(cells),
        left_out=_left_out(placed),
        reading=_reading(frames),
        nothing_changed=nothing_changed(cells),
        audited=audited(frames),
        cells_table=table,
        cells_caption=caption,
        command=command,
        provenance=provenance,
    )


def _asked(frames: SweepFrames, provenance: dict[str, str]) -> list[tuple[str, str]]:
    """The few facts that belong at the top; the rest stands under `How it was made`."""
    known = provenance | model_with_hash(provenance)
    facts = [("Task", f"{task_name(frames)} ({evidence(frames)})"), *frames.task.items()]
    facts += [("Changed", done(frames)), ("Measured", METRICS.get(frames.metric, frames.metric))]
    facts += [(key.capitalize(), known[key]) for key in ("model", "seed", "device") if key in known]
    return [(name, text) for name, text in facts if text]


def _coloured(frames: SweepFrames, cells: pd.DataFrame, placed: Panel) -> Heatmap:
    bound = reach(placed.table(cells["shown"]) - origin(frames))
    rows = tuple(
        (name, tuple(_cell(frames, cells, int(number), bound) for number in numbers))
        for name, numbers in zip(placed.rows, placed.numbers, strict=True)
    )
    present = {UNMEASURED if number < 0 else cells["state"].iloc[number] for number in placed.numbers.ravel()}
    hatched = tuple(
        (state.symbol, name if name == state.meaning else f"{name}: {state.meaning}")
        for name, state in STATES.items()
        if name in present
    )
    spoken = f"{placed.across} " if placed.across in ("head", "layer", "neuron") else ""
    return Heatmap(placed.down.capitalize(), tuple(f"{spoken}{each}" for each in placed.columns), rows, hatched)


def _cell(frames: SweepFrames, cells: pd.DataFrame, number: int, bound: float) -> Cell:
    if number < 0:
        return Cell(STATES[UNMEASURED].symbol, "", "", UNMEASURED)
    cell = cells.iloc[number]
    if cell["state"]:
        return Cell(STATES[cell["state"]].symbol, "", "", f"{cell['name']}: {cell['state']}")
    # Rounded before it is painted: what reads as 0.00 has one colour.
    text = decimal(cell["shown"])
    ends = (cell["shown_low"], cell["shown_high"])
    interval = "" if np.isnan(ends).any() else f" [{', '.join(map(decimal, ends))}]"
    p = "" if pd.isna(cell["p_adjusted"]) else f", adjusted p {cell['p_adjusted']:.3f}"
    style = paint(float(text) - origin(frames), "effect", bound=bound).style
    return Cell(text, MARKS.get(cell["found"], ""), style, f"{cell['name']}: {text}{interval}{p}")


def _marks(cells: pd.DataFrame) -> str:
    """What the symbols in the cells are, as far as they occur."""
    return "; ".join(f"{MARKS[kind]} {text}" for kind, text in MEANINGS.items() if (cells["found"] == kind).any())


def _left_out(placed: Panel | None) -> str:
    if placed is None:
        return ""
    shown = len(placed.rows)
    return "" if shown == placed.n_rows else f"The {shown} rows with the strongest cells, of {placed.n_rows}."


def _table(frames: SweepFrames, cells: pd.DataFrame) -> tuple[Table, str]:
    axes = frames.labels if len(frames.labels) > 1 and frames.labels != ("layer", "head") else ()
    columns = ("cell", *axes, *(NORMALISED if frames.patched else ()), *_COLUMNS, *_SCREENED, "status")
    shown = strongest_first(cells).head(_MOST_ROWS)
    caption = "Every cell, the strongest first"
    if len(cells) > _MOST_ROWS:
        caption = f"The {_MOST_ROWS} strongest of {len(cells):,} cells; all of them are in cells.csv"
    shown = shown.rename(columns={"name": "cell"})
    known = tuple(column for column in columns if column in shown)
    return sortable(shown, known), caption


def _reading(frames: SweepFrames) -> list[tuple[str, str]]:
    """What the page's terms mean."""
    whole = "the difference between the clean and the corrupted run" if frames.patched else "the model's own metric"
    large = f", and at least {MINIMUM:g} of {whole}" if minimum(frames) else ""
    tests = [
        (MARKS[LARGE], f"beyond the correction (adjusted p ≤ {ALPHA:g}){large}."),
        (MARKS[SMALL], "beyond the correction, but smaller: certain not to be 0, and of little weight."),
        (
            "Adjusted p",
            "the p-value of “the mean is 0”, by a studentised bootstrap of whole clusters, corrected over all cells of "
            "this sweep by max-T, which bounds the chance of any false claim. Under "
            f"{FEWEST_CLUSTERS} clusters it is missing.",
        ),
    ]
    lines = tests if frames.tested else []
    lines.append(("[low, high]", "the 95 % interval of the estimate before it: a bootstrap that draws whole clusters."))
    if frames.patched:
        lines.append(
            (
                "Share",
                "(metric with the patch - corrupted) / (clean - corrupted), a ratio of means: 0 is as the corrupted "
                "run, 1 as the clean one. Colours count from the run that is patched.",
            )
        )
    if frames.estimates is not None:
        lines.append(("Estimate", "what gradients say of a cell's effect, in the metric's units; not a measurement."))
    return lines
