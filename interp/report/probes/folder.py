"""Where does a report about probes go? One folder, as the dossier's: written whole or not at all."""

from pathlib import Path

from interp.report.figure import ordinary_style, write_pictures
from interp.report.folder import check_output, in_place_of
from interp.report.manifest import PROBES, write_manifest
from interp.report.probes.frames import ProbeFrames
from interp.report.probes.page import render_probes
from interp.report.probes.plots import figures


@ordinary_style()
def save_probes(frames: ProbeFrames, out: str | Path, command: str | None = None) -> Path:
    """Write what probes found into the folder `out`.

    These are ``probes.csv``, ``probes.parquet``, ``examples.parquet``, ``figures``, ``report.html`` and
    ``manifest.json``.

    Args:
        frames: Of the probing.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it, for the page and the manifest.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: If `out` cannot be used; see ``check_output``.
        InputError: If the frames are not those of a probing.
    """
    folder = check_output(out)
    page = render_probes(frames, command=command)
    with in_place_of(folder) as draft:
        frames.frame.to_csv(draft / "probes.csv", index=False)
        frames.frame.to_parquet(draft / "probes.parquet", index=False)
        frames.examples.to_parquet(draft / "examples.parquet", index=False)
        write_pictures(figures(frames), draft / "figures")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, frames.provenance, command, kind=PROBES)
    return folder
