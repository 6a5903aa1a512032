"""Heads that stand in for each other, by hand: a row a head and example, and what that comes to."""

import numpy as np
import pandas as pd
import pytest

from interp.claims.claim import claim
from interp.claims.effects import against_base
from interp.claims.groups import (
    ALONE,
    DOUBT_COLUMNS,
    GROUP_COLUMNS,
    KINDS,
    PARTNER_COLUMNS,
    candidates,
    judged_groups,
    partners,
    remaining,
)

MEMBER = {"together": -9.0, "mean_together": -8.0, "share": -5.0, "mean_share": -4.0}


def measured(of_heads, missed="", n=60):
    """Of a base of 10, and so a minimum of 1: means of 60 clusters, with a spread of .02 of the base."""
    rng, parts = np.random.default_rng(0), []
    for head, means in of_heads.items():
        noise = 0.2 * rng.normal(size=(n, len(KINDS)))
        noise -= noise.mean(axis=0)
        values = {kind: means.get(kind, np.nan) + noise[:, at] for at, kind in enumerate(KINDS)}
        labels = {"heads": "+".join(of_heads), "missed": missed, "head": head, "unit": range(n), "template": "t"}
        parts.append(pd.DataFrame({**labels, "cluster": [f"c{each}" for each in range(n)], "base": 10.0, **values}))
    return pd.concat(parts, ignore_index=True)


def judged(of_heads, **options):
    return judged_groups({"a": measured(of_heads, **options)}, min_effect=0.1, alpha=0.05, seed=0)


def heads(**columns):
    frame = pd.DataFrame({"task": "a", "layer": 0, "head": range(4)})
    states = {"attention_state": ["shown", "shown", "shown", "none"], "representation": "none", "mean_state": "none"}
    return frame.assign(**{**states, **columns})


@pytest.mark.parametrize("kind", [None, *MEMBER])
@pytest.mark.parametrize(("effect", "expected"), [(-2.0, "yes"), (-0.5, "no"), (2.0, "no"), (-1.02, "undecided")])
def test_a_member_needs_all_four_and_is_none_without_one(kind, effect, expected):
    means = dict.fromkeys(MEMBER, effect) if kind is None else {**MEMBER, kind: effect}
    of_heads = {"0.0": means, "0.1": {**MEMBER, **{each: means[each] for each in means if each.endswith("together")}}}
    found = judged(of_heads).set_index("head")
    assert found.loc["0.0", "member"] == expected
    assert found.loc["0.0", "minimum"] == pytest.approx(1)


def test_each_time_that_sets_are_measured_is_a_test_of_its_own():
    """The chances of an error add up to alpha, however often something leaves."""
    of_heads = {"0.0": {**MEMBER, "share": -1.045}, "0.1": MEMBER}
    frame = measured(of_heads).assign(task="a")
    (test,) = claim([against_base(frame, "share", ["head"], 0.1)], seed=0)
    assert 0.001 < test.p_adjusted[0] < 0.1
    for step in (1, 2, 3):
        found = judged_groups({"a": measured(of_heads)}, min_effect=0.1, alpha=0.05, seed=0, step=step)
        np.testing.assert_allclose(found["share_p_adjusted"], np.minimum(1, 2**step * test.p_adjusted))
        np.testing.assert_allclose(found["share_p_absent"], np.minimum(1, 2**step * test.p_absent))


def test_columns_are_there_even_where_nothing_was_ablated():
    assert set(GROUP_COLUMNS) <= set(judged({"0.0": MEMBER, "0.1": MEMBER}).columns)
    nothing = judged_groups({"a": pd.DataFrame()}, min_effect=0.1, alpha=0.05, seed=0)
    assert nothing.empty
    assert set(GROUP_COLUMNS) <= set(nothing.columns)
    assert list(partners(heads(), nothing, 0.05).columns) == [*PARTNER_COLUMNS, *DOUBT_COLUMNS]


def test_who_is_no_member_leaves_and_the_rest_is_measured_again():
    idle = {**MEMBER, "share": 0.0, "mean_share": 0.0}
    assert remaining(judged({"0.0": MEMBER, "0.1": MEMBER, "1.2": idle}), "a") == [(0, 0), (0, 1)]
    assert remaining(judged({"0.0": MEMBER, "0.1": MEMBER}), "a") is None
    assert remaining(judged({"0.0": idle, "0.1": idle}), "a") is None
    assert remaining(judged({"0.0": MEMBER, "0.1": idle}), "a") is None  # alone it is no group
    doubtful = {**MEMBER, "share": -1.02}
    assert remaining(judged({"0.0": MEMBER, "0.1": doubtful, "1.2": idle}), "a") == [(0, 0), (0, 1)]
    assert remaining(judged({"0.1": doubtful, "0.3": doubtful, "1.2": idle}), "a") is None


def test_all_members_are_named_with_what_they_cost_together_and_after_each_other():
    found = partners(heads(), judged({"0.0": MEMBER, "0.1": MEMBER, "0.2": {**MEMBER, "mean_share": -3.0}}), 0.05)
    assert found["partners"].tolist() == ["0.1 0.2", "0.0 0.2", "0.0 0.1", ""]
    assert found["group"].tolist() == ["0.0+0.1+0.2"] * 3 + [""]
    np.testing.assert_allclose(found["group_effect"], [-8, -8, -8, np.nan])
    np.testing.assert_allclose(found["group_share"], [-4, -4, -3, np.nan])
    assert (found["group_share_low"][:3] < found["group_share"][:3]).all()
    assert (found["group_p_adjusted"][:3] < 0.01).all()
    assert set(found["caveat"]) == set(found["doubtful"]) == {""}


def test_a_head_that_is_missed_by_itself_has_no_partners():
    frame = heads(mean_state=["undecided", "none", "none", "none"])
    found = partners(frame, judged({"0.0": MEMBER, "0.1": MEMBER}), 0.05)
    assert found["partners"].tolist() == ["", "0.0", "", ""]


def test_an_undecided_member_leaves_a_doubt():
    found = partners(heads(), judged({"0.0": MEMBER, "0.1": {**MEMBER, "share": -1.02}}), 0.05)
    assert found["partners"].tolist() == [""] * 4
    assert found["doubtful"].tolist() == ["", "0.0", "", ""]
    assert found["doubtful_effect"][1] == pytest.approx(-1.02)
    assert found["doubtful_se"][1] == pytest.approx(0.2 / np.sqrt(60), rel=0.3)
    assert found["doubtful_n_units"][1] == found["doubtful_n_clusters"][1] == 60


def test_what_the_task_needs_together_is_said_where_no_one_is_a_member():
    idle = {**MEMBER, "share": 0.0, "mean_share": 0.0}
    found = partners(heads(), judged({"0.0": idle, "0.1": idle, "0.2": idle}), 0.05)
    assert found["caveat"][0] == "the task needs it or 0.1 or 0.2: ablated together, they cost it"
    group = judged({"0.0": MEMBER, "0.1": MEMBER, "0.2": idle})  # which two of them explain
    assert set(partners(heads(), group, 0.05)["caveat"]) == {""}


def test_who_stands_in_for_a_head_that_is_missed_by_itself_is_said_to():
    nothing = dict.fromkeys(MEMBER, 0.0)
    backup = {**nothing, "backup": -3.0, "mean_backup": -2.0}
    groups = judged({"0.1": backup, "0.2": {**backup, "mean_backup": 0.0}}, missed="0.0")
    found = partners(heads(mean_state=["drop", "none", "none", "none"]), groups, 0.05)
    assert found["caveat"].tolist() == ["", "the task needs it where 0.0 and 0.2 are ablated", "", ""]


def test_who_could_do_the_work_and_was_not_ablated_with_others():
    nothing = judged_groups({}, min_effect=0.1, alpha=0.05, seed=0)
    two = judged({"0.0": MEMBER, "0.1": MEMBER})
    assert partners(heads(), two, 0.05)["caveat"].tolist() == ["", "", ALONE, ""]
    assert partners(heads(), nothing, 0.05)["caveat"].tolist() == [ALONE] * 3 + [""]
    only = heads(attention_state=["shown", "none", "none", "none"])  # there is nobody to ablate it with
    assert set(partners(only, nothing, 0.05)["caveat"]) == {""}


def test_candidates_look_or_carry_and_are_not_missed_and_the_best_come_first():
    rows = [
        ("shown", "none", 0.3, 0.0, "none"),
        ("none", "carried", 0.0, 0.4, "undecided"),
        ("none", "carried", 0.0, 0.2, "none"),
        ("shown", "carried", 0.8, 0.5, "none"),
        ("none", "none", 0.0, 0.0, "none"),
        ("undecided", "undecided", 0.2, 0.2, "none"),
        ("shown", "none", 0.9, 0.0, "drop"),
        ("none", "carried", 0.0, 0.9, "drop"),
        ("shown", "none", 0.9, 0.0, "rise"),
    ]
    columns = ["attention_state", "representation", "excess", "probe_excess", "mean_state"]
    frame = pd.DataFrame(rows, columns=columns).assign(layer=0, head=range(len(rows)))
    assert candidates(frame, 12) == ([(0, 0), (0, 1), (0, 2), (0, 3)], [(0, 6)])
    assert candidates(frame, 3)[0] == [(0, 0), (0, 1), (0, 3)]
    assert candidates(frame, 1)[0] == [(0, 3)]
    assert candidates(frame, 0)[0] == []
    assert candidates(frame.assign(attention_state="none", representation="none"), 12) == ([], [])
