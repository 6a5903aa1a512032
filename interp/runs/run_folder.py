"""How does a run lose nothing? Each part is on the disk, whole, before the next one counts; damage is found and named.

1. A file is written beside its place, brought to the disk (fsync), and renamed. A part's name carries the beginning of
   its SHA-256, so that a byte that is not as it was written is found, and no list of parts has to be kept.
2. One process at a time holds the folder (``lock.py``). What a killed one left half-written is deleted by the next.
3. The result is written last: then the run is finished, and its tables are all that is read of it.
"""

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from interp.errors import InputError, LoadError, OutputError
from interp.runs.disk import put, writing
from interp.runs.lock import locked
from interp.runs.log import Log
from interp.runs.names import DIGITS, LOCK, LOG, MANIFEST, PART, PARTS, RESULT, table_file
from interp.runs.record import Record, Result
from interp.runs.signed import OtherVersionError, sha256_of
from interp.runs.tables import read_table

_DRAFT = ".partial"
_LOG = logging.getLogger(__name__)


class RunFolder:
    """A run's folder.

    Attributes:
        folder: Where it is: named by its key, in the folder of all runs.
        record: What it is of.
    """

    def __init__(self, folder: Path, record: Record):
        self.folder, self.record = folder, record

    @contextmanager
    def held(self) -> Iterator["RunFolder"]:
        """Hold it alone, made where there is none; it goes again where its question is refused with nothing kept.

        Raises:
            OutputError: It cannot be written, or another process holds it.
            LoadError: It was written by another version of this program.
        """
        with self._writing():
            (self.folder / PARTS).mkdir(parents=True, exist_ok=True)
            self._require_own()
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

    def _require_own(self) -> None:
        """Refuse a folder of parts that lies elsewhere: what is deleted there may be anybody's."""
        if (self.folder / PARTS).is_symlink():
            raise OutputError(f"run {self.folder}: expected a folder of parts, got a link to one; remove it")

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self.folder, "run")

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self.folder / LOCK, self.folder, "run")

    def discard(self) -> None:
        """Delete the parts of a folder that is held: what is in them was found to be wrong."""
        with self._writing():
            for path in (self.folder / RESULT, *self.folder.glob(table_file("*")), *(self.folder / PARTS).iterdir()):
                path.unlink(missing_ok=True)
        self.log("discarded")

    @property
    def recorded(self) -> bool:
        """Whether its manifest is there and intact.

        Raises:
            LoadError: It was written by another version of this program.
        """
        try:
            return Record.read(self.folder).key == self.record.key
        except OtherVersionError:
            raise
        except LoadError:
            return False

    def _require_record(self) -> None:
        """Write what is asked for, where that is not there, or damaged: whoever asks knows it."""
        if self.recorded:
            return
        path = self.folder / MANIFEST
        if path.exists():
            self._tell_damage(path)
        self._write(path, self.record.text())

    def _write(self, path: Path, text: str) -> None:
        draft = path.with_name(path.name + _DRAFT)
        draft.write_text(text, encoding="utf-8")
        put(draft, path)

    def log(self, event: str, part: str = "", **more: Any) -> None:
        """Note what happened."""
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
        """A part, or None where its file is damaged, which is then told and deleted: it is to be computed anew."""
        table = self._intact(name, path)
        if table is not None:
            return table
        self._tell_damage(path)
        with self._writing():
            path.unlink(missing_ok=True)
        return None

    def _intact(self, name: str, path: Path) -> pa.Table | None:
        if not self._is(path, path.name.rsplit(".", 2)[1]):
            return None
        with suppress(pa.ArrowException):
            table = read_table(path)
            return table if _owner(table) == {"run": self.record.key, "part": name} else None
        return None

    def write(self, name: str, table: pa.Table) -> None:
        """Keep a part.

        Raises:
            OutputError: It cannot be written.
        """
        draft = self.folder / PARTS / f"{name}{_DRAFT}"
        owner = json.dumps({"run": self.record.key, "part": name})
        with self._writing():
            own = table.replace_schema_metadata({**(table.schema.metadata or {}), b"interp": owner.encode()})
            pq.write_table(own, draft, compression="zstd")
            put(draft, draft.with_name(f"{name}.{sha256_of(draft)[:DIGITS]}.parquet"))
        self.log("kept", name)

    def finish(self, tables: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]) -> "Finished":
        """Keep the finished tables, and give them as they will be found.

        Args:
            tables: By name, of small letters, digits and ``_``.
            facts: What else there is to say, which JSON can hold.

        Raises:
            InputError: A column that no table can hold.
            OutputError: They cannot be written.
        """
        digests = {}
        with self._writing():
            for name, table in tables.items():
                digests[name] = self._keep(table, self.folder / table_file(name))
            parts = [path.name for path in self.parts().values()]
            self._write(self.folder / RESULT, Result(facts, digests, parts).text(self.record.key))
        self.log("finished")
        found = self.result()
        assert found is not None, "it was written a moment ago"
        return found

    def _keep(self, table: pd.DataFrame, path: Path) -> str:
        """Write a table; its SHA-256."""
        draft = path.with_name(path.name + _DRAFT)
        try:
            # Threads of its own would want memory where a sweep has little.
            own = pa.Table.from_pandas(table, preserve_index=False, nthreads=1)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(f"run: expected labels of one type in each column, got others ({error})") from error
        pq.write_table(own, draft)
        digest = sha256_of(draft)
        put(draft, path)
        return digest

    def result(self) -> "Finished | None":
        """What it came to; None where it is not finished, or damaged, which is told.

        Raises:
            LoadError: It was written by another version of this program, or cannot be read.
        """
        kept = self._kept()
        hurt = [RESULT] if kept is None and self.finished else self._hurt(kept)
        for name in hurt:
            self._tell_damage(self.folder / name, log=False)
        if kept is None or hurt:
            return None
        try:
            files = {name: self.folder / table_file(name) for name in kept.tables}
            found = {name: read_table(path).to_pandas(use_threads=False) for name, path in files.items()}
        except FileNotFoundError:
            return None  # somebody has begun it anew, meanwhile
        return Finished(found, kept.facts)

    def _kept(self) -> Result | None:
        """What is written of a finished run; None where it is not finished, or that is damaged."""
        try:
            return Result.read(self.folder, self.record.key)
        except OtherVersionError:
            raise
        except LoadError:
            return None

    def _hurt(self, kept: Result | None) -> list[str]:
        """Of a finished run's tables those that are not as they were written."""
        files = {} if kept is None else {table_file(name): digest for name, digest in kept.tables.items()}
        return [name for name, digest in files.items() if not self._is(self.folder / name, digest)]

    def _is(self, path: Path, beginning: str) -> bool:
        """Whether a file's SHA-256 begins like this.

        Raises:
            LoadError: It is there and cannot be read, which is no damage.
        """
        try:
            return sha256_of(path).startswith(beginning)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise LoadError(f"{path}: cannot be read ({error.strerror or error}); it is left as it is") from error

    def damage(self) -> list[str]:
        """Every file that is not as it was written, or is missing; nothing is changed."""
        parts = self.parts()
        hurt = [path.name for name, path in parts.items() if self._intact(name, path) is None]
        if not self.finished:
            return [f"{PARTS}/{name}" for name in hurt]
        kept, there = self._kept(), {path.name for path in parts.values()}
        missing = [] if kept is None else [name for name in kept.parts if name not in there]
        return [f"{PARTS}/{name}" for name in (*hurt, *missing)] + ([RESULT] if kept is None else self._hurt(kept))

    def mend(self) -> None:
        """Delete what is damaged, and with it the result: who asks again has made anew what is missing.

        Raises:
            OutputError: Another process holds it, or it cannot be written.
            LoadError: It was written by another version of this program.
        """
        with self._writing(), self._locked():
            for name in self.damage():
                self._tell_damage(self.folder / name)
                for each in (name, RESULT):
                    (self.folder / each).unlink(missing_ok=True)

    def _tell_damage(self, path: Path, *, log: bool = True) -> None:
        _LOG.warning("%s: damaged or missing, and made anew when its run is asked for", path)
        if log:
            self.log("damaged", path.name)

    def remove(self) -> None:
        """Delete all of it.

        Raises:
            OutputError: Another process holds it, or it cannot be deleted.
        """
        with self._writing(), self._locked():
            shutil.rmtree(self.folder)


@dataclass(frozen=True)
class Finished:
    """What a run came to.

    Attributes:
        tables: By name.
        facts: What else there is to say.
    """

    tables: Mapping[str, pd.DataFrame]
    facts: Mapping[str, Any]


def _owner(table: pa.Table) -> Any:
    with suppress(ValueError):
        return json.loads((table.schema.metadata or {}).get(b"interp", b"null"))
    return None
