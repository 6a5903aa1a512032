"""How a sweep scales over a cluster: simulated by ``benchmarks/scale.py``, here by hand."""

import importlib
from dataclasses import fields, replace
from pathlib import Path

import pytest

BENCHMARKS = str(Path(__file__).resolve().parents[2] / "benchmarks")


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("scale")


@pytest.fixture
def hand(scale):
    """Ten parts of a second, five of each of two batches, whose unchanged run takes half of one; nothing else."""
    nothing = dict.fromkeys((each.name for each in fields(scale.Costs)), 0.0)
    parts = tuple(scale.Part(each // 5, ((each // 5, 0.5),), 1.0, 100) for each in range(10))
    return scale.Setting(parts, scale.Costs(**nothing), weights=0)


def with_costs(setting, **costs):
    return replace(setting, costs=replace(setting.costs, **costs))


@pytest.mark.parametrize(("gpus", "seconds"), [(1, 10 + 2 * 0.5), (2, 5 + 0.5), (4, 3 + 0.5), (10, 1.5), (100, 1.5)])
def test_parts_are_shared(hand, gpus, seconds):
    found = hand.on(gpus)
    assert found.seconds == pytest.approx(seconds)
    assert found.computing == pytest.approx(10 / seconds / gpus)
    assert found.computing + sum(found.lost.values()) == pytest.approx(1)


def test_a_worker_that_begins_late(hand):
    assert with_costs(hand, connect=1.0, begin=2.0).on(2).seconds == pytest.approx(3 + 5.5)


def test_weights_go_to_one_node_after_the_other(scale, hand):
    """The second node's GPUs have them a second later, and a second after they are there, each has loaded them."""
    heavy = replace(hand, weights=100, network=100, loaded=100)
    assert heavy.on(1).seconds == pytest.approx(1 + 11)
    two_nodes = replace(heavy, parts=hand.parts[:1] * 8 + hand.parts[5:6] * 8)
    assert two_nodes.on(16).seconds == pytest.approx(1 + 1 + 1.5)
    assert replace(two_nodes, network=float("inf")).on(16).seconds == pytest.approx(1 + 1.5)


def test_one_driver_takes_what_all_bring(hand):
    """It hears of the ten at the same time; somebody else who keeps them does the same work."""
    slow = with_costs(hand, keep=1.0)
    assert slow.on(10).seconds == pytest.approx(1.5 + 10)
    assert replace(slow, keeper=True).on(10).seconds == pytest.approx(1.5 + 10)
    assert with_costs(hand, entry=0.01).on(10).seconds == pytest.approx(1.5 + 10)


def test_whoever_keeps_parts_hands_out_none(hand):
    """A worker waits for the half second in which its last part is kept, unless somebody else keeps it."""
    slow = with_costs(hand, keep=0.5)
    assert slow.on(1).seconds == pytest.approx(11 + 10 * 0.5)
    assert replace(slow, keeper=True).on(1).seconds == pytest.approx(11 + 0.5)
    assert slow.on(1).lost["waiting for a part"] == pytest.approx(9 * 0.5 / 16)


def test_a_part_sent_ahead_is_not_waited_for(scale, hand):
    """But for the first, before which nothing is computed."""
    late = with_costs(hand, latency=0.5)
    assert late.on(1).seconds == pytest.approx(11 + 10 * 0.5)
    assert replace(late, ahead=True).on(1).seconds == pytest.approx(11 + 0.5)
    one = with_costs(replace(hand, parts=hand.parts[:1]), latency=0.5, send=1.0)
    assert replace(one, ahead=True).on(1).seconds == one.on(1).seconds == pytest.approx(1 + 0.5 + 1.5 + 1)


def test_what_comes_after_all_parts(hand):
    """The table, which no GPU makes: of 1,000 entries."""
    found = with_costs(hand, around=1.0, table=0.001).on(4)
    assert found.seconds == pytest.approx(3.5 + 1 + 1)
    assert found.lost["the table"] == pytest.approx(2 / 5.5)
    assert found.computing + sum(found.lost.values()) == pytest.approx(1)


def test_it_saturates_where_twice_as_many_bring_little(hand):
    assert hand.saturates == 16
    assert hand.on(16).seconds == hand.on(32).seconds


def test_the_parts_are_the_plans(scale):
    """All cells on all prompts, whatever the size of parts."""
    config, hardware = scale.preset("gpt2").config, scale.hardware_called("h100")
    how = {"dtype": "bfloat16", "n_prompts": 1000, "n_tokens": 20}
    small, large = (scale.parts_planned(config, hardware, **how, size=size) for size in (0.25, 1.0))
    assert len(small) > len(large)
    for parts in (small, large):
        assert sum(each.entries for each in parts) == 144 * 1000
    planned = scale.plan(config, hardware, **how).seconds["sweep"]
    unchanged = {batch: seconds for each in large for batch, seconds in each.batches}
    whole = sum(each.seconds for each in large) + sum(unchanged.values())
    assert whole == pytest.approx(planned, rel=0.02)  # the plan's base runs are launched together with the audit's


@pytest.mark.parametrize("given", ["x", "0", "", "8,,64", "-1"])
def test_numbers_of_gpus_that_are_none(scale, monkeypatch, capsys, given):
    monkeypatch.setattr("sys.argv", ["scale.py", "gpt2", f"--gpus={given}"])
    with pytest.raises(SystemExit) as ended:
        scale.main()
    assert ended.value.code == 2
    assert "--gpus: expected numbers from 1, separated by commas" in capsys.readouterr().err


def test_what_does_not_fit_is_refused(scale, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["scale.py", "gpt3-175b"])
    with pytest.raises(SystemExit):
        scale.main()
    assert "what would fit: llama-2-7b here" in capsys.readouterr().err
