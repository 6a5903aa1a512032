"""Where does a calibration go? One folder, as the dossier's: written whole or not at all."""

from pathlib import Path

from interp.report.calibration.frames import CalibrationFrames
from interp.report.calibration.page import render_calibration
from interp.report.calibration.plots import figures
from interp.report.figure import ordinary_style, write_pictures
from interp.report.folder import check_output, in_place_of
from interp.report.manifest import CALIBRATION, write_manifest

_TABLES = ("false_discoveries", "recall", "false_tracks", "decoys", "special", "single_heads", "confusion", "halves")


@ordinary_style()
def save_calibration(frames: CalibrationFrames, out: str | Path, *, command: str | None = None) -> Path:
    """Write tables, figures, page and manifest into the folder `out`.

    Args:
        frames: Of the calibration.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: `out` cannot be used; see ``check_output``.
    """
    folder = check_output(out)
    page = render_calibration(frames, command=command)
    with in_place_of(folder) as draft:
        frames.frame.to_parquet(draft / "verdicts.parquet", index=False)
        for name in _TABLES:
            getattr(frames, name).to_csv(draft / f"{name}.csv", index=name == "confusion")
        for name, table in frames.curves.items():
            table.to_csv(draft / f"recall_by_{name}.csv", index=False)
        write_pictures(figures(frames), draft / "figures")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, frames.provenance, command, kind=CALIBRATION)
    return folder
