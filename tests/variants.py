"""Architectures for the tests: every choice of the config, and every pair of choices that a model can have both of."""

import itertools
import random

import pytest

from interp.errors import ConfigError
from interp.model.config import TransformerConfig
from interp.model.sites import SITES

SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 12, "d_head": 6, "d_mlp": 10, "d_vocab": 40, "n_ctx": 16}
AXES = {
    "positions": {
        "learned": {},
        "none": {"positions": "none"},
        "sinusoidal": {"positions": "sinusoidal"},
        "relative": {"positions": "relative", "relative_distance": 3},
        "rotary": {"positions": "rotary"},
        "scaled rotary": {
            "positions": "rotary",
            "rotary_frequencies": (1.0, 0.1, 0.02),
            "rotary_magnitude": 1.2,
        },
        "partial rotary": {"positions": "rotary", "rotary_dim": 4, "rotary_base": 100.0},
        "alibi": {"positions": "alibi"},
    },
    "norm": {
        "LN": {},
        "RMS": {"normalization": "RMS"},
        "no norm": {"normalization": "none"},
        "post LN": {"norm_position": "post"},
        "post RMS": {"norm_position": "post", "normalization": "RMS"},
        "sandwich": {"norm_position": "sandwich", "normalization": "RMS"},
        "reordered": {"norm_position": "reordered"},
    },
    "mlp": {
        "gelu_new": {},
        "gelu": {"act_fn": "gelu"},
        "relu": {"act_fn": "relu"},
        "silu": {"act_fn": "silu"},
        "SwiGLU": {"act_fn": "silu", "gated": True},
        "attention only": {"d_mlp": 0},
        "experts": {"act_fn": "silu", "gated": True, "n_experts": 3, "n_active_experts": 2},
        "clamped experts": {
            "act_fn": "swiglu_oai",
            "gated": True,
            "n_experts": 4,
            "n_active_experts": 1,
            "expert_weights_sum_to_1": False,
        },
    },
    "order": {"sequential": {}, "parallel": {"parallel": True}},
    "heads": {"multi-head": {}, "grouped": {"n_kv_heads": 2}, "multi-query": {"n_kv_heads": 1}},
    "scores": {name: {"scores": name} for name in ("scaled_dot", "dot", "bilinear", "additive")},
    "window": {
        "everywhere": {},
        "window": {"window": 3},
        "local layers": {"window": 4, "local_layers": (1,)},
        "sinks": {"sinks": True},
    },
    "queries and keys": {
        "as they are": {},
        "norm by head": {"qk_norm": "by head"},
        "norm of all heads": {"qk_norm": "flat"},
        "caps": {"score_cap": 2.0, "logit_cap": 3.0, "embed_scale": 3.5},
        "scale": {"score_scale": 0.3},
    },
    "direction": {"causal": {}, "bidirectional": {"causal": False}},
    "biases": {"biases": {}, "no biases": {"biases": ()}, "qkv bias": {"biases": ("qkv",)}},
    "unembedding": {"tied": {}, "untied": {"tied": False}},
    "embedding": {"plain": {}, "normalised": {"embed_norm": True}, "token types": {"n_token_types": 2}},
    "before the unembedding": {"a norm": {}, "prediction head": {"prediction_head": True}},
}
Choice = tuple[tuple[str, str], ...]


def fields_of(choice):
    """The config's fields that the choices along all axes make."""
    fields = dict(SIZES)
    for axis, value in choice:
        fields |= AXES[axis][value]
    return fields


def is_a_model(choice):
    try:
        TransformerConfig(**fields_of(choice))
    except ConfigError:
        return False
    return True


def covering():
    """Few choices along all axes, so that every pair of values that exists together is in one of them."""
    rng = random.Random(0)
    first = tuple((axis, next(iter(values))) for axis, values in AXES.items())
    chosen = [first]
    options = [(axis, value) for axis, values in AXES.items() for value in values]
    pairs = {frozenset(pair) for pair in itertools.combinations(options, 2) if pair[0][0] != pair[1][0]}
    left = {pair for pair in pairs if is_a_model(_completed(pair, first))} - _pairs(first)
    while left:
        pair = min(left, key=sorted)
        tries = [_completed(pair, tuple((axis, rng.choice(list(AXES[axis]))) for axis in AXES)) for _ in range(60)]
        best = max(
            (each for each in [*tries, _completed(pair, first)] if is_a_model(each)),
            key=lambda each: len(_pairs(each) & left),
        )
        chosen.append(best)
        left -= _pairs(best)
    return chosen


def _completed(pair, rest):
    return tuple((axis, dict(pair).get(axis, value)) for axis, value in rest)


def _pairs(choice):
    return {frozenset(pair) for pair in itertools.combinations(choice, 2)}


def name_of(choice):
    """What is not as in the first choice."""
    unusual = [value for axis, value in choice if value != next(iter(AXES[axis]))]
    return ", ".join(unusual) or "GPT-2"


VARIANTS = {name_of(choice): fields_of(choice) for choice in covering()}
WITH_EVERY_VALUE = 10


def each_variant(n_fast):
    """Each of the variants; all but the first `n_fast` are slow."""
    return pytest.mark.parametrize(
        "fields",
        [
            pytest.param(fields, id=name, marks=[pytest.mark.slow] * (number >= n_fast))
            for number, (name, fields) in enumerate(VARIANTS.items())
        ],
    )


every_value = each_variant(WITH_EVERY_VALUE)
"""The fast ones hold every value, but not every pair of them."""
ADDITIVE = {name: fields for name, fields in VARIANTS.items() if fields.get("norm_position", "pre") != "post"}


def sites_of(fields):
    """The sites that a model of these fields has and that sweeps write."""
    absent = ("embed", "pos_embed", "scores")
    without_mlp = ("resid_mid", "mlp_in", "mlp_pre", "mlp_post", "mlp_out") if not fields["d_mlp"] else ()
    of_neurons = ("mlp_pre", "mlp_post") if fields.get("n_experts") else ()
    return [name for name in SITES if name not in (*absent, *without_mlp, *of_neurons)]
