"""From a row of evidence to its verdict, and to the units that would decide where nothing is; and specificity."""

import numpy as np
import pandas as pd
import pytest

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.rules import NOT_PROBED
from interp.claims.verdicts import specificities, states, verdicts

N_UNITS, N_CLUSTERS = 4 * FEWEST_CLUSTERS, 2 * FEWEST_CLUSTERS
DROP = {"estimate": -2.0, "minimum": 0.9, "p_adjusted": 0.01, "p_absent": 1.0, "standard_error": 0.2}
OPEN = {"estimate": -1.0, "minimum": 0.9, "p_adjusted": 0.3, "p_absent": 0.9, "standard_error": 0.5}
NONE = {"estimate": -0.05, "minimum": 0.9, "p_adjusted": 1.0, "p_absent": 0.01, "standard_error": 0.2}
LOOKS = {"estimate": 0.3, "minimum": 0.1, "p_adjusted": 0.01, "p_absent": 1.0, "standard_error": 0.05}
UNSEEN = {"estimate": np.nan, "minimum": 0.1, "p_adjusted": np.nan, "p_absent": np.nan, "standard_error": np.nan}


def columns(kind, given, *, n_units=N_UNITS, n_clusters=N_CLUSTERS):
    rest = {"critical": 3.0, "n_units": n_units, "n_clusters": n_clusters}
    named = {f"{kind}_{name}": value for name, value in {**given, **rest}.items() if name != "estimate"}
    return {kind: given["estimate"], **named}


def row_of(effect=OPEN, mean=OPEN, excess=LOOKS, exchange=None, probe=None, n_clusters=N_CLUSTERS, **changes):
    """A row of a task without a feature; what is None was not measured."""
    kinds = {"effect": effect, "mean_effect": mean, "excess": excess}
    rows = [columns(kind, given, n_clusters=n_clusters) for kind, given in kinds.items()]
    for kind, given in {"exchange": exchange, "probe_excess": probe}.items():
        counts = {"n_units": N_UNITS, "n_clusters": N_CLUSTERS} if given else {"n_units": 0, "n_clusters": 0}
        rows.append(columns(kind, given or UNSEEN, **counts))
    found = {name: value for each in rows for name, value in each.items()}
    known = {"feature": None, "selectivity_p_adjusted": 0.001, "probe_baseline_score": 0.5, "above_chance": True}
    counts = {"n_task_units": N_UNITS, "n_clusters": n_clusters, "mean_replacement": "positional_mean"}
    others = {"specificity": "specific", "probed": True}
    others |= dict.fromkeys(("partners", "member", "caveat", "doubtful", "tested"), "")
    return {**found, **known, **counts, **others, **changes}


def judged(row):
    frame = pd.DataFrame([row])
    found = states(frame, 0.05)
    return {**found.iloc[0], **verdicts(frame.join(found)).iloc[0]}


def test_states_and_verdict_of_a_head_that_tracks():
    found = judged(row_of(DROP, DROP, exchange=DROP, probe={**LOOKS, "estimate": 0.2}, feature="number"))
    states_of = ("attention_state", "effect_state", "resample_state", "mean_state", "exchange_state", "representation")
    assert [found[name] for name in states_of] == ["shown", "drop", "drop", "drop", "drop", "carried"]
    assert (found["verdict"], found["reason"]) == ("tracks", "")
    assert np.isnan(found["n_to_decide"])


@pytest.mark.parametrize("named", [True, False])
def test_a_feature_that_was_not_probed_stands_in_the_way_only_where_the_task_names_it(named):
    found = judged(row_of(DROP, DROP, exchange=DROP, feature="number" if named else np.nan))
    assert found["verdict"] == ("attends and causal" if named else "tracks")
    left_out = judged(row_of(DROP, DROP, exchange=DROP, feature="number", probed=False))
    assert left_out["reason"] == NOT_PROBED
    assert "not testable" not in left_out["reason"]


def test_replacements_that_disagree_are_both_named_with_their_numbers():
    found = judged(row_of(DROP, NONE))
    assert (found["effect_state"], found["verdict"]) == ("disagree", "undecided")
    assert found["reason"] == "the replacements disagree: -2 by resample and -0.05 by positional mean"
    assert np.isnan(found["n_to_decide"])


@pytest.mark.parametrize(("p", "state"), [(0.06, "undecided"), (0.05, "carried"), (np.nan, "undecided")])
def test_selectivity_has_to_be_shown(p, state):
    assert judged(row_of(probe=LOOKS, selectivity_p_adjusted=p))["representation"] == state


def test_a_control_that_leaves_no_room_makes_it_untestable():
    assert judged(row_of(probe=LOOKS, probe_baseline_score=0.89))["representation"] == "carried"
    assert judged(row_of(probe=LOOKS, probe_baseline_score=0.91))["representation"] == "not testable"


class TestUnitsToDecide:
    def test_they_are_more_than_there_are(self):
        assert judged(row_of())["n_to_decide"] > N_UNITS
        few = judged(row_of(n_clusters=FEWEST_CLUSTERS // 2))
        assert few["undecidable"]
        assert few["n_to_decide"] >= 2 * N_UNITS

    def test_a_model_at_chance_is_promised_nothing(self):
        found = judged(row_of(above_chance=False))
        assert (found["verdict"], found["undecidable"]) == ("undecided", found["reason"])
        assert "not shown to be above chance" in found["reason"]
        assert np.isnan(found["n_to_decide"])

    def test_both_replacements_have_to_be_decided(self):
        one = judged(row_of(OPEN, DROP))["n_to_decide"]
        wider = judged(row_of(OPEN, {**OPEN, "standard_error": 1.0}))["n_to_decide"]
        assert wider > one > N_UNITS

    def test_where_more_units_of_one_kind_are_no_help_nothing_is_promised(self):
        """Attention asks for some units; of the effect, nobody knows what more of them would show."""
        attention = {**LOOKS, "p_adjusted": 0.2, "estimate": 0.09}
        sure = {**OPEN, "standard_error": 1e-3}
        assert judged(row_of(NONE, NONE, attention))["n_to_decide"] > N_UNITS
        assert np.isnan(judged(row_of(sure, sure, attention))["n_to_decide"])

    def test_units_without_attention_are_needed_in_proportion(self):
        attention = {**LOOKS, "p_adjusted": 0.2, "estimate": 0.09}
        whole = judged(row_of(NONE, NONE, attention))["n_to_decide"]
        half = judged({**row_of(NONE, NONE, attention), "excess_n_units": N_UNITS / 2})["n_to_decide"]
        # The same spread of half the units: half as many would do.
        assert half == pytest.approx(whole, rel=0.02)

    def test_an_exchange_that_is_open_asks_for_its_own(self):
        found = judged(row_of(DROP, DROP, exchange=OPEN))
        assert found["verdict"] == "needed"
        assert found["n_to_decide"] > N_UNITS

    def test_a_group_asks_for_units_by_those_that_it_was_measured_on(self):
        """Sets are measured on fewer units than the task has where there are looks, or most clusters."""
        doubt = {"effect": -1.3, "se": 0.5, "critical": 3.0, "n_units": N_UNITS, "n_clusters": N_CLUSTERS}
        row = row_of(NONE, NONE, doubtful="0.1", **{f"doubtful_{name}": each for name, each in doubt.items()})
        needed = judged({**row, "n_task_units": 4 * N_UNITS})["n_to_decide"]
        assert needed == judged(row)["n_to_decide"] > N_UNITS
        few = judged({**row, "doubtful_n_units": N_UNITS / 4})["n_to_decide"]
        assert few == pytest.approx(needed / 4, rel=0.02)

    def test_what_was_not_chosen_is_not_decided_by_more(self):
        unchosen = {**OPEN, "p_adjusted": np.nan}
        found = judged(row_of(unchosen, OPEN, tested="declared"))
        assert found["reason"].endswith("; not declared, and so cannot be shown: resampling")
        assert np.isnan(found["n_to_decide"])

    @pytest.mark.parametrize("effect", [DROP, NONE])
    def test_nor_is_a_probe_that_was_not_chosen(self, effect):
        looks = LOOKS if effect is DROP else {**NONE, "minimum": 0.1}
        unread = {**LOOKS, "p_adjusted": np.nan}
        asked = row_of(effect, effect, looks, exchange=DROP, probe=unread, feature="number", tested="chosen")
        found = judged(asked)
        assert found["verdict"] == ("attends and causal" if effect is DROP else "none")
        assert found["reason"].endswith("undecided; not chosen, and so cannot be shown: the probe")
        assert "cannot be shown" not in judged({**asked, "probe_excess_p_adjusted": 0.3})["reason"]


def rows(*states, undecidable=None):
    """One head on several tasks: attention and effect on each."""
    frame = pd.DataFrame(states, columns=["attention_state", "effect_state"])
    reasons = [undecidable if number == len(frame) - 1 and undecidable else "" for number in range(len(frame))]
    tasks = [f"task {number}" for number in range(len(frame))]
    return frame.assign(layer=0, head=0, task=tasks, undecidable=reasons)


NEEDED, ELSEWHERE = ("shown", "drop"), ("none", "drop")


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([NEEDED, ELSEWHERE], ["not testable"] * 2),
        ([ELSEWHERE] * 3, ["general"] * 3),
        ([NEEDED, ELSEWHERE, ELSEWHERE], ["general"] * 3),
        ([NEEDED] * 3, ["specific"] * 3),
        ([NEEDED, ("shown", "undecided"), NEEDED], ["specific"] * 3),
        ([NEEDED, ("shown", "disagree"), ("undecided", "drop")], ["undecided"] * 3),
        ([NEEDED, ("not testable", "drop"), NEEDED], ["undecided"] * 3),
        ([NEEDED, ("undecided", "drop"), ELSEWHERE], ["general"] * 3),
        ([NEEDED, ELSEWHERE, ("none", "none")], ["specific", "specific", "general"]),
        ([NEEDED, ELSEWHERE, ("none", "rise")], ["specific", "specific", "general"]),
        ([NEEDED, ELSEWHERE, ("none", "undecided")], ["undecided", "undecided", "general"]),
        ([NEEDED, ELSEWHERE, ("none", "disagree")], ["undecided", "undecided", "general"]),
    ],
)
def test_a_head_is_general_where_it_costs_all_others_wherever_it_looks(states, expected):
    assert specificities(rows(*states)) == expected


def test_a_task_that_the_model_cannot_do_says_nothing_of_others():
    found = specificities(rows(NEEDED, ELSEWHERE, ELSEWHERE, ("none", "none"), undecidable="at chance"))
    assert found[0] == "general"
    assert specificities(rows(NEEDED, ELSEWHERE, ELSEWHERE, undecidable="at chance"))[0] == "not testable"


def test_heads_are_judged_one_by_one():
    frame = pd.concat([rows(*[ELSEWHERE] * 3), rows(NEEDED, ELSEWHERE, ("none", "none")).assign(head=1)])
    assert specificities(frame.reset_index(drop=True)) == [*["general"] * 3, "specific", "specific", "general"]
