"""Many malformed inputs for one reader: each is refused in words of ours, or read as something whole; none hangs."""

import os
import random
import resource
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interp.errors import InterpError

SECONDS = 10
"""For one case, which takes milliseconds."""
ROOM = 3 * 2**30
"""Address space beside what the process has: a size that a file merely claims is never made room for."""
LONGEST = 2_000
"""Characters of a message."""


class TookTooLong(BaseException):
    """A case hangs."""


@dataclass(frozen=True)
class Reader:
    """What reads files, and what can have happened to them.

    Attributes:
        name: For people.
        write: Writes a whole input into a folder.
        read: Reads what lies in that folder.
        files: The damages of each file, which may be a pattern of several.
        error: The only types of error.
        use: Does with the result what one does with it; may refuse as well.
    """

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], Any]
    files: Mapping[str, Sequence[Callable[[bytes, random.Random], bytes]]]
    error: type[InterpError] | tuple[type[InterpError], ...]
    use: Callable[[Any], object] = lambda _result: None


@contextmanager
def bounded(seconds=SECONDS, room=ROOM):
    """Ends what takes too long, or too much memory."""

    def stop(*_):
        raise TookTooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + room, hard))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


def outcome(reader, folder):
    """``read`` or ``refused``; anything else raises."""
    refusal = None
    try:
        with bounded():
            reader.use(reader.read(folder))
    except InterpError as error:
        refusal = error
    if refusal is None:
        return "read"
    expected = reader.error if isinstance(reader.error, tuple) else (reader.error,)
    assert type(refusal) in expected, f"expected one of {expected}, got {refusal!r:.300}"
    assert_plain(str(refusal))
    return "refused"


def assert_plain(message):
    """Whether people can read a message: text, not too long, and no traceback."""
    message.encode()
    assert message.strip()
    assert len(message) < LONGEST, f"a message of {len(message)} characters: {message[:300]}..."
    assert "Traceback" not in message


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def damaged(reader, whole, folder, seed):
    """A copy of the input in which one file is damaged; says how."""
    rng = random.Random(f"{reader.name} {seed}")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    name = rng.choice(list(reader.files))
    damage = rng.choice(reader.files[name])
    path = rng.choice(sorted(folder.glob(name)))
    path.write_bytes(damage(path.read_bytes(), rng))
    return f"{reader.name}, seed {seed}: {path.relative_to(folder)} {damage.__name__}"


def try_all(reader, n, tmp_path, *, refused=0.25):
    """What became of `n` damaged inputs, of which at least the share `refused` is, and which are left as they were."""
    whole, folder = tmp_path / "whole", tmp_path / "damaged"
    whole.mkdir()
    reader.write(whole)
    assert outcome(reader, whole) == "read"
    found, wrong = Counter(), []
    for seed in range(n):
        what = damaged(reader, whole, folder, seed)
        before = files_of(folder)
        try:
            found[outcome(reader, folder)] += 1
            assert files_of(folder) == before, "the reader wrote"
        except (Exception, TookTooLong) as error:
            wrong.append(f"{what}: {type(error).__name__}: {error!s:.300}")
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # Rust's own, which is no Exception
                raise
            wrong.append(f"{what}: panic: {error!s:.300}")
    if wrong:
        pytest.fail(f"{len(wrong)} of {n} cases:\n" + "\n".join(wrong[: int(os.environ.get("FAULTS_SHOWN", "20"))]))
    assert found.total() == n
    assert found["refused"] >= refused * n, f"the damages do little: {found}"
    return dict(found)
