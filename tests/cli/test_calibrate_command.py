import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "calibration"))
from fake_jobs import fake_job

from interp.calibration.calibrate import Job


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    noted = []

    def run(job):
        noted.append(job)
        return fake_job(job)

    monkeypatch.setattr(Job, "run", run)
    return noted


def test_it_says_the_rates_in_sentences(run, tmp_path):
    result = run("calibrate", "--quick", "--n", 100, "--out", tmp_path / "c")
    assert result.exit_code == 0, result.output
    assert "Of the heads that track, 12 of 12 (100.0 % [73.5, 100.0]) are found to;" in result.stdout
    assert "With half of the examples, of 12 right verdicts on heads with a purpose, 6 stay right" in result.stdout
    assert str(tmp_path / "c" / "report.html") in result.stdout.splitlines()[-1]


def test_json_has_every_rate_with_interval_and_count(run, ran, tmp_path):
    run("calibrate", "--quick", "--out", tmp_path / "c")
    n_run = len(ran)
    printed = json.loads(run("calibrate", "--quick", "--out", tmp_path / "c", "--json").stdout)
    assert len(ran) == n_run, "done models are not judged again"
    for rate in (printed["family_wise_error"], *printed["recall"]):
        assert {"rate", "low", "high", "count", "of"} <= set(rate)
    assert printed["family_wise_error"]["of"] == 20
    assert [row["count"] for row in printed["recall"]] == [12, 12]
    assert [row["per"] for row in printed["false_tracks"]] == ["model", "head and task"]
    assert [row["task"] for row in printed["single_heads"]] == ["agreement", "coreference", "induction"]
    assert {row["role"] for row in printed["decoys"]} >= {"looker", "loud"}
    assert printed["special"] == []  # the fake has none of these roles


def test_a_false_claim_is_counted_in_every_place(run, tmp_path, monkeypatch):
    """A dossier that says of the idle head of one null and of one planted model that it tracks."""

    def mistaken(job):
        found = fake_job(job)
        if (job.kind, job.seed) in (("trained", 1001), ("planted", 2)):
            found.loc[found["role"] == "idle", "verdict"] = "tracks"
        return found

    monkeypatch.setattr(Job, "run", mistaken)
    result = run("calibrate", "--quick", "--out", tmp_path / "c")
    told = result.stdout
    assert "Of the models with planted heads, 1 of 12 (8.3 % [0.2, 38.5]) have a head that is said to track" in told
    assert "Of the models on which nothing tracks, and that are shown to do a task, 1 of 20 (5.0 % [0.1, 24.9])" in told
    assert "Worst of what is said falsely: “trained”, any false verdict in 1 of 8 (12.5 % [0.3, 52.7])." in told
    assert "1 of 20 (5.0 % [0.1, 24.9])" in (tmp_path / "c" / "report.html").read_text()
    printed = json.loads(run("calibrate", "--quick", "--out", tmp_path / "c", "--json").stdout)
    assert printed["family_wise_error"]["count"] == 1
    assert [row["count"] for row in printed["false_tracks"]] == [1, 1]
    by_kind = {(row["kind"], row["claim"]): row["count"] for row in printed["false_discoveries"]}
    assert by_kind["trained", "tracks"] == by_kind["trained", "any false verdict"] == 1
    assert by_kind["untrained", "tracks"] == 0


def test_options_become_jobs(run, ran, tmp_path):
    options = ["--quick", "--n", "100", "--layers", "3", "--heads", "4", "--seed", "5"]
    assert run("calibrate", "--out", tmp_path / "c", *options).exit_code == 0
    assert {(job.shape.n_layers, job.shape.n_heads) for job in ran if job.kind != "single head"} == {(3, 4)}
    assert {job.difficulty.n for job in ran} == {100, 50}
    assert min(job.seed for job in ran) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layers", "3"], "--layers and --heads make a shape together"),
        (["--layers", "1", "--heads", "2"], "expected 2 layers and 12 heads in all"),
        (["--n", "1"], "--n"),
        (["--processes", "0"], "--processes"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    result = run("calibrate", "--quick", "--out", tmp_path / "c", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_of_somebody_is_refused_before_anything_is_run(run, ran, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    result = run("calibrate", "--quick", "--out", tmp_path)
    assert result.exit_code == 2
    assert "mine.txt" in result.stderr
    assert ran == []
