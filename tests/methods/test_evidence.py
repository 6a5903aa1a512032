import numpy as np
import pytest
from hand_model import HandModel, pair, prompts, task_of, varied_task

from interp.methods.evidence import gather


def test_an_interrupted_sweep_is_no_evidence():
    """What is complete of it would be judged like the task."""

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        gather(HandModel(), varied_task(), kind="mean", draws=1, seed=0, progress=stop)


def test_values_are_ablated_wherever_the_verdict_asks_for_them():
    """The minimum is a share of the base over balanced templates; the mean over examples is another number."""
    shapes = [(before, after) for before in range(4) for after in range(4)]
    units = [
        pair(prompts(*shape), f"c{number % 24}", template="short" if sum(shape) < 4 else "long")
        for number, shape in enumerate(shapes * 24)
        if sum(shape) < 4 or number % 3
    ]
    task = task_of(units, [pair(prompts(*shape), template="short") for shape in shapes])
    how = {"kind": "mean", "draws": 1, "seed": 0, "probes": False}
    found = gather(HandModel(), task, **how)
    row = found.heads(0.1, 0.1).iloc[0]
    balanced, mean = row["minimum_effect"] / 0.1, found.ablation.frame["base"].mean()
    assert balanced < 0.99 * mean
    share = -2 * row["effect"] / (balanced + mean)
    assert share * balanced < -row["effect"] < share * mean
    assert gather(HandModel(), task, **how, minimum_effect=share).related["head"].tolist() == [0]


@pytest.mark.parametrize(("strays", "testable"), [(0, False), (2, False), (4, True)])
def test_attention_is_not_testable_where_a_position_is_the_related_word(strays, testable):
    """Of 30 units, all but the strays have the related word three tokens back: room is 2/30 or 4/30 beside .1."""
    same = [pair(prompts(number % 5, 2), f"c{number}") for number in range(30 - strays)]
    units = [*same, *(pair(prompts(number % 5, 3), f"s{number}") for number in range(strays))]
    evidence = gather(HandModel(), task_of(units, same[:5]), kind="mean", draws=1, seed=0, probes=False)
    row = evidence.heads(0.1, 0.1).iloc[0]
    assert (row["baseline"], row["baseline_overlap"]) == ("offset -3", pytest.approx(1 - strays / 30))
    assert row["attention"] > 0.4
    assert row["n_attention_clusters"] == (30 if testable else 0)
    assert np.isfinite(row[["excess", "excess_low", "excess_high", "excess_se"]].astype(float)).all() == testable
    assert np.isfinite(evidence.excess.values[:, 0]).any() == testable
