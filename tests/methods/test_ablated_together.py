"""Heads that stand in for each other: what is measured is what plain torch gives, and planted groups are named."""

import numpy as np
import pytest
import torch
from random_tasks import random_task
from tiny_models import random_model

from interp.calibration.planted import Shape
from interp.calibration.random_models import Difficulty, Plan
from interp.calibration.roles import Planted
from interp.interventions.reference_set import make_replacement
from interp.methods.dossier import heads
from interp.methods.judging import ablated_together
from interp.model.sites import Site
from interp.options import HeadsOptions

pytestmark = pytest.mark.unchecked

HEADS, MISSED = [(0, 1), (1, 0), (1, 2)], [(0, 2)]
SITES = [Site("z", layer) for layer in range(2)]


def _margins(model, task, change):
    """Right answer's logit less the wrong one's, with these heads' ``z`` replaced, by hooks."""
    found = []
    for number, encoded in enumerate(task.examples):
        tokens = torch.tensor([encoded.prompt])
        hooks = []
        for layer in range(2):

            def put(z, hook, layer=layer, number=number):
                for (own, head), values in change.items():
                    if own == layer:
                        z[:, :, head] = values(number, layer, head, z.shape[1])
                return z

            hooks.append((Site("z", layer).hook_name, put))
        logits = model.run_with_hooks(tokens, fwd_hooks=hooks)[0, -1]
        found.append(float((logits[encoded.right[0]] - logits[encoded.wrong[0]]).detach()))
    return np.array(found)


def test_the_numbers_are_those_of_plain_torch():
    model, task = random_model(), random_task(0, lengths=(6,) * 8)
    means = make_replacement("positional_mean", model, task, sites=SITES)
    resample = make_replacement("resample", model, task, sites=SITES, draws=1, seed=3)
    frame = ablated_together(model, task, means, HEADS, MISSED, HeadsOptions(draws=1, seed=3))

    references = [each for unit in task.references[0] for each in unit.examples]
    with torch.no_grad():
        kept = [model.run_with_cache(torch.tensor([each.prompt]))[1] for each in references]

    def mean(number, layer, head, n):
        return torch.stack([each[Site("z", layer).hook_name][0, :, head] for each in kept]).mean(dim=0)

    def donor(number, layer, head, n):
        (drawn,) = resample.donors[number, n]
        return kept[drawn][Site("z", layer).hook_name][0, :, head]

    base = _margins(model, task, {})
    gone = _margins(model, task, dict.fromkeys(HEADS, mean))
    all_gone = _margins(model, task, dict.fromkeys([*HEADS, *MISSED], mean))
    np.testing.assert_allclose(frame["base"][: len(base)], base, rtol=1e-8)
    for head in HEADS:
        own = frame[frame["head"] == f"{head[0]}.{head[1]}"]
        others = dict.fromkeys([each for each in HEADS if each != head], mean)
        left = _margins(model, task, others)
        beside = {**others, **dict.fromkeys(MISSED, mean)}
        left_beside = _margins(model, task, beside)
        expected = {
            "together": _margins(model, task, dict.fromkeys(HEADS, donor)) - base,
            "mean_together": gone - base,
            "share": _margins(model, task, {**others, head: donor}) - left,
            "mean_share": gone - left,
            "backup": _margins(model, task, {**beside, head: donor}) - left_beside,
            "mean_backup": all_gone - left_beside,
        }
        for name, values in expected.items():
            np.testing.assert_allclose(own[name], values, rtol=1e-8, atol=1e-10, err_msg=name)
            assert np.abs(values).max() > 1e-3


def test_one_head_has_no_others_but_may_be_a_backup():
    model, task = random_model(), random_task(0, lengths=(6,) * 8)
    means = make_replacement("positional_mean", model, task, sites=SITES)
    asked = HeadsOptions(draws=1)
    assert ablated_together(model, task, means, HEADS[:1], [], asked).empty
    assert ablated_together(model, task, means, [], MISSED, asked).empty
    alone = ablated_together(model, task, means, HEADS[:1], MISSED, asked)
    assert alone[["together", "mean_together", "share", "mean_share"]].isna().all(axis=None)
    assert alone[["backup", "mean_backup"]].notna().all(axis=None)


OTHERS = (
    Planted(0, 0, "looker", "agreement"),
    Planted(0, 1, "tracker", "coreference"),
    Planted(0, 2, "previous word", "induction"),
    Planted(2, 0, "tracker", "induction"),
)


@pytest.mark.parametrize(
    ("places", "n_tasks"),
    [
        ([(1, 1), (1, 2), (2, 3)], 1),
        pytest.param([(1, 1), (1, 2)], 3, marks=pytest.mark.slow),
        pytest.param([(1, 1), (1, 2), (2, 3), (2, 4)], 3, marks=pytest.mark.slow),
    ],
)
def test_a_planted_group_is_named_as_that_set_and_a_looker_is_not_of_it(places, n_tasks):
    group = tuple(Planted(*each, "stand-in", "agreement") for each in places)
    plan = Plan(Shape(3, 6), (*OTHERS, *group), Difficulty(), seed=0)
    report = heads(plan.model(), plan.tasks()[:n_tasks], seed=0)
    found = report.summary()[report.summary()["task"] == "agreement"].set_index(["layer", "head"])
    names = {f"{layer}.{head}" for layer, head in places}
    for layer, head in places:
        row = found.loc[(layer, head)]
        assert row["verdict"] == "redundant"
        assert set(row["partners"].split()) == names - {f"{layer}.{head}"}
        assert set(row["group"].split("+")) == names
        assert row["group_effect"] < -9 * row["min_effect"]
        assert row["group_share"] < -9 * row["min_effect"]
        assert abs(row["mean_effect"]) < row["min_effect"]
    assert found.loc[(0, 0), "verdict"] == "attends, not causal"
    assert set(report.groups.loc[report.groups["member"] == "yes", "head"]) == names
