"""Whole runs are planned from operations at the pace of a few layers; a benchmark says how near that comes."""

import dataclasses

import pytest
from noun_model import noun_model, noun_task
from tiny_models import random_model

from interp.methods import whole_runs as planning
from interp.methods.card_patching import MANY_PATHS, MOST_PATHS
from interp.methods.whole_runs import _Pace, _pace, whole_runs
from interp.options import HeadsOptions


@pytest.fixture(scope="module")
def config():
    return noun_model().config


@pytest.fixture
def even(monkeypatch):
    """A machine that does a thousand million operations a second, and a head's probes in one."""
    monkeypatch.setattr(planning, "_pace", lambda *_: _Pace(1e9, 1e9))
    monkeypatch.setattr(planning, "_probe_seconds", lambda *_: 1.0)


def seconds(config, *tasks, **how):
    return whole_runs(config, tasks, **how).groupby(["run", "stage"])["seconds"].sum()


def test_twice_the_layers_take_more_than_twice_the_sweep(config, even):
    one, two = (seconds(dataclasses.replace(config, n_layers=n), noun_task()) for n in (4, 8))
    for run in ("ablate", "patch"):
        assert two[run, "sweep"] > 3 * one[run, "sweep"]
    assert two["ablate", "references"] == pytest.approx(2 * one["ablate", "references"])
    assert two["probe", "probes"] == 2 * one["probe", "probes"] == 8 * config.n_heads


def test_what_is_not_asked_takes_no_time(config, even):
    whole, less = (
        seconds(config, noun_task()),
        seconds(config, noun_task(), options=HeadsOptions(probes=False, max_group=0, first_look=0)),
    )
    assert {"probes", "sets"} <= set(whole["heads"].index)
    assert not {"probes", "sets"} & set(less["heads"].index)
    assert less["heads", "later looks"] == 0 < whole["heads", "later looks"]
    assert less["heads", "attention"] < whole["heads", "attention"]  # which has the predictions in it
    assert seconds(config, noun_task(), options=HeadsOptions(max_clusters=30))["heads", "later looks"] == 0


def test_processes_divide_tasks_and_no_single_one(config, even):
    tasks = [noun_task(), noun_task(name="b"), noun_task(name="c")]
    one, two = (seconds(config, *tasks, processes=n)["heads"] for n in (1, 2))
    assert two["cards"] == pytest.approx(one["cards"] * 2 / 3)
    assert two["page"] == one["page"]
    assert seconds(config, noun_task(), processes=2)["heads"].equals(seconds(config, noun_task())["heads"])


def test_a_larger_model_holds_more(even):
    small, large = (whole_runs(random_model(d_model=d).config, [noun_task()])["gigabytes"].max() for d in (8, 4096))
    assert small < large


def test_many_paths_cost_as_few(config):
    deep = dataclasses.replace(config, n_layers=30)
    assert planning._n_paths(deep) == 2 * MOST_PATHS < MANY_PATHS < 3 * 30 * config.n_heads


def test_the_pace_is_measured(config):
    found = _pace(config, noun_task(), "float32")
    assert 1e5 < found.plain < 1e13
    assert 1e5 < found.sweep < 1e13
