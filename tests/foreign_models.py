"""Random models of transformers' own in odd shapes, every parameter of which counts; and its casts, removed."""

import torch
from tiny_models import draw
from transformers import AutoConfig, AutoModelForCausalLM, BertForMaskedLM
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRMSNorm, LlamaRotaryEmbedding
from transformers.models.mistral.modeling_mistral import MistralRMSNorm, MistralRotaryEmbedding
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm, Qwen2RotaryEmbedding

SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 17}
SIZES |= {"vocab_size": 41, "max_position_embeddings": 16}
MODEL_TYPES = {
    "gpt1": "openai-gpt",
    "neox": "gpt_neox",
    "gemma3": "gemma3_text",
}
"""Where a family is not called as its configs call it."""
MOE = {"num_experts_per_tok": 2, "intermediate_size": 20}  # a multiple of 16 bytes, as its products need
CAPS = {"attn_logit_softcapping": 1.5, "final_logit_softcapping": 4.0, "query_pre_attn_scalar": 3}
GPT = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 16, "vocab_size": 41}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 8, "rope_theta": 20.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "rope_theta": 20.0}
DEFAULTS = {
    "gpt1": GPT,
    "llama": SIZES,
    "mistral": SIZES | {"num_key_value_heads": 1},
    "qwen2": SIZES | {"num_key_value_heads": 1, "tie_word_embeddings": True},
    "neox": SIZES | {"hidden_size": 24},
    "bert": SIZES,
    "qwen3": SIZES | {"num_key_value_heads": 1, "head_dim": 4},
    "qwen3_moe": SIZES | MOE | {"num_key_value_heads": 3, "num_experts": 4, "moe_intermediate_size": 8, "head_dim": 4},
    "mixtral": SIZES | MOE | {"num_key_value_heads": 1, "num_local_experts": 4},
    "gpt_oss": SIZES | MOE | {"num_key_value_heads": 1, "num_local_experts": 4, "head_dim": 4, "sliding_window": 5},
    "gemma": SIZES | {"num_key_value_heads": 1, "head_dim": 6},
    "gemma2": SIZES | {"num_key_value_heads": 1, "head_dim": 6, "sliding_window": 5, **CAPS},
    "gemma3": SIZES | {"num_key_value_heads": 1, "head_dim": 6, "sliding_window": 5, "sliding_window_pattern": 2},
    "olmo": SIZES,
    "olmo2": SIZES,
    "olmo3": SIZES | {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]},
    "phi": SIZES | {"hidden_size": 24},
    "phi3": SIZES | {"pad_token_id": 0},
    "stablelm": SIZES | {"hidden_size": 24, "num_key_value_heads": 3},
    "gptj": {**GPT, "n_embd": 24, "rotary_dim": 4},
    "gpt_neo": SIZES | {"attention_types": [[["global", "local"], 1]], "window_size": 5},
    "opt": SIZES | {"ffn_dim": 17},
    "bloom": {"hidden_size": 12, "n_layer": 2, "n_head": 3, "vocab_size": 41, "seq_length": 16},
    "falcon": SIZES,
}
GROUPED = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6}
VARIANTS = {
    "gpt1": {"default": {}, "relu": {"afn": "relu"}, "silu, eps": {"afn": "silu", "layer_norm_epsilon": 0.1}},
    "llama": {
        "default": {},
        "grouped, another head size": GROUPED,
        "tied": {"tie_word_embeddings": True, "rms_norm_eps": 0.1},
        "biases": {"attention_bias": True, "mlp_bias": True},
        "attention biases, base": {
            "attention_bias": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 50.0},
        },
        "gelu": {"hidden_act": "gelu_pytorch_tanh"},
        "llama3": {"rope_parameters": LLAMA3},
        "linear": {"rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 50.0}},
        "dynamic": {"rope_parameters": {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 50.0}},
        "yarn": {"rope_parameters": YARN | {"beta_fast": 4.0, "mscale": 0.7, "mscale_all_dim": 0.4}},
    },
    "mistral": {"multi-query": {}, "window": {"sliding_window": 5, **GROUPED}, "no window": {"sliding_window": None}},
    "qwen2": {
        "tied": {},
        "untied, grouped": GROUPED | {"tie_word_embeddings": False, "head_dim": 8},
        "a layer with a window": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    },
    "neox": {
        "a quarter of a head": {},
        "all of a head": {
            "rope_parameters": {"rope_type": "default", "rope_theta": 99.0, "partial_rotary_factor": 1.0}
        },
        "one after the other": {"use_parallel_residual": False},
        "no attention biases": {"attention_bias": False, "hidden_act": "relu"},
        "tied": {"tie_word_embeddings": True, "layer_norm_eps": 0.1},
    },
    "bert": {
        "default": {},
        "untied": {"tie_word_embeddings": False},
        "relu, one kind of token": {"hidden_act": "relu", "type_vocab_size": 1, "layer_norm_eps": 0.1},
    },
    "qwen3": {
        "default": {},
        "grouped, biases, yarn": GROUPED | {"attention_bias": True, "rope_parameters": YARN},
        "window": {
            "use_sliding_window": True,
            "sliding_window": 5,
            "max_window_layers": 1,
            "tie_word_embeddings": True,
        },
    },
    "qwen3_moe": {"default": {}, "weights sum to 1": {"norm_topk_prob": True, "num_experts_per_tok": 3, **GROUPED}},
    "mixtral": {"default": {}, "window, one expert": {"sliding_window": 5, "num_experts_per_tok": 1}},
    "gpt_oss": {"default": {}, "default positions": {"rope_parameters": {"rope_type": "default", "rope_theta": 9.0}}},
    "gemma": {"default": {}, "untied, biases": {"tie_word_embeddings": False, "attention_bias": True}},
    "gemma2": {
        "default": {},
        "no caps": {"attn_logit_softcapping": None, "final_logit_softcapping": None},
        "only the second is local": {"layer_types": ["full_attention", "sliding_attention"]},
    },
    "gemma3": {
        "default": {},
        "stretched": {
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 90.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
            }
        },
        "a cap": {"final_logit_softcapping": 4.0},
    },
    "olmo": {"default": {}, "tied, biases": {"tie_word_embeddings": True, "attention_bias": True}},
    "olmo2": {
        "default": {},
        "grouped": {"hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2, "attention_bias": True},
    },
    "olmo3": {
        "default": {},
        "yarn": {"rope_parameters": {"full_attention": YARN, "sliding_attention": {"rope_type": "default"}}},
    },
    "phi": {
        "half of a head": {},
        "grouped, all of a head": {
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 99.0, "partial_rotary_factor": 1.0},
        },
    },
    "phi3": {
        "default": {},
        "grouped, window": {"num_attention_heads": 6, "num_key_value_heads": 2, "sliding_window": 5},
        "longrope": {
            "original_max_position_embeddings": 12,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 20.0,
                "short_factor": [1.0, 1.5],
                "long_factor": [2.0, 4.0],
            },
        },
        "part of a head": {
            "hidden_size": 24,
            "rope_parameters": {"rope_type": "default", "rope_theta": 9.0, "partial_rotary_factor": 0.75},
        },
    },
    "stablelm": {
        "default": {},
        "parallel, biases": {"use_parallel_residual": True, "use_qkv_bias": True},
        "grouped": {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "layer_norm_eps": 0.1},
    },
    "gptj": {"part of a head": {}, "all of a head": {"rotary_dim": 8, "n_inner": 17}},
    "gpt_neo": {"default": {}, "global": {"attention_types": [[["global"], 2]], "intermediate_size": None}},
    "opt": {"default": {}, "untied": {"tie_word_embeddings": False, "activation_function": "gelu"}},
    "bloom": {"default": {}, "another epsilon": {"layer_norm_epsilon": 0.1, "n_head": 4}},
    "falcon": {
        "one key head": {},
        "in sequence": {"parallel_attn": False, "multi_query": False, "bias": True, "ffn_hidden_size": 17},
        "groups": {"new_decoder_architecture": True, "num_attention_heads": 6, "num_kv_heads": 2},
        "groups, one norm": {
            "new_decoder_architecture": True,
            "num_attention_heads": 6,
            "num_kv_heads": 2,
            "num_ln_in_parallel_attn": 1,
        },
    },
}
CASES = [(family, name) for family, variants in VARIANTS.items() for name in variants]
PLAIN = {"experts_implementation": "eager"}
"""What computes in 64 bits, too."""
WITHOUT_CASTS = ("gpt1", "bert", "llama", "mistral", "qwen2", "neox")
"""Which compute in 64 bits once ``remove_casts`` has been called; others round a softmax, a norm or an angle."""
FROM_ZERO = ("gemma", "gemma2", "gemma3")
"""Whose norms multiply by 1 more than their weights."""


def random_foreign(family, *, seed=0, dtype=torch.float64, **fields):
    kind = MODEL_TYPES.get(family, family)
    config = AutoConfig.for_model(kind, **{**DEFAULTS[family], **fields}, **PLAIN)
    made = BertForMaskedLM(config) if kind == "bert" else AutoModelForCausalLM.from_config(config)
    module = draw(made.double().eval(), seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.ndim == 1 and name.endswith("weight") and "ln_" not in name:
                parameter += 1  # a norm scales around 1
            elif parameter.ndim in (2, 3):
                parameter /= 2  # so that a pattern is not of one position alone
    return module.to(dtype)


def remove_casts(monkeypatch):
    """Let transformers' RMSNorm and rotary positions compute in the model's own dtype."""

    def norm(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    def rotary(self, x, position_ids):
        config = self.config
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        width = int(width * config.rope_parameters.get("partial_rotary_factor", 1.0))
        exponents = torch.arange(0, width, 2, dtype=x.dtype) / width
        angles = position_ids[..., None].to(x.dtype) / config.rope_parameters["rope_theta"] ** exponents
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos(), angles.sin()

    for kind in (LlamaRMSNorm, MistralRMSNorm, Qwen2RMSNorm):
        monkeypatch.setattr(kind, "forward", norm)
    for kind in (LlamaRotaryEmbedding, MistralRotaryEmbedding, Qwen2RotaryEmbedding, GPTNeoXRotaryEmbedding):
        monkeypatch.setattr(kind, "forward", rotary)
