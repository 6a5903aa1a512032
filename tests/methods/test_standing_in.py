"""Two heads that hide each other, by hand: the answer is written by either, and saturates."""

import numpy as np
import pandas as pd
import pytest

from interp.calibration.drawing import Difficulty, Plan
from interp.calibration.planted import Shape
from interp.calibration.roles import Planted
from interp.claims.partners import PAIR_COLUMNS, candidates, standing_in
from interp.methods.standing_in import paired

HEADS = (
    *(Planted(1, head, "twin", "agreement") for head in (1, 2)),
    Planted(0, 0, "looker", "agreement"),
    Planted(0, 1, "tracker", "coreference"),
    Planted(0, 2, "previous word", "induction"),
    Planted(1, 3, "tracker", "induction"),
)


@pytest.fixture(scope="module")
def pairs():
    plan = Plan(Shape(2, 6), HEADS, Difficulty(), seed=0)
    model, tasks = plan.model(), plan.tasks()[:2]
    chosen = [[(0, 0), (1, 1), (1, 2)], [(0, 1)]]
    found = {
        task.name: paired(model, task, heads, kind="mean", draws=1, seed=0)
        for task, heads in zip(tasks, chosen, strict=True)
    }
    return standing_in(found, minimum_effect=0.1, alpha=0.05, seed=0)


def test_twins_stand_in_for_each_other_and_nobody_else_does(pairs):
    assert list(pairs.columns) == [*PAIR_COLUMNS, "interaction_standard_error"]
    assert pairs["task"].unique().tolist() == ["agreement"]  # one head makes no pair
    redundant = pairs[pairs["stand_in"] == "yes"]
    assert redundant[["first", "second"]].to_numpy().tolist() == [["1.1", "1.2"]]
    twins = redundant.iloc[0]
    assert twins["effect"] < 9 * -twins["minimum"]
    assert twins["interaction_high"] < -twins["minimum"]
    others = pairs[pairs["stand_in"] == "no"]
    assert len(others) == 2
    assert (others["interaction"].abs() < others["minimum"]).all()


def test_candidates_look_or_carry_and_the_best_come_first():
    rows = [
        ("shown", "none", 0.3, 0.0),
        ("none", "carried", 0.0, 0.4),
        ("none", "carried", 0.0, 0.2),
        ("shown", "carried", 0.8, 0.5),
        ("none", "none", 0.0, 0.0),
        ("undecided", "undecided", 0.2, 0.2),
    ]
    frame = pd.DataFrame(rows, columns=["attention_state", "representation", "excess", "probe_excess"])
    frame = frame.assign(layer=0, head=range(len(rows)))
    assert candidates(frame, 12) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert candidates(frame, 3) == [(0, 0), (0, 1), (0, 3)]
    assert candidates(frame, 1) == [(0, 3)]
    assert candidates(frame, 0) == []
    assert candidates(frame.assign(attention_state="none", representation="none"), 12) == []


@pytest.mark.parametrize(
    ("effect", "interaction", "expected"),
    [(-2.0, -1.5, "yes"), (-2.0, -0.5, "no"), (-0.5, -1.5, "no"), (2.0, -1.5, "no"), (-2.0, -1.02, "undecided")],
)
def test_a_pair_needs_both_parts_and_is_none_without_either(effect, interaction, expected):
    """By hand, of a base of 10 and so a minimum of 1: means of 60 clusters, with a spread of .02 of the mean."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"first": "0.0", "second": "0.1", "unit": range(60), "template": "t", "base": 10.0})
    noise = 0.2 * rng.normal(size=(2, 60))
    noise -= noise.mean(axis=1, keepdims=True)
    frame = frame.assign(
        cluster=[f"c{each}" for each in range(60)], effect=effect + noise[0], interaction=interaction + noise[1]
    )
    found = standing_in({"a": frame}, minimum_effect=0.1, alpha=0.05, seed=0)
    assert found["stand_in"].item() == expected
    assert found["minimum"].item() == pytest.approx(1)


def test_without_pairs_the_table_is_empty():
    found = standing_in({"a": pd.DataFrame()}, minimum_effect=0.1, alpha=0.05, seed=0)
    assert found.empty
    assert set(PAIR_COLUMNS) <= set(found.columns)
