"""Where does a report go? One folder, written whole or not at all.

1. Everything is written into a hidden sibling of the target, so on the same file system.
2. A rename puts it in place; an older report is moved aside first and removed last.
3. Whatever happens in between, an error or Ctrl-C, the sibling is removed and an older report is back.

``manifest.json`` names the format, the provenance and every file's SHA-256. Only a folder that holds
nothing but an older report is ever replaced.
"""

import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from interp.errors import InputError, OutputError
from interp.report.development import DevelopmentFrames, development_figure
from interp.report.figure import Figure, ordinary_style, write_pictures
from interp.report.frames import HEAD_COLUMNS, HeadsFrames
from interp.report.manifest import HEADS, files_of_report, write_manifest
from interp.report.names import file_names, with_shown_names
from interp.report.page import render_page
from interp.report.place import FOLDER, absolute, check_place, os_errors_of, sibling
from interp.report.plots import attention_heatmap, effect_heatmap, overview, probe_heatmap

CARDS = "cards"
"""The folder of the heads' cards within that of the report."""


@ordinary_style()
def save_report(
    report: HeadsFrames,
    out: str | Path,
    *,
    command: str | None = None,
    development: DevelopmentFrames | None = None,
    cards: Mapping[str, str] | None = None,
) -> Path:
    """Write the frames, figures, page and manifest of a dossier into the folder `out`.

    Args:
        report: The frames of a finished dossier.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it, for the page and the manifest.
        development: Where `report` is the last of a training's checkpoints: the frames of all of them.
        cards: By a head's name, the page of its card; they lie in ``cards``, and the report's page leads to them.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: If `out` cannot be used; see ``check_output``.
        InputError: If the frames are not a dossier's, or a card is of no head such as ``2.1``.
    """
    folder = check_output(out)
    cards = cards or {}
    _check_heads(cards)
    page = render_page(report, command=command, development=development, cards=tuple(cards))
    with in_place_of(folder) as draft:
        _write_frames(report, draft)
        _write_figures(report, draft / "figures")
        if development is not None:
            development.frame.to_csv(draft / "development.csv", index=False)
            draw = partial(development_figure, development.frame, development.tasks)
            write_pictures({"development": draw}, draft / "figures")
        for name, card in cards.items():
            (draft / CARDS).mkdir(exist_ok=True)
            (draft / CARDS / f"{name}.html").write_text(card, encoding="utf-8")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, report.provenance, command, kind=HEADS)
    return folder


def _check_heads(cards: Mapping[str, str]) -> None:
    """Refuse names that are no head's: each becomes a file's."""
    for name in cards:
        if not re.fullmatch(r"\d+\.\d+", name):
            raise InputError(f"card {name[:80]!r}: expected the name of a head, such as '2.1'; name its page by that")


def check_output(out: str | Path) -> Path:
    """Find out whether a report could be written to `out`, before anything is computed.

    Returns:
        `out` as an absolute path.

    Raises:
        OutputError: If `out` is a file, holds something else than an older report, is a folder that cannot be
            replaced, or cannot be written.
    """
    folder = absolute(out, FOLDER)
    with os_errors_of(folder, FOLDER):
        if folder.is_dir():
            _check_replaceable(folder)
            _check_ours(folder)
    check_place(folder)
    return folder


def _check_replaceable(folder: Path) -> None:
    """Refuse a folder that no other can take the place of: where somebody stands, or a disk is mounted."""
    here = Path.cwd()
    if here.is_relative_to(folder):
        kind = "the current folder" if here == folder else "a folder around the current one"
    elif folder.is_mount():
        kind = "the root of a mounted disk"
    else:
        return
    raise OutputError(
        f"{FOLDER} {folder}: expected a folder that can be replaced, got {kind}; "
        f"name one inside it, such as {folder / 'report'}"
    )


def _check_ours(folder: Path) -> None:
    """Refuse a folder that holds anything but an older report; a link or an empty folder is something too."""
    ours = files_of_report(folder)
    ours |= {parent.as_posix() for name in ours for parent in Path(name).parents}
    found = ((path, path.relative_to(folder).as_posix()) for path in folder.rglob("*"))
    # Lazily: someone may have named their home.
    foreign = list(itertools.islice((name for path, name in found if name not in ours or path.is_symlink()), 3))
    if foreign:
        raise OutputError(
            f"{FOLDER} {folder}: expected a new or empty folder or an older report, got one with other files "
            f"({', '.join(foreign)}{', ...' if len(foreign) == 3 else ''}); name another, or move them away"
        )


@contextmanager
def in_place_of(folder: Path) -> Iterator[Path]:
    """A draft folder that takes the place of `folder` when the block ends well, and is gone if not."""
    made = [parent for parent in folder.parents if not parent.exists()]
    draft, aside = None, None
    try:
        with os_errors_of(folder, FOLDER):
            folder.parent.mkdir(parents=True, exist_ok=True)
            draft = sibling(folder)
            yield draft
            if folder.exists():
                aside = sibling(folder)
                os.replace(folder, aside)
            os.replace(draft, folder)
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        if aside is not None and folder.exists():
            shutil.rmtree(aside, ignore_errors=True)
        elif aside is not None:
            os.replace(aside, folder)
        if not folder.exists():
            for parent in made:
                with suppress(OSError):
                    parent.rmdir()


def _write_frames(report: HeadsFrames, folder: Path) -> None:
    rest = [column for column in report.frame.columns if column not in HEAD_COLUMNS]
    heads = report.frame[[*HEAD_COLUMNS, *rest]]
    heads.to_csv(folder / "heads.csv", index=False)
    heads.to_parquet(folder / "heads.parquet", index=False)
    report.groups.to_csv(folder / "groups.csv", index=False)
    if not report.replication.empty:
        report.replication.to_csv(folder / "replication.csv", index=False)
    report.examples.to_parquet(folder / "examples.parquet", index=False)


def _write_figures(report: HeadsFrames, folder: Path) -> None:
    shown = with_shown_names(report)
    draws: dict[str, Callable[[], Figure]] = {"overview": partial(overview, report)}
    names = file_names([str(task) for task in report.tasks["task"]])
    for task, name in zip(shown.tasks["task"], names, strict=True):
        draws[f"attention_{name}"] = partial(attention_heatmap, shown.frame, task)
        draws[f"effect_{name}"] = partial(effect_heatmap, shown.frame, task)
        if shown.frame.loc[shown.frame["task"] == task, "probe"].notna().any():
            draws[f"probe_{name}"] = partial(probe_heatmap, shown.frame, task)
    write_pictures(draws, folder)
