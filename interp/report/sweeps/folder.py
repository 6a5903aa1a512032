"""Where does a sweep's report go? One folder, as the dossier's: written whole or not at all."""

from functools import partial
from pathlib import Path

import pandas as pd

from interp.report.figure import ordinary_style, write_pictures
from interp.report.folder import check_output, in_place_of
from interp.report.manifest import SWEEP, write_manifest
from interp.report.sweeps.cells import described
from interp.report.sweeps.frames import SweepFrames
from interp.report.sweeps.page import render_sweep
from interp.report.sweeps.panel import panel
from interp.report.sweeps.plots import heatmap_figure, strongest_figure
from interp.report.sweeps.states import statuses


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
