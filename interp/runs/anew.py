"""What becomes of an answer that is asked for anew? It stays, until all that was asked together is answered.

1. What is measured anew is kept in a folder of runs of its own, ``anew`` in the folder of runs. Interrupted or killed,
   the same call goes on there.
2. When the outermost block of ``anew_together`` ends well, the finished runs in there take the places of those before.
   Killed between two renamings, both are on the disk, and the same call ends it.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

ANEW = "anew"
_BEFORE = ".before"
_roots: ContextVar[set[Path] | None] = ContextVar("roots", default=None)


@contextmanager
def anew_together() -> Iterator[None]:
    """What is measured anew in the block takes the place of what was known when the block ends, unless by an error.

    Raises:
        OutputError: That cannot be written, or another process works on it; what is measured is kept.
    """
    if _roots.get() is not None:
        yield
        return
    roots = set[Path]()
    token = _roots.set(roots)
    try:
        yield
        for root in roots:
            _take_places(root)
    finally:
        _roots.reset(token)
        for root in roots:
            with suppress(OSError):
                (root / ANEW).rmdir()


def folder_anew(root: Path) -> Path:
    """Where is kept what is measured anew, for this folder of runs."""
    roots = _roots.get()
    if roots is not None:
        roots.add(root)
    return root / ANEW


def _take_places(root: Path) -> None:
    from interp.runs.record import RESULT

    folder = root / ANEW
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (path / RESULT).exists() and not path.name.endswith(_BEFORE):
            _take_place(path, root / path.name)
    for path in folder.glob(f"*{_BEFORE}"):
        shutil.rmtree(path, ignore_errors=True)


def _take_place(new: Path, old: Path) -> None:
    from interp.runs.disk import to_disk, writing
    from interp.runs.lock import locked
    from interp.runs.record import LOCK

    with ExitStack() as stack, writing(old, "run"):
        for path in (new, old):
            if path.exists():
                stack.enter_context(locked(path / LOCK, f"run {path}"))
        if old.exists():
            old.rename(new.with_name(new.name + _BEFORE))
        new.rename(old)
        to_disk(old.parent)
        to_disk(new.parent)
