import dataclasses
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from as_users_call import unchecked
from hand_model import ARE, BOS, BY, IS, KEY, NEAR, THERE, HandModel, encode, pair, prompts, task_of, varied_task
from random_tasks import random_task
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.preparing import make_replacement
from interp.methods.ablation import ablate
from interp.methods.components import check_heads
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
    summary = ablate(HandModel(), task, kind=kind).summary().set_index("head")
    # Balanced means hold both answers equally: what is left of .75 is nothing.
    assert summary.loc[0, "effect"] == pytest.approx(-0.75)
    assert summary.loc[1, "effect"] == 0


def test_a_mean_of_one_number_only_would_leak_and_shows_as_such():
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [Unit(encode([BOS, KEY, BY, THERE]), None, "r")])
    frame = ablate(HandModel(), task, heads=[(0, 0)]).frame
    leak = (0 + 1 / 2 + 1 / 3 + 3 / 4) / 4
    np.testing.assert_allclose(frame["effect"], [leak - 0.75, -leak - 0.75], rtol=1e-6)


def test_resample_by_hand():
    units = [Unit(encode([BOS, KEY, NEAR, THERE]), None, "c")]
    plural = Unit(pair([BOS, KEY, BY, THERE]).counterfactual, None, "r")
    frame = ablate(HandModel(), task_of(units, [plural]), kind="resample", heads=[(0, 0)]).frame
    assert frame["effect"].item() == pytest.approx(-1.5)
    assert frame["fired"].item() == 4


def test_provenance_names_the_replacement_and_its_source():
    said = ablate(HandModel(), varied_task(), kind="mean", seed=5).provenance
    assert (said["replacement"], said["seed"], said["draws"]) == ("mean", 5, 1)
    assert len(said["reference_hash"]) == 64
    assert ablate(HandModel(), varied_task(), kind="zero").provenance["reference_hash"] is None


def test_means_are_made_once_for_several_ablations():
    """And say where they come from, whatever task they are used on."""
    model, task, other = HandModel(), varied_task(), task_of([pair([BOS, KEY, NEAR, THERE])], [pair(prompts(0, 1))])
    made = make_replacement("mean", model, task, sites=[Site("z", 0)])
    by_name, again = ablate(model, task, kind="mean"), ablate(model, task, kind=made)
    pd.testing.assert_frame_equal(by_name.frame, again.frame)
    assert by_name.provenance == again.provenance
    assert ablate(model, other, kind=made).provenance["reference_hash"] == by_name.provenance["reference_hash"]


def test_heads_out_of_a_frame():
    """As numpy's integers."""
    every = ablate(HandModel(), varied_task())
    chosen = every.summary()[["layer", "head"]].drop_duplicates().iloc[1:]
    frame = ablate(HandModel(), varied_task(), heads=list(chosen.itertuples(index=False))).frame
    assert set(zip(frame["layer"], frame["head"], strict=True)) == {(0, 1)}


@pytest.mark.parametrize("head", [(1, 0), (0, 2), (99, 0), (-1, 0)])
def test_unknown_heads_are_refused(head):
    with pytest.raises(InputError, match=r"the model has 1 layers \(0 to 0\) of 2 heads \(0 to 1\)"):
        ablate(HandModel(), varied_task(), heads=[head])


@pytest.mark.parametrize("heads", [[], [(0, 0), (0, 0)]])
def test_heads_have_to_be_different_and_some(heads):
    with pytest.raises(InputError, match="expected different"):
        ablate(HandModel(), varied_task(), heads=heads)


@pytest.mark.parametrize("sets", [[], [[(0, 0)], [(0, 0)]], [[(0, 0), (0, 1)], [(0, 1), (0, 0)]]])
def test_sets_have_to_be_different_and_some(sets):
    with pytest.raises(InputError, match="sets: expected different sets of heads, at least one; got"):
        ablate(HandModel(), varied_task(), sets=sets)


def test_a_set_is_one_of_the_models_heads():
    with pytest.raises(InputError, match=r"heads: expected different .* at least one; got \[\]"):
        ablate(HandModel(), varied_task(), sets=[[]])
    with pytest.raises(InputError, match=r"head 0\.2: the model has 1 layers"):
        ablate(HandModel(), varied_task(), sets=[[(0, 0), (0, 2)]])


@pytest.mark.parametrize("layers", [[], [2], [-1], [0, 0]])
def test_unknown_layers_are_refused(model, layers):
    with pytest.raises(InputError, match=r"layers: expected different layers, .* the model has 2 \(0 to 1\), got"):
        ablate(model, varied_task(), components="mlps", layers=layers)


@pytest.mark.parametrize(
    "asked",
    [
        {"heads": [(0, 0)], "sets": [[(0, 0)]]},
        {"heads": [(0, 0)], "layers": [0]},
        {"components": "mlps", "heads": [(0, 0)]},
        {"components": "neurons", "sets": [[(0, 0)]]},
    ],
    ids=str,
)
def test_choices_that_do_not_go_together_are_refused(model, asked):
    with pytest.raises(InputError, match="expected at most one of heads, sets and layers"):
        ablate(model, varied_task(), **asked)


def test_heads_are_pairs():
    # Past the type checker of the tests, as a caller without one gets there.
    with pytest.raises(InputError, match=r"heads: expected \(layer, head\) pairs, got \(0, 1\); give a list such as"):
        unchecked(check_heads)(HandModel(), (0, 1))


REFUSED = {
    "ablate(layers=1)": "layers: expected a list of whole numbers such as [0, 1], got 1",
    "ablate(layers='01')": "layers: expected a list of whole numbers such as [0, 1], got '01'",
    "ablate(layers=['a'])": "layers: expected a list of whole numbers such as [0, 1], got ['a']",
    "ablate(layers=[1.0])": "layers: expected a list of whole numbers such as [0, 1], got [1.0]",
    "ablate(layers=[True, False])": "layers: expected a list of whole numbers such as [0, 1], got [True, False]",
    "ablate(layers=np.array(1))": "layers: expected a list of whole numbers such as [0, 1], got array(1)",
    "ablate(site='z', layers=['a'])": "layers: expected a list of whole numbers such as [0, 1], got ['a']",
    "ablate(heads=5)": "heads: expected (layer, head) pairs, got 5; give a list such as",
    "ablate(heads=[(True, False)])": "heads: expected (layer, head) pairs, got [(True, False)]; give",
    "ablate(heads=[([0], 1, 1)])": "heads: expected (layer, head) pairs, got [([0], 1, 1)]; give",
    "ablate(heads=[{0, 1}])": "heads: expected (layer, head) pairs, got [{0, 1}]; give",
    "ablate(sets=5)": "sets: expected sets of (layer, head) pairs, got 5; give a list such as [[(2, 1)]]",
    "ablate(sets=[5])": "heads: expected (layer, head) pairs, got 5; give a list such as",
    "ablate(sets=[None])": "heads: expected (layer, head) pairs, got None; give a list such as",
    "ablate(draws=1.5)": "draws: expected a whole number of at least 1, got 1.5",
    "ablate(draws='2')": "draws: expected a whole number of at least 1, got '2'",
    "ablate(draws=True)": "draws: expected a whole number of at least 1, got True",
    "ablate(memory_budget='1GB')": "memory budget: expected a number of bytes from 1, got '1GB'",
    "ablate(memory_budget=True)": "memory budget: expected a number of bytes from 1, got True",
    "patch(layers=1)": "layers: expected a list of whole numbers such as [0, 1], got 1",
    "patch(layers='01')": "layers: expected a list of whole numbers such as [0, 1], got '01'",
    "patch(layers=['a'])": "layers: expected a list of whole numbers such as [0, 1], got ['a']",
    "patch(layers=[1.0])": "layers: expected a list of whole numbers such as [0, 1], got [1.0]",
    "patch(layers=[True, False])": "layers: expected a list of whole numbers such as [0, 1], got [True, False]",
    "patch(screen=1)": "screen: expected True, False or a method, got 1; known are 'attribution'",
    "patch(screen='atribution')": "screen: expected True, False or a method, got 'atribution'; did you mean",
    "patch(screen=True, top='.5')": "top: expected a number of cells from 1, or a share above 0.0 and up to 1.0, got",
    "patch(screen=True, audit=None)": "audit: expected a number of cells from 1, or a share above 0.0",
    "patch(screen=True, memory_budget='1GB')": "memory budget: expected a number of bytes from 1, got '1GB'",
    "attribute(memory_budget='1GB')": "memory budget: expected a number of bytes from 1, got '1GB'",
    "greedy(k='2')": "k: expected 1 to 6 steps, as many as there are heads, got '2'",
    "greedy(k=1.5)": "k: expected 1 to 6 steps, as many as there are heads, got 1.5",
    "greedy(k=True)": "k: expected 1 to 6 steps, as many as there are heads, got True",
    "path_patch(paths=None)": "paths: expected a list of paths such as [['0.1', '2.3.k']], got None",
    "path_patch(paths='0.1')": "paths: expected a list of paths such as [['0.1', '2.3.k']], got '0.1'",
    "path_patch(paths=[5])": "a path: expected a sender and a receiver, such as ['0.1', '2.3.k'], got 5",
}
"""Calls, and how the messages begin that they are refused with."""

MEANT = {
    "ablate(layers=np.array([0, 1]))": "ablate(layers=[0, 1])",
    "ablate(layers=np.array([1]), components='mlps')": "ablate(layers=[1], components='mlps')",
    "ablate(heads=np.array([[0, 1], [1, 0]]))": "ablate(heads=[(0, 1), (1, 0)])",
    "ablate(heads=[(np.int64(0), np.int32(1))])": "ablate(heads=[(0, 1)])",
    "ablate(sets=[np.array([[0, 1], [1, 0]])])": "ablate(sets=[[(0, 1), (1, 0)]])",
    "ablate(draws=np.int64(2), kind='resample')": "ablate(draws=2, kind='resample')",
    "ablate(memory_budget=np.int64(10**8))": "ablate(memory_budget=10**8)",
    "patch(layers=np.array([1]))": "patch(layers=[1])",
    "patch(layers=[np.int64(1)], by=('layer',))": "patch(layers=[1], by=('layer',))",
    "patch(screen=True, top=np.float32(.5), audit=np.int64(1))": "patch(screen=True, top=.5, audit=1)",
    "patch(screen=np.bool_(False))": "patch()",
    "greedy(k=np.int64(1))": "greedy(k=1)",
}
"""Calls with NumPy's numbers, and the same with Python's."""

UNCHECKED = """
import json, sys, warnings
from functools import partial
import numpy as np
import torch
from hand_model import varied_task
from tiny_models import random_model
from interp.errors import InputError
from interp.methods import ablation, attribution, greedy as greedy_, patching, path_patching

torch.set_num_threads(1)
warnings.simplefilter("ignore")
given = (random_model(d_vocab=8, n_ctx=12), varied_task(4))
methods = (ablation.ablate, attribution.attribute, greedy_.greedy, patching.patch, path_patching.path_patch)
names = {"np": np} | {each.__name__: partial(each, *given) for each in methods}


def outcome(call):
    try:
        result = eval(call, names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    labels = result.frame[list(result.labels)]
    types = sorted({type(each).__name__ for name in labels for each in labels[name].tolist()})
    return [types, result.frame.to_csv(), json.dumps(dict(result.provenance), default=repr)]


print(json.dumps({call: outcome(call) for call in json.loads(sys.argv[1])}))
"""


def test_numbers_are_checked_where_types_are_not():
    """In a process of its own: the tests' type checks would be first to refuse them."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    command = [sys.executable, "-c", UNCHECKED, json.dumps([*REFUSED, *MEANT, *MEANT.values()])]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout.splitlines()[-1])
    said = {call: str(found[call])[: len(f"InputError: {start}")] for call, start in REFUSED.items()}
    assert said == {call: f"InputError: {start}" for call, start in REFUSED.items()}
    assert {call: found[call] for call in MEANT} == {call: found[same] for call, same in MEANT.items()}
    assert {kind for call in MEANT for kind in found[call][0]} == {"int", "str"}


def test_a_named_task_needs_a_tokenizer():
    with pytest.raises(InputError, match="'agreement' is a name, but the model has no tokenizer"):
        ablate(HandModel(), "agreement")


def test_a_name_is_no_model():
    with pytest.raises(InputError, match=r"model: expected a model, got 'default'; load one with interp.load_model"):
        ablate("default", varied_task())


def test_a_task_is_shown_in_a_line():
    assert len(repr(varied_task())) < 500


def test_unknown_kind_is_refused():
    # Past the type checker of the tests, as a caller without one gets there.
    from interp.interventions.preparing import make_replacement

    with pytest.raises(InputError, match="ablation 'meen' is unknown; did you mean 'mean'"):
        unchecked(make_replacement)("meen", HandModel(), varied_task(), sites=[])


def test_layouts_that_do_not_align_are_refused_before_anything_runs():
    seen = []
    task = task_of([pair(prompts(0, 1))], [pair(prompts(1, 1))])
    with pytest.raises(InputError, match="positional mean"):
        ablate(HandModel(), task, kind="positional_mean", progress=lambda *step: seen.append(step))
    assert seen == []


def test_heads_of_some_layers(model):
    summary = ablate(model, varied_task(), layers=[1], kind="zero").summary()
    assert list(zip(summary["layer"], summary["head"], strict=True)) == [(1, 0), (1, 1), (1, 2)]


def test_a_set_of_heads_is_many_hooks_at_once(model):
    task = varied_task()
    chosen = [[(1, 2), (0, 0), (0, 2)], [(1, 1)]]
    frame = ablate(model, task, kind="zero", sets=chosen).frame
    hooks = [("blocks.0.attn.hook_z", zero_heads(0, 2)), ("blocks.1.attn.hook_z", zero_heads(2))]
    by_hand = differences(last_logits(model, task, hooks), task)
    found = frame[frame["heads"] == "0.0+0.2+1.2"].sort_values("example")["value"]
    np.testing.assert_allclose(found, by_hand, rtol=1e-9)
    assert set(frame["heads"]) == {"0.0+0.2+1.2", "1.1"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_of_one_head_is_that_head(model, kind):
    task = varied_task()
    alone = ablate(model, task, kind=kind, heads=[(0, 1)], seed=2)
    as_set = ablate(model, task, kind=kind, sets=[[(0, 1)]], seed=2)
    np.testing.assert_allclose(as_set.frame["effect"], alone.frame["effect"], rtol=1e-9)
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

    frame = ablate(model, task, kind="mean", sets=[[(0, 1), (1, 0)]]).frame
    by_hand = differences(last_logits(model, task, [mean(0, 1), mean(1, 0)]), task)
    np.testing.assert_allclose(frame.sort_values("example")["value"], by_hand, rtol=1e-9)


def test_a_zeroed_mlp_is_one_that_writes_nothing(model):
    task = varied_task()
    frame = ablate(model, task, components="mlps", kind="zero").frame
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
    result = ablate(model, task, components="neurons", kind="zero", layers=[1])
    assert len(result.summary()) == 20
    for neuron in (0, 13):
        without = random_model(d_vocab=8, n_ctx=12)
        with torch.no_grad():
            without.blocks[1].mlp.W_out[neuron] = 0
        by_hand = differences(last_logits(without, task), task)
        found = result.frame.query("layer == 1 and neuron == @neuron").sort_values("example")
        np.testing.assert_allclose(found["value"], by_hand, rtol=1e-9)
        assert (found["effect"].abs() > 1e-6).mean() > 0.9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("components", ["mlps", "neurons"])
def test_every_replacement_is_to_be_had_for_mlps_and_neurons(model, components, kind):
    result = ablate(model, varied_task(4), components=components, kind=kind, layers=[0])
    assert (result.frame["status"] == "changed").mean() > 0.5
    assert (result.provenance["components"], result.provenance["replacement"]) == (components, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("own", ["logit_difference", "sentence_log_probability"])
def test_every_metric_under_every_replacement(model, own, metric, kind):
    """The reference examples are run as the measured ones are: resampling finds none of another length."""
    task = varied_task(4, metric=own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ablate(model, task, metric=metric, kind=kind, heads=[(0, 1)])
    assert result.provenance["metric"] == metric
    assert np.isfinite(result.frame["value"]).all()
    assert (result.frame["change_norm"] > 0).any()


def test_a_divergence_can_be_measured_where_answers_are_long(model):
    long = dataclasses.replace(encode([BOS, KEY, NEAR, THERE]), right=(IS, BY), wrong=(ARE, BY, BY))
    task = task_of([Unit(long, None, "c")], [Unit(long, None, "r"), pair([BOS, KEY, BY, THERE])])
    task = dataclasses.replace(task, metric="sentence_log_probability")
    frame = ablate(model, task, metric="kl_divergence", kind="mean", heads=[(0, 1)]).frame
    assert frame["value"].item() > 0
    with pytest.raises(InputError, match="a probability needs answers of one token"):
        ablate(model, task, metric="probability", kind="mean")


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
        frame = ablate(model, task, metric=metric, kind="zero", heads=[(0, 1)]).frame
        np.testing.assert_allclose(frame.sort_values("example")["value"], by_hand, rtol=1e-7, atol=1e-12)


def test_unknown_metrics_are_refused(model):
    from interp.methods.ablation import as_measured

    with pytest.raises(InputError, match="no metric is called 'probabilty'; did you mean 'probability'"):
        unchecked(as_measured)(varied_task(), "probabilty")


def test_a_budget_is_handed_on(model):
    with pytest.raises(InputError, match="memory budget: one cell on one row"):
        ablate(model, varied_task(), kind="zero", memory_budget=10)
    result = ablate(model, varied_task(), kind="zero", memory_budget=2**20)
    assert result.provenance["memory_budget"] == 2**20


class TestAtASite:
    """Any site of ``patch``, by its axes, in place of components."""

    def test_heads_by_layer_and_head_are_the_components(self):
        model, task = random_model(n_layers=2), random_task(0)
        named, by_axes = ablate(model, task), ablate(model, task, site="z")
        assert by_axes.labels == ("layer", "head")
        np.testing.assert_allclose(by_axes.frame["value"], named.frame["value"], rtol=1e-12)

    def test_positions_are_ablated_one_by_one(self):
        model, task = random_model(n_layers=2), random_task(0, lengths=(5, 5, 5))
        found = ablate(model, task, by=("layer", "pos"), kind="zero")
        assert found.labels == ("layer", "pos")
        last = found.frame.query("layer == 1 and pos == 4")
        everywhere = ablate(model, task, by=("layer",), kind="zero").frame.query("layer == 1")
        # What the heads of the last layer write elsewhere reaches nothing.
        np.testing.assert_allclose(last["value"], everywhere["value"], rtol=1e-12)
        assert set(found.frame.query("layer == 1 and pos < 4")["status"]) == {"unreachable"}

    def test_it_is_a_site_or_components(self):
        model, task = random_model(n_layers=2), random_task(0)
        for wrong in ({"components": "mlps"}, {"heads": [(0, 1)]}, {"sets": [[(0, 1)]]}):
            with pytest.raises(InputError, match="expected none of these beside site or by"):
                ablate(model, task, site="z", **wrong)
