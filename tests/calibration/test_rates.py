import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from interp.calibration import rates


def heads(*rows, **same):
    frame = pd.DataFrame(rows, columns=["job", "role", "truth", "verdict"])
    filled = {
        **{"attention_state": "none", "effect_state": "none", "representation": "none"},
        **{
            "kind": "planted",
            "reason": "",
            "n": 60,
            "share": 1.0,
            "effect": -1.0,
            "mean_effect": -2.0,
            "min_effect": 0.5,
            "undecidable": "",
        },
        **{"layer": 1, "head": 0, "task": "agreement"},
        **same,
    }
    return frame.assign(**filled)


TRACKS, LOUD, IDLE = ("tracker", "tracks"), ("loud", "general"), ("idle", "none")


def test_a_rate_has_the_exact_interval():
    found = rates.rate(3, 40)
    assert found["rate"] == 3 / 40
    assert found["low"] == pytest.approx(beta.ppf(0.025, 3, 38))
    assert found["high"] == pytest.approx(beta.ppf(0.975, 4, 37))
    assert np.isnan(rates.rate(0, 0)["rate"])
    assert rates.rate(0, 400)["high"] < 0.01


def test_recall_is_of_trackers_and_of_models_with_all_of_them():
    rows = [("a", *TRACKS, "tracks"), ("a", *TRACKS, "undecided"), ("b", *TRACKS, "tracks"), ("b", *LOUD, "tracks")]
    weak = ("b", "tracker", "attends, not causal", "attends, not causal")  # writes less than counts
    found = rates.recall(heads(*rows, weak)).set_index("per")
    assert found.loc["head and task", ["count", "of"]].tolist() == [2, 3]
    assert found.loc["model", ["count", "of"]].tolist() == [1, 2]


def test_false_tracks_are_counted_by_model_and_by_head():
    rows = [("a", *TRACKS, "tracks"), ("a", *IDLE, "tracks"), ("a", *LOUD, "tracks"), ("b", *IDLE, "none")]
    found = rates.false_tracks(heads(*rows)).set_index("per")
    assert found.loc["model", ["count", "of"]].tolist() == [1, 2]
    assert found.loc["head and task", ["count", "of"]].tolist() == [2, 3]


def test_decoys_have_to_get_their_own_verdict():
    rows = [("a", *LOUD, "none"), ("a", *LOUD, "general")]
    found = rates.decoys(heads(*rows)).set_index("role")
    assert found.loc["loud", ["count", "of"]].tolist() == [0, 1]  # it is one head, wrong on one of its tasks
    assert found.loc["carrier", "of"] == 0


def test_heads_that_stand_in_for_each_other_have_to_be_named_as_that_set():
    rows = [("a", "stand-in", "redundant", "redundant")] * 3
    given = heads(*rows).assign(head=[0, 1, 2], partners=["1.1 1.2", "1.0 1.2", "1.0 1.1"])
    name = "3 that stand in"
    assert rates.decoys(given).set_index("role").loc[name, ["count", "of"]].tolist() == [1, 1]
    assert rates.outcomes(given).tolist() == ["right"] * 3
    for wrong in ("1.0", "1.0 1.1 1.3"):
        some = given.assign(partners=["1.1 1.2", "1.0 1.2", wrong])
        assert rates.decoys(some).set_index("role").loc[name, ["count", "of"]].tolist() == [0, 1]
        assert rates.outcomes(some).tolist() == ["right", "right", "wrong"]


def test_what_is_claimed_of_special_models_is_counted_by_kind():
    sees, wrong, blind = ("one that sees", "tracks"), ("wrong tag", "attends and causal"), ("blind", "none")
    rows = [("a", *sees, "tracks"), ("b", *sees, "undecided"), ("c", *sees, "none"), ("a", *wrong, "tracks")]
    rows += [("b", *wrong, "attends and causal"), ("a", *blind, "encodes, unused"), ("b", *blind, "tracks")]
    found = rates.special(heads(*rows, kind="one that sees, crossed")).set_index("claim")
    assert found.loc["a head that tracks is found", ["in_models", "of_models"]].tolist() == [1, 3]
    assert found[["count", "of"]].T.to_dict("list") == {
        "a head that tracks is found": [1, 3],
        "and is contradicted": [1, 3],
        "a blind head is said to track": [1, 2],
        "a wrongly tagged word is said to be tracked": [1, 2],
    }
    group = heads(*[("a", "stand-in", "redundant", "redundant")] * 2, kind="group of 2").assign(head=[0, 1])
    named = rates.special(group.assign(partners=["1.1", "1.0"])).iloc[0]
    assert (named["claim"], named["count"], named["of"]) == ("a group is named as that set", 1, 1)
    assert rates.special(group.assign(partners=["1.1", ""])).iloc[0]["count"] == 0


def test_outcomes_tell_less_from_wrong():
    said = ["tracks", "attends and causal", "undecided", "general", "attends, not causal"]
    found = rates.outcomes(heads(*(("a", *TRACKS, verdict) for verdict in said)))
    assert found.tolist() == ["right", "weaker", "undecided", "wrong", "wrong"]
    assert rates.outcomes(heads(("a", *LOUD, "attends and causal"))).tolist() == ["wrong"]
    said = ("none", "encodes, unused", "undecided", "causal, by another route")
    found = rates.outcomes(heads(*(("a", "bystander", "none", each) for each in said)))
    assert found.tolist() == ["right", "right", "undecided", "wrong"]


def test_a_null_counts_once_however_many_heads_are_wrong():
    rows = [("a", *IDLE, "tracks"), ("a", *IDLE, "tracks"), ("b", *IDLE, "none"), ("c", *IDLE, "none")]
    kinds = ["trained", "trained", "trained", "permuted pairs"]
    found = heads(*rows).assign(kind=kinds, attention_state=["shown", "none", "none", "shown"])
    table = rates.false_discoveries(found).set_index(["kind", "claim"])
    assert table.loc[("all", "tracks"), ["count", "of", "able"]].tolist() == [1, 3, 3]
    assert table.loc[("trained", "tracks"), ["count", "of"]].tolist() == [1, 2]
    assert table.loc[("permuted pairs", "attention"), ["count", "of"]].tolist() == [1, 1]
    assert ("trained", "attention") not in table.index


def test_each_null_has_verdicts_of_its_own_that_are_false():
    said = {
        "trained": ("general", 0),
        "permuted labels": ("general", 1),
        "permuted pairs": ("attends, not causal", 1),
        "untrained": ("encodes, unused", 1),
    }
    for kind, (verdict, n_false) in said.items():
        found = heads(("a", *IDLE, verdict), ("b", *IDLE, "causal, by another route"), kind=kind)
        able = found.assign(undecidable=["", "at chance"])
        table = rates.false_discoveries(able).set_index(["kind", "claim"])
        assert table.loc[(kind, "any false verdict"), ["count", "of", "able"]].tolist() == [n_false, 1, 1], kind


def test_curves_count_by_what_is_harder():
    easy = heads(*[("a", *TRACKS, "tracks")] * 3)
    hard = heads(*(("b", *TRACKS, verdict) for verdict in ("tracks", "undecided", "general")), n=30)
    both = pd.concat([easy, hard], ignore_index=True)
    table = rates.curve(both, "n").set_index("n")
    assert table["rate"].tolist() == [pytest.approx(1 / 3), 1.0]
    assert table.loc[30, ["weaker", "undecided", "wrong"]].tolist() == [0, pytest.approx(1 / 3), pytest.approx(1 / 3)]
    assert table["minima"].tolist() == [2, 2]  # of the replacement that costs less


def test_glancers_have_a_curve_of_their_own_by_what_the_exchange_turns():
    rows = [("a", "glancer", "causal, by another route", "tracks"), ("a", *TRACKS, "undecided")]
    table = rates.curve(heads(*rows, glance=0.06, exchange=-0.4, min_exchange=0.5), "glance").set_index("glance")
    assert table.loc[0.06, ["count", "of", "wrong", "minima"]].tolist() == [1, 1, 1.0, 0.8]


def test_verdicts_are_followed_to_half_of_the_examples():
    cells = {"seed": 0, "layer": 0, "task": "agreement"}
    whole = heads(*[("a", *TRACKS, "tracks")] * 3, ("a", *IDLE, "none"), ("a", *IDLE, "opposes"))
    half = heads(
        *(("b", *TRACKS, verdict) for verdict in ("tracks", "undecided", "general")),
        *(("b", *IDLE, verdict) for verdict in ("none", "undecided")),
    )
    found = rates.transitions(whole.assign(**cells, head=range(5)), half.assign(**cells, head=range(5)))
    rows = found.set_index(["heads", "on all"])[["of", "right", "weaker", "undecided", "wrong"]]
    assert rows.loc[("with a purpose", "right")].tolist() == [3, 1, 0, 1, 1]
    assert rows.loc[("idle", "right")].tolist() == [1, 1, 0, 0, 0]
    assert rows.loc[("idle", "wrong")].tolist() == [1, 0, 0, 1, 0]
    fewer = rates.transitions(whole.assign(**cells, head=range(5)), half[:1].assign(**cells, head=0))
    assert fewer["of"].tolist() == [1]


def test_a_single_head_that_cannot_do_a_task_is_right_to_have_no_finding():
    rows = [("agreement", "tracks", "tracks"), ("agreement", "tracks", "undecided"), ("induction", "none", "undecided")]
    frame = pd.DataFrame([*rows, ("induction", "none", "tracks")], columns=["task", "truth", "verdict"])
    found = rates.single_heads(frame.assign(accuracy_base=[1.0, 0.9, 0.5, 0.5])).set_index("task")
    assert found["count"].to_dict() == {"agreement": 1, "induction": 1}
    assert found["of"].to_dict() == {"agreement": 2, "induction": 2}
    assert found["accuracy"].to_dict() == {"agreement": 0.95, "induction": 0.5}
