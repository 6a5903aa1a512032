"""Where a limit of memory is asked for, what is freed goes back to the system at once."""

import ctypes
import sys

M_MMAP_THRESHOLD = -3
SMALLEST = 128 * 1024


def limited(memory: str | None) -> int | None:
    """The bytes of ``--memory``, if any; from then on the process keeps no freed memory beside them."""
    if memory is None:
        return None
    give_back_freed_memory()
    return int(memory)


def give_back_freed_memory() -> None:
    """Let the C library keep no freed block of 128 KiB or more, for the rest of this process; it costs some speed.

    By itself glibc raises that size to 32 MiB, and a process may hold twice what it uses. Other C libraries are left
    as they are.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(M_MMAP_THRESHOLD, SMALLEST)
