"""Killed at random moments, again and again: nothing is lost, nothing is doubled, and no part is done twice in vain."""

import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runs"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "calibration"))
from fake_jobs import fake_job
from kept_sweeps import events, in_small_parts, sweep, total, whole_files
from killing import begun, killed, killed_before, seconds_of
from stores import collected, files_of

from interp.calibration.calibrate import Job, jobs_of, run_jobs
from interp.errors import LoadError
from interp.runs.run import Run
from interp.runs.shards import ShardReader
from interp.runs.store import ActivationStore

pytestmark = pytest.mark.unchecked

KILLS = [pytest.param(10, id="10 kills"), pytest.param(100, id="100 kills", marks=pytest.mark.slow)]
JOBS = [*jobs_of("planted", 12), *jobs_of("untrained", 6)]


def a_sweep(folder):
    sweep(Run(folder))


def a_calibration(folder):
    run_jobs(JOBS, run=Run(folder))


def a_collection(folder):
    """Notes each shard that is begun, in a file beside the store, whatever becomes of it."""
    run = ShardReader.run

    def noted(self, shard):
        with open(f"{folder}.begun", "a") as file:
            file.write(f"{shard.number}\n")
        return run(self, shard)

    ShardReader.run = noted  # in a process of its own
    collected(folder, n=40, rows=16)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    in_small_parts(monkeypatch)
    monkeypatch.setattr(Job, "run", _job)


def _job(job):
    """As long as a few steps of the store, so that kills hit one as well as the other."""
    sum(number * number for number in range(100_000))
    return fake_job(job)


def require_incomplete_or_whole(folder, expected):
    """Opened, a store is complete or refused."""
    try:
        ActivationStore.open(folder)
    except LoadError as error:
        told = ("the store is incomplete", "got no such folder", "got a folder without manifest.json")
        assert any(each in str(error) for each in told)  # noqa: PT017
    else:
        assert expected.items() <= files_of(folder).items()


@pytest.mark.parametrize("times", KILLS)
@pytest.mark.parametrize("call", [a_sweep, a_calibration], ids=lambda call: call.__name__)
def test_a_killed_run_goes_on(tmp_path, call, times, record_property):
    whole = tmp_path / "whole"
    seconds = seconds_of(call, whole)
    expected, n_parts = whole_files(whole), total(events(whole), "kept")
    assert n_parts > 10
    kills = killed(call, tmp_path / "killed", times, seconds / 3)
    twice = 0
    for folder, n in kills.items():
        assert whole_files(folder) == expected, "bit for bit, and nothing beside it"
        counts = events(folder)
        assert total(counts, "damaged") == 0
        in_vain = total(counts, "begun") - n_parts
        assert 0 <= in_vain <= n
        assert total(counts, "kept") <= n_parts
        twice += in_vain
    record_property(
        "kills", f"{call.__name__}: {n_parts} parts, {sum(kills.values())} kills, {twice} begun again, none lost"
    )
    assert twice <= times == sum(kills.values())


@pytest.mark.parametrize("times", KILLS)
def test_a_killed_collection_goes_on(tmp_path, times, record_property):
    whole = tmp_path / "whole"
    seconds = seconds_of(a_collection, whole)
    expected, shards = files_of(whole), set()
    n_shards = len([name for name in expected if name.startswith("shard")])
    (tmp_path / "killed").mkdir()

    def look(folder):
        shards.add(len(list(folder.glob("shard-*"))))
        require_incomplete_or_whole(folder, expected)

    kills, twice = killed(a_collection, tmp_path / "killed", times, seconds / 2, look=look), 0
    for folder, n in kills.items():
        assert files_of(folder) == expected
        in_vain = len(Path(f"{folder}.begun").read_text().split()) - n_shards
        assert 0 <= in_vain <= n
        twice += in_vain
    record_property(
        "kills", f"a_collection: {n_shards} shards, {sum(kills.values())} kills, {twice} begun again, none lost"
    )
    assert twice <= times == sum(kills.values())
    assert len(shards) > 2, "killed early and late"


def small_sweep(folder):
    return sweep(Run(folder), n=3).examples.to_csv()


def small_collection(folder):
    collected(folder, n=8)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("call", "read"),
    [pytest.param(small_sweep, whole_files, marks=pytest.mark.slow), (small_collection, files_of)],
    ids=["sweep", "collection"],
)
def test_killed_before_every_operation_on_the_disk(tmp_path, call, read, step):
    result = call(tmp_path / "whole")
    expected, codes = read(tmp_path / "whole"), []
    for number in range(0, 10**6, step):
        folder = tmp_path / str(number)
        child = begun(killed_before, number, call, folder)
        child.join()
        codes.append(child.exitcode)
        if call is small_collection:
            assert not [name for name in expected if "/" in name], "nothing but the store is left"
            require_incomplete_or_whole(folder, expected)
        assert call(folder) == result
        assert read(folder) == expected, f"killed before operation {number}"
        if child.exitcode == 0:
            break
    assert codes == [-signal.SIGKILL] * (number // step) + [0]
    assert number > 20, "the operations were counted"
