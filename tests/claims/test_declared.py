"""Claims that were declared before: what a file may hold, and what becomes of a claim."""

import dataclasses
import hashlib
import itertools
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from interp.claims.declared import EXPECTED, choose, outcome, read_claims
from interp.claims.rules import States, judge
from interp.errors import InputError

TASKS = ("agreement", "ioi")


def written(folder, text):
    path = folder / "claims.toml"
    path.write_text(text, encoding="utf-8")
    return path


def one(head='"2.1"', task='"ioi"', verdict='"tracks"', more=""):
    return f"{more}\n[[claim]]\nhead = {head}\ntask = {task}\nverdict = {verdict}\n"


def test_a_file_is_read_with_its_hash_and_thresholds(tmp_path):
    path = written(tmp_path, one(more="alpha = 0.01\nmin_effect = 0.2"))
    found = read_claims(path)
    assert [(each.head, each.task, each.verdict) for each in found.claims] == [((2, 1), "ioi", "tracks")]
    assert found.thresholds == {"alpha": 0.01, "min_effect": 0.2}
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.file == "claims.toml"
    assert found.written == datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    found.check(TASKS, (3, 4))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one \\[\\[claim\\]\\]"),
        ("claim = 3", "at least one \\[\\[claim\\]\\].*got claim = 3"),
        ("claim = [3]", "claim 1: expected a table"),
        ("[[claim]\n", "a TOML file that can be read"),
        (one(more="minimun_effect = 0.1"), "key 'minimun_effect' is unknown; did you mean 'min_effect'"),
        (one() + "heads = 3", "claim 1: key 'heads' is unknown; did you mean 'head'"),
        (one(head="2.1"), "head: expected a text, such as '2.1', got 2.1"),
        (one(head='"L2H1"'), "expected layer and head such as '2.1'"),
        (one(verdict='"track"'), "verdict 'track' is unknown; did you mean 'tracks'"),
        (one(verdict='"undecided"'), "verdict 'undecided' is unknown"),
        ('[[claim]]\nhead = "2.1"\ntask = "ioi"\n', "verdict: expected a text, such as 'tracks', got None"),
        (one() + one(verdict='"none"'), "one claim a head and task"),
        (one(more="alpha = 2"), "alpha: expected a share between 0 and 1, got 2"),
        (one().replace("[[claim]]", "[claim]"), "got \\[claim\\]; write it in double brackets"),
        (one(head=f'"{5000 * "1"}.0"'), "expected layer and head such as '2.1'"),
        (one(more='alpha = "small"'), "alpha: expected a share between 0 and 1, got 'small'"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read_claims(written(tmp_path, text))


@pytest.mark.parametrize("path", [5, "a\0b", "~nobody-of-that-name/claims.toml"])
@pytest.mark.unchecked
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InputError, match="expected a TOML file that can be read"):
        read_claims(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"expected a TOML file that can be read.*nothing.toml"):
        read_claims(tmp_path / "nothing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="expected a TOML file that can be read"):
        read_claims(tmp_path / "binary.toml")


def test_heads_and_tasks_that_are_not_measured_are_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"expected claims of tasks that are measured \(agreement, ioi\).*'iou'.*'ioi'"
    ):
        read_claims(written(tmp_path, one(task='"iou"'))).check(TASKS, (3, 4))
    with pytest.raises(InputError, match=r"expected heads of the model \(0.0 to 2.3\), got 2.4"):
        read_claims(written(tmp_path, one(head='"2.4"'))).check(TASKS, (3, 4))


TRACKS = States("shown", "drop", "carried", specificity="specific", exchange="drop", no_partners=True)
IDLE = States("none", "none", "none", no_partners=True)
LOOKS = States("shown", "none", "carried")
UNKNOWN = States("undecided", "undecided", "undecided", specificity="undecided", exchange="undecided")


def found_with(states, **changes):
    return dataclasses.replace(states, **changes)


@pytest.mark.parametrize("expected", EXPECTED)
def test_every_claim_can_be_confirmed_left_open_and_refuted(expected):
    assert outcome(expected, UNKNOWN) == "open"
    certain = [
        States(*each, no_partners=not partners, partners=partners)
        for *each, partners in itertools.product(
            ("shown", "none"),
            ("drop", "rise", "none"),
            ("carried", "none"),
            ("specific", "general"),
            ("drop", "none"),
            ((), ("1.3",)),
        )
    ]
    outcomes = {judge(states)[0]: outcome(expected, states) for states in certain}
    assert outcomes["tracks" if expected in ("causal", "needed") else expected] == "confirmed"
    assert set(outcomes.values()) == {"confirmed", "refuted"}  # all is known, so nothing is open


@pytest.mark.parametrize(
    ("expected", "states", "is_so"),
    [
        ("attends and causal", TRACKS, "confirmed"),
        ("causal", found_with(TRACKS, specificity="general"), "confirmed"),
        ("causal", found_with(TRACKS, effect="undecided"), "open"),
        ("tracks", found_with(TRACKS, specificity="undecided"), "open"),
        ("tracks", found_with(TRACKS, representation="undecided"), "open"),
        ("tracks", found_with(TRACKS, representation="none"), "refuted"),  # though it attends and is causal
        ("tracks", found_with(TRACKS, exchange="none"), "refuted"),
        ("tracks", found_with(TRACKS, effect="disagree"), "refuted"),  # one replacement excludes it
        ("causal, by another route", found_with(TRACKS, exchange="not testable"), "open"),
        ("general", found_with(TRACKS, specificity="not testable"), "open"),  # on one task
        ("general", TRACKS, "refuted"),
        ("encodes, unused", found_with(IDLE, representation="undecided"), "open"),
        ("encodes, unused", found_with(IDLE, representation="not testable", probed=False), "open"),
        ("encodes, unused", IDLE, "refuted"),
        ("attends, not causal", found_with(IDLE, attention="not testable"), "open"),
        ("none", found_with(IDLE, attention="shown"), "refuted"),
        ("redundant", found_with(IDLE, attention="shown", no_partners=False), "open"),  # not ablated together
        ("redundant", found_with(IDLE, attention="shown", doubtful=("1.2",), no_partners=False), "open"),
        ("redundant", found_with(IDLE, attention="shown"), "refuted"),
        ("redundant", found_with(IDLE, no_partners=False), "refuted"),  # it could not do the work
        ("redundant", found_with(TRACKS, no_partners=False), "refuted"),  # it is missed by itself
        ("tracks", found_with(TRACKS, effect="undecided", replacements=("none", "undecided")), "refuted"),
        ("causal", found_with(TRACKS, effect="undecided", replacements=("undecided", "drop")), "open"),
        ("opposes", found_with(TRACKS, effect="undecided", replacements=("undecided", "drop")), "refuted"),
        ("redundant", found_with(LOOKS, effect="undecided", replacements=("undecided", "drop")), "refuted"),
        ("redundant", found_with(LOOKS, effect="disagree", replacements=("drop", "none")), "open"),
        ("redundant", found_with(LOOKS, effect="disagree", replacements=("none", "drop")), "refuted"),
    ],
)
def test_what_is_not_known_leaves_a_claim_open_and_what_is_excluded_refutes_it(expected, states, is_so):
    assert outcome(expected, states) == is_so


def test_outcomes_are_told_in_the_file_s_order(tmp_path):
    found = read_claims(written(tmp_path, one() + one(head='"0.1"', task='"agreement"', verdict='"none"')))
    columns = ["layer", "head", "task", "verdict", "reason", "attention_state", "effect_state", "undecidable"]
    told = pd.DataFrame(
        [
            (0, 1, "agreement", "undecided", "too few", "undecided", "undecided", "too few"),
            (2, 1, "agreement", "none", "", "none", "none", ""),
            (2, 1, "ioi", "tracks", "", "shown", "drop", ""),
        ],
        columns=columns,
    )
    frame = told.assign(
        **{"representation": "carried", "specificity": "specific", "exchange_state": "drop", "feature": "number"},
        **{"partners": "", "doubtful": "", "member": "no", "caveat": "", "probed": True},
        **dict.fromkeys(("resample_state", "mean_state"), told["effect_state"]),
    )
    assert [(each["head"], each["outcome"]) for each in found.outcomes(frame)] == [
        ("2.1", "confirmed"),
        ("0.1", "open"),
    ]


ROWS = pd.DataFrame(
    {
        **{"task": "agreement", "layer": [0, 0, 1, 1], "head": [0, 1, 0, 1]},
        "effect_p": [0.01, 0.2, 0.01, np.nan],
        "mean_effect_p": [0.01, 0.01, 0.2, 0.01],
        "excess_p": [0.01, 0.2, 0.05, np.nan],
        "probe_excess_p": [0.01, 0.2, 0.051, np.nan],
    }
)


def test_what_is_beyond_its_minimum_by_its_raw_p_is_chosen():
    found = choose(ROWS, 0.05)
    assert found["effect"].tolist() == [True, False, False, False]  # under both replacements, or not at all
    assert found["excess"].tolist() == [True, False, True, False]
    assert found["probe"].tolist() == [True, False, False, False]
    assert found["exchange"].tolist() == [True, False, False, False]  # of a head that looks and matters
    assert choose(ROWS, 0.2)["effect"].tolist() == [True, True, True, False]
