"""Two heads that hide each other, by hand: the answer is written by either, and saturates."""

import pandas as pd
import pytest

from interp.calibration.drawing import Difficulty, Plan
from interp.calibration.planted import Shape
from interp.calibration.roles import Planted
from interp.methods.standing_in import PAIR_COLUMNS, candidates, paired, stand_in, standing_in

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
    how = {"kind": "mean", "draws": 1, "seed": 0, "minimum_effect": 0.1, "flips": 2000}
    found = [paired(model, task, heads, **how) for task, heads in zip(tasks, chosen, strict=True)]
    return standing_in(found, alpha=0.05)


def test_twins_stand_in_for_each_other_and_nobody_else_does(pairs):
    assert list(pairs.columns) == list(PAIR_COLUMNS)
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
        ("none", "unused", 0.0, 0.2),
        ("shown", "used", 0.8, 0.5),
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


def test_what_is_neither_shown_nor_shown_to_be_small_is_undecided():
    """A pair by hand: the second head writes what the first does, on some of the items only."""
    rows = {
        "q": [0.01, 0.2, 0.2, 0.2, 0.01],
        "effect": [-2.0, -2.0, -2.0, -0.5, -2.0],
        "interaction": [-1.5, -1.5, -0.5, -1.5, -0.5],
        "absent": [False, False, True, True, False],
    }
    frame = pd.DataFrame(rows).assign(minimum=1.0)
    assert stand_in(frame, 0.05).tolist() == ["yes", "undecided", "no", "no", "undecided"]
