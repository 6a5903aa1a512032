"""A run's folder, which loses nothing: each part is on the disk, whole, before the next one counts.

1. A file is written beside its place, brought to the disk (fsync), and renamed. A part's name carries the beginning of
   its SHA-256, so that any changed byte is found, and no list of parts has to be kept.
2. One process at a time holds the folder. The next one deletes what a killed one left half-written.
3. The result is written last: then the run is finished, and only its tables are read.
"""

import json
import logging
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from interp.errors import InputError, LoadError, OutputError
from interp.hashing import plain
from interp.runs.files import locked, put, read_table, sha256_of, writing
from interp.runs.key import DIGITS, LOCK, LOG, MANIFEST, PART, PARTS, RESULT, Record, Result, table_file


@dataclass(frozen=True)
class Log:
    """A run's log: one line of JSON for each event, appended at once; a reader may find anything in it."""

    path: Path

    def note(self, event: str, part: str = "", **more: Any) -> None:
        """Append an event, also after a line that a full disk has cut off. A link is refused (OSError)."""
        said = {"time": datetime.now().astimezone().isoformat(timespec="seconds"), "event": event, "part": part, **more}
        said |= {"process": os.getpid(), "host": socket.gethostname()}
        with open(self.path, "a+b", opener=_no_link) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - 1, 0))
            cut_off = file.read(1) not in (b"", b"\n")
            file.write((b"\n" if cut_off else b"") + json.dumps(said).encode() + b"\n")

    def begun(self) -> datetime | None:
        """When the run was first opened; None where the log does not say."""
        for said in self._lines():
            with suppress(ValueError, TypeError, KeyError, OverflowError):
                return datetime.fromisoformat(said["time"]).astimezone()
        return None

    def planned(self) -> int | None:
        """Number of parts in all, as far as is known."""
        found = [said.get("parts") for said in self._lines() if said.get("event") == "planned"]
        return found[-1] if found and isinstance(found[-1], int) else None

    def _lines(self) -> Iterator[dict[str, Any]]:
        with suppress(OSError), open(self.path, "rb", opener=_no_link) as file:
            for line in file:
                with suppress(ValueError, RecursionError):
                    said = json.loads(line)
                    if isinstance(said, dict):
                        yield said


def _no_link(path: str, flags: int) -> int:
    """Open a file, but none that a link leads to: it may be anybody's."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


_DRAFT = ".partial"
_LOG = logging.getLogger(__name__)


class RunFolder:
    """The folder of the run `record`, named by its key, in the folder of all runs."""

    def __init__(self, folder: Path, record: Record):
        self.folder, self.record = folder, record

    @contextmanager
    def held(self) -> Iterator["RunFolder"]:
        """Hold the folder alone, made where there is none; removed if the request is refused with nothing kept."""
        with self._writing():
            (self.folder / PARTS).mkdir(parents=True, exist_ok=True)
            if (self.folder / PARTS).is_symlink():  # files that are deleted there may be anybody's
                raise OutputError(f"run {self.folder}: expected a folder of parts, got a link to one; remove it")
        with self._locked():
            with self._writing():
                self._require_record()
                for path in self.folder.rglob(f"*{_DRAFT}"):
                    path.unlink(missing_ok=True)
            self.log("opened")
            try:
                yield self
            except InputError:
                with suppress(OSError):
                    if not self.finished and not self.parts():
                        shutil.rmtree(self.folder)
                raise

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self.folder, "run")

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self.folder / LOCK, self.folder, "run")

    def discard(self) -> None:
        """Delete the parts and the result, which were found to be wrong; the folder is held."""
        with self._writing():
            for path in (self.folder / RESULT, *self.folder.glob(table_file("*")), *(self.folder / PARTS).iterdir()):
                path.unlink(missing_ok=True)
        self.log("discarded")

    @property
    def recorded(self) -> bool:
        """Whether its manifest is there and intact."""
        found = Record.intact(self.folder / MANIFEST)
        return found is not None and found.key == self.record.key

    def _require_record(self) -> None:
        """Write the manifest where there is none, or a damaged one."""
        path = self.folder / MANIFEST
        if not self.recorded:
            if path.exists():
                self._log_damage(path)
            self._write_text(path, self.record.text())

    def _write_text(self, path: Path, text: str) -> None:
        _write(path, lambda draft: draft.write_text(text, encoding="utf-8"))

    def log(self, event: str, part: str = "", **more: Any) -> None:
        """Append an event to the log."""
        with self._writing():
            Log(self.folder / LOG).note(event, part, **more)

    @property
    def finished(self) -> bool:
        """Whether a result is there, intact or not."""
        return (self.folder / RESULT).exists()

    def parts(self) -> dict[str, Path]:
        """The files of the parts that are there, by name."""
        found = {path: PART.fullmatch(path.name) for path in sorted((self.folder / PARTS).glob("*"))}
        return {match[1]: path for path, match in found.items() if match is not None}

    def read(self, name: str, path: Path) -> pa.Table | None:
        """A part, or None where its file is damaged, which is logged and deleted: the part is to be computed again."""
        table = self._intact(name, path)
        if table is None:
            self._log_damage(path)
            with self._writing():
                path.unlink(missing_ok=True)
        return table

    def _intact(self, name: str, path: Path) -> pa.Table | None:
        if not self._is(path, path.name.rsplit(".", 2)[1]):
            return None
        with suppress(pa.ArrowException):
            table = read_table(path)
            return table if _owner(table) == {"run": self.record.key, "part": name} else None
        return None

    def write(self, name: str, table: pa.Table) -> None:
        """Keep a part."""
        draft = self.folder / PARTS / f"{name}{_DRAFT}"
        owner = json.dumps({"run": self.record.key, "part": name})
        with self._writing():
            own = table.replace_schema_metadata({**(table.schema.metadata or {}), b"interp": owner.encode()})
            pq.write_table(own, draft, compression="zstd")
            put(draft, draft.with_name(f"{name}.{sha256_of(draft)[:DIGITS]}.parquet"))
        self.log("kept", name)

    def finish(self, tables: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]) -> "Finished":
        """Keep the finished tables and facts, which JSON can hold; return them as they will be found."""
        digests = {}
        with self._writing():
            for name, table in tables.items():
                digests[name] = self._keep(table, self.folder / table_file(name))
            parts = tuple(path.name for path in self.parts().values())
            result = Result(self.record.key, plain(facts), digests, parts)
            self._write_text(self.folder / RESULT, result.text())
        self.log("finished")
        found = self.result()
        assert found is not None, "it was written a moment ago"
        return found

    def _keep(self, table: pd.DataFrame, path: Path) -> str:
        """Write a table; its SHA-256."""
        try:
            # Threads of its own would want memory where a sweep has little.
            own = pa.Table.from_pandas(table, preserve_index=False, nthreads=1)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(f"run: expected labels of one type in each column, got others ({error})") from error
        return _write(path, lambda draft: pq.write_table(own, draft))

    def result(self) -> "Finished | None":
        """The answer; None where it is not finished, or damaged, which is logged."""
        kept = self._kept()
        hurt = self._hurt(kept)
        for name in hurt:
            self._log_damage(self.folder / name, log=False)
        if kept is None or hurt:
            return None
        try:
            files = {name: self.folder / table_file(name) for name in kept.tables}
            found = {name: read_table(path).to_pandas(use_threads=False) for name, path in files.items()}
        except FileNotFoundError:
            return None  # somebody has begun it anew, meanwhile
        return Finished(found, kept.facts)

    def _kept(self) -> Result | None:
        """``result.json``; None where there is none, or a damaged one."""
        kept = Result.intact(self.folder / RESULT)
        return kept if kept is not None and kept.key == self.record.key else None

    def _hurt(self, kept: Result | None) -> list[str]:
        """The result, or files of its tables, that are not as they were written."""
        if kept is None:
            return [RESULT] if self.finished else []
        files = {table_file(name): digest for name, digest in kept.tables.items()}
        return [name for name, digest in files.items() if not self._is(self.folder / name, digest)]

    def _is(self, path: Path, beginning: str) -> bool:
        """Whether a file's SHA-256 begins like this."""
        try:
            return sha256_of(path).startswith(beginning)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise LoadError(f"{path}: cannot be read ({error.strerror or error}); it is left as it is") from error

    def damage(self) -> list[str]:
        """Every file that is damaged or missing; nothing is changed."""
        kept, parts = self._kept(), self.parts()
        hurt = [path.name for name, path in parts.items() if self._intact(name, path) is None]
        there = {path.name for path in parts.values()}
        missing = [] if kept is None else [name for name in kept.parts if name not in there]
        return [f"{PARTS}/{name}" for name in (*hurt, *missing)] + self._hurt(kept)

    def mend(self) -> None:
        """Delete damaged files and the result, so that the same request computes what is missing."""
        with self._writing(), self._locked():
            for name in self.damage():
                self._log_damage(self.folder / name)
                for each in (name, RESULT):
                    (self.folder / each).unlink(missing_ok=True)

    def _log_damage(self, path: Path, *, log: bool = True) -> None:
        _LOG.warning("%s: damaged or missing, and made again when its run is asked for", path)
        if log:
            self.log("damaged", path.name)

    def remove(self) -> None:
        """Delete all of it."""
        with self._writing(), self._locked():
            shutil.rmtree(self.folder)


@dataclass(frozen=True)
class Finished:
    """A run's answer: its tables by name, and all else as JSON."""

    tables: Mapping[str, pd.DataFrame]
    facts: Mapping[str, Any]


def _owner(table: pa.Table) -> Any:
    with suppress(ValueError):
        return json.loads((table.schema.metadata or {}).get(b"interp", b"null"))
    return None


def _write(path: Path, write: Callable[[Path], object]) -> str:
    """Write a file beside its place, and bring it there whole; its SHA-256."""
    draft = path.with_name(path.name + _DRAFT)
    write(draft)
    digest = sha256_of(draft)
    put(draft, path)
    return digest
