"""Small random models whose every parameter counts: no bias is zero, no LayerNorm is the identity."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from interp.model.config import TransformerConfig
from interp.model.transformer import HookedTransformer
from recipes.tokenizer import build_tokenizer

WORDS = ("The", "the", "keys", "key", "cabinet", "to", "on", "table", "is", "are", "Mary", "John", "gave", "a", "book")


def draw(module, seed):
    """Give every parameter of `module` random values, centred on 1 where they scale."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            values = 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            scales = name.endswith((".w", "ln_1.weight", "ln_2.weight", "ln_f.weight"))
            parameter.copy_(values + 1 if scales else values)
    return module


def random_model(*, dtype=torch.float64, tokenizer=None, seed=0, **fields):
    config = {"n_layers": 2, "n_heads": 3, "d_model": 12, "d_head": 5, "d_mlp": 20, "d_vocab": 40, "n_ctx": 16}
    config |= {"d_vocab": len(tokenizer)} if tokenizer is not None else {}
    model = HookedTransformer(TransformerConfig(**config | fields), tokenizer, name="random").to(dtype)
    return draw(model, seed)


def random_gpt2(*, seed=0, **fields):
    """A transformers GPT-2 in float64."""
    config = {"n_layer": 2, "n_head": 3, "n_embd": 12, "vocab_size": 40, "n_positions": 16}
    ids = {"bos_token_id": 0, "eos_token_id": 0}
    return draw(GPT2LMHeadModel(GPT2Config(**config | ids | fields)).double().eval(), seed)


def word_tokenizer():
    return build_tokenizer(WORDS)


def random_tokens(model, rows=3, length=9, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(model.config.d_vocab, (rows, length), generator=generator)


def relative_error(got, expected):
    """The largest difference, relative to the largest magnitude."""
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    return float((got - expected).abs().max() / expected.abs().max())
