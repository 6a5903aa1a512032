"""What a run was asked, in words: those of anybody's manifest, too."""

import pytest

from interp.cli.run_words import in_words

pytestmark = pytest.mark.unchecked

MODEL = {"model": "mine"}
TASKS = [{"task": "ioi"}, {"task": "induction"}]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"kind": "heads", "models": [{}], "tasks": TASKS}, "heads: ioi, induction, on mine"),
        ({"kind": "heads", "models": [{}, {}, {}], "tasks": TASKS}, "heads: ioi, induction, and 2 siblings, on mine"),
        ({"kind": "head", "head": "2.1", "tasks": TASKS}, "head 2.1: ioi, induction, on mine"),
        ({"kind": "head", "tasks": TASKS}, "cards of heads: ioi, induction, on mine"),
        ({"kind": "attend", "relations": [[name, "", ""] for name in "aabcde"]}, "attend: a, b, c and 2 more, on mine"),
        ({"kind": "probe", "feature": "number", "site": "z"}, "probe: number at z, on mine"),
        ({"kind": "a question of tomorrow"}, "something else"),
        ({"kind": ["heads"]}, "something else"),
        ({"kind": "heads", "models": 3}, "something else"),
        ({"kind": "head", "head": 2, "tasks": TASKS}, "something else"),
        ({}, "something else"),
    ],
)
def test_what_was_asked_in_words(asked, words):
    assert in_words(asked, MODEL) == words


def test_without_a_model():
    assert in_words({"kind": "calibration", "jobs": 42}, {}) == "calibration: 42 jobs"
