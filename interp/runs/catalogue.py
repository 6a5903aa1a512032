"""The runs in a folder of runs: their states, damage, tables and removal."""

import re
import shlex
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

import pandas as pd

from interp.errors import InputError, LoadError, suggest
from interp.runs.files import OtherVersionError
from interp.runs.key import FRAME, KEY, KEY_DIGITS, LOCK, LOG, MANIFEST, PARTS, RESULT, Record, Result
from interp.runs.run_folder import Log, RunFolder

State = Literal["finished", "begun", "damaged", "other version"]
_BEGINNING = re.compile(rf"[0-9a-f]{{4,{KEY_DIGITS}}}|{KEY.pattern}")


@dataclass(frozen=True)
class KnownRun:
    """A run in the folder of runs."""

    folder: Path  # its own
    record: Record | None  # its manifest; None where that cannot be read
    problem: LoadError | None = None  # why the manifest or the result cannot be read; ``damage`` lists a damaged result

    @property
    def key(self) -> str:
        """Name of its folder."""
        return self.folder.name

    @property
    def state(self) -> State:
        """Whether there is a result; the files themselves are not read."""
        if isinstance(self.problem, OtherVersionError):
            return "other version"
        if self.record is None:
            return "damaged"
        return "finished" if self.opened().finished else "begun"

    @property
    def n_parts(self) -> int:
        """Number of parts that are kept."""
        return len(list((self.folder / PARTS).glob("*.parquet")))

    @property
    def n_bytes(self) -> int:
        """Bytes on the disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    @property
    def n_planned(self) -> int | None:
        """Number of parts in all; None where the log does not say, or there are none."""
        return Log(self.folder / LOG).planned()

    @cached_property
    def begun(self) -> datetime:
        """When it was first asked for; where the log does not say, when its manifest was written."""
        path = self.folder / MANIFEST
        written = path.stat().st_mtime if path.exists() else 0.0
        return Log(self.folder / LOG).begun() or datetime.fromtimestamp(written).astimezone()

    def opened(self) -> RunFolder:
        """Its folder, to read from."""
        if self.record is None:
            assert self.problem is not None, "it tells why there is no record"
            raise self.problem
        return RunFolder(self.folder, self.record)

    def damage(self) -> list[str]:
        """What is wrong with each file; empty where all is well, or another version wrote the run."""
        if self.problem is not None:
            return [] if self.state == "other version" else [str(self.problem)]
        return [
            f"{name} is {'damaged' if (self.folder / name).exists() else 'missing'}" for name in self.opened().damage()
        ]

    def table(self, name: str | None = None) -> pd.DataFrame:
        """A finished table by its name; None for the main one."""
        resume = f"`interp runs resume {self.key} --runs {shlex.quote(str(self.folder.parent))}`"
        if self.state == "begun":
            raise LoadError(f"run {self.key}: it is not finished; {resume} goes on with it")
        known = self.opened().result()
        if known is None:
            raise LoadError(f"{self.folder}: its tables are damaged; {resume} makes them again")
        name = name or (FRAME if FRAME in known.tables else next(iter(known.tables)))
        if name not in known.tables:
            raise InputError(f"run {self.key}: no table {name[:80]!r}; {suggest(name, known.tables)}")
        return known.tables[name]

    def remove(self) -> None:
        """Delete it."""
        RunFolder(self.folder, self.record or Record({}, {})).remove()


def runs_in(root: Path) -> list[KnownRun]:
    """All runs in a folder of runs, the latest first."""
    try:
        folders = (
            [path for path in root.iterdir() if KEY.fullmatch(path.name) and path.is_dir()] if root.exists() else []
        )
    except OSError as error:
        raise LoadError(f"{root}: cannot be read ({error.strerror or error}); expected a folder of runs") from error
    found = [_known(path) for path in folders if (path / MANIFEST).exists() or (path / LOCK).exists()]
    return sorted(found, key=lambda run: run.begun, reverse=True)


def find_run(root: Path, beginning: str) -> KnownRun:
    """The run of this key, or the only one whose key begins like this."""
    if not _BEGINNING.fullmatch(beginning):
        raise InputError(
            f"run {beginning[:40]!r}: expected 4 to {KEY_DIGITS} of the digits 0-9 a-f; see `interp runs ls`"
        )
    every = runs_in(root)
    named = [each for each in every if each.key == beginning]
    found = named or [each for each in every if each.key.startswith(beginning)]
    if len(found) != 1:
        said = "several begin like this" if found else suggest(beginning, [each.key for each in every])
        raise InputError(f"run {beginning}: expected one of those in {root}, got {len(found)}; {said}")
    return found[0]


def _known(folder: Path) -> KnownRun:
    try:
        record = Record.read(folder / MANIFEST)
    except LoadError as error:
        return KnownRun(folder, None, error)
    try:
        Result.intact(folder / RESULT)
    except OtherVersionError as error:
        return KnownRun(folder, record, error)
    return KnownRun(folder, record)
