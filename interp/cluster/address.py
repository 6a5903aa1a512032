"""Does a Ray cluster answer at this address? Asked before Ray is, which would try to connect for ever."""

import re
import socket
import subprocess
import sys
from functools import cache

from interp.errors import InputError

SECONDS = 60
"""How long somebody may take to answer as a cluster."""
_LISTEN_SECONDS = 10
_HOST_AND_PORT = re.compile(r"(ray://)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]/:]+):(?P<port>[0-9]{1,9})")
# Ray, and nothing of that name that lies in the present folder.
_CONNECT = (
    "import sys; sys.path[:] = filter(None, sys.path); import ray; ray.init(address=sys.argv[1], log_to_driver=False)"
)


def require_cluster(address: str) -> None:
    """Refuse an address where nobody listens, or whoever listens is no cluster that this program can use.

    Raises:
        InputError: It is one; what Ray said of it is told.
    """
    _require_listener(address)
    _require_ray(address)


def _require_listener(address: str) -> None:
    found = _HOST_AND_PORT.fullmatch(address)
    if found is None:
        return
    try:
        socket.create_connection((found["host"].strip("[]"), int(found["port"])), timeout=_LISTEN_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise _refused(address, f"nobody who listens ({error})") from error


@cache
def _require_ray(address: str) -> None:
    try:
        # Ray's client cannot be given a limit, nor be interrupted; a process can.
        found = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _CONNECT, address], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _refused(address, f"nobody who answers as one within {SECONDS} s") from error
    if found.returncode:
        lines = found.stderr.strip().splitlines() or [f"exit code {found.returncode}"]
        raise _refused(address, lines[-1])


def _refused(address: str, got: str) -> InputError:
    return InputError(
        f"ray: expected a cluster at {address}, got {got}; start one with `ray start --head`, and give the address "
        "that it prints; if it asks for a token, `export RAY_AUTH_MODE=token` here, too; or leave the address out"
    )
