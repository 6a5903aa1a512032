"""How does a reader see a sweep? One self-contained HTML page, as the dossier's.

1. How well the model does unchanged comes first, then the findings in sentences; then what was asked.
2. The heatmap is a table with colours; hovering over a cell tells its interval.
3. The table of cells can be sorted; of very many cells it has the strongest.
4. Provenance is folded away.

What does a notebook show of a sweep? The page's sentences and its strongest cells.

Where does a sweep's report go? One folder, as the dossier's: written whole or not at all.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from interp.report.drawing import ordinary_style, write_pictures
from interp.report.folder import SWEEP, check_output, in_place_of, write_manifest
from interp.report.glance import MOST_DRAWN, Glance, numbers, with_interval
from interp.report.heads_frames import FEWEST_CLUSTERS
from interp.report.heatmap import Cell, Heatmap, paint, reach
from interp.report.html import flatten, model_with_hash, render
from interp.report.sortable import Table, sortable
from interp.report.sweep_cells import (
    ALPHA,
    LARGE,
    MARKS,
    MEANINGS,
    MINIMUM,
    SMALL,
    STATES,
    UNMEASURED,
    Panel,
    described,
    minimum,
    origin,
    panel,
    statuses,
    strongest_first,
)
from interp.report.sweep_figures import greedy, heatmap_figure, strongest_figure, sweep
from interp.report.sweep_frames import GROWING, NORMALISED, SweepFrames, SweepLike, sweep_frames
from interp.report.sweep_sentences import (
    at_chance,
    audited,
    done,
    evidence,
    findings,
    nothing_changed,
    partial_sentence,
    scale,
    task_name,
    title,
    unchanged,
    unit,
)
from interp.report.words import METRICS, decimal

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
        partial=partial_sentence(frames),
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


def sweep_glance(result: SweepLike) -> Glance:
    """What a notebook shows of an ablation or of patching."""
    frames = sweep_frames(result)
    cells = described(frames)
    steps = frames.labels == GROWING
    # A growing set stays in its order: each step has the ones before in it.
    first = cells if steps else strongest_first(cells)
    columns = {"cell": first["name"]}
    if frames.patched:
        columns["share of the clean run's answer"] = with_interval(first, "shown", "shown_low", "shown_high")
    columns[f"effect ({unit(frames)})"] = with_interval(first, "effect", "low", "high")
    if frames.tested:
        columns["adjusted p"] = numbers(first["p_adjusted"], 4)
        columns[""] = first["found"].map(lambda found: MARKS.get(found, ""))
    columns["what changed"] = first["status"]
    said = [f"{done(frames)[0].upper()}{done(frames)[1:]}: {evidence(frames)}."]
    return Glance(
        title(frames),
        [*filter(None, [partial_sentence(frames)]), *said, *findings(frames, cells), *nothing_changed(cells)],
        pd.DataFrame(columns),
        len(cells),
        ".summary()",
        frames.provenance,
        f"interp.plots.{'greedy' if steps else 'sweep'}(result)",
        (lambda: greedy(result) if steps else sweep(frames)) if len(cells) <= MOST_DRAWN else None,
    )


@ordinary_style()
def save_sweep(frames: SweepFrames, out: str | Path, *, command: str | None = None) -> Path:
    """Write a sweep's frames, figures, page and manifest into the folder `out`.

    These are ``cells.csv``, ``cells.parquet``, ``examples.parquet``, ``figures``, ``report.html`` and
    ``manifest.json``; after a screen also ``estimates.csv``, with every cell.

    Args:
        frames: Of a sweep, complete or not.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it, for the page and the manifest.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: If `out` cannot be used; see ``check_output``.
    """
    folder = check_output(out)
    page = render_sweep(frames, command=command)
    with in_place_of(folder) as draft:
        cells = _with_status(frames)
        cells.to_csv(draft / "cells.csv", index=False)
        cells.to_parquet(draft / "cells.parquet", index=False)
        frames.examples.to_parquet(draft / "examples.parquet", index=False)
        if frames.estimates is not None:
            frames.estimates.to_csv(draft / "estimates.csv", index=False)
        _write_figures(frames, draft / "figures")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, frames.provenance, command, kind=SWEEP)
    return folder


def _with_status(frames: SweepFrames) -> pd.DataFrame:
    """The cells as they were summarised, and whether each changed anything."""
    labels = list(frames.labels)
    status = statuses(frames.examples, labels)[[*labels, "status"]]
    return frames.cells.merge(status, on=labels, how="left", validate="one_to_one")


def _write_figures(frames: SweepFrames, folder: Path) -> None:
    cells = described(frames)
    placed = panel(frames, cells)
    draws = {"strongest": partial(strongest_figure, frames, cells)}
    if placed is not None and len(frames.labels) > 1:
        draws["heatmap"] = partial(heatmap_figure, frames, cells, placed)
    write_pictures(draws, folder)
