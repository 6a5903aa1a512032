"""Workers of this machine: what becomes of them, and of the memory they share, when things go wrong."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from interp.errors import InputError
from interp.model.devices import arithmetic
from interp.runs import key as code
from interp.runs.executors import Processes
from interp.runs.pickling import pack
from interp.runs.workers import Held, Terms

pytestmark = pytest.mark.unchecked

LONG = """
import os, sys, time
from pathlib import Path
from interp.runs.executors import Processes
from interp.runs.pickling import pack

class Long:
    def run(self, job):
        Path(sys.argv[1]).write_text(str(os.getpid()))
        time.sleep(300)

if __name__ == "__main__":
    list(Processes(1).stream(Long(), [0], threads=1))
"""
BIG = """
import torch
from interp.runs.workers import Workers

try:
    Workers(torch.zeros(2**20), 1, 1)
finally:
    import os
    print(os.listdir("/dev/shm"))
"""


def until(reached, what):
    end = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def lives(process):
    """Whether a process is there; one that has ended and that nobody has asked about has no command."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


def shared_by(process):
    """The shared memory that a process looks at."""
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    return {Path(line.split()[-1]) for line in lines if "/dev/shm/" in line}


def test_workers_end_with_a_killed_asker_and_its_memory_is_removed(tmp_path):
    script, told = tmp_path / "long.py", tmp_path / "told"
    script.write_text(LONG)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, script, told], env=environment, stderr=subprocess.DEVNULL) as asker:
        until(lambda: told.exists() and told.read_text(), "it began a job")
        worker = int(told.read_text())
        memory = shared_by(worker)
        assert len(memory) == 1
        asker.kill()
    try:
        until(lambda: not lives(worker), "the worker ended")
    finally:
        if lives(worker):
            os.kill(worker, 9)
    until(lambda: not any(each.exists() for each in memory), "the memory was removed")


TWICE = """
class Twice:
    def run(self, job):
        return job * 2
"""
UNGUARDED = """
from interp.runs.executors import Processes

print("begun")
print(sorted(Processes(2).stream(Twice(), [1, 2], threads=1)))
"""


def said_by(script, text):
    """The lines of a script, and the last of what went wrong."""
    script.write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines(), done.stderr.splitlines()[-1:]


def test_a_script_that_asks_for_processes_is_not_begun_in_them(tmp_path):
    (tmp_path / "twice.py").write_text(TWICE)
    said = said_by(tmp_path / "script.py", f"from twice import Twice\n{UNGUARDED}")
    assert said == (["begun", "[(1, 2), (2, 4)]"], [])


def test_a_script_that_the_work_has_parts_of_has_to_be_guarded(tmp_path):
    lines, wrong = said_by(tmp_path / "script.py", TWICE + UNGUARDED)
    assert set(lines) == {"begun"}
    assert len(lines) <= 3
    assert "InputError: processes: the work has parts of the script" in wrong[0]
    assert wrong[0].endswith("put what the script does below if __name__ == '__main__':, or leave the processes out")
    guarded = UNGUARDED.replace('\nprint("begun")\n', "\nif __name__ == '__main__':\n    print('begun')\n    ")
    assert said_by(tmp_path / "guarded.py", TWICE + guarded) == (["begun", "[(1, 2), (2, 4)]"], [])


def test_too_little_shared_memory_is_said():
    inside = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$0" -c "$1"'
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside, sys.executable, BIG],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, "it raised, and was not ended by a signal"
    assert "InputError: processes: expected 4,19" in done.stderr
    assert "bytes of shared memory for the work, got 1,048,576 in /dev/shm" in done.stderr
    assert "take --executor local" in done.stderr
    assert done.stdout == "[]\n", "nothing is left there"


class Settings:
    """Work that says in which arithmetic it is done."""

    def run(self, job):
        return arithmetic()


def of_worker(executor):
    ((_, found),) = executor.stream(Settings(), [0], threads=1)
    return found


def test_workers_compute_in_the_arithmetic_of_who_asks():
    usual = arithmetic()
    torch.backends.mkldnn.enabled = False
    torch.use_deterministic_algorithms(True)
    try:
        assert of_worker(Processes(1)) == arithmetic() != usual
    finally:
        torch.backends.mkldnn.enabled = True
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", ["interp", "torch", "python"])
def test_a_worker_with_another_program_refuses(monkeypatch, name):
    monkeypatch.setattr("interp.runs.workers.program", lambda: {**code.program(), name: "another"})
    own = re.escape(code.program()[name][:12])
    said = rf"worker on .*: expected the program of the process that asks \({name} another\), got {name} {own}; install"
    with pytest.raises(InputError, match=said):
        of_worker(Processes(2))


class Unpacked:
    """Work that cannot be unpacked elsewhere."""

    def __reduce__(self):
        return __import__, ("no_such_module",)


def test_what_a_worker_lacks_is_said():
    with pytest.raises(InputError, match=r"worker on .*: expected all that .*, got ModuleNotFoundError: .*'no_such"):
        list(Processes(1).stream(Unpacked(), [0], threads=1))


def test_work_is_unpacked_once():
    held = Held(pack(Counting()), Terms.of_this_process(1))
    assert [held.run(0), held.run(0)] == [1, 2]


class Counting:
    """Work that counts its jobs."""

    done = 0

    def run(self, job):
        self.done += 1
        return self.done
