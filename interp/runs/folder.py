"""How does a store come to be on the disk? Whole files only, by one process at a time, and from any kill it goes on.

1. A file is written in ``collecting.partial``, a folder inside the store, brought to the disk (fsync), and then renamed
   to its place. After each shard ``state.json`` there, a manifest without an index, is written anew in the same way.
2. What a killed process left there beside the state is deleted by the next one.
3. ``lock`` there is locked while a process collects, which ends with the process however it ends.
4. The manifest is written last, and ``collecting.partial`` is deleted: then the store is complete.
"""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from interp.errors import LoadError, OutputError
from interp.runs.disk import put, writing
from interp.runs.lock import locked
from interp.runs.manifest import MANIFEST, Manifest

PARTIAL, STATE, LOCK = "collecting.partial", "state.json", "lock"


@contextmanager
def collecting_into(folder: Path) -> Iterator["Draft"]:
    """Lock a store's folder, which is made where there is none, and is gone afterwards if it has no complete shard.

    Raises:
        OutputError: It is a file, cannot be written, holds something else, or another process collects into it.
        LoadError: It holds a store that is damaged.
    """
    draft = Draft(folder)
    with locked(draft.path(LOCK), folder):
        try:
            draft.clean()
            yield draft
        finally:
            draft.end()


def require_usable(folder: Path) -> None:
    """Refuse a folder that holds something else than a store, complete or begun.

    Raises:
        OutputError: It does, or is a file.
        LoadError: Its manifest is damaged, or of something else.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"output folder {folder}: expected a folder, got a file; name another")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if names and not names & {PARTIAL, MANIFEST}:
        raise OutputError(
            f"output folder {folder}: expected a new or empty folder or a store of activations, got one with other "
            f"files ({', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''}); name another"
        )
    if MANIFEST in names:
        Manifest.read(folder / MANIFEST)


class Draft:
    """A store that is being written."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._partial = folder / PARTIAL
        self._made = [each for each in (folder, *folder.parents) if not each.exists()]
        with self.writing():
            require_usable(folder)
            self._partial.mkdir(parents=True, exist_ok=True)

    def writing(self) -> AbstractContextManager[None]:
        """Turn what the system says against writing into an ``OutputError``."""
        return writing(self.folder)

    def path(self, name: str) -> Path:
        """Where a file is written at first."""
        return self._partial / name

    def keep(self, name: str) -> None:
        """Bring a file that was written to the disk, and to its place in the store."""
        self._replace(self.path(name), self.folder / name)

    def known(self) -> Manifest | None:
        """What is in the store so far: that of its manifest, or of its state; None of a new one.

        Raises:
            LoadError: That is damaged.
        """
        for path in (self.folder / MANIFEST, self._partial / STATE):
            if path.exists():
                return Manifest.read(path)
        return None

    def write_state(self, state: Manifest) -> None:
        """Note which shards are complete; what was a complete store is none from here on."""
        draft = self.path(f"{STATE}.new")
        with self.writing():
            draft.write_text(state.text(), encoding="utf-8")
            self._replace(draft, self._partial / STATE)
            (self.folder / MANIFEST).unlink(missing_ok=True)

    def finish(self, manifest: Manifest) -> None:
        """Make the store complete."""
        with self.writing():
            self.path(MANIFEST).write_text(manifest.text(), encoding="utf-8")
            self.keep(MANIFEST)

    def clean(self) -> None:
        """Delete what a killed process left half-written."""
        with self.writing():
            for path in self._partial.iterdir():
                if path.name not in (STATE, LOCK):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def end(self) -> None:
        """Delete what is of no further use: of a complete store the state, of one without a shard everything."""
        with suppress(LoadError, OutputError):
            self.clean()
            known = self.known()
            if (self.folder / MANIFEST).exists() or known is None or not known.shards:
                (self._partial / STATE).unlink(missing_ok=True)
                (self._partial / LOCK).unlink(missing_ok=True)
        # Only what is empty goes.
        for folder in (self._partial, *self._made):
            with suppress(OSError):
                folder.rmdir()

    def _replace(self, draft: Path, path: Path) -> None:
        with self.writing():
            # Safetensors makes files that nobody but their owner may read; the lock has the usual permissions.
            shutil.copymode(self._partial / LOCK, draft)
            put(draft, path)
