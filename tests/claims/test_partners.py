"""Who stands in for whom, by hand: a row a head, a row a pair."""

import numpy as np
import pandas as pd

from interp.claims.partners import DOUBT_COLUMNS, PARTNER_COLUMNS, UNPAIRED, partners

FRAME = pd.DataFrame({"task": "a", "layer": 0, "head": range(4)}).assign(
    attention_state=["shown", "shown", "shown", "none"], representation="none", effect_state="none"
)
ALL = {"a": [(0, 0), (0, 1), (0, 2)]}


def pairs(*rows):
    found = pd.DataFrame(rows, columns=["first", "second", "effect", "interaction", "stand_in"]).assign(task="a")
    for name in ("effect", "interaction"):
        found[f"{name}_low"], found[f"{name}_high"] = found[name] - 0.5, found[name] + 0.5
    return found.assign(interaction_standard_error=0.25)


def test_partners_are_named_on_both_sides_the_strongest_first():
    found = partners(FRAME, pairs(("0.0", "0.1", -2.0, -1.0, "yes"), ("0.0", "0.2", -5.0, -4.0, "yes")), ALL)
    assert list(found.columns) == [*PARTNER_COLUMNS, *DOUBT_COLUMNS]
    assert found["partners"].tolist() == ["0.2 0.1", "0.0", "0.0", ""]
    assert found["pair_effect"].tolist()[:3] == [-5.0, -2.0, -5.0]
    assert found["pair_low"].tolist()[:3] == [-5.5, -2.5, -5.5]
    assert np.isnan(found["pair_effect"].iloc[3])
    assert set(found["caveat"]) == set(found["doubtful"]) == {""}


def test_who_stands_in_for_a_head_that_is_missed_alone_is_no_partner_of_it():
    """0.0 is needed; when it is gone, 0.1 does some of its work."""
    frame = FRAME.assign(effect_state=["drop", "none", "none", "none"])
    found = partners(frame, pairs(("0.0", "0.1", -2.0, -1.0, "yes")), ALL)
    assert found["partners"].tolist() == ["0.1", "", "", ""]
    assert found["caveat"].tolist() == ["", "it stands in for 0.0 when that is ablated", "", ""]


def test_an_undecided_pair_leaves_a_doubt_on_either_side():
    found = partners(FRAME, pairs(("0.0", "0.1", -2.0, -1.0, "undecided"), ("0.0", "0.2", -2.0, -0.1, "no")), ALL)
    assert found["doubtful"].tolist() == ["0.1", "0.0", "", ""]
    assert found["doubtful_interaction"].tolist()[:2] == [-1.0, -1.0]
    assert found["doubtful_se"].tolist()[:2] == [0.25, 0.25]
    assert set(found["partners"]) == {""}


def test_who_could_do_the_work_and_was_not_paired():
    found = partners(FRAME, pairs(), {"a": [(0, 0), (0, 1)]})
    assert found["caveat"].tolist() == ["", "", UNPAIRED, ""]
    assert partners(FRAME, pairs(), {"a": []})["caveat"].tolist() == [UNPAIRED] * 3 + [""]
    alone = FRAME.assign(attention_state=["shown", "none", "none", "none"])  # there is nobody to pair it with
    assert set(partners(alone, pairs(), {"a": [(0, 0)]})["caveat"]) == {""}
