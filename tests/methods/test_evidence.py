import numpy as np
import pandas as pd
import pytest
import torch
from hand_model import ARE, IS, KEY, KEYS, N_CLUSTERS, HandModel, hand_weights, pair, prompts, task_of, varied_task

from interp.claims.rules import Evidence
from interp.claims.units import UnitTable, estimates
from interp.methods.evidence import _clearest, gather, in_one_look
from interp.methods.evidence import tested as with_tests
from interp.options import HeadsOptions


def test_an_interrupted_sweep_is_no_evidence():
    """What is complete of it would be judged like the task."""

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        gather(HandModel(), varied_task(), HeadsOptions(), progress=stop)


@pytest.mark.unchecked
def test_words_are_exchanged_wherever_the_verdict_asks_for_it():
    """The minimum is a share of the base over balanced templates; the mean over examples is another number."""
    shapes = [(before, after) for before in range(4) for after in range(4)]
    units = [
        pair(prompts(*shape), f"c{number % N_CLUSTERS}", template="short" if sum(shape) < 4 else "long")
        for number, shape in enumerate(shapes * N_CLUSTERS)
        if sum(shape) < 4 or number % 3
    ]
    references = [pair(prompts(*shape), template="short" if sum(shape) < 4 else "long") for shape in shapes]
    task = task_of(units, references)
    how = {"draws": 1, "seed": 0, "probes": False}
    model = hand_weights()
    with torch.no_grad():  # head 1 looks everywhere, and writes the answer, too: head 0 writes less than all of it
        attention = model.blocks[0].attn
        attention.W_O[1] = 0
        attention.W_O[1, KEY, IS] = attention.W_O[1, KEYS, ARE] = 1
    found = gather(model, task, HeadsOptions(**how))
    assert found.exchange.examples["head"].unique().tolist() == [0]
    tables = [UnitTable.from_frame(each.examples, "effect") for each in (found.resampled, found.averaged)]
    effect = min(-estimates(each)[0] for each in tables)  # the smaller of the two
    balanced = estimates(UnitTable.from_frame(found.resampled.examples, "base"))[0]
    assert balanced < 0.99 * found.resampled.examples["base"].mean()
    for share, heads in ((0.999 * effect / balanced, [0]), (1.001 * effect / balanced, None)):
        exchange = gather(model, task, HeadsOptions(**how, min_effect=share)).exchange
        assert heads == (None if exchange is None else exchange.examples["head"].unique().tolist())


def test_a_word_whose_answers_the_model_does_not_tell_apart_turns_nothing(monkeypatch):
    how = {"draws": 1, "seed": 0, "probes": False}
    assert gather(hand_weights(), varied_task(), HeadsOptions(**how)).exchange is not None
    monkeypatch.setattr("interp.methods.evidence.above_chance", lambda *_, **__: np.array([False]))
    assert gather(hand_weights(), varied_task(), HeadsOptions(**how)).exchange is None


@pytest.mark.parametrize(("strays", "testable"), [(0, False), (4, False), (8, True)])
def test_attention_is_not_testable_where_a_position_is_the_related_word(strays, testable):
    """Of 60 units, all but the strays have the related word three tokens back: room is 4/60 or 8/60 beside .1."""
    same = [pair(prompts(number % 5, 2), f"c{number}") for number in range(60 - strays)]
    units = [*same, *(pair(prompts(number % 5, 3), f"s{number}") for number in range(strays))]
    references = [pair(prompts(number, after)) for after in (2, 2, 3) for number in range(6)]
    evidence = gather(HandModel(), task_of(units, references), HeadsOptions(probes=False))
    row = with_tests([evidence], in_one_look([evidence], HeadsOptions()), None, HeadsOptions()).iloc[0]
    assert (row["baseline"], row["baseline_overlap"]) == ("offset -3", pytest.approx(1 - strays / 60))
    assert row["attention"] > 0.4
    assert row["excess_n_clusters"] == (60 if testable else 0)
    columns = ["excess", "excess_low", "excess_high", "excess_standard_error"]
    assert np.isfinite(row[columns].astype(float)).all() == testable
    assert np.isfinite(evidence.excess.values[:, 0]).any() == testable


@pytest.mark.parametrize(
    ("absent", "shown", "clusters", "state", "value"),
    [
        ((0.01, 0.02), (1.0, 1.0), (40, 40), "none", "a"),
        ((0.01, np.nan), (1.0, np.nan), (40, 0), "not testable", "b"),  # nothing is known of the other value
        ((0.01, np.nan), (1.0, np.nan), (40, 12), "undecided", "b"),  # nor is it from so few
        ((1.0, np.nan), (0.01, np.nan), (40, 0), "shown", "a"),
        ((1.0, np.nan), (0.01, np.nan), (40, 12), "shown", "a"),
        ((0.3, np.nan), (1.0, np.nan), (40, 0), "undecided", "a"),
        ((np.nan, np.nan), (np.nan, np.nan), (0, 0), "not testable", "a"),
    ],
)
def test_attention_is_absent_where_it_is_at_every_value(absent, shown, clusters, state, value):
    looks = pd.DataFrame({"task": "t", "layer": 0, "head": 0, "feature_value": ["a", "b"], "excess": 0.0})
    looks = looks.assign(excess_n_clusters=clusters, excess_standard_error=[0.1 if n else np.nan for n in clusters])
    looks = looks.assign(excess_p_adjusted=shown, excess_p_absent=absent, excess_minimum=0.1, excess_critical=3.0)
    (row,) = _clearest(looks.assign(excess_n_units=40), 0.05).to_dict("records")
    assert Evidence.of(row, "excess").excess(0.05) == state
    assert row["attention_value"] == value
