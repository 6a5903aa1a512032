import pandas as pd
import pytest

from interp.claims.verdicts import specificities


def rows(*states, undecidable=None):
    """One head on several tasks: attention and effect on each."""
    frame = pd.DataFrame(states, columns=["attention_state", "effect_state"])
    reasons = [undecidable if number == len(frame) - 1 and undecidable else "" for number in range(len(frame))]
    tasks = [f"task {number}" for number in range(len(frame))]
    return frame.assign(layer=0, head=0, task=tasks, undecidable=reasons)


DROP, ELSEWHERE = ("shown", "drop"), ("none", "drop")


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([DROP, ELSEWHERE], ["not testable"] * 2),
        ([ELSEWHERE] * 3, ["general"] * 3),
        ([DROP, ELSEWHERE, ELSEWHERE], ["general"] * 3),
        ([DROP] * 3, ["specific"] * 3),
        ([DROP, ("shown", "undecided"), DROP], ["specific"] * 3),
        ([DROP, ("shown", "disagree"), ("undecided", "drop")], ["undecided"] * 3),
        ([DROP, ("not testable", "drop"), DROP], ["undecided"] * 3),
        ([DROP, ("undecided", "drop"), ELSEWHERE], ["general"] * 3),
        ([DROP, ELSEWHERE, ("none", "none")], ["specific", "specific", "general"]),
        ([DROP, ELSEWHERE, ("none", "rise")], ["specific", "specific", "general"]),
        ([DROP, ELSEWHERE, ("none", "undecided")], ["undecided", "undecided", "general"]),
        ([DROP, ELSEWHERE, ("none", "disagree")], ["undecided", "undecided", "general"]),
    ],
)
def test_a_head_is_general_where_it_costs_all_others_wherever_it_looks(states, expected):
    assert specificities(rows(*states)) == expected


def test_a_task_that_the_model_cannot_do_says_nothing_of_others():
    found = specificities(rows(DROP, ELSEWHERE, ELSEWHERE, ("none", "none"), undecidable="at chance"))
    assert found[0] == "general"
    assert specificities(rows(DROP, ELSEWHERE, ELSEWHERE, undecidable="at chance"))[0] == "not testable"


def test_heads_are_judged_one_by_one():
    frame = pd.concat([rows(*[ELSEWHERE] * 3), rows(DROP, ELSEWHERE, ("none", "none")).assign(head=1)])
    assert specificities(frame.reset_index(drop=True)) == [*["general"] * 3, "specific", "specific", "general"]
