"""What is asked of how many models, and what comes of it; the models themselves are faked."""

import pandas as pd
import pytest
from fake_jobs import fake_job

from interp.calibration.calibrate import CURVES, FULL, Job, Size, calibrate
from interp.calibration.planted import Shape
from interp.errors import InputError, OutputError

SMALL = Size(planted=3, special=1, groups=2, single=2, trained=2, nulls=2, halves=2, curve=1)


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    noted = []

    def run(job):
        noted.append(job)
        return fake_job(job)

    monkeypatch.setattr(Job, "run", run)
    return noted


def test_every_part_is_run_and_counted(ran):
    found = calibrate(SMALL)
    assert (
        len(ran) == 3 + 5 + 3 * 2 + 2 + 4 * 2 + 2 + sum(map(len, CURVES.values())) - 1
    )  # 40 units are a half and on a curve
    assert found.recall["of"].tolist() == [3, 3]
    assert found.false_discoveries.iloc[0]["of"] == 8
    assert found.single_heads[["task", "count", "of"]].to_numpy().tolist() == [
        *(["agreement", 2, 2], ["coreference", 2, 2], ["induction", 2, 2])
    ]
    halved = found.halves.set_index("heads")[["of", "right", "undecided", "wrong"]]
    assert halved.loc["with a purpose"].tolist() == [4, 2, 2, 0]
    assert halved.loc["idle"].tolist() == [2, 0, 2, 0]
    assert set(found.curves) == set(CURVES)
    assert found.curves["noise"]["noise"].tolist() == sorted([0.3, *CURVES["noise"]])
    assert repr(found) == "Calibration(recall 3 of 3, false tracks in 0 of 8 nulls)"


def test_the_models_at_hand_are_asked_for(ran):
    shape = Shape(3, 4)
    calibrate(
        Size(planted=1, special=1, groups=1, single=1, trained=1, nulls=1, halves=1, curve=0),
        n=100,
        shape=shape,
        seed=7,
    )
    assert {job.shape for job in ran if job.kind != "single head"} == {shape}
    assert {job.difficulty.n for job in ran} == {50, 100}
    assert {job.seed for job in ran if job.kind == "planted"} == {7}


def test_it_goes_on_where_it_was(ran, tmp_path):
    first = calibrate(SMALL, run=tmp_path)
    n_run = len(ran)
    again = calibrate(SMALL, run=tmp_path)
    assert len(ran) == n_run
    pd.testing.assert_frame_equal(first.examples, again.examples)


def test_the_report(tmp_path):
    out = tmp_path / "c"
    found = calibrate(SMALL)
    assert found.save(out, command="interp calibrate") == out
    found.save(out)
    assert (out / "report.html").is_file()
    assert {path.name for path in (out / "figures").iterdir()} == {"confusion.png", "false_claims.png", "recall.png"}
    assert len(pd.read_parquet(out / "examples.parquet")) == len(found.examples)
    assert pd.read_csv(out / "false_discoveries.csv")["claim"].tolist() == found.summary()["claim"].tolist()
    assert not [path for path in tmp_path.iterdir() if path != out]


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(OutputError, match=r"one with other files \(mine.txt\)"):
        calibrate(SMALL).save(tmp_path)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"n": 1}, "n: expected a whole number of units, at least 2, got 1"),
        ({"seed": -1}, "seed: expected a whole number from 0 to .*, got -1"),
        ({"size": None}, "expected a Size, and a Shape or None, got size=None"),
        ({"shape": "2x6"}, "expected a Size, and a Shape or None, got .*shape='2x6'"),
        ({"run": 3}, "run: expected a folder or an interp.Run, got 3"),
        ({"size": Size(0, 1, 1, 1, 1, 1, 0, 0)}, "size: expected a model of each kind"),
    ],
)
def test_what_cannot_be_run_is_refused(asked, message):
    with pytest.raises(InputError, match=message):
        calibrate(**asked)


def test_the_full_size_is_what_the_project_promises():
    assert FULL.planted >= 200
    assert FULL.trained + 3 * FULL.nulls >= 400
    assert FULL.trained > FULL.nulls
