"""Is erasing exact, at every site and method, and the same whatever else is asked for?"""

import dataclasses

import numpy as np
import pytest
import torch
from hand_model import relabelled
from random_tasks import random_task
from tiny_models import random_model

from interp.methods.erasure.erase import erase
from interp.methods.erasure.readings import SITES
from interp.model.sites import Site

pytestmark = pytest.mark.filterwarnings("ignore:.*the intervention changed nothing on any example")


def labelled_task(seed=0, folds=1, **options):
    """Random prompts, labelled by their second token's parity; with a position that is related."""

    def features(encoded):
        return {"parity": "even" if sum(encoded.prompt) % 2 == 0 else "odd"}

    task = relabelled(random_task(seed, folds=folds, n_references=12, **options), features)

    def related(each):
        return dataclasses.replace(each, related=(1, 2), query=len(each.prompt) - 2)

    units = [
        dataclasses.replace(unit, item=related(unit.item), counterfactual=related(unit.counterfactual))
        for unit in task.units
    ]
    sets = [
        tuple(dataclasses.replace(u, item=related(u.item), counterfactual=related(u.counterfactual)) for u in each)
        for each in task.references
    ]
    return dataclasses.replace(task, units=tuple(units), references=tuple(sets))


def formula(x, labels):
    """LEACE's map of a vector, from inverse square roots."""
    z = (labels[:, None] == np.unique(labels)).astype(float)
    mu, z = x.mean(0), z - z.mean(0)
    values, vectors = np.linalg.eigh((x - mu).T @ (x - mu) / len(x))
    w, back = (vectors * values**power @ vectors.T for power in (-0.5, 0.5))
    cross = w @ ((x - mu).T @ z / len(x))
    projection = back @ cross @ np.linalg.pinv(cross, rcond=1e-10) @ w
    return lambda y: y - (y - mu) @ projection.T


@pytest.mark.parametrize("at", ["query", "related", "all"])
@pytest.mark.parametrize(("site", "head"), [("z", 2), ("resid_mid", None), ("mlp_out", None)])
def test_a_cell_by_hand(site, head, at):
    """Fold by fold: activations of the reference prompts at these positions, the formula, a hook."""
    model, task, layer = random_model(n_layers=2), labelled_task(folds=2, lengths=(6, 5, 6, 4)), 0
    name = Site(site, layer).hook_name
    where = {"heads": [(layer, head)]} if head is not None else {"layers": [layer]}
    result = erase(model, task, "parity", site=site, at=at, methods=("leace",), **where)
    chosen = {"query": lambda p: [len(p) - 2], "related": lambda p: [1, 2], "all": lambda p: list(range(len(p)))}[at]
    maps = []
    for units in task.references:
        x, labels = [], []
        for each in (example for unit in units for example in unit.examples):
            _, cache = model.run_with_cache(torch.tensor([each.prompt]))
            there = cache[name][0, chosen(each.prompt)].detach()
            x.append((there if head is None else there[:, head]).numpy())
            labels += [each.example.features["parity"]] * len(there)
        maps.append(formula(np.concatenate(x), np.array(labels)))
    expected = []
    for unit in task.units:
        for each in unit.examples:
            places = chosen(each.prompt)

            def hook(value, *, hook, each=each, places=places, fold=unit.fold):
                value = value.clone()
                part = value[0, places] if head is None else value[0, places, head]
                part = torch.from_numpy(maps[fold](part.detach().numpy()))
                if head is None:
                    value[0, places] = part
                else:
                    value[0, places, head] = part
                return value

            logits = model.run_with_hooks(torch.tensor([each.prompt]), fwd_hooks=[(name, hook)])[0, -1].detach()
            expected.append(float(logits[each.right[0]] - logits[each.wrong[0]]))
    frame = result.examples.sort_values("example")
    np.testing.assert_allclose(frame["value"], expected, rtol=1e-6, atol=1e-9)
    assert (frame["effect"].abs() > 1e-6).all()


class TestEngine:
    METHODS = ("leace", "random", "inlp", "mean", "steer")

    @pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
    @pytest.mark.parametrize("site", SITES)
    def test_the_audit_holds_for_every_site_and_method(self, site, causal):
        at = ("query", "related", "all")[(SITES.index(site) + causal) % 3]
        task = labelled_task(lengths=(6, 5, 6, 4))
        result = erase(random_model(causal=causal), task, "parity", site=site, at=at, methods=self.METHODS, draws=2)
        assert result.provenance["audit"]["largest_difference"] < 1e-9
        assert set(result.examples["method"]) == set(self.METHODS)
        assert np.isfinite(result.examples["value"]).all()

    def test_sentences(self):
        """The erasers are fitted to prompts, and erase in both continuations."""
        task = labelled_task(lengths=(6, 5), metric="sentence_log_probability", answers=(2, 1))
        result = erase(random_model(), task, "parity", at="all", methods=self.METHODS, draws=2)
        assert result.provenance["audit"]["largest_difference"] < 1e-9
        assert (result.examples["fired"] > 0).all()


def test_seeds():
    """They choose random subspaces alone, and a head's do not depend on which others are asked for."""
    model, task = random_model(), labelled_task()
    one, again, other = (erase(model, task, "parity", layers=[0], seed=seed).examples for seed in (0, 0, 1))
    assert one["value"].equals(again["value"])
    differs = one["value"] != other["value"]
    assert differs[one["method"] == "random"].all()
    assert not differs[one["method"] != "random"].any()
    alone = erase(model, task, "parity", heads=[(0, 2)]).examples
    np.testing.assert_allclose(alone["value"], one.query("head == 2")["value"], rtol=1e-9)


def test_draws_are_averaged():
    """The first is the same, however many are drawn."""
    model, task = random_model(), labelled_task()
    one, three = (erase(model, task, "parity", methods=("random",), draws=draws, heads=[(0, 1)]) for draws in (1, 3))
    assert (three.examples["fired"] == 3).all()
    assert (three.provenance["subspaces"], three.provenance["draws"]) == (3, 3)
    assert (one.examples["effect"] != three.examples["effect"]).all()
    assert one.probes["after"].equals(three.probes["after"])


def test_other_tasks_of_more_folds_are_served_by_the_first():
    """They are not scored together with what the erasers were fitted to, whichever set that is."""
    model, task = random_model(), labelled_task()
    other = dataclasses.replace(labelled_task(3), name="other")
    split = tuple(dataclasses.replace(unit, fold=number % 2) for number, unit in enumerate(other.units))
    of_two = dataclasses.replace(other, units=split, references=2 * other.references)
    asked = {"methods": ("leace", "mean", "steer"), "layers": [0]}
    one, same = (erase(model, task, "parity", others=[each], **asked).examples for each in (other, of_two))
    assert one["value"].equals(same["value"])
