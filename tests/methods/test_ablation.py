import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hand_model import ARE, BOS, BY, IS, KEY, NEAR, THERE, HandModel, encode, pair, prompts, task_of, varied_task
from random_tasks import random_task
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.reference_set import make_replacement
from interp.methods.ablation import ablate
from interp.model.sites import Site
from interp.tasks.task import Unit

KINDS = ("zero", "mean", "positional_mean", "resample")
METRICS = ("logit_difference", "sentence_log_probability", "probability", "kl_divergence", "accuracy")


@pytest.fixture
def model():
    """Two layers of three heads and twenty neurons, on the words of the hand-made tasks."""
    return random_model(d_vocab=8, n_ctx=12)


def last_logits(model, task, hooks=()):
    """Of every example's prompt, in 64 bits."""
    prompts = [torch.tensor([each.prompt]) for each in task.examples]
    return torch.stack([model.run_with_hooks(each, fwd_hooks=list(hooks))[0, -1].detach() for each in prompts])


def differences(logits, task):
    right, wrong = (torch.tensor([getattr(each, name)[0] for each in task.examples]) for name in ("right", "wrong"))
    return (logits.gather(1, right[:, None]) - logits.gather(1, wrong[:, None])).squeeze(1)


def zero_heads(*heads):
    def hook(z, *, hook):
        z = z.clone()
        z[:, :, list(heads)] = 0
        return z

    return hook


@pytest.mark.parametrize("kind", ["zero", "mean", "positional_mean"])
def test_ablating_the_copying_head_removes_what_it_copies(kind):
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [pair([BOS, KEY, BY, THERE])])
    summary = ablate(HandModel(), task, replacement=kind).summary().set_index("head")
    # Balanced means hold both answers equally: what is left of .75 is nothing.
    assert summary.loc[0, "effect"] == pytest.approx(-0.75)
    assert summary.loc[1, "effect"] == 0


def test_a_mean_of_one_number_only_would_leak_and_shows_as_such():
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [Unit(encode([BOS, KEY, BY, THERE]), None, "r")])
    frame = ablate(HandModel(), task, heads=[(0, 0)]).examples
    leak = (0 + 1 / 2 + 1 / 3 + 3 / 4) / 4
    np.testing.assert_allclose(frame["effect"], [leak - 0.75, -leak - 0.75], rtol=1e-6)


def test_resample_by_hand():
    units = [Unit(encode([BOS, KEY, NEAR, THERE]), None, "c")]
    plural = Unit(pair([BOS, KEY, BY, THERE]).counterfactual, None, "r")
    frame = ablate(HandModel(), task_of(units, [plural]), replacement="resample", heads=[(0, 0)]).examples
    assert frame["effect"].item() == pytest.approx(-1.5)
    assert frame["fired"].item() == 4


def test_provenance_names_the_replacement_and_its_source():
    said = ablate(HandModel(), varied_task(), replacement="mean", seed=5).provenance
    assert (said["replacement"], said["seed"], said["draws"]) == ("mean", 5, 1)
    assert len(said["reference_hash"]) == 64
    assert ablate(HandModel(), varied_task(), replacement="zero").provenance["reference_hash"] is None


def test_means_are_made_once_for_several_ablations():
    """And say where they come from, whatever task they are used on."""
    model, task, other = HandModel(), varied_task(), task_of([pair([BOS, KEY, NEAR, THERE])], [pair(prompts(0, 1))])
    made = make_replacement("mean", model, task, sites=[Site("z", 0)])
    by_name, again = ablate(model, task, replacement="mean"), ablate(model, task, replacement=made)
    pd.testing.assert_frame_equal(by_name.examples, again.examples)
    assert by_name.provenance == again.provenance
    assert ablate(model, other, replacement=made).provenance["reference_hash"] == by_name.provenance["reference_hash"]


def test_heads_out_of_a_frame():
    """As numpy's integers."""
    every = ablate(HandModel(), varied_task())
    chosen = every.summary()[["layer", "head"]].drop_duplicates().iloc[1:]
    frame = ablate(HandModel(), varied_task(), heads=list(chosen.itertuples(index=False))).examples
    assert set(zip(frame["layer"], frame["head"], strict=True)) == {(0, 1)}


def test_a_task_is_shown_in_a_line():
    assert len(repr(varied_task())) < 500


def test_heads_of_some_layers(model):
    summary = ablate(model, varied_task(), layers=[1], replacement="zero").summary()
    assert list(zip(summary["layer"], summary["head"], strict=True)) == [(1, 0), (1, 1), (1, 2)]


def test_a_set_of_heads_is_many_hooks_at_once(model):
    task = varied_task()
    chosen = [[(1, 2), (0, 0), (0, 2)], [(1, 1)]]
    frame = ablate(model, task, replacement="zero", sets=chosen).examples
    hooks = [("blocks.0.attn.hook_z", zero_heads(0, 2)), ("blocks.1.attn.hook_z", zero_heads(2))]
    by_hand = differences(last_logits(model, task, hooks), task)
    found = frame[frame["heads"] == "0.0+0.2+1.2"].sort_values("example")["value"]
    np.testing.assert_allclose(found, by_hand, rtol=1e-9)
    assert set(frame["heads"]) == {"0.0+0.2+1.2", "1.1"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_of_one_head_is_that_head(model, kind):
    task = varied_task()
    alone = ablate(model, task, replacement=kind, heads=[(0, 1)], seed=2)
    as_set = ablate(model, task, replacement=kind, sets=[[(0, 1)]], seed=2)
    np.testing.assert_allclose(as_set.examples["effect"], alone.examples["effect"], rtol=1e-9)
    assert as_set.summary()["effect"].item() == pytest.approx(alone.summary()["effect"].item())


def test_a_set_takes_the_mean_of_each_of_its_heads(model):
    task = varied_task()
    references = [each.prompt for each in task.references[0][0].examples]
    task = dataclasses.replace(task, references=(task.references[0][:1],))
    caches = [model.run_with_cache(torch.tensor([each]))[1] for each in references]

    def mean(layer, head):
        name = f"blocks.{layer}.attn.hook_z"
        new = torch.stack([cache[name][0, :, head] for cache in caches]).mean((0, 1)).detach()

        def hook(z, *, hook):
            z = z.clone()
            z[:, :, head] = new
            return z

        return name, hook

    frame = ablate(model, task, replacement="mean", sets=[[(0, 1), (1, 0)]]).examples
    by_hand = differences(last_logits(model, task, [mean(0, 1), mean(1, 0)]), task)
    np.testing.assert_allclose(frame.sort_values("example")["value"], by_hand, rtol=1e-9)


def test_a_zeroed_mlp_is_one_that_writes_nothing(model):
    task = varied_task()
    frame = ablate(model, task, components="mlps", replacement="zero").examples
    assert list(frame.columns[:2]) == ["layer", "unit"]
    for layer in (0, 1):
        without = random_model(d_vocab=8, n_ctx=12)
        with torch.no_grad():
            without.blocks[layer].mlp.W_out.zero_()
            without.blocks[layer].mlp.b_out.zero_()
        by_hand = differences(last_logits(without, task), task)
        found = frame[frame["layer"] == layer].sort_values("example")
        np.testing.assert_allclose(found["value"], by_hand, rtol=1e-9)
        assert (found["effect"].abs() > 1e-6).mean() > 0.9


def test_a_zeroed_neuron_is_one_without_output_weights(model):
    task = varied_task()
    result = ablate(model, task, components="neurons", replacement="zero", layers=[1])
    assert len(result.summary()) == 20
    for neuron in (0, 13):
        without = random_model(d_vocab=8, n_ctx=12)
        with torch.no_grad():
            without.blocks[1].mlp.W_out[neuron] = 0
        by_hand = differences(last_logits(without, task), task)
        found = result.examples.query("layer == 1 and neuron == @neuron").sort_values("example")
        np.testing.assert_allclose(found["value"], by_hand, rtol=1e-9)
        assert (found["effect"].abs() > 1e-6).mean() > 0.9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("components", ["mlps", "neurons"])
def test_every_replacement_is_to_be_had_for_mlps_and_neurons(model, components, kind):
    result = ablate(model, varied_task(4), components=components, replacement=kind, layers=[0])
    assert (result.examples["status"] == "changed").mean() > 0.5
    assert (result.provenance["components"], result.provenance["replacement"]) == (components, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("own", ["logit_difference", "sentence_log_probability"])
def test_every_metric_under_every_replacement(model, own, metric, kind):
    """The reference examples are run as the measured ones are: resampling finds none of another length."""
    task = varied_task(4, metric=own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ablate(model, task, metric=metric, replacement=kind, heads=[(0, 1)])
    assert result.provenance["metric"] == metric
    assert np.isfinite(result.examples["value"]).all()
    assert (result.examples["change_norm"] > 0).any()


def test_a_divergence_can_be_measured_where_answers_are_long(model):
    long = dataclasses.replace(encode([BOS, KEY, NEAR, THERE]), right=(IS, BY), wrong=(ARE, BY, BY))
    task = task_of([Unit(long, None, "c")], [Unit(long, None, "r"), pair([BOS, KEY, BY, THERE])])
    task = dataclasses.replace(task, metric="sentence_log_probability")
    frame = ablate(model, task, metric="kl_divergence", replacement="mean", heads=[(0, 1)]).examples
    assert frame["value"].item() > 0
    with pytest.raises(InputError, match="a probability needs answers of one token"):
        ablate(model, task, metric="probability", replacement="mean")


def test_metrics_by_hand(model):
    task = varied_task()
    base = last_logits(model, task).log_softmax(-1)
    ablated = last_logits(model, task, [("blocks.0.attn.hook_z", zero_heads(1))]).log_softmax(-1)
    right = torch.tensor([each.right[0] for each in task.examples])[:, None]
    expected = {
        "probability": ablated.exp().gather(1, right).squeeze(1),
        "kl_divergence": (base.exp() * (base - ablated)).sum(1),
        "accuracy": (differences(ablated, task) > 0).double(),
        "sentence_log_probability": differences(ablated, task),
    }
    for metric, by_hand in expected.items():
        frame = ablate(model, task, metric=metric, replacement="zero", heads=[(0, 1)]).examples
        np.testing.assert_allclose(frame.sort_values("example")["value"], by_hand, rtol=1e-7, atol=1e-12)


def test_a_budget_is_handed_on(model):
    with pytest.raises(InputError, match="memory budget: one cell on one row"):
        ablate(model, varied_task(), replacement="zero", memory_budget=10)
    result = ablate(model, varied_task(), replacement="zero", memory_budget=2**20)
    assert result.provenance["memory_budget"] == 2**20


class TestAtASite:
    """Any site of ``patch``, by its axes, in place of components."""

    def test_heads_by_layer_and_head_are_the_components(self):
        model, task = random_model(n_layers=2), random_task(0)
        named, by_axes = ablate(model, task), ablate(model, task, site="z")
        assert by_axes.labels == ("layer", "head")
        np.testing.assert_allclose(by_axes.examples["value"], named.examples["value"], rtol=1e-12)

    def test_positions_are_ablated_one_by_one(self):
        model, task = random_model(n_layers=2), random_task(0, lengths=(5, 5, 5))
        found = ablate(model, task, by=("layer", "pos"), replacement="zero")
        assert found.labels == ("layer", "pos")
        last = found.examples.query("layer == 1 and pos == 4")
        everywhere = ablate(model, task, by=("layer",), replacement="zero").examples.query("layer == 1")
        # What the heads of the last layer write elsewhere reaches nothing.
        np.testing.assert_allclose(last["value"], everywhere["value"], rtol=1e-12)
        assert set(found.examples.query("layer == 1 and pos < 4")["status"]) == {"unreachable"}

    def test_it_is_a_site_or_components(self):
        model, task = random_model(n_layers=2), random_task(0)
        for wrong in ({"components": "mlps"}, {"heads": [(0, 1)]}, {"sets": [[(0, 1)]]}):
            with pytest.raises(InputError, match="expected none of these beside site or by"):
                ablate(model, task, site="z", **wrong)
