"""Where does a report about relations go? One folder, as the dossier's: written whole or not at all."""

from functools import partial
from pathlib import Path

import pandas as pd

from interp.report.figure import ordinary_style, write_pictures
from interp.report.folder import check_output, in_place_of
from interp.report.manifest import RELATIONS, write_manifest
from interp.report.relations.frames import RelationFrames
from interp.report.relations.page import render_relations
from interp.report.relations.plots import baselines_figure, relations_figure


@ordinary_style()
def save_relations(
    frames: RelationFrames, maps: pd.DataFrame | None, out: str | Path, command: str | None = None
) -> Path:
    """Write what was found about heads and relations into the folder `out`.

    These are ``relations.csv``, ``heads.csv``, ``heads.parquet``, ``report.html`` and ``manifest.json``; with examples
    also ``attention_maps.parquet``; where anything was scored also ``figures``.

    Args:
        frames: Of the scoring.
        maps: Where the best heads look in examples, as ``interp.methods.relations.maps`` gives it; None without.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it, for the page and the manifest.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: If `out` cannot be used; see ``check_output``.
        InputError: If the frames are not those of a scoring.
    """
    folder = check_output(out)
    page = render_relations(frames, maps, command=command)
    draws = {"relations": partial(relations_figure, frames), "baselines": partial(baselines_figure, frames)}
    with in_place_of(folder) as draft:
        frames.relations.to_csv(draft / "relations.csv", index=False)
        frames.frame.to_csv(draft / "heads.csv", index=False)
        frames.frame.to_parquet(draft / "heads.parquet", index=False)
        if maps is not None:
            maps.to_parquet(draft / "attention_maps.parquet", index=False)
        write_pictures(draws, draft / "figures")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, frames.provenance, command, kind=RELATIONS)
    return folder
