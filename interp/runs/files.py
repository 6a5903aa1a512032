"""Files that are whole or absent: written beside their place, brought to the disk (fsync), and renamed.

JSON files carry their own SHA-256, and a lock file says which process writes in a folder.
"""

import fcntl
import hashlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError

from interp.errors import InputError, LoadError, OutputError, shown

_LONGEST = 200


@contextmanager
def writing(folder: Path, what: str = "output folder") -> Iterator[None]:
    """Turn the system's errors of writing into `folder` into an ``OutputError``."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        number = getattr(error, "errno", None)  # libraries have words of their own for it
        said = os.strerror(number) if number else error
        raise OutputError(
            f"{what} {folder}: expected a place that can be written, got '{said}'; name another, or make room and go on"
        ) from error


def put(draft: Path, path: Path) -> None:
    """Bring a written file to the disk, and to its place on the same file system."""
    _to_disk(draft)
    os.replace(draft, path)
    _to_disk(path.parent)


def _to_disk(path: Path) -> None:
    """Wait until a file's bytes, or a folder's renames, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, folder: Path, what: str = "output folder") -> Iterator[None]:
    """Hold the lock file `path`, made where there is none; messages call what it locks `what` `folder`.

    The system gives the lock up when the process that holds it is gone. Raises OutputError where another one holds it.
    """
    with writing(folder, what):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)  # a link could lead to anybody's file
    try:
        with writing(folder, what):
            if not (_lock(handle) and path.exists() and os.path.samestat(os.fstat(handle), path.stat())):
                raise OutputError(
                    f"{what} {folder}: another process ({_holder(handle)}) works on it; wait for it, or name another "
                    "folder"
                )
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle: int) -> str:
    text = os.pread(handle, _LONGEST, 0).decode(errors="replace")
    return text if text.isprintable() and text else "unknown"


class OtherVersionError(LoadError):
    """Written by another version of this program: no damage."""


def signed(content: Mapping[str, Any]) -> str:
    """JSON text of `content` with its own SHA-256. There is one way to write it, so any changed byte is found."""
    digest = hashlib.sha256(_json(content).encode()).hexdigest()
    return _json({**content, "sha256": digest})


@dataclass(frozen=True)
class Signed:
    """What is kept as a JSON file that carries its own SHA-256: a dataclass, whose fields are written by name."""

    format: ClassVar[str]
    version: ClassVar[int]
    what: ClassVar[str]
    """What messages call it."""
    advice: ClassVar[str]

    def derived(self) -> dict[str, Any]:
        """What is written before the fields, and follows from them."""
        return {}

    def fits(self) -> bool:
        """Whether the fields, each of its type, go together."""
        return True

    def text(self) -> str:
        """As it is written."""
        return signed({"format": self.format, "version": self.version, **self.derived(), **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """What a file holds.

        Raises:
            OtherVersionError: Another version of this program wrote it.
            LoadError: It cannot be read, is of another kind, or damaged.
        """
        wrong = LoadError(f"{path}: expected {cls.what}, got something else, or a damaged one; {cls.advice}")
        try:
            text = path.read_text(encoding="utf-8")
            content = json.loads(text)
            ours = isinstance(content, dict) and content.get("format") == cls.format and _is_signed(content, text)
        except OSError as error:
            raise LoadError(f"{path}: cannot be read ({error.strerror or error})") from error
        except (ValueError, RecursionError) as error:  # also a NaN, half a character, or endless nesting
            raise wrong from error
        if not ours:
            raise wrong
        if content.get("version") != cls.version:
            raise OtherVersionError(
                f"{path}: {cls.what} in version {shown(content.get('version'))}, this program reads {cls.version}; use "
                "the version of interp that wrote it"
            )
        try:
            found: Self = from_json(cls, {each.name: content.get(each.name) for each in fields(cls)})
            if found.fits() and found.text() == text:
                return found
        except (TypeError, InputError, RecursionError):  # an unknown name, or nested too deeply to be written again
            pass
        raise wrong

    @classmethod
    def intact(cls, path: Path) -> Self | None:
        """As ``read``, but None where it is damaged or missing."""
        try:
            return cls.read(path)
        except OtherVersionError:
            raise
        except LoadError:
            return None


def from_json(kind: Any, value: Any) -> Any:
    """What was read, as a value of this type: a dataclass, a tuple, a mapping, a choice. Raises TypeError otherwise.

    Nothing is converted: True is no number.
    """
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if is_dataclass(kind):
        made: Any = kind
        types = get_type_hints(kind)
        hints = {each.name: types[each.name] for each in fields(kind)}
        if isinstance(value, dict) and value.keys() == hints.keys():
            return made(**{name: from_json(hint, value[name]) for name, hint in hints.items()})
    elif origin is tuple:
        if isinstance(value, list):
            return tuple(from_json(args[0], each) for each in value)
    elif origin is Mapping:
        if isinstance(value, dict):
            return {name: from_json(args[1], each) for name, each in value.items()}
    elif value in args if origin is Literal else type(value) in (args or (kind,)):
        return value
    raise TypeError(f"expected {kind}, got {value!r:.80}")


def _is_signed(content: Mapping[str, Any], text: str) -> bool:
    return signed({name: value for name, value in content.items() if name != "sha256"}) == text


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_table(path: Path) -> pa.Table:
    """The table in a Parquet file, read without threads: where memory is short, Arrow waits for others for ever."""
    with pq.ParquetFile(path) as file:
        return file.read(use_threads=False)
