"""A configuration that describes no model is refused; one that does builds it, without side effects."""

import copy

import pytest
import torch
from tiny_models import random_model, random_tokens

from interp.errors import ConfigError
from interp.model.config import TransformerConfig
from interp.model.transformer import HookedTransformer

FIELDS = {"n_layers": 2, "n_heads": 3, "d_model": 12, "d_head": 5, "d_mlp": 20, "d_vocab": 40, "n_ctx": 16}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [0, -1, 2.5, "3", None, True])
def test_sizes_are_whole_numbers(field, value):
    if (field, value) == ("d_mlp", 0) and value is not False:
        assert TransformerConfig.from_dict({**FIELDS, field: 0}).to_lens(torch.device("cpu"), torch.float32).attn_only
        return
    least = 0 if field == "d_mlp" else 1
    with pytest.raises(ConfigError, match=f"{field}: expected a whole number of at least {least}, got {value!r}"):
        TransformerConfig.from_dict({**FIELDS, field: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"act_fn": "swish"}, "act_fn: expected one of gelu_new, gelu, relu, silu, swiglu_oai, got 'swish'"),
        ({"eps": 0}, "eps: expected a positive number, got 0"),
        ({"eps": 10**400}, "eps: expected a positive number, got 1000"),
        ({"eps": float("nan")}, "eps: expected a positive number, got nan"),
        ({"eps": True}, "eps: expected a positive number, got True"),
        ({"rotary_dim": 2}, "rotary_dim: speaks of rotary positions, but positions is 'learned'"),
        ({"prediction_head": True}, "prediction_head: stands behind a normalised stream"),
        ({"init_std": -1.0}, "init_std: expected a positive number, got -1.0"),
        ({"tied": "yes"}, "tied: expected true or false, got 'yes'"),
        ({"n_head": 3}, "config: unknown field 'n_head'; did you mean 'n_heads'"),
    ],
)
def test_other_fields(fields, message):
    with pytest.raises(ConfigError, match=message):
        TransformerConfig.from_dict({**FIELDS, **fields})


def test_construction_checks_too():
    with pytest.raises(ConfigError, match="n_layers: expected a whole number of at least 1, got 0"):
        TransformerConfig(**{**FIELDS, "n_layers": 0})


def test_missing_fields_are_named():
    with pytest.raises(ConfigError, match=r"expected the fields n_layers, .*; missing d_vocab, n_ctx"):
        TransformerConfig.from_dict({k: v for k, v in FIELDS.items() if k not in ("d_vocab", "n_ctx")})


def test_making_a_model_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    HookedTransformer(TransformerConfig(**FIELDS))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_seed_decides_the_weights():
    one, same, other = (HookedTransformer(TransformerConfig(**FIELDS), seed=seed) for seed in (1, 1, 2))
    assert one.hash == same.hash != other.hash


def test_initialisation_is_gpt2s():
    model = HookedTransformer(TransformerConfig(**FIELDS | {"d_model": 120, "d_mlp": 480}, init_std=0.3, tied=False))
    attn, mlp = model.blocks[0].attn, model.blocks[0].mlp
    for weight, std in ((model.W_E, 0.3), (model.W_pos, 0.3), (model.W_U, 0.02), (attn.W_Q, 0.02), (mlp.W_in, 0.02)):
        assert weight.std().item() == pytest.approx(std, rel=0.1)
    for weight in (attn.W_O, mlp.W_out):
        assert weight.std().item() == pytest.approx(0.02 / 4**0.5, rel=0.1)
    for bias in (attn.b_Q, attn.b_O, mlp.b_in, mlp.b_out, model.b_U):
        assert bias.abs().max() == 0


def test_a_model_without_memory():
    with torch.device("meta"):
        model = HookedTransformer(TransformerConfig(**FIELDS))
    assert {p.device.type for p in model.parameters()} == {"meta"}
    assert {name: p.shape for name, p in model.named_parameters()} == {
        name: p.shape for name, p in random_model(**FIELDS).named_parameters()
    }


def test_a_copy_is_a_model_of_its_own():
    model = random_model()
    twin = copy.deepcopy(model)
    tokens = random_tokens(model)
    expected = model(tokens)
    with torch.no_grad():
        model.W_E.zero_()
        model.blocks[0].attn.W_Q.zero_()
    assert torch.equal(twin(tokens), expected)
    assert twin.W_U.data_ptr() == twin.W_E.data_ptr()
