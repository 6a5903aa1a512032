"""What becomes of an answer that is asked for anew? It stays, until all that was asked together is answered.

1. What is measured anew is kept in a folder of runs of its own: ``.anew/KEY`` in the folder of runs, named by the first
   question. Interrupted or killed, the same call goes on there. One process at a time works in it.
2. When the outermost block of ``anew_together`` ends well, and each question in it is answered, the runs in there that
   are finished and intact take the places of those before, each by two renamings. Killed between them, the next one who
   asks finds the one before put back.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from errno import ENOTEMPTY
from pathlib import Path

from interp.errors import OutputError
from interp.runs.disk import to_disk, writing
from interp.runs.lock import locked
from interp.runs.names import KEY, LOCK

_LOG = logging.getLogger(__name__)
_ANEW = ".anew"
_BEFORE, _GONE = ".before", ".gone"
"""Ends of the names of what was in a run's place, until another one is there, and from then on."""


@dataclass
class _Block:
    """What is asked together: the keys, by the folder of runs, and the folders that are held for it."""

    asked: dict[Path, list[str]] = field(default_factory=dict)
    held: ExitStack = field(default_factory=ExitStack)

    def folder(self, root: Path) -> Path:
        """Named by the first question."""
        return root / _ANEW / self.asked[root][0]


_block: ContextVar[_Block | None] = ContextVar("block", default=None)


@contextmanager
def anew_together() -> Iterator[None]:
    """What is measured anew in the block takes the place of what was known when the block ends, unless by an error.

    Raises:
        OutputError: That cannot be written, or another process works on it; what is measured is kept.
    """
    if _block.get() is not None:
        yield
        return
    block = _Block()
    token = _block.set(block)
    try:
        with block.held:
            yield
            for root, asked in block.asked.items():
                _take_places(root, block.folder(root), asked)
    finally:
        _block.reset(token)


def folder_anew(root: Path, key: str | None = None) -> Path:
    """Where what is measured anew in the present block is kept, for a folder of runs.

    Args:
        root: The folder of runs.
        key: Of what is asked; None for what is a part of that.

    Raises:
        OutputError: Another process measures it anew, or it cannot be written.
    """
    block = _block.get()
    assert block is not None, "it is asked for in a block"
    if key is not None and root not in block.asked:
        block.held.enter_context(_held(root, root / _ANEW / key))
    if key is not None:
        block.asked.setdefault(root, []).append(key)
    return block.folder(root)


def put_back(root: Path, key: str = "*") -> None:
    """Put back the run of before, or all of them, where somebody was killed while a place was taken.

    Raises:
        OutputError: Another process is about to take it, or it cannot be written.
    """
    for before in root.glob(f"{_ANEW}/*/{key}{_BEFORE}"):
        if not (root / before.stem).exists():
            with _held(root, before.parent):
                pass


def folders_anew(root: Path) -> dict[Path, int]:
    """The folders of runs where something of this one was begun anew, and how many runs are in each."""
    from interp.runs.catalogue import runs_in

    counts = {path: len(runs_in(path)) for path in sorted(root.glob(f"{_ANEW}/*")) if KEY.fullmatch(path.name)}
    return {path: n_runs for path, n_runs in counts.items() if n_runs}


def root_before(folder: Path) -> Path | None:
    """The folder of runs that this one measures anew for; None where it does not."""
    folder = folder.resolve()
    return folder.parent.parent if folder.parent.name == _ANEW and KEY.fullmatch(folder.name) else None


@contextmanager
def _held(root: Path, folder: Path) -> Iterator[None]:
    """Hold a folder of what is measured anew, made where there is none, and removed where nothing is kept in it."""
    with writing(folder, "folder of runs"):
        for path in (folder.parent, folder):
            path.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                raise OutputError(f"{path}: expected a folder, got a link to one; remove it")
    with locked(folder / LOCK, folder, "what is measured anew in"):
        _settle(root, folder)
        try:
            yield
        finally:
            _settle(root, folder)
            with suppress(OSError):
                if [path.name for path in folder.iterdir()] == [LOCK]:
                    (folder / LOCK).unlink()
                    folder.rmdir()
                    folder.parent.rmdir()


def _settle(root: Path, folder: Path) -> None:
    """Put back the runs whose places nothing has taken, and remove those whose places something has.

    Raises:
        OutputError: One cannot be put back.
    """
    left = [path for path in folder.iterdir() if KEY.fullmatch(path.stem) and path.suffix in (_BEFORE, _GONE)]
    for path in left:
        place = root / path.stem
        if path.suffix == _BEFORE and not place.exists():
            with writing(place, "run"):
                path.rename(place)
        else:
            with suppress(OSError):
                path.unlink() if path.is_symlink() else shutil.rmtree(path)


def _take_places(root: Path, folder: Path, asked: list[str]) -> None:
    from interp.runs.catalogue import runs_in

    intact = set[str]()
    for run in runs_in(folder):
        if run.state != "finished" or run.opened().record.key != run.key:
            continue
        if run.damage():
            run.opened().mend()
        else:
            intact.add(run.key)
    # What was refused has left nothing.
    if any(key not in intact and (folder / key).exists() for key in asked):
        _LOG.warning("%s: not all is complete; the answers of before stay, and the same call goes on", folder)
        return
    for path in (place / key for key in intact for place in (root, folder)):
        with _alone(path):  # all of them, before the first is taken
            pass
    # The first question last: where it is not answered, all are asked.
    for key in sorted(intact, key=lambda key: key == asked[0]):
        with _alone(root / key), _alone(folder / key), writing(root / key, "run"):
            _take_place(folder / key, root / key)


def _alone(run: Path) -> AbstractContextManager[None]:
    """Hold a run, where there is one."""
    return locked(run / LOCK, run, "run") if run.exists() else nullcontext()


def _take_place(new: Path, old: Path) -> None:
    before = new.with_suffix(_BEFORE)
    if old.exists():
        old.rename(before)
    try:
        new.rename(old)
    except OSError as error:
        if error.errno == ENOTEMPTY:
            raise OutputError(
                f"run {old}: another process has begun it meanwhile; wait for it, and ask again"
            ) from error
        raise
    to_disk(old.parent)
    to_disk(new.parent)
    if before.exists():
        before.rename(new.with_suffix(_GONE))
