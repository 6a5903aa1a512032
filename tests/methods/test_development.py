"""From when on a head tracks: by the verdicts of every checkpoint up to the last."""

import pandas as pd
import pytest
from tiny_models import random_model

import interp
from interp.errors import InputError, LoadError
from interp.methods.development import Development, development
from interp.methods.dossier import HeadsReport, heads
from interp.model.loading import save_model
from interp.model.transformer import HookedTransformer
from interp.report.development import development_figure, partial

pytestmark = pytest.mark.unchecked


def judged(verdicts):
    """A development in which head 0.0 gets these verdicts."""
    rows = [
        {"step": 10 * number, "task": "t", "layer": 0, "head": 0, "verdict": each}
        for number, each in enumerate(verdicts)
    ]
    empty = HeadsReport(*(pd.DataFrame() for _ in range(6)), {})
    return Development(pd.DataFrame(rows), pd.DataFrame(), empty)


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
    assert found.frame["step"].unique().tolist() == [20, 300]
    alone = heads(trained, ["agreement"], n=40, probes=False).frame
    last = found.frame[found.frame["step"] == 300].drop(columns="step").reset_index(drop=True)
    pd.testing.assert_frame_equal(last, alone)
    begins = found.begins()
    assert {(row.layer, row.head, row.step) for row in begins.itertuples()} >= {(2, 2, 300)}
    assert told[-1][0] == told[-1][1]
    assert found.tasks["accuracy_base"].tolist()[1] > 0.95 > found.tasks["accuracy_base"].tolist()[0]


@pytest.fixture
def two(tmp_path):
    """Two checkpoints of the embedded default."""
    return {step: save_model(interp.load_model(), tmp_path / str(step)) for step in (1, 2)}


@pytest.mark.filterwarnings("ignore:interrupted. the result holds the examples")
def test_interrupted_it_holds_what_was_judged(two):
    def stop(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted: the result holds the steps that were judged"):
        found = development(two, ["agreement"], n=40, progress=stop)
    assert found.unjudged == (2,)
    assert found.frame["step"].unique().tolist() == [1]
    assert "1 steps, 1 not judged" in repr(found)
    assert "after 1 of 2 checkpoints; step 2 and later" in partial(found)


@pytest.mark.filterwarnings("ignore:interrupted. the result holds the examples")
def test_interrupted_before_the_first_was_judged(two):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        development(two, ["agreement"], n=40, progress=stop)


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

    monkeypatch.setattr(HookedTransformer, "forward", refuse)
    again = development(two, ["agreement"], **options)
    pd.testing.assert_frame_equal(first.frame, again.frame, check_exact=True)
    with pytest.raises(AssertionError, match="the model was run"):
        development(two, ["agreement"], n=21, run=tmp_path / "runs")
