"""Two heads that hide each other, by hand: the answer is written by either, and saturates."""

import numpy as np
import pandas as pd
import pytest

from interp.calibration.drawing import Difficulty, Plan
from interp.calibration.planted import Shape
from interp.calibration.roles import Planted
from interp.methods.standing_in import PAIR_COLUMNS, PARTNER_COLUMNS, candidates, partners, standing_in, unpaired

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
    chosen = {"agreement": [(0, 0), (1, 1), (1, 2)], "coreference": [(0, 1)]}
    how = {"kind": "mean", "draws": 1, "seed": 0, "minimum_effect": 0.1, "alpha": 0.05, "flips": 2000}
    return standing_in(model, tasks, chosen, **how)


def test_twins_stand_in_for_each_other_and_nobody_else_does(pairs):
    assert list(pairs.columns) == list(PAIR_COLUMNS)
    assert pairs["task"].unique().tolist() == ["agreement"]  # one head makes no pair
    redundant = pairs[pairs["redundant"]]
    assert redundant[["first", "second"]].to_numpy().tolist() == [["1.1", "1.2"]]
    twins = redundant.iloc[0]
    assert twins["effect"] < 9 * -twins["minimum"]
    assert twins["interaction_high"] < -twins["minimum"]
    others = pairs[~pairs["redundant"]]
    assert (others["interaction"].abs() < others["minimum"]).all()


def test_partners_are_named_on_both_sides(pairs):
    frame = pd.DataFrame({"task": "agreement", "layer": [0, 1, 1], "head": [0, 1, 2]})
    found = partners(frame, pairs)
    assert list(found.columns) == list(PARTNER_COLUMNS)
    assert found["partners"].tolist() == ["", "1.2", "1.1"]
    assert found["pair_effect"].isna().tolist() == [True, False, False]
    assert (
        found["pair_effect"].iloc[1] == found["pair_effect"].iloc[2] == pairs.loc[pairs["redundant"], "effect"].item()
    )
    assert partners(frame.assign(task="coreference"), pairs)["partners"].tolist() == [""] * 3


def test_the_strongest_partner_comes_first():
    rows = [("agreement", "0.0", "0.1", -2.0, -1.0), ("agreement", "0.0", "0.2", -5.0, -4.0)]
    frame = pd.DataFrame(rows, columns=["task", "first", "second", "effect", "interaction"])
    found = frame.assign(redundant=True, effect_low=np.nan, effect_high=np.nan)
    heads = pd.DataFrame({"task": "agreement", "layer": 0, "head": range(3)})
    assert partners(heads, found)["partners"].tolist() == ["0.2 0.1", "0.0", "0.0"]
    assert partners(heads, found)["pair_effect"].tolist() == [-5.0, -2.0, -5.0]


def test_candidates_look_or_carry_and_the_best_come_first():
    rows = [
        ("shown", "none", 0.3, 0.0),
        ("none", "carried", 0.0, 0.4),
        ("none", "used", 0.0, 0.2),
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


def test_who_could_do_the_work_and_is_not_paired():
    rows = [
        ("a", 0, "shown"),
        ("a", 1, "shown"),
        ("a", 2, "shown"),
        ("a", 3, "none"),
        ("b", 0, "shown"),
        ("b", 1, "none"),
    ]
    frame = pd.DataFrame(rows, columns=["task", "head", "attention_state"]).assign(layer=0, representation="none")
    taken = {"a": [(0, 0), (0, 1)], "b": [(0, 0)]}
    assert unpaired(frame, taken).tolist() == [False, False, True, False, False, False]  # in b there is nobody else
    assert unpaired(frame, {"a": [], "b": []}).tolist() == [True, True, True, False, False, False]
