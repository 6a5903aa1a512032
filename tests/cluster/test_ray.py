"""The same work on a Ray cluster of this machine: the same bits, whoever dies on the way."""

import os
import pickle
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from banks import word_level

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runs"))
from kept_sweeps import events, in_small_parts, sweep, total, whole_files
from planted_trees import FORMS, trees
from stores import collected, files_of
from tiny_models import random_model

from interp.calibration.calibrate import jobs_of, run_jobs
from interp.cluster.ray import Ray, _Actors
from interp.errors import InputError
from interp.methods.relations import counts as reader
from interp.methods.relations.attend import attend
from interp.runs.executors import spread
from interp.runs.key import program
from interp.runs.run import Run

pytestmark = pytest.mark.unchecked


@pytest.fixture(scope="module")
def ray(ray_module):
    """A cluster of two CPUs."""
    # Workers find what the tests hand them.
    path = os.pathsep.join(each for each in sys.path if each)
    ray_module.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    yield ray_module
    ray_module.shutdown()


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    in_small_parts(monkeypatch)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_same_bytes_as_here(ray, tmp_path, workers):
    here, there = sweep(Run(tmp_path / "here")), sweep(Run(tmp_path / "there", Ray(workers)))
    assert whole_files(tmp_path / "here") == whole_files(tmp_path / "there")
    pd.testing.assert_frame_equal(here.summary(), there.summary(), check_exact=True)
    assert total(events(tmp_path / "there"), "begun") == total(events(tmp_path / "here"), "begun")


class Slow:
    """Work whose jobs take a moment, and say who did them."""

    def run(self, job):
        time.sleep(0.3)
        return job, os.getpid()


@pytest.mark.slow
def test_the_jobs_of_killed_workers_are_done_again(ray):
    jobs, done, killed = list(range(24)), {}, []
    for job, (value, process) in Ray(2).stream(Slow(), jobs, threads=1):
        done[job] = value
        if len(done) % 5 == 0 and process not in killed:
            os.kill(process, 9)
            killed.append(process)
    assert done == {job: job for job in jobs}
    assert len(killed) >= 3


@pytest.mark.slow
def test_killed_workers_change_no_bit(ray, tmp_path):
    sweep(Run(tmp_path / "here"))
    deaths = []

    def kill_some(done, total):
        if done > (len(deaths) + 1) * total // 4:
            worker = next(_workers())
            os.kill(worker, 9)
            deaths.append(worker)

    sweep(Run(tmp_path / "there", Ray(2)), progress=kill_some)
    assert len(set(deaths)) >= 2
    assert whole_files(tmp_path / "here") == whole_files(tmp_path / "there")
    counts = events(tmp_path / "there")
    again = total(counts, "begun") - total(counts, "kept")
    assert again <= len(deaths)


@pytest.mark.slow
def test_a_store_has_the_same_bytes_as_here(ray, tmp_path):
    told = []
    for place, options in (("here", {}), ("there", {"executor": Ray(2), "progress": told.append})):
        collected(tmp_path / place, n=80, **options)
    assert files_of(tmp_path / "here") == files_of(tmp_path / "there")
    assert len(told) == len(files_of(tmp_path / "there")) - 2, "after each shard"


@pytest.mark.slow
def test_killed_workers_change_no_byte_of_a_store(ray, tmp_path):
    killed = set()

    def kill_one(done):
        if done > 100 * (len(killed) + 1):
            worker = next(_workers())
            os.kill(worker, 9)
            killed.add(worker)

    collected(tmp_path / "here", n=160)
    collected(tmp_path / "there", n=160, executor=Ray(2), progress=kill_one)
    assert len(killed) >= 2
    assert files_of(tmp_path / "here") == files_of(tmp_path / "there")


def _workers():
    """Processes of this cluster that hold work; there may be others' on this machine."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            title = Path(f"/proc/{name}/cmdline").read_text(errors="replace")
            if "_Holder" in title and os.getpid() in _ancestors(int(name)):
                yield int(name)


def _ancestors(process):
    while process:
        after_name = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2]
        process = int(after_name.split()[1])
        yield process


@pytest.mark.slow
def test_what_one_cluster_has_begun_another_goes_on_with(ray, tmp_path):
    sweep(Run(tmp_path / "here"))

    def progress(done, total):
        if done > total * 3 // 4:
            raise KeyboardInterrupt

    # Workers take turns, so there may be examples that are complete, or none yet.
    with suppress(KeyboardInterrupt), warnings.catch_warnings(action="ignore"):
        assert not sweep(Run(tmp_path / "there", Ray(2)), progress=progress).provenance["complete"]
    kept = total(events(tmp_path / "there"), "kept")
    assert kept > 3
    sweep(Run(tmp_path / "there", Ray(2)))
    counts = events(tmp_path / "there")
    assert total(counts, "kept") == total(events(tmp_path / "here"), "kept")
    assert whole_files(tmp_path / "here") == whole_files(tmp_path / "there")


class Failing:
    """Work that cannot be done."""

    def run(self, job):
        raise InputError(f"job {job}: expected better, got this")


class Deadly:
    """Work that ends whoever does it."""

    def run(self, job):
        os._exit(3)


@pytest.mark.slow
def test_an_error_comes_through(ray):
    with pytest.raises(InputError, match="job 0: expected better, got this"):
        list(Ray(1).stream(Failing(), [0], threads=1))


@pytest.mark.slow
def test_a_job_that_nobody_survives_is_named(ray):
    with pytest.raises(InputError, match=r"ray: \d workers ended one after the other and none did its job, .* was 7"):
        list(Ray(1).stream(Deadly(), [7], threads=1))


@pytest.mark.slow
def test_more_workers_than_the_cluster_has_room_for_hold_nothing_up(ray):
    assert {job for job, _ in Ray(4).stream(Slow(), range(8), threads=1)} == set(range(8))


def _twice(number):
    return 2 * number


@pytest.mark.slow
def test_calls_are_spread(ray):
    assert spread(_twice, [(1,), (2,)], Ray(2)) == [2, 4]


@pytest.mark.slow
def test_attention_is_counted_to_the_same_bits(ray, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "WORDS_AT_ONCE", 48)
    model, documents = random_model(tokenizer=word_level(FORMS, both_sides=False)), list(trees(24))
    here, there = (attend(model, documents, ["dep"], run=run) for run in (None, Run(tmp_path, Ray(2))))
    pd.testing.assert_frame_equal(here.summary(), there.summary(), check_exact=True)
    assert total(events(tmp_path), "kept") == 12


@pytest.mark.slow
def test_models_are_judged_to_the_same_numbers(ray, tmp_path, monkeypatch):
    monkeypatch.undo()  # parts are small in this process only, and a job has its own
    jobs = jobs_of("untrained", 1)
    here, there = (run_jobs(jobs, run=run) for run in (None, Run(tmp_path, Ray(2))))
    pd.testing.assert_frame_equal(here.drop(columns="seconds"), there.drop(columns="seconds"), check_exact=True)


@pytest.mark.slow
def test_a_job_whose_worker_had_too_little_memory_is_done_again(ray, monkeypatch):
    errors = [ray.exceptions.OutOfMemoryError("the monitor of memory ended it"), None, None]
    get, begun = ray.get, []

    def getting(reference):
        found = get(reference)
        if pickle.loads(found) != (True, None) and (error := errors.pop(0)):
            raise error
        return found

    monkeypatch.setattr(ray, "get", getting)
    assert {job for job, _ in Ray(1).stream(Slow(), [0, 1], threads=1, begun=begun.append)} == {0, 1}
    assert begun == [0, 0, 1]


@pytest.mark.slow
def test_all_actors_are_given_back(ray, monkeypatch):
    killed, kill = [], ray.kill
    monkeypatch.setattr(ray, "kill", lambda actor: (killed.append(actor), kill(actor)))
    assert len(list(Ray(3).stream(Slow(), [0], threads=1))) == 1
    assert len(set(killed)) == len(killed) == 3


class Lacking:
    """Work that is made of what a worker lacks."""

    def __reduce__(self):
        return __import__, ("no_such_module",)


@pytest.mark.slow
def test_what_a_worker_lacks_is_said(ray):
    with pytest.raises(InputError, match=r"worker on .*: expected all that .*, got ModuleNotFoundError: .*'no_such"):
        list(Ray(1).stream(Lacking(), [0], threads=1))


@pytest.mark.slow
def test_a_worker_with_another_program_refuses(ray, monkeypatch):
    monkeypatch.setattr("interp.runs.workers.program", lambda: {**program(), "numpy": "1.0"})
    with pytest.raises(InputError, match=r"worker on .*: expected the program of .* \(numpy 1.0\), got numpy 2"):
        list(Ray(1).stream(Slow(), [0], threads=1))


class Older:
    """An actor that cannot be asked."""

    def __init__(self, held, terms):
        pass

    def ready(self):
        raise ImportError("no module of that name")


class Foreign(Older):
    """An actor that cannot begin."""

    def __init__(self, held, terms):
        raise ImportError("no module of that name")


@pytest.mark.slow
@pytest.mark.parametrize("actor", [Foreign, Older])
def test_an_actor_that_cannot_begin_is_said_in_its_own_words(ray, monkeypatch, actor):
    monkeypatch.setattr("interp.cluster.ray._Holder", actor)
    with pytest.raises(InputError, match=r"ray: expected a worker .* got ImportError: no module of that name; install"):
        list(Ray(1).stream(Slow(), [0], threads=1))


@pytest.mark.parametrize(("threads", "gpus", "asked"), [(1, 1, "1 CPU, 1 GPU"), (99, None, "99 CPU, 0 GPU")])
def test_a_cluster_whose_nodes_are_too_small_is_said_to_be(ray, monkeypatch, caplog, threads, gpus, asked):
    monkeypatch.setattr(_Actors, "stream", lambda *_: iter([]))  # it would wait
    said = f"ray: expected a node with {asked} for one worker, got nodes with at most 2 CPU, 0 GPU; this waits"
    list(Ray(1, gpus=gpus).stream(Slow(), [0], threads=threads))
    assert said in caplog.text


@pytest.mark.slow
def test_a_machine_that_is_too_small_is_refused():
    code = "from interp.cluster.ray import Ray; list(Ray(2, gpus=99).stream(None, [0], threads=1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "InputError: ray: expected a node with 1 CPU, 99 GPU for one worker, got nodes with at most 2" in done.stderr


def test_without_ray_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"ray: it is not installed; pip install 'interp\[ray\]', or take processes"):
        list(Ray(1).stream(Slow(), [0], threads=1))


def test_no_workers_are_refused():
    with pytest.raises(InputError, match="workers: expected a whole number of at least 1, got 0"):
        Ray(0)
