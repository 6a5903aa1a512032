"""The page of a sweep: its cells in their places, the findings in sentences, and every cell in a table."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from interp.report.heads_frames import FEWEST_CLUSTERS
from interp.report.heatmap import Cell, Heatmap, paint, reach
from interp.report.html import flatten, model_with_hash
from interp.report.notebook import MOST_DRAWN
from interp.report.sections import MOST_ROWS, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
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
from interp.report.sweep_figures import greedy_figure, heatmap_figure, strongest_figure, sweep
from interp.report.sweep_frames import GROWING, SweepFrames, sweep_frames
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
from interp.report.tables import Column
from interp.report.words import METRICS, about, decimal


def page_of(result: Any) -> Page:
    """The sections of an ablation, of patching, or of a growing set of heads."""
    frames = sweep_frames(result)
    cells = described(frames)
    placed = panel(frames, cells)
    draws = {"strongest": partial(strongest_figure, frames, cells)}
    if placed is not None and len(frames.labels) > 1:
        draws["heatmap"] = partial(heatmap_figure, frames, cells, placed)
    call = "greedy" if frames.labels == GROWING else "sweep"
    own = _with_status(frames)
    return Page(
        title=title(frames),
        kind="sweep",
        sections=tuple(_sections(frames, cells, placed, call)),
        provenance=frames.provenance,
        about=about(frames.provenance, evidence(frames)),
        cautions=tuple(filter(None, [partial_sentence(frames), at_chance(frames)])),
        call=f"interp.plots.{call}(result)",
        frames={"cells": own} if frames.estimates is None else {"cells": own, "estimates": frames.estimates},
        draws=draws,
    )


def _sections(frames: SweepFrames, cells: pd.DataFrame, placed: Panel | None, call: str) -> list[Section]:
    found: list[Section] = []
    if placed is not None:
        caption = f"{scale(frames)[0].upper()}{scale(frames)[1:]}"
        note = " ".join(f"{text}." for text in (_marks(cells), _left_out(placed)) if text)
        found.append(Heatmaps("Heatmap", [(caption, _coloured(frames, cells, placed))], note))
    if len(cells) <= MOST_DRAWN:
        draw = partial(greedy_figure, frames) if call == "greedy" else partial(sweep, frames.result)
        found.append(Picture("", call, draw, title(frames)))
    said = [f"{done(frames)[0].upper()}{done(frames)[1:]}: {evidence(frames)}."]
    said += [*unchanged(frames), *findings(frames, cells), *nothing_changed(cells)]
    found.append(Sentences("Findings", said))
    found.append(_table(frames, cells))
    found.append(Facts("What was asked", _asked(frames)))
    found.append(Facts("How to read this", _reading(frames)))
    found.append(Sentences("Checks", [audited(frames)]))
    return found


def _asked(frames: SweepFrames) -> list[tuple[str, str]]:
    """The few facts that a reader asks for; the rest stands under `How it was made`."""
    known = dict(flatten(frames.provenance))
    known |= model_with_hash(known)
    facts = [("Task", f"{task_name(frames)} ({evidence(frames)})"), *_of_task(frames)]
    facts += [("Changed", done(frames)), ("Measured", METRICS.get(frames.metric, frames.metric))]
    facts += [(key.capitalize(), known[key]) for key in ("model", "seed", "device") if key in known]
    return [(name, text) for name, text in facts if text]


def _of_task(frames: SweepFrames) -> list[tuple[str, str]]:
    how = frames.provenance
    shares = "; ".join(f"{name}: {share:.0f} %" for name, share in how.get("coverage", {}).items())
    left_out = "; ".join(f"{name}: {n}" for name, n in how.get("dropped", {}).items())
    return [("Phenomenon", how.get("question", "")), ("Left out", left_out), ("Coverage", shares)]


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


def _left_out(placed: Panel) -> str:
    shown = len(placed.rows)
    return "" if shown == placed.n_rows else f"The {shown} rows with the strongest cells, of {placed.n_rows}"


def _table(frames: SweepFrames, cells: pd.DataFrame) -> Table:
    # A growing set stays in its order: each step has the ones before in it.
    growing = frames.labels == GROWING
    first = cells if growing else strongest_first(cells)
    first = first.head(MOST_ROWS).assign(mark=lambda rows: rows["found"].map(lambda found: MARKS.get(found, "")))
    columns = [Column("name", "cell")]
    if frames.patched:
        columns.append(Column("shown", "share of the clean run's answer", "shown_low", "shown_high"))
    columns.append(Column("effect", f"effect ({unit(frames)})", "low", "high"))
    if frames.tested:
        columns += [Column("p_adjusted"), Column("mark", " ")]
    columns += [Column(name) for name in ("value", "accuracy_intervened", "change_norm", "n_units", "n_clusters")]
    columns += [Column(name) for name in ("estimate", "chosen") if name in first]
    columns.append(Column("status", "what changed"))
    caption = "Every step" if growing else "The strongest cells first"
    if len(cells) > MOST_ROWS and not growing:
        caption = f"The {MOST_ROWS} strongest of {len(cells):,} cells; all of them are in cells.csv"
    return Table("Cells", caption, first, columns, "cells.csv", len(cells))


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


def _with_status(frames: SweepFrames) -> pd.DataFrame:
    """The cells as they were summarised, and whether each changed anything."""
    labels = list(frames.labels)
    status = statuses(frames.examples, labels)[[*labels, "status"]]
    return frames.cells.merge(status, on=labels, how="left", validate="one_to_one")
