"""What happened to a run, and when? A line of JSON each, appended at once; whoever reads it may find anything there."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Log:
    """A run's log.

    Attributes:
        path: Its file.
    """

    path: Path

    def note(self, event: str, part: str = "", **more: Any) -> None:
        """Append what happened, after a line that a full disk has cut off as well.

        Raises:
            OSError: It cannot be written, or is a link.
        """
        said = {"time": datetime.now().astimezone().isoformat(timespec="seconds"), "event": event, "part": part, **more}
        said |= {"process": os.getpid(), "host": socket.gethostname()}
        with open(self.path, "a+b", opener=_no_link) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - 1, 0))
            cut_off = file.read(1) not in (b"", b"\n")
            file.write((b"\n" if cut_off else b"") + json.dumps(said).encode() + b"\n")

    def begun(self) -> datetime | None:
        """When it was first opened; None where that is not told."""
        for said in self._lines():
            with suppress(ValueError, TypeError, KeyError, OverflowError):
                return datetime.fromisoformat(said["time"]).astimezone()
        return None

    def planned(self) -> int | None:
        """How many parts it has in all, as far as is known."""
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
