"""Somebody else's models: the public methods give the same on them by the engine, by the plain way, and on ours."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from bridges import MODULES, booted
from hand_model import HandModel, varied_task
from random_tasks import random_task
from tiny_models import random_tokens

from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Patch
from interp.interventions.sweep import Sweep
from interp.methods.ablation import ablate, choose_components, sites_of
from interp.methods.attention_maps import query_attention
from interp.methods.attribution import attribute
from interp.methods.grid import as_grid, patch_cells
from interp.methods.patching import patch
from interp.model.loading import load_model
from interp.model.sites import Site
from interp.residual.collecting import read

KNOWN = [name for name in MODULES if name not in ("bert", "codegen")]
TASK = random_task(3, lengths=(6, 6, 5, 4))
BOUND = 1e-5
CLOSE = {torch.float32: 1e-6, torch.float64: 1e-12}


@pytest.fixture(scope="module", params=KNOWN)
def bridge(request, tmp_path_factory):
    return booted(request.param, tmp_path_factory.mktemp("bridge"))


def differ(got, expected, column="value"):
    """The largest difference, relative to the largest value, of two frames with the same rows."""
    a, b = got[column].to_numpy(), expected[column].to_numpy()
    return np.abs(a - b).max() / np.abs(b).max()


def by_the_engine(result):
    kind = result.provenance["engine_model"].removeprefix("own copy of ")
    return result.provenance["engine"] == "incremental" and kind.endswith(("LMHeadModel", "ForCausalLM"))


def ablated_plainly(bridge, kind):
    chosen = choose_components(bridge)
    replacement = make_replacement(kind, bridge, TASK, sites=sites_of(chosen))
    return Sweep([each.cell(replacement) for each in chosen]).run(bridge, TASK, plainly=True)


@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("name", ["gpt2", "llama", "llama, grouped", "neox", "bert"])
def test_attention_is_that_of_transformers(name, dtype, tmp_path):
    module = MODULES[name]()
    bridge = booted(module, tmp_path, dtype=dtype)
    tokens = random_tokens(SimpleNamespace(config=SimpleNamespace(d_vocab=40)), rows=3, length=9)
    theirs = type(module).from_pretrained(tmp_path, dtype=dtype, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = theirs(tokens, output_attentions=True).attentions
    names = [Site("pattern", layer).hook_name for layer in range(2)]
    found = read(bridge, tokens, names)
    for point, attention in zip(names, expected, strict=True):
        assert found[point].shape == attention.shape
        # transformers' softmax is in 32 bits, too; that of GPT-NeoX is computed by the bridge, which has no such cast.
        bound = CLOSE[torch.float32 if name == "neox" else dtype]
        assert (found[point] - attention).abs().max() <= bound


def test_attention_from_the_query(bridge):
    """What scores are made of: on the bridge as on a model of ours, for every head and key."""
    examples = [each.__class__(**vars(each) | {"query": 2}) for each in TASK.examples]
    found, expected = (query_attention(each, examples) for each in (bridge, load_model(bridge)))
    assert found.shape == (len(examples), 2 * bridge.cfg.n_heads, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=2), 1, atol=1e-6)


@pytest.mark.parametrize("kind", ["zero", "mean", "positional_mean"])
def test_ablation(bridge, kind):
    found = ablate(bridge, TASK, replacement=kind)
    assert by_the_engine(found)
    plain = ablated_plainly(bridge, kind)
    assert (plain.provenance["engine"], plain.provenance["why_plain"]) == ("plain", "it was asked for")
    assert differ(found.examples, plain.examples) < BOUND
    ours = ablate(load_model(bridge), TASK, replacement=kind)
    assert "engine_model" not in ours.provenance
    assert differ(found.examples, ours.examples) < BOUND
    assert found.examples["effect"].abs().max() > 100 * BOUND * found.examples["value"].abs().max()


@pytest.mark.parametrize(("site", "by"), [("z", ("layer", "head")), ("k", ("head",)), ("resid_pre", ("layer",))])
def test_patching(bridge, site, by):
    """Heads of keys are fewer than heads in a grouped model; the patch's activations are the bridge's own."""
    found = patch(bridge, TASK, site=site, by=by)
    assert by_the_engine(found)
    cells = patch_cells(bridge, TASK, as_grid(site, by, None), "denoise")
    plain = Sweep(cells).run(bridge, TASK, direction="denoise", plainly=True)
    for each in (plain, patch(load_model(bridge), TASK, site=site, by=by)):
        assert differ(found.examples, each.examples) < BOUND
        assert (found.examples["status"] == each.examples["status"]).all()
    assert found.examples["effect"].abs().max() > 100 * BOUND * found.examples["value"].abs().max()
    assert isinstance(cells[0].interventions[0].replacement, Patch)


@pytest.mark.parametrize("method", ["attribution", "integrated_gradients"])
def test_attribution(bridge, method):
    found, ours = (attribute(each, TASK, method=method) for each in (bridge, load_model(bridge)))
    assert differ(found.examples, ours.examples, "estimate") < BOUND
    assert found.examples["estimate"].abs().max() > 0


def test_a_screen(tmp_path):
    """Estimated on the bridge, measured on the copy."""
    bridge = booted("llama", tmp_path)
    found = patch(bridge, TASK, screen=True, top=2, audit=1)
    assert by_the_engine(found)
    ours = patch(load_model(bridge), TASK, screen=True, top=2, audit=1)
    assert differ(found.examples, ours.examples) < BOUND


@pytest.mark.parametrize("kind", ["zero", "mean"])
def test_what_the_engine_does_not_know_runs_plainly(tmp_path, kind):
    bridge = booted("codegen", tmp_path)
    found = ablate(bridge, TASK, replacement=kind)
    assert found.provenance["engine"] == "plain"
    reason = "CodeGenForCausalLM: architecture 'codegen' is not known here"
    assert found.provenance["why_plain"] == reason
    assert found.provenance["model"] == f"bridge:{tmp_path}"
    assert (found.examples["status"] == "changed").all()
    assert patch(bridge, TASK).provenance["why_plain"] == reason
    assert np.isfinite(attribute(bridge, TASK).examples["estimate"]).all()


class Protocol:
    """TransformerLens' ``TransformerLensModel`` and no more: no parameters, no weights, no list of points."""

    def __init__(self, model):
        self._model, self.cfg = model, model.cfg

    def run_with_hooks(self, *args, **kwargs):
        return self._model.run_with_hooks(*args, **kwargs)

    def run_with_cache(self, *args, **kwargs):
        return self._model.run_with_cache(*args, **kwargs)

    def to_tokens(self, *args, **kwargs):
        raise AssertionError("tasks hold token ids")


class TestTheProtocolAlone:
    def test_methods_run_on_it(self):
        model, task = HandModel(), varied_task()
        for kind in ("zero", "mean"):
            found, expected = (ablate(each, task, replacement=kind) for each in (Protocol(model), model))
            assert found.examples.equals(expected.examples)
        assert patch(Protocol(model), task).examples.equals(patch(model, task).examples)
        assert attribute(Protocol(model), task).examples.equals(attribute(model, task).examples)

    def test_what_is_not_known_of_it_is_not_said(self):
        found = ablate(Protocol(HandModel()), varied_task(), replacement="zero").provenance
        assert (found["model"], found["model_hash"]) == ("Protocol", None)
        assert (found["device"], found["dtype"]) == ("cpu", "float32")
        assert found["why_plain"].startswith("Protocol is neither a model of ours nor a TransformerBridge")
