import dataclasses

import numpy as np
import pytest
from gated_model import GatedModel
from hand_model import HandModel, pair, prompts, task_of, varied_task
from tiny_models import random_model

from interp.errors import InputError
from interp.methods.ablation import ablate
from interp.methods.head_sets import greedy, halves


def test_it_finds_both_heads_of_a_pair_that_hide_each_other():
    result = greedy(GatedModel("nearly either"), varied_task(80), n_heads=3, replacement="zero", seed=1)
    assert set(result.chosen[:2]) == {(0, 0), (0, 1)}
    summary = result.summary().set_index("step")
    base = summary["base"].iloc[0]
    assert -0.1 * base < summary.loc[1, "effect"] < 0
    np.testing.assert_allclose(summary.loc[[2, 3], "value"], 0, atol=1e-6)
    assert summary.loc[2, "gain_high"] < -0.9 * base
    assert summary.loc[3, "gain"] == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(summary["gain"].cumsum(), summary["effect"], atol=1e-6)


def test_each_step_takes_the_costliest_and_is_scored_elsewhere():
    model, task = GatedModel("sum"), varied_task(40)
    with_weak_second_head = model.blocks[0].attn.W_O.data
    with_weak_second_head[1] *= 0.5
    result = greedy(model, task, n_heads=2, replacement="zero", seed=3)
    choosing, scored = halves(task, 3)
    assert result.chosen == [(0, 0), (0, 1)]
    assert (
        list(zip(result.examples["layer"], result.examples["head"], strict=True))[:: len(scored.examples)]
        == result.chosen
    )
    expected = ablate(model, scored, replacement="zero", sets=[[(0, 0)], [(0, 0), (0, 1)]]).examples
    np.testing.assert_array_equal(result.examples["effect"], expected["effect"])
    where_chosen = ablate(model, choosing, replacement="zero", heads=[(0, 0)]).summary()["effect"].item()
    assert result.provenance["effects_where_chosen"][0] == pytest.approx(where_chosen)
    assert set(result.examples["cluster"]) == {unit.cluster for unit in scored.units}


def test_halves_share_no_cluster_and_lose_no_unit():
    task = varied_task(25)
    choosing, scored = halves(task, 0)
    first, second = ({unit.cluster for unit in half.units} for half in (choosing, scored))
    assert not first & second
    assert (len(first), len(second)) == (12, 13)
    assert len(choosing.units) + len(scored.units) == len(task.units)
    assert {unit.cluster for unit in halves(task, 1)[0].units} != first
    assert choosing.references == task.references


def test_the_choosing_half_flatters_and_the_scored_one_does_not():
    """Heads whose effect on a cluster is the luck of its prompt: the best of many is too good where it was chosen."""
    shapes = [(before, after) for before in range(4) for after in range(4)]
    units = [
        dataclasses.replace(pair(prompts(*shape), f"c{number}"), counterfactual=None)
        for number, shape in enumerate(shapes)
    ]
    task = task_of(units[:8], [])
    model = random_model(d_vocab=8, n_ctx=12, n_layers=1, n_heads=12, d_head=2)
    results = [greedy(model, task, n_heads=1, replacement="zero", seed=seed) for seed in range(8)]
    where_chosen = np.mean([each.provenance["effects_where_chosen"] for each in results])
    assert where_chosen < np.mean([each.examples["effect"].mean() for each in results]) - 0.2


@pytest.mark.filterwarnings("ignore:.*bit-identical")
def test_a_divergence_costs_where_it_rises():
    task = varied_task(40)
    result = greedy(GatedModel("sum"), task, n_heads=1, replacement="zero", metric="kl_divergence")
    of_each = ablate(GatedModel("sum"), halves(task, 0)[0], replacement="zero", metric="kl_divergence").summary()
    costliest = of_each.loc[of_each["effect"].idxmax()]
    assert result.chosen == [(costliest["layer"], costliest["head"])]
    assert of_each["effect"].min() > 0


@pytest.mark.parametrize("k", [0, 5])
def test_as_many_steps_as_heads(k):
    with pytest.raises(InputError, match=f"n_heads: expected 1 to 4 steps, as many as there are heads, got {k}"):
        greedy(GatedModel("sum"), varied_task(), n_heads=k)


def test_one_cluster_cannot_be_split():
    with pytest.raises(InputError, match="has 1 clusters: a choice on one half"):
        greedy(HandModel(), task_of([pair(prompts(1, 1))], []), n_heads=1, replacement="zero")


def stop_at(step):
    def progress(done, total):
        if done == step:
            raise KeyboardInterrupt

    return progress


def test_interrupted_it_keeps_the_steps_that_are_complete():
    whole = greedy(GatedModel("sum"), varied_task(40), n_heads=3, replacement="zero")
    with pytest.warns(RuntimeWarning, match="interrupted: the result holds the steps that were complete"):
        part = greedy(GatedModel("sum"), varied_task(40), n_heads=3, replacement="zero", progress=stop_at(2))
    assert (whole.provenance["complete"], part.provenance["complete"]) == (True, False)
    assert part.chosen == whole.chosen[:2]
    np.testing.assert_array_equal(part.examples["effect"], whole.examples[whole.examples["step"] <= 2]["effect"])


@pytest.mark.filterwarnings("ignore:interrupted")
@pytest.mark.parametrize("n_sweeps", [0, 1, 2])
def test_a_step_of_some_examples_is_none(monkeypatch, n_sweeps):
    """Interrupted in its first sweep, in the one that scores it, and in the first sweep of the second step."""
    from interp.methods import head_sets as module

    done = []

    def interrupted(*arguments, **options):
        done.append(None)
        progress = stop_at(1) if len(done) > n_sweeps else None
        return ablate(*arguments, **options, progress=progress)

    monkeypatch.setattr(module, "ablate", interrupted)
    if n_sweeps < 2:
        with pytest.raises(KeyboardInterrupt):
            greedy(GatedModel("sum"), varied_task(40), n_heads=3, replacement="zero")
    else:
        assert len(greedy(GatedModel("sum"), varied_task(40), n_heads=3, replacement="zero").chosen) == 1
