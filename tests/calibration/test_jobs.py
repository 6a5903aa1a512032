"""Jobs run once each, whatever comes between; and the dossier on two models is right about every head."""

import pandas as pd
import pytest

from interp.calibration.calibrate import KINDS, Job, jobs_of, run_jobs
from interp.calibration.controls import NULLS
from interp.calibration.random_models import draw
from interp.calibration.rates import outcomes
from interp.runs import key as record
from interp.runs.executors import Local, Processes
from interp.runs.run import Run

pytestmark = pytest.mark.unchecked


def fake(job):
    return pd.DataFrame({"seed": [job.seed], "kind": [job.kind]})


@pytest.fixture
def ran(monkeypatch):
    """The jobs that were run, faked."""
    noted = []

    def run(job):
        noted.append(job)
        return fake(job)

    monkeypatch.setattr(Job, "run", run)
    return noted


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (7, 10, 24, 39))])
def test_every_head_of_a_planted_model_gets_its_verdict(seed):
    """Seed 2 has one that looks by value, a looker and stand-ins, 7 a glancer, 24 another route, 39 the rest.

    In 10, heads share keys and values.
    """
    found = Job("planted", seed).run().assign(job="it")
    assert {each.role for each in draw(seed).heads} <= set(found["role"]) | {"loud"}
    with_purpose = found[~found["role"].isin(["idle", "bystander"])]
    assert with_purpose["verdict"].tolist() == with_purpose["truth"].tolist()
    assert set(outcomes(found)) <= {"right", "undecided"}
    assert set(outcomes(found[found["role"] == "stand-in"])) <= {"right"}


def test_the_only_head_of_a_trained_model_tracks_what_the_model_can_do():
    found = Job("single head", 3).run().set_index("task")
    assert found["truth"].to_dict() == {"agreement": "tracks", "coreference": "tracks", "induction": "none"}
    able, unable = found.loc[["agreement", "coreference"]], found.loc["induction"]
    assert (able["accuracy_base"] > 0.95).all()
    assert set(able["verdict"]) == {"tracks"}
    assert unable["accuracy_base"] < 0.7
    assert unable["undecidable"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", NULLS)
def test_nulls_track_nothing(kind):
    found = Job(kind, 3).run()
    assert set(found["truth"]) == {"none"}
    assert "tracks" not in set(found["verdict"])
    if kind == "untrained":
        assert found["undecidable"].str.contains("not shown to be above chance").all()
    if kind == "trained":
        assert not found["undecidable"].any()


def test_names_tell_jobs_apart():
    jobs = [*(job for kind in KINDS for job in jobs_of(kind, 2)), *jobs_of("planted", 1, seed=5)]
    assert len({job.name for job in jobs}) == len(jobs) == 2 * len(KINDS) + 1
    assert all("/" not in job.name and " " not in job.name for job in jobs)


def test_no_two_nulls_are_of_one_model():
    jobs = [job for kind in NULLS for job in jobs_of(kind, 100, seed=7)]
    assert len({job.seed for job in jobs}) == len(jobs) == 400
    assert not {job.seed for job in jobs} & {job.seed for job in jobs_of("planted", 200, seed=7)}


def test_what_is_done_is_not_done_again(ran, tmp_path):
    jobs, told = jobs_of("planted", 4), []
    first = run_jobs(jobs, run=Run(tmp_path), progress=lambda *each: told.append(each))
    assert ran == jobs
    assert told == [(number, 4) for number in range(5)]
    again = run_jobs([*jobs, jobs[0]], run=Run(tmp_path))
    assert ran == jobs
    assert first["seed"].tolist() == [0, 1, 2, 3]
    pd.testing.assert_frame_equal(again, first)


def test_an_interruption_loses_only_the_job_in_hand(ran, monkeypatch, tmp_path):
    jobs = jobs_of("planted", 4)

    def interrupted(job):
        if job == jobs[2]:
            raise KeyboardInterrupt
        return fake(job)

    monkeypatch.setattr(Job, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, run=Run(tmp_path))
    assert len(list(tmp_path.glob("*/parts/*.parquet"))) == 2
    monkeypatch.setattr(Job, "run", lambda job: ran.append(job) or fake(job))
    assert run_jobs(jobs, run=Run(tmp_path))["seed"].tolist() == [0, 1, 2, 3]
    assert ran == jobs[2:]


def test_without_a_run_nothing_is_kept(ran, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_jobs(jobs_of("planted", 2))
    assert list(tmp_path.iterdir()) == []
    assert len(ran) == 2


@pytest.mark.slow
def test_processes_give_what_one_gives():
    jobs = [*jobs_of("planted", 2), *jobs_of("permuted labels", 1)]
    alone, together = (
        run_jobs(jobs, run=Run(None, executor)).drop(columns="seconds") for executor in (Local(), Processes(2))
    )
    pd.testing.assert_frame_equal(alone, together)


def test_another_program_is_another_result(tmp_path, ran, monkeypatch):
    jobs = jobs_of("planted", 1)
    run_jobs(jobs, run=Run(tmp_path))
    monkeypatch.setattr(record, "code_hash", lambda: "another")
    run_jobs(jobs, run=Run(tmp_path))
    assert len(ran) == 2
    assert len(list(tmp_path.iterdir())) == 2
