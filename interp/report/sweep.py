"""The page of a sweep: its cells in their places, the findings in sentences, and every cell in a table."""

from functools import partial
from typing import Any

from interp.report import sweep_figures as figures
from interp.report import sweep_sentences as sentences
from interp.report.cells import capital
from interp.report.html import facts
from interp.report.notebook import MOST_DRAWN
from interp.report.page_texts import explained
from interp.report.results.one_table import task_of
from interp.report.sections import MOST_ROWS, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.sweep_cells import ALPHA, FOUND, GROWING, MINIMUM, Swept, panel, strongest_first, swept
from interp.report.tables import Column, columns_of
from interp.report.words import FEWEST_CLUSTERS, METRICS, about


def page_of(result: Any) -> Page:
    """The sections of an ablation, of patching, or of a growing set of heads; `result` may be as of ``swept``."""
    shown = swept(result)
    call = "greedy" if shown.labels == GROWING else "sweep"
    draws = {"strongest": partial(figures.strongest, shown)}
    if len(shown.labels) > 1 and panel(shown) is not None:
        draws["heatmap"] = partial(figures.heatmap, shown)
    labels = list(shown.labels)
    status = shown.cells[[*labels, "status"]]
    cells = shown.summary.merge(status, on=labels, how="left", validate="one_to_one")
    return Page(
        title=sentences.title(shown),
        kind="sweep",
        sections=tuple(_sections(shown, call)),
        provenance=shown.provenance,
        about=about(shown.provenance, sentences.evidence(shown)),
        cautions=sentences.cautions(shown),
        call=f"interp.plots.{call}(result)",
        frames={"cells": cells} | ({} if shown.estimates is None else {"estimates": shown.estimates}),
        draws=draws,
    )


def _sections(shown: Swept, call: str) -> list[Section]:
    found: list[Section] = []
    if placed := panel(shown):
        grid, n_rows = placed
        notes = ["; ".join(each.marked for kind, each in FOUND.items() if (shown.cells["found"] == kind).any())]
        if len(grid.values) < n_rows:
            notes.append(f"The {len(grid.values)} rows with the strongest cells, of {n_rows}")
        note = " ".join(f"{text}." for text in notes if text)
        found.append(Heatmaps("Heatmap", [(capital(sentences.scale(shown)), grid.heatmap())], note))
    if len(shown.cells) <= MOST_DRAWN:
        draw = figures.greedy if call == "greedy" else figures.sweep
        found.append(Picture("", call, partial(draw, shown), sentences.title(shown)))
    found.append(Sentences("Findings", sentences.findings(shown)))
    found.append(_table(shown))
    found.append(Facts("What was asked", _asked(shown)))
    found.append(Facts("How to read this", _reading(shown)))
    found.append(Sentences("Checks", [sentences.audited(shown)]))
    return found


def _asked(shown: Swept) -> list[tuple[str, str]]:
    how = shown.provenance
    return facts(
        how,
        ("Task", f"{task_of(how)} ({sentences.evidence(shown)})"),
        ("Phenomenon", how.get("question", "")),
        ("Counterfactual", how.get("counterfactual", "")),
        ("Left out or replaced", "; ".join(f"{name}: {n}" for name, n in how.get("dropped", {}).items())),
        ("Coverage", "; ".join(f"{name}: {share:.0f} %" for name, share in how.get("coverage", {}).items())),
        ("Changed", sentences.done(shown)),
        ("Measured", METRICS.get(shown.metric, shown.metric)),
        *("model", "seed", "device"),
    )


def _table(shown: Swept) -> Table:
    # A growing set stays in its order: each step has the ones before in it.
    growing, n_cells = shown.labels == GROWING, len(shown.cells)
    first = (shown.cells if growing else strongest_first(shown.cells)).head(MOST_ROWS)
    first = first.assign(mark=[FOUND[kind].symbol if kind else "" for kind in first["found"]])
    columns = [Column("name", "cell")]
    if shown.patched:
        columns.append(Column("shown", sentences.scale(shown).split(":")[0], "shown_low", "shown_high"))
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
    """What the page's terms mean, as far as they stand there."""
    large = f", and at least {MINIMUM:g} of {sentences.whole(shown)}" if shown.minimum else ""
    less = " Here the clean run is patched: what is shown is the share less 1, so -1 is as the corrupted run."
    known = {"large": large, "less": less if shown.origin else ""}
    terms = explained("sweep", alpha=ALPHA, fewest_clusters=FEWEST_CLUSTERS, **known)
    absent = {"●", "○", "Adjusted p"} if not shown.tested else set()
    absent |= {"Share"} if not shown.patched else set()
    absent |= {"Estimate"} if shown.estimates is None else set()
    return [(term, text) for term, text in terms.items() if term not in absent]
