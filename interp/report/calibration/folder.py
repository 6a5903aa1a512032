"""Where does a calibration go? A folder that keeps what is done, model by model, and in the end the report.

``models`` holds a file for each model that was judged. Asked for again, whatever the interruption, only what is missing
is computed. The report's files are made anew each time.
"""

import os
import re
import shutil
from pathlib import Path

from interp.errors import OutputError
from interp.report.calibration.frames import CalibrationFrames
from interp.report.calibration.page import render_calibration
from interp.report.calibration.plots import figures
from interp.report.manifest import CALIBRATION, MANIFEST, files_of_report, write_manifest
from interp.report.place import FOLDER, absolute, check_place, os_errors_of, sibling

MODELS = "models"
_RESULT = re.compile(r"-[0-9a-f]{8}\.(parquet|\d+)$")
_TABLES = ("false_discoveries", "recall", "false_tracks", "decoys", "single_heads", "confusion", "halves", "p_values")


def check_calibration_folder(out: str | Path) -> Path:
    """Find out whether a calibration can be written to `out`: new, empty, or one that was begun.

    Returns:
        `out` as an absolute path.

    Raises:
        OutputError: It is a file, holds something else, or cannot be written.
    """
    folder = absolute(out, FOLDER)
    with os_errors_of(folder, FOLDER):
        found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        foreign = _foreign(folder) if found else []
    if foreign:
        raise OutputError(
            f"{FOLDER} {folder}: expected a new or empty folder or one with an earlier calibration, got one with other "
            f"files ({', '.join(foreign[:3])}); name another, or move them away"
        )
    check_place(folder)
    return folder


def _foreign(folder: Path) -> list[str]:
    """What is neither a report's, as its manifest claims, nor a model's result or the draft of one."""
    ours = files_of_report(folder, [CALIBRATION])
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if not path.is_dir()]
    return [
        path.as_posix()
        for path in files
        if path.as_posix() not in ours and not (path.parent == Path(MODELS) and _RESULT.search(path.name))
    ]


def save_calibration(frames: CalibrationFrames, out: str | Path, *, command: str | None = None) -> Path:
    """Write tables, figures, page and manifest into the folder `out`, beside the models that it keeps.

    Args:
        frames: Of the calibration.
        out: The folder; made where it is missing.
        command: The command line that asked for it.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: `out` cannot be used.
    """
    folder = check_calibration_folder(out)
    page, drawn = render_calibration(frames, command=command), figures(frames)
    with os_errors_of(folder, FOLDER):
        (folder / MODELS).mkdir(parents=True, exist_ok=True)
        draft = sibling(folder)
        try:
            frames.frame.to_parquet(draft / "verdicts.parquet", index=False)
            for name in _TABLES:
                getattr(frames, name).to_csv(draft / f"{name}.csv", index=name == "confusion")
            for name, table in frames.curves.items():
                table.to_csv(draft / f"recall_by_{name}.csv", index=False)
            (draft / "figures").mkdir()
            for name, figure in drawn.items():
                figure.savefig(draft / "figures" / f"{name}.png")
            (draft / "report.html").write_text(page, encoding="utf-8")
            write_manifest(draft, frames.provenance, command, kind=CALIBRATION)
            _move(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


def _move(draft: Path, folder: Path) -> None:
    """Every file to its place; those of an older report are removed, but not the models.

    Whenever it is cut off, the manifest that is there claims every file that is there.
    """
    new = {path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file()}
    for name in files_of_report(folder, [CALIBRATION]) - new:
        (folder / name).unlink(missing_ok=True)
    for name in (MANIFEST, *sorted(new - {MANIFEST})):
        (folder / name).parent.mkdir(exist_ok=True)
        os.replace(draft / name, folder / name)
