"""Where a report goes: one folder, written whole or not at all; a place that cannot be used is refused before the work.

1. Everything is written into a hidden sibling of the target, so on the same file system.
2. A rename puts it in place; an older report is moved aside first and removed last.
3. Whatever happens in between, an error or Ctrl-C, the sibling is removed and an older report is back.

``manifest.json`` names the format, the provenance and every file's SHA-256. Only a folder that holds nothing but an
older report is ever replaced.
"""

import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from interp.errors import OutputError
from interp.report.drawing import ordinary_style, write_pictures
from interp.report.html import as_page
from interp.report.sections import Page, page_of

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
FOLDER = "output folder"
_OURS = re.compile(r"interp ([a-z]+ report|head card)")


@ordinary_style()
def save(result: Any, out: str | Path, *, command: str | None = None, page: Page | None = None) -> Path:
    """Write a result's tables, figures, page (or the `page` given) and manifest into `out`; see ``Result.save``."""
    folder = check_output(out)
    page = page_of(result) if page is None else page
    html = as_page(page, command)
    with in_place_of(folder) as draft:
        for name, frame in page.frames.items():
            frame.to_csv(draft / f"{name}.csv", index=False)
            frame.to_parquet(draft / f"{name}.parquet", index=False)
        result.examples.to_parquet(draft / "examples.parquet", index=False)
        if page.draws:
            write_pictures(page.draws, draft / "figures")
        for name, text in {**page.files, "report.html": html}.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_text(text, encoding="utf-8")
        write_manifest(draft, page.provenance, command, kind=page.kind)
    return folder


def format_of(kind: str) -> str:
    """What a manifest calls a page of this kind."""
    return "interp head card" if kind == "head" else f"interp {kind} report"


def files_of_report(folder: Path) -> set[str]:
    """The files that the folder's manifest claims; none if it is not a manifest of ours."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError, json.JSONDecodeError):
        return set()
    if not isinstance(manifest, dict) or not _OURS.fullmatch(str(manifest.get("format"))):
        return set()
    files = manifest.get("files")
    return {MANIFEST, *files} if isinstance(files, dict) and all(map(_is_inside, files)) else set()


def _is_inside(name: str) -> bool:
    """Whether a manifest may claim it: what it claims is replaced and removed, and must lie in the report's folder."""
    path = PurePath(name)
    return not path.is_absolute() and ".." not in path.parts and "\0" not in name


def write_manifest(folder: Path, provenance: Mapping[str, Any], command: str | None, *, kind: str) -> None:
    """Write the manifest of everything that lies in `folder`, which is a report of this `kind`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {
        "format": format_of(kind),
        "version": FORMAT_VERSION,
        "interp": version("interp"),
        "command": command,
        "provenance": plain(provenance),
        "files": {path.relative_to(folder).as_posix(): _sha256(path) for path in files},
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False)
    # Half of a surrogate pair has no UTF-8; written with a backslash, it is JSON.
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def plain(value: Any) -> Any:
    """The value as JSON knows it: a missing number is null, anything unknown its text."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if isinstance(value, str | bool | int | float | None) else str(value)


def absolute(out: str | Path, what: str) -> Path:
    """The absolute path that `out` stands for, where ``~`` is the home; `what` is written there, for the message.

    Raises:
        OutputError: It is no name that a file can have, or one that cannot be written down in UTF-8.
    """
    try:
        path = Path(os.path.expanduser(out)).resolve()
        str(path).encode()
    except (ValueError, OSError, RuntimeError) as error:  # a NUL, bytes that are no UTF-8, links in a circle
        raise OutputError(f"{what}: expected a place that can be named, got {str(out)!r} ({error})") from error
    return path


@contextmanager
def os_errors_of(place: Path, what: str) -> Iterator[None]:
    """Turn what the system says against writing to `place` into an ``OutputError``."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{what} {place}: expected a place that can be written, got '{error.strerror or error}'; name another"
        ) from error


def check_new_folder(out: str | Path, what: str = FOLDER) -> Path:
    """The absolute path of a folder that is missing or empty, and can be written; `what` it is called in an error.

    Raises:
        OutputError: It is a file or a folder with anything in it, or cannot be written.
    """
    folder = absolute(out, what)
    with os_errors_of(folder, what):
        if folder.is_dir() and any(folder.iterdir()):
            raise OutputError(f"{what} {folder}: expected a new or empty folder, got one with files; name another")
    check_place(folder, what)
    return folder


def check_place(folder: Path, what: str = FOLDER) -> None:
    """Refuse a place that a file has, or that cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{what} {folder}: expected a folder, got a file; name another")
    # Asking for permission misses read-only file systems, and says yes to root: try it.
    with os_errors_of(folder, what):
        ancestor = next(parent for parent in folder.parents if parent.exists())
        _beside(ancestor / folder.name).cleanup()


def check_output(out: str | Path) -> Path:
    """The absolute path of a folder that a report can be written to, found out before anything is computed.

    Raises:
        OutputError: It is a file, holds something else than an older report, cannot be replaced, or cannot be written.
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
    try:
        with os_errors_of(folder, FOLDER):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _beside(folder) as hidden:
                draft, aside = Path(hidden) / "draft", Path(hidden) / "aside"
                draft.mkdir()
                yield draft
                try:
                    if folder.exists():
                        os.replace(folder, aside)
                    os.replace(draft, folder)
                finally:
                    if aside.exists() and not folder.exists():
                        os.replace(aside, folder)
    finally:
        if not folder.exists():
            for parent in made:
                with suppress(OSError):
                    parent.rmdir()


def _beside(folder: Path) -> TemporaryDirectory[str]:
    """A hidden folder next to `folder`, and so on its file system, which is gone in the end."""
    return TemporaryDirectory(".partial", f".{folder.name}.", folder.parent, ignore_cleanup_errors=True)
