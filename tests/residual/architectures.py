"""Kinds of models that differ in what stands between a head and the stream."""

SUMS = {
    "gpt-2": {},
    "untied": {"tied": False},
    "rms, no bias": {"normalization": "RMS", "biases": (), "positions": "rotary", "d_head": 4},
    "no norm": {"normalization": "none"},
    "shared keys": {"n_heads": 4, "n_kv_heads": 2, "positions": "alibi"},
    "bilinear": {"scores": "bilinear", "positions": "none"},
    "parallel": {"parallel": True, "scores": "dot"},
    "attention only": {"d_mlp": 0},
    "bloom": {"embed_norm": True, "positions": "alibi"},
    "gemma 2": {"norm_position": "sandwich", "normalization": "RMS", "embed_scale": 3.0},
    "olmo 2": {"norm_position": "reordered", "normalization": "RMS"},
}
"""The stream is the sum of what was written to it."""

OTHERS = {
    "post-norm": {"norm_position": "post"},
    "bert": {
        "norm_position": "post",
        "embed_norm": True,
        "prediction_head": True,
        "causal": False,
        "n_token_types": 2,
    },
    "relative": {"positions": "relative"},
}
