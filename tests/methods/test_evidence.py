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
