"""How a sweep scales: by hand, and that the parts are those that the engine makes."""

import json
import runpy
from pathlib import Path

import pytest

from analyses.scaling.scaling import WRITE_SECONDS, Parts
from interp.errors import InputError
from interp.methods.plan import HARDWARE
from interp.model.presets import preset

HAND = Parts(n=10, seconds=1.0, batches=2, base_seconds=0.5, begin_seconds=3.0)


@pytest.mark.parametrize(
    ("workers", "seconds"),
    [(1, 3 + 10 + 2 * 0.5), (2, 3 + 5 + 0.5), (4, 3 + 3 + 0.5), (10, 3 + 1 + 0.5), (100, 3 + 1 + 0.5)],
)
def test_seconds_by_hand(workers, seconds):
    found = HAND.on(workers)
    assert found.seconds == pytest.approx(seconds)
    assert found.speedup == pytest.approx(14 / seconds)
    assert found.efficiency == pytest.approx(14 / seconds / workers)


@pytest.mark.parametrize(
    ("parts", "workers", "limit"),
    [
        (Parts(1000, 1.0, 1, 0.0, 1.0), 8, "computing"),
        (Parts(10, 100.0, 1, 0.0, 1.0), 8, "computing"),
        (Parts(10, 100.0, 1, 0.0, 1.0), 64, "too few parts"),
        (Parts(100, 1.0, 1, 0.0, 60.0), 8, "beginning"),
        (Parts(1000, WRITE_SECONDS / 2, 1, 0.0, 1.0), 8, "the writer"),
    ],
)
def test_what_most_is_lost_to(parts, workers, limit):
    assert parts.on(workers).limit == limit


def test_it_saturates_where_twice_as_many_bring_little():
    few = Parts(16, 10.0, 1, 0.0, 1.0)
    assert few.saturates == 16
    assert few.on(16).seconds < few.on(8).seconds / 1.5
    assert few.on(32).seconds == few.on(16).seconds


def test_several_devices_make_up_a_worker():
    assert HAND.on(8, per_worker=2).workers == 4
    assert HAND.on(8, per_worker=2).seconds == HAND.on(4).seconds
    with pytest.raises(InputError, match="gpus: expected 4 for a worker at least, which hold the model, got 3"):
        HAND.on(3, per_worker=4)


def test_more_prompts_are_more_parts_and_a_faster_device_is_faster():
    config = preset("gpt2-xl").config
    few, many = (
        Parts.of(config, HARDWARE["h100"], dtype="bfloat16", n_prompts=n, n_tokens=20) for n in (1000, 100_000)
    )
    assert many.n > 50 * few.n
    assert many.saturates >= few.saturates
    slow = Parts.of(config, HARDWARE["a100"], dtype="bfloat16", n_prompts=1000, n_tokens=20)
    assert slow.n == few.n
    assert slow.seconds > 2 * few.seconds


@pytest.mark.parametrize(
    ("asked", "said"), [({"dtype": "float8"}, "dtype: H100"), ({"n_tokens": 5000}, "the model's context is 1024")]
)
def test_what_cannot_be_run(asked, said):
    with pytest.raises(InputError, match=said):
        Parts.of(
            preset("gpt2").config, HARDWARE["h100"], **{"dtype": "bfloat16", "n_prompts": 1, "n_tokens": 20, **asked}
        )


RUN = str(Path(__file__).resolve().parent.parent.parent / "analyses" / "scaling" / "run.py")


@pytest.fixture
def run(monkeypatch, capsys):
    """The program with these arguments: what it printed on both streams."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", [RUN, *map(str, arguments)])
        runpy.run_path(RUN, run_name="__main__")
        return capsys.readouterr().out

    return run


def test_how_a_sweep_scales(run):
    options = ("gpt2-xl", "--hardware", "h100", "--dtype", "bfloat16", "--prompts", 2000, "--gpus", "8,64")
    found = json.loads(run(*options, "--json"))
    assert [each["devices"] for each in found["scaling"]] == [8, 64]
    shown = run(*options)
    assert f"As {found['parts']} parts of" in shown
    assert "Twice the devices bring less than a tenth from" in shown


@pytest.mark.parametrize("given", ["x", "0", "", "8,,64", "-1"])
def test_numbers_of_devices_that_are_none(run, capsys, given):
    with pytest.raises(SystemExit) as ended:
        run("gpt2", f"--gpus={given}")
    assert ended.value.code == 2
    assert "--gpus: expected numbers from 1, separated by commas" in capsys.readouterr().err


def test_what_does_not_fit_is_refused(run, capsys):
    with pytest.raises(SystemExit) as ended:
        run("gpt3-175b")
    assert ended.value.code == 2
    assert "what would fit: llama-2-7b here" in capsys.readouterr().err
