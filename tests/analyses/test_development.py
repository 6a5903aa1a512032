"""From when on a head tracks: by the verdicts of every checkpoint up to the last."""

import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest
from synthetic_heads import synthetic_report
from tiny_models import random_model

import interp
from analyses.development.development import (
    TRACKING,
    Development,
    development,
    development_figure,
    development_table,
    partial_note,
)
from interp.errors import InputError, LoadError
from interp.methods.dossier import HeadsReport, heads
from interp.model.loading import save_model
from interp.model.transformer import HookedTransformer

pytestmark = pytest.mark.unchecked


def judged(verdicts):
    """A development in which head 0.0 gets these verdicts."""
    rows = [
        {"step": 10 * number, "task": "t", "layer": 0, "head": 0, "verdict": each}
        for number, each in enumerate(verdicts)
    ]
    empty = HeadsReport(pd.DataFrame(), {}, *(pd.DataFrame() for _ in range(5)))
    return Development(pd.DataFrame(), {}, pd.DataFrame(rows), pd.DataFrame(), empty)


TRACKS, NOT = "attends and causal", "undecided"


@pytest.mark.parametrize(
    ("verdicts", "begins"),
    [
        ((NOT, TRACKS, TRACKS), [10]),
        ((TRACKS, NOT, TRACKS), [20]),
        ((TRACKS, TRACKS, TRACKS), [0]),
        ((TRACKS, TRACKS, NOT), []),
    ],
)
def test_it_begins_where_it_never_stops_again(verdicts, begins):
    assert judged(verdicts).begins()["step"].tolist() == begins


@pytest.mark.slow
def test_every_checkpoint_is_judged_as_a_model_is(tmp_path):
    trained = interp.load_model()
    untrained = random_model(dtype=trained.W_E.dtype, tokenizer=trained.tokenizer, n_ctx=64)
    folders = {300: save_model(trained, tmp_path / "b"), 20: save_model(untrained, tmp_path / "a")}
    told = []
    found = development(folders, ["agreement"], n=40, progress=lambda *each: told.append(each))
    assert found.cells["step"].unique().tolist() == [20, 300]
    alone = heads(trained, ["agreement"], n=40, probes=False).summary()
    last = found.cells[found.cells["step"] == 300].drop(columns="step").reset_index(drop=True)
    pd.testing.assert_frame_equal(last, alone)
    begins = found.begins()
    assert {(row.layer, row.head, row.step) for row in begins.itertuples()} >= {(2, 2, 300)}
    assert told[-1][0] == told[-1][1]
    assert found.tasks["accuracy_base"].tolist()[1] > 0.95 > found.tasks["accuracy_base"].tolist()[0]


@pytest.fixture
def two(tmp_path):
    """Two untrained checkpoints, which take less time than trained ones: little is found in them."""
    how = {"n_layers": 1, "n_heads": 2, "n_ctx": 64, "tokenizer": interp.load_model().tokenizer}
    return {step: save_model(random_model(seed=step, **how), tmp_path / str(step)) for step in (1, 2)}


@pytest.mark.filterwarnings("ignore:interrupted. the result holds the examples")
def test_interrupted_it_holds_what_was_judged(two):
    def stop(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted: the result holds the steps that were judged"):
        found = development(two, ["agreement"], n=20, progress=stop)
    assert found.unjudged == (2,)
    assert found.cells["step"].unique().tolist() == [1]
    assert "1 steps, 1 not judged" in repr(found)
    assert "after 1 of 2 checkpoints; step 2 and later" in partial_note(found)


@pytest.mark.filterwarnings("ignore:interrupted. the result holds the examples")
def test_interrupted_before_the_first_was_judged(two):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        development(two, ["agreement"], n=20, progress=stop)


def test_a_damaged_checkpoint_is_found_before_the_first_is_judged(two):
    (two[2] / "model.safetensors").write_bytes(b"no weights")
    told = []
    with pytest.raises(LoadError, match=r"2/model\.safetensors"):
        development(two, ["agreement"], n=40, progress=lambda *each: told.append(each))
    assert not told


def test_no_checkpoints():
    with pytest.raises(InputError, match="checkpoints: expected at least one, by its step, got none"):
        development({}, ["agreement"])


@pytest.mark.parametrize("n", [3, 10, 11, 40])
def test_the_picture_has_a_colour_for_each_head_that_tracks(n):
    rows = [
        {"step": step, "task": "t", "layer": 0, "head": head, "verdict": TRACKS, "excess": 0.5, "effect": -1.0}
        for step in (1, 2)
        for head in range(n)
    ]
    tasks = pd.DataFrame({"step": [1, 2], "task": "t", "base": 2.0, "base_low": 1.9, "accuracy_base": 1.0})
    lines = development_figure(pd.DataFrame(rows), tasks).axes[1].get_lines()
    assert len({line.get_color() for line in lines if line.get_label()[0] != "_"}) == n


def test_what_was_judged_is_found(two, tmp_path, monkeypatch):
    options = {"n": 20, "run": tmp_path / "runs"}
    first = development(two, ["agreement"], **options)

    def refuse(*_args, **_options):
        raise AssertionError("the model was run")

    monkeypatch.setattr(HookedTransformer, "run_blocks", refuse)
    again = development(two, ["agreement"], **options)
    pd.testing.assert_frame_equal(first.cells, again.cells, check_exact=True)
    with pytest.raises(AssertionError, match="the model was run"):
        development(two, ["agreement"], n=21, run=tmp_path / "runs")


RUN = Path(__file__).resolve().parent.parent.parent / "analyses" / "development" / "run.py"


def made_up(unjudged=()):
    """A development of two steps at which the same report was found; no head had a verdict at the first."""
    report = synthetic_report(tasks=("agreement",))
    before = report.summary().assign(step=500, verdict="none")
    frame = pd.concat([before, report.summary().assign(step=1500)])
    tasks = pd.concat([report.tasks.assign(step=step, accuracy_base=share) for step, share in ((500, 0.25), (1500, 1))])
    return Development(report.examples, report.provenance, frame, tasks, report, unjudged)


def test_the_steps_of_a_training_are_a_table():
    found = made_up()
    tracking = found.last.summary()[found.last.summary()["verdict"].isin(TRACKING)]
    assert len(tracking) > 0
    table = development_table(found)
    assert table.iloc[:, 0].tolist() == [500, 1500]
    assert table.iloc[:, 1].tolist() == [0.25, 1]
    assert table.iloc[:, 2].tolist()[1] == ", ".join(f"{row.layer}.{row.head}" for row in tracking.itertuples())
    assert table.iloc[:, 2].isna().tolist() == [True, False]


@pytest.mark.parametrize("unjudged", [(), (2000, 2500)])
def test_the_program_keeps_every_checkpoint_that_was_judged(unjudged, monkeypatch, capsys, tmp_path):
    asked = {}

    def judge(checkpoints, tasks, **options):
        asked.update(options, steps=list(checkpoints), tasks=tasks)
        return made_up(unjudged)

    monkeypatch.setattr("analyses.development.development.development", judge)
    for step in (5, 10):
        (tmp_path / "t" / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
        (tmp_path / "t" / "checkpoints" / f"step-{step:08d}" / "training.json").write_text("{}")
    out = tmp_path / "r"
    options = [str(tmp_path / "t"), "--out", str(out), "--task", "agreement", "--n", "7", "--runs", str(tmp_path / "k")]
    monkeypatch.setattr(sys, "argv", [str(RUN), *options])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(RUN), run_name="__main__")
    assert ended.value.code == (130 if unjudged else 0)
    assert asked["steps"] == [5, 10]
    assert (asked["tasks"], asked["n"], asked["run"].folder) == (["agreement"], 7, tmp_path / "k")
    assert len(pd.read_csv(out / "development.csv")) == 2 * len(made_up().last.summary())
    assert pd.read_csv(out / "begins.csv")["step"].tolist()
    assert (out / "development.png").stat().st_size > 10_000
    assert (out / "last" / "report.html").is_file()
    printed = capsys.readouterr()
    assert "From when on heads attend and are causal" in printed.out
    said = "interrupted after 2 of 4 checkpoints; step 2,000 and later ones were not judged"
    assert (said in printed.err) == bool(unjudged)


def test_a_folder_without_checkpoints(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", [str(RUN), str(tmp_path), "--out", str(tmp_path / "r")])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(RUN), run_name="__main__")
    assert ended.value.code == 2
    assert "checkpoints: expected at least one, by its step, got none" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
