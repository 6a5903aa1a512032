"""Claims that were declared before: what a file may hold, and what becomes of a claim."""

import hashlib
from datetime import datetime, timezone

import pandas as pd
import pytest

from interp.claims.declared import EXPECTED, outcome, read_claims
from interp.claims.rules import ORDER
from interp.errors import InputError

TASKS = ("agreement", "ioi")


def written(folder, text):
    path = folder / "claims.toml"
    path.write_text(text, encoding="utf-8")
    return path


def one(head='"2.1"', task='"ioi"', verdict='"tracks"', more=""):
    return f"{more}\n[[claim]]\nhead = {head}\ntask = {task}\nverdict = {verdict}\n"


def test_a_file_is_read_with_its_hash_and_thresholds(tmp_path):
    path = written(tmp_path, one(more="alpha = 0.01\nminimum_effect = 0.2"))
    found = read_claims(path)
    assert [(each.head, each.task, each.verdict) for each in found.claims] == [((2, 1), "ioi", "tracks")]
    assert found.thresholds == {"alpha": 0.01, "minimum_effect": 0.2}
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.file == "claims.toml"
    assert found.written == datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).isoformat(timespec="seconds")
    found.check(TASKS, (3, 4))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one \\[\\[claim\\]\\]"),
        ("claim = 3", "at least one \\[\\[claim\\]\\].*got claim = 3"),
        ("claim = [3]", "claim 1: expected a table"),
        ("[[claim]\n", "a TOML file that can be read"),
        (one(more="minimun_effect = 0.1"), "key 'minimun_effect' is unknown; did you mean 'minimum_effect'"),
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


@pytest.mark.parametrize("expected", EXPECTED)
def test_every_verdict_is_an_outcome_of_every_claim(expected):
    assert outcome(expected, expected) == "confirmed"
    assert outcome(expected, "undecided") == "open"
    assert {outcome(expected, verdict) for verdict in ORDER} <= {"confirmed", "refuted", "open"}
    assert "refuted" in {outcome(expected, verdict) for verdict in ORDER}


def test_what_says_more_confirms_and_what_says_less_leaves_open():
    assert outcome("attends and causal", "tracks") == "confirmed"
    assert outcome("tracks", "attends and causal") == "open"
    assert outcome("tracks", "causal, by another route") == "refuted"
    assert outcome("causal", "general") == "confirmed"
    assert outcome("none", "attends, not causal") == "refuted"


def test_outcomes_are_told_in_the_file_s_order(tmp_path):
    found = read_claims(written(tmp_path, one() + one(head='"0.1"', task='"agreement"', verdict='"none"')))
    frame = pd.DataFrame(
        [(0, 1, "agreement", "undecided", "too few"), (2, 1, "agreement", "none", ""), (2, 1, "ioi", "tracks", "")],
        columns=["layer", "head", "task", "verdict", "reason"],
    )
    assert [(each["head"], each["outcome"]) for each in found.outcomes(frame)] == [
        ("2.1", "confirmed"),
        ("0.1", "open"),
    ]
