"""The engine measures on our copy of a bridge's weights where that is the bridge, and nowhere else."""

import gc
import weakref

import numpy as np
import pytest
import torch
from bridges import booted
from foreign_models import random_foreign
from random_tasks import change, random_task
from tiny_models import random_model

from interp.errors import AuditError, InputError
from interp.interventions.engine import run as own_copy
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Cell, Sweep
from interp.model.sites import Site

TASK = random_task(3, lengths=(6, 6, 5))


def swept(model, *, site="z", task=TASK, replacement=None, **options):
    cells = [Cell({"layer": layer}, (change(site, layer, replacement or Zero()),)) for layer in range(2)]
    return Sweep(cells).run(model, task, **options)


def largest_gap(found, expected):
    return np.abs(found.examples["value"] - expected.examples["value"]).max() / np.abs(expected.examples["value"]).max()


def is_plain(model, reason, **options):
    """Whether the plain way measures, for this reason, and what it measures."""
    found = swept(model, **options)
    assert found.provenance["engine"] == "plain"
    assert "engine_model" not in found.provenance
    assert reason in found.provenance["why_plain"]
    assert found.provenance["audit"] is None
    expected = swept(model, plainly=True, **options)
    assert (found.examples["value"] == expected.examples["value"]).all()
    return True


def by_the_engine(model, **options):
    found = swept(model, **options)
    assert found.provenance["engine"] == "incremental"
    assert "why_plain" not in found.provenance
    assert largest_gap(found, swept(model, plainly=True, **options)) < 1e-5
    return True


@pytest.fixture
def bridge(tmp_path):
    return booted("gpt2", tmp_path)


@pytest.fixture
def built(monkeypatch):
    """How often a copy was built."""
    times = []

    def counted(*args):
        times.append(args)
        return build(*args)

    build = own_copy.build
    monkeypatch.setattr(own_copy, "build", counted)
    return times


class TestTheCopy:
    def test_it_is_made_once_and_gone_with_the_bridge(self, bridge, built):
        found = swept(bridge)
        swept(bridge, site="resid_pre")
        assert len(built) == 1
        n_bytes = 4 * sum(each.numel() for each in own_copy._copies[bridge][1].parameters())
        assert found.provenance["engine_model"] == "own copy of GPT2LMHeadModel"
        assert found.provenance["engine_model_bytes"] == n_bytes
        copy = weakref.ref(own_copy._copies[bridge][1])
        own_copy._copies.pop(weakref.ref(bridge)(), None)
        gc.collect()
        assert copy() is None

    def test_nothing_of_it_holds_the_bridge(self, tmp_path):
        bridge = booted("llama", tmp_path)
        swept(bridge)
        here = weakref.ref(bridge)
        del bridge
        gc.collect()
        assert here() is None

    @pytest.mark.parametrize("name", ["gpt2", "llama", "neox"])
    def test_changed_weights_are_copied_again(self, tmp_path, built, name):
        bridge = booted(name, tmp_path)
        before = swept(bridge)
        with torch.no_grad():
            bridge.blocks[1].mlp.out.original_component.weight.data *= 1.5  # which no counter of changes sees
        after = swept(bridge)
        assert len(built) == 2
        assert after.provenance["engine"] == "incremental"
        assert after.provenance["model_hash"] != before.provenance["model_hash"]
        assert largest_gap(after, before) > 1e-3
        assert largest_gap(after, swept(bridge, plainly=True)) < 1e-5

    def test_weights_that_only_the_bridge_has(self, tmp_path):
        """GPT-NeoX' queries are copies of a part of the module's joint matrix, which stays as it was."""
        bridge = booted("neox", tmp_path)
        assert by_the_engine(bridge)
        with torch.no_grad():
            bridge.blocks[0].attn.q.original_component.weight *= 1.5
        assert is_plain(bridge, "a model of ours with the weights of GPTNeoXForCausalLM differs from the bridge at")

    def test_another_dtype_is_another_copy(self, bridge, built):
        assert by_the_engine(bridge)
        bridge.to(torch.float64)
        found = swept(bridge)
        assert (found.provenance["dtype"], found.provenance["engine"]) == ("float64", "incremental")
        assert largest_gap(found, swept(bridge, plainly=True)) < 1e-12
        assert len(built) == 2

    def test_a_replacement_of_the_bridge_holds_for_the_copy(self, tmp_path):
        """Also where keys have fewer heads; several draws."""
        bridge = booted("llama, grouped", tmp_path)
        for site in ("k", "z"):
            drawn = make_replacement("resample", bridge, TASK, sites=[Site(site, 0), Site(site, 1)], draws=2)
            assert by_the_engine(bridge, site=site, replacement=drawn)


class TestTheAudit:
    def test_it_runs_on_the_bridge(self, bridge, monkeypatch):
        """A copy that goes wrong after it was compared is found out."""
        compare = own_copy._require_agreement

        def compare_and_break(its, copy, *args):
            compare(its, copy, *args)
            with torch.no_grad():
                copy.blocks[1].attn.W_O *= 1.5

        assert swept(bridge).provenance["audit"]["largest_difference"] < 1e-5
        monkeypatch.setattr(own_copy, "_require_agreement", compare_and_break)
        with pytest.raises(AuditError, match="the sweep's own audit failed"):
            swept(bridge)

    def test_a_copy_that_is_wrong_at_once_is_not_used(self, bridge, monkeypatch):
        build = own_copy.build

        def wrong(*args):
            copy = build(*args)
            with torch.no_grad():
                copy.blocks[1].attn.W_O *= 1.5
            return copy

        monkeypatch.setattr(own_copy, "build", wrong)
        assert is_plain(bridge, "with the weights of GPT2LMHeadModel differs from the bridge at the logits by")


class TestHooks:
    def doubled(self, x, hook):
        return 2 * x

    def test_a_hook_of_somebody(self, bridge):
        bridge.add_hook("blocks.0.hook_mlp_out", self.doubled)
        assert is_plain(bridge, "somebody's hooks are on the bridge")
        bridge.reset_hooks()
        assert by_the_engine(bridge)

    def test_a_permanent_one(self, bridge):
        bridge.add_perma_hook("blocks.0.hook_mlp_out", self.doubled)
        assert is_plain(bridge, "somebody's hooks are on the bridge")

    def test_a_context(self, bridge):
        with bridge.hooks(fwd_hooks=[("blocks.0.hook_mlp_out", self.doubled)]):
            assert is_plain(bridge, "somebody's hooks are on the bridge")
        assert by_the_engine(bridge)

    @pytest.mark.parametrize("where", ["original_model", "blocks"])
    def test_a_hook_of_torch(self, bridge, where):
        """One that only listens, so that no number would tell."""
        module = getattr(bridge, where)
        handle = (module[0].attn if where == "blocks" else module).register_forward_hook(lambda *_: None)
        assert is_plain(bridge, "somebody's hooks are on the bridge")
        handle.remove()
        assert by_the_engine(bridge)

    def test_hooks_of_the_bridge_itself(self, tmp_path):
        assert by_the_engine(booted("bert", tmp_path))

    def test_on_a_model_of_ours(self):
        model = random_model()
        model.add_hook("blocks.0.hook_mlp_out", self.doubled)
        assert is_plain(model, "somebody's hooks are on the model")

    def test_a_hook_of_torch_on_a_model_of_ours(self):
        """The engine runs no module of the model: it would not be called, and the audit looks at some cells only."""
        model = random_model()
        handle = model.blocks[0].register_forward_hook(lambda *_: None)
        assert is_plain(model, "somebody's hooks are on the model")
        handle.remove()
        assert by_the_engine(model)


class TestSites:
    def test_what_is_written_beside_the_stream(self, bridge):
        """TransformerLens' hook_resid_mid shows what the MLP's norm reads; the stream goes on beside it."""
        point = r"blocks\.0\.hook_resid_mid"
        with pytest.warns(RuntimeWarning, match=rf"what is written at {point} does not do on the bridge what it does"):
            found = swept(bridge, site="resid_mid")
        assert found.provenance["engine"] == "plain"
        assert found.provenance["why_plain"].startswith("what is written at blocks.0.hook_resid_mid does not do")

    def test_a_pattern_that_is_shown_and_not_used(self, tmp_path):
        with pytest.warns(RuntimeWarning, match=r"what is written at blocks\.0\.attn\.hook_pattern does not do"):
            assert swept(booted("bert", tmp_path), site="pattern").provenance["engine"] == "plain"

    def test_another_tensor_of_that_name(self, tmp_path):
        assert is_plain(booted("bert", tmp_path), "differs from the bridge at blocks.", site="resid_post")

    def test_a_point_that_is_off(self, bridge):
        with pytest.raises(InputError, match=r"blocks\.0\.attn\.hook_result: the model did not run this point"):
            swept(bridge, site="result")
        bridge.set_use_attn_result(True)
        assert by_the_engine(bridge, site="result")

    def test_a_point_that_is_not_there(self, tmp_path):
        """Where attention and MLP stand side by side, nothing is between them."""
        bridge = booted("neox", tmp_path)
        with pytest.raises(InputError, match=r"site 'resid_mid': expected one that the model has, got"):
            swept(bridge, site="resid_mid")


class TestOtherReasons:
    def test_processed_weights(self, tmp_path):
        bridge = booted("neox", tmp_path)
        bridge.enable_compatibility_mode(disable_warnings=True)
        assert is_plain(bridge, "differs from the bridge at")

    def test_processed_weights_that_are_the_modules_too(self, tmp_path):
        """TransformerLens folds Llama's norms where the weights lie, so the copy has them folded."""
        bridge = booted("llama", tmp_path)
        bridge.enable_compatibility_mode(disable_warnings=True)
        assert by_the_engine(bridge)

    def test_weights_that_are_tied_no_more(self, bridge):
        bridge.enable_compatibility_mode(disable_warnings=True)
        assert is_plain(bridge, "GPT2LMHeadModel: the config ties the embeddings, but 'lm_head.weight'")

    def test_casts_within_transformers(self, tmp_path):
        """In 64 bits, its rotary positions and root mean squares have 32."""
        bridge = booted("llama", tmp_path, dtype=torch.float64)
        assert is_plain(bridge, "expected at most 1e-09")

    def test_a_prompt_longer_than_positions_are_read_for(self, tmp_path):
        stretched = {"rope_type": "longrope", "short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0], "rope_theta": 20.0}
        context = {"original_max_position_embeddings": 5, "rope_parameters": stretched}
        bridge = booted(random_foreign("phi3", dtype=torch.float32, **context), tmp_path)
        assert is_plain(bridge, "a prompt has 6 tokens, and the context of our copy is 5")
        assert by_the_engine(bridge, task=random_task(3, lengths=(5, 5, 4)))

    def test_several_dtypes(self, bridge):
        bridge.original_model.transformer.ln_f.to(torch.float64)
        assert is_plain(bridge, "the bridge's weights are in several places or dtypes: ")

    @pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory")])
    def test_no_memory(self, bridge, monkeypatch, error):
        def fail(*_):
            raise error

        monkeypatch.setattr(own_copy, "build", fail)
        assert is_plain(bridge, "there is no memory for a copy of the bridge's weights")
        assert bridge not in own_copy._copies

    def test_an_error_of_ours_is_none(self, bridge, monkeypatch):
        def fail(*_):
            raise RuntimeError("a bug")

        monkeypatch.setattr(own_copy, "build", fail)
        with pytest.raises(RuntimeError, match="a bug"):
            swept(bridge)
