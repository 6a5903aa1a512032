"""Who writes here? One process at a time; a lock ends with its process, however that ends."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interp.errors import OutputError
from interp.runs.disk import writing

_LONGEST = 200


@contextmanager
def locked(path: Path, folder: Path, what: str = "output folder") -> Iterator[None]:
    """Hold the lock file `path`, which is made where there is none.

    The system gives the lock up when the process that holds it is gone, so nobody's death leaves one behind.

    Args:
        path: The lock file.
        folder: What is locked by it, for the messages.
        what: What kind of folder that is.

    Raises:
        OutputError: Another process holds it, which is named, or it cannot be made.
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
