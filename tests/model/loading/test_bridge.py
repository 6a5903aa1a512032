"""`bridge:NAME` is TransformerLens' own model, as it is."""

import re

import torch
from refusals import refused
from tiny_models import word_tokenizer
from transformer_lens.model_bridge import TransformerBridge
from transformers import GPTNeoConfig, GPTNeoForCausalLM

from interp.model.loading import load_model


def test_a_model_in_a_folder(tmp_path):
    """Of an architecture that is not known here; no network is needed."""
    tokenizer = word_tokenizer()
    config = GPTNeoConfig(
        vocab_size=len(tokenizer),
        hidden_size=12,
        num_layers=2,
        num_heads=3,
        attention_types=[[["global", "local"], 1]],
        max_position_embeddings=32,
        intermediate_size=20,
        bos_token_id=0,
        eos_token_id=0,
    )
    theirs = GPTNeoForCausalLM(config).eval()
    theirs.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    refused(tmp_path, "architecture 'gpt_neo' is not known here; .*bridge:NAME")
    model = load_model(f"bridge:{tmp_path}", dtype="float64")
    assert isinstance(model, TransformerBridge)
    assert not model.training
    tokens = torch.tensor([[0, 5, 260, 261]])
    with torch.no_grad():
        expected = theirs.double()(tokens).logits
        assert torch.allclose(model(tokens), expected, rtol=1e-9, atol=1e-9)


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
    assert called == {"name": "EleutherAI/gpt-j-6b", **expected}


def test_what_cannot_be_loaded(tmp_path):
    refused("bridge:", "the model's name is empty; expected a hub name or a folder, as in 'bridge:gpt2'")
    refused(f"bridge:{tmp_path}", re.escape(f"bridge:{tmp_path}: TransformerLens cannot load this model ("))
