"""`bridge:NAME` is TransformerLens' own model, as it is; a bridge that was made is read back into a model of ours."""

import re

import pytest
import torch
from bridges import CODEGEN, MODULES, booted
from foreign_models import random_foreign
from hand_model import HandModel
from refusals import refused
from tiny_models import random_gpt2, relative_error, word_tokenizer
from transformer_lens.model_bridge import TransformerBridge
from transformers import CodeGenConfig, CodeGenForCausalLM

from interp.errors import LoadError
from interp.model.loading import load_model
from interp.model.loading.bridge import own_state

ADVICE = r"; pass the bridge itself to the methods \(interp\.attend, interp\.ablate, \.\.\.\), which run on it, too"


def test_a_model_in_a_folder(tmp_path):
    """Of an architecture that is not known here; no network is needed."""
    tokenizer = word_tokenizer()
    theirs = CodeGenForCausalLM(CodeGenConfig(**CODEGEN | {"vocab_size": len(tokenizer)})).eval()
    theirs.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    refused(tmp_path, "architecture 'codegen' is not known here; .*bridge:NAME")
    model = load_model(f"bridge:{tmp_path}", dtype="float64")
    assert isinstance(model, TransformerBridge)
    assert not model.training
    tokens = torch.tensor([[0, 5, 260, 261]])
    with torch.no_grad():
        expected = theirs.double()(tokens).logits
        assert torch.allclose(model(tokens), expected, rtol=0, atol=1e-6)


def test_options_are_handed_on(monkeypatch):
    called = {}

    class Booted(torch.nn.Module):
        pass

    def boot(name, **options):
        called.update(options, name=name)
        return Booted()

    monkeypatch.setattr(TransformerBridge, "boot_transformers", staticmethod(boot))
    tokenizer = word_tokenizer()
    assert isinstance(load_model("bridge:EleutherAI/gpt-j-6b", dtype="bfloat16", tokenizer=tokenizer), Booted)
    expected = {"device": torch.device("cpu"), "dtype": torch.bfloat16, "tokenizer": tokenizer}
    assert called.items() >= {"name": "EleutherAI/gpt-j-6b", **expected}.items()


def test_what_cannot_be_loaded(tmp_path):
    refused("bridge:", "the model's name is empty; expected a hub name or a folder, as in 'bridge:gpt2'")
    refused(f"bridge:{tmp_path}", re.escape(f"bridge:{tmp_path}: TransformerLens cannot load this model ("))


class TestReadingBack:
    @pytest.mark.parametrize("name", [name for name in MODULES if name != "codegen"])
    def test_the_weights_are_those_of_the_module(self, tmp_path, name):
        """To the bit, and so is what is computed, in whatever dtype was asked for."""
        module = MODULES[name]()
        bridge = booted(module, tmp_path, dtype=torch.float64)
        model, expected = (load_model(each, dtype="float64") for each in (bridge, module))
        assert model.hash == expected.hash
        assert model.tokenizer is bridge.tokenizer
        tokens = torch.arange(9)[None] * 4
        assert torch.equal(model(tokens), expected(tokens))
        assert load_model(bridge).cfg.dtype == torch.float32

    def test_the_module_behind_a_bridge(self, tmp_path):
        bridge = booted("llama", tmp_path)
        assert load_model(bridge.original_model).hash == load_model(bridge).hash

    def test_another_tokenizer(self, tmp_path):
        tokenizer = word_tokenizer()
        assert load_model(booted("gpt2", tmp_path), tokenizer=tokenizer).tokenizer is tokenizer

    def test_a_module_without_a_bridge_has_its_own_state(self):
        module = random_gpt2()
        assert own_state(module).keys() == module.state_dict().keys()

    def test_half_precision_agrees_within_its_own(self, tmp_path):
        bridge = booted("llama", tmp_path, dtype=torch.bfloat16)
        tokens = torch.arange(9)[None] * 4
        assert relative_error(load_model(bridge, dtype="bfloat16")(tokens), bridge(tokens).detach()) < 0.05

    def test_an_unknown_architecture(self, tmp_path):
        refused(
            booted("codegen", tmp_path),
            r"TransformerBridge: its weights cannot be read into a model of ours \(CodeGenForCausalLM: architecture "
            rf"'codegen' is not known here; .*{ADVICE}",
        )

    def test_weights_that_were_processed(self, tmp_path):
        """Within the module they are as they were: to read these would be to load another model."""
        bridge = booted(random_foreign("neox"), tmp_path)
        bridge.enable_compatibility_mode(disable_warnings=True)
        refused(
            bridge,
            r"the logits of our copy differ from those of the TransformerBridge by \S+ of the largest, expected at "
            rf"most 1e-04: it computes something else than its weights and config say, .*{ADVICE}",
        )

    def test_a_bridge_without_a_module(self, tmp_path, monkeypatch):
        def absent(_):
            raise AttributeError("it runs elsewhere")

        bridge = booted("gpt2", tmp_path)
        monkeypatch.setattr(TransformerBridge, "original_model", property(absent))
        with pytest.raises(LoadError, match=rf"there is no module behind it \(it runs elsewhere\).*{ADVICE}"):
            load_model(bridge)

    def test_another_model_that_follows_the_protocol(self):
        refused(HandModel(), "got HandModel, which has no config; pass it to the methods as it is")
