"""The page of a sweep: its cells in their places, the findings in sentences, and every cell in a table."""

from functools import partial
from typing import Any

from interp.report.html import flatten, model_with_hash
from interp.report.notebook import MOST_DRAWN
from interp.report.sections import MOST_ROWS, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.sweep_cells import (
    ALPHA,
    FOUND,
    GROWING,
    LARGE,
    MINIMUM,
    SMALL,
    Swept,
    grid_of,
    panel,
    statuses,
    strongest_first,
    swept,
)
from interp.report.sweep_figures import greedy_figure, heatmap_figure, strongest_figure, sweep_figure
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
    whole,
)
from interp.report.tables import Column, columns_of
from interp.report.words import FEWEST_CLUSTERS, METRICS, about


def page_of(result: Any) -> Page:
    """The sections of an ablation, of patching, or of a growing set of heads."""
    return page_of_swept(swept(result))


def page_of_swept(shown: Swept) -> Page:
    """The same of a sweep whose statistics are there."""
    call = "greedy" if shown.labels == GROWING else "sweep"
    draws = {"strongest": partial(strongest_figure, shown)}
    if len(shown.labels) > 1 and panel(shown) is not None:
        draws["heatmap"] = partial(heatmap_figure, shown)
    labels = list(shown.labels)
    status = statuses(shown.result.examples, labels)[[*labels, "status"]]
    cells = shown.summary.merge(status, on=labels, how="left", validate="one_to_one")
    return Page(
        title=title(shown),
        kind="sweep",
        sections=tuple(_sections(shown, call)),
        provenance=shown.provenance,
        about=about(shown.provenance, evidence(shown)),
        cautions=tuple(filter(None, [partial_sentence(shown), at_chance(shown)])),
        call=f"interp.plots.{call}(result)",
        frames={"cells": cells} | ({} if shown.estimates is None else {"estimates": shown.estimates}),
        draws=draws,
    )


def _sections(shown: Swept, call: str) -> list[Section]:
    found: list[Section] = []
    placed = panel(shown)
    if placed is not None:
        kinds = [kind for kind in FOUND if (shown.cells["found"] == kind).any()]
        notes = ["; ".join(f"{FOUND[kind].symbol} {FOUND[kind].name}" for kind in kinds)]
        if len(placed.rows) < placed.n_rows:
            notes.append(f"The {len(placed.rows)} rows with the strongest cells, of {placed.n_rows}")
        note = " ".join(f"{text}." for text in notes if text)
        found.append(Heatmaps("Heatmap", [(_capital(scale(shown)), grid_of(shown, placed).heatmap())], note))
    if len(shown.cells) <= MOST_DRAWN:
        draw = greedy_figure if call == "greedy" else sweep_figure
        found.append(Picture("", call, partial(draw, shown), title(shown)))
    said = [f"{_capital(done(shown))}: {evidence(shown)}.", *unchanged(shown), *findings(shown)]
    found.append(Sentences("Findings", [*said, *nothing_changed(shown)]))
    found.append(_table(shown))
    found.append(Facts("What was asked", _asked(shown)))
    found.append(Facts("How to read this", _reading(shown)))
    found.append(Sentences("Checks", [audited(shown)]))
    return found


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _asked(shown: Swept) -> list[tuple[str, str]]:
    """The few facts that a reader asks for; the rest stands under `How it was made`."""
    how = shown.provenance
    known = dict(flatten(how))
    known |= model_with_hash(known)
    facts = [
        ("Task", f"{task_name(shown)} ({evidence(shown)})"),
        ("Phenomenon", how.get("question", "")),
        ("Left out", "; ".join(f"{name}: {n}" for name, n in how.get("dropped", {}).items())),
        ("Coverage", "; ".join(f"{name}: {share:.0f} %" for name, share in how.get("coverage", {}).items())),
        ("Changed", done(shown)),
        ("Measured", METRICS.get(shown.metric, shown.metric)),
        *((key.capitalize(), known.get(key, "")) for key in ("model", "seed", "device")),
    ]
    return [(name, text) for name, text in facts if text]


def _table(shown: Swept) -> Table:
    # A growing set stays in its order: each step has the ones before in it.
    growing, n_cells = shown.labels == GROWING, len(shown.cells)
    first = (shown.cells if growing else strongest_first(shown.cells)).head(MOST_ROWS)
    first = first.assign(mark=[FOUND[kind].symbol if kind else "" for kind in first["found"]])
    columns = [Column("name", "cell")]
    if shown.patched:
        columns.append(Column("shown", scale(shown).split(":")[0], "shown_low", "shown_high"))
    columns.append(Column("effect", f"effect ({shown.unit})", "low", "high"))
    if shown.tested:
        columns += [Column("p_adjusted"), Column("mark", " ")]
    columns += columns_of("value", "accuracy_intervened", "change_norm", "n_units", "n_clusters")
    columns += columns_of(*(name for name in ("estimate", "chosen") if name in first))
    columns.append(Column("status", "what changed"))
    caption = "Every step" if growing else "The strongest cells first"
    if n_cells > MOST_ROWS and not growing:
        caption = f"The {MOST_ROWS} strongest of {n_cells:,} cells; all of them are in cells.csv"
    return Table("Cells", caption, first, columns, "cells.csv", n_cells)


def _reading(shown: Swept) -> list[tuple[str, str]]:
    """What the page's terms mean."""
    large = f", and at least {MINIMUM:g} of {whole(shown)}" if shown.minimum else ""
    tests = [
        (FOUND[LARGE].symbol, f"beyond the correction (adjusted p ≤ {ALPHA:g}){large}."),
        (FOUND[SMALL].symbol, "beyond the correction, but smaller: certain not to be 0, and of little weight."),
        (
            "Adjusted p",
            "the p-value of “the mean is 0”, by a studentised bootstrap of whole clusters, corrected over all cells of "
            f"this sweep by max-T, which bounds the chance of any false claim. Under {FEWEST_CLUSTERS} clusters it is "
            "missing.",
        ),
    ]
    lines = tests if shown.tested else []
    lines.append(("[low, high]", "the 95 % interval of the estimate before it: a bootstrap that draws whole clusters."))
    if shown.patched:
        share = (
            "(metric with the patch - corrupted) / (clean - corrupted), a ratio of means: 0 as corrupted, 1 as clean."
        )
        less = " Here the clean run is patched: what is shown is the share less 1, so -1 is as the corrupted run."
        lines.append(("Share", share + less * bool(shown.origin)))
    if shown.estimates is not None:
        lines.append(("Estimate", "what gradients say of a cell's effect, in the metric's units; not a measurement."))
    return lines
