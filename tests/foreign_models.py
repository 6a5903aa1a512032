"""Random models of transformers' own in odd shapes, every parameter of which counts; and its casts, removed."""

import torch
from tiny_models import draw
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRMSNorm, LlamaRotaryEmbedding
from transformers.models.mistral.modeling_mistral import MistralRMSNorm, MistralRotaryEmbedding
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm, Qwen2RotaryEmbedding

SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 17}
SIZES |= {"vocab_size": 41, "max_position_embeddings": 16}
CLASSES = {
    "gpt1": (OpenAIGPTLMHeadModel, OpenAIGPTConfig),
    "llama": (LlamaForCausalLM, LlamaConfig),
    "mistral": (MistralForCausalLM, MistralConfig),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config),
    "neox": (GPTNeoXForCausalLM, GPTNeoXConfig),
    "bert": (BertForMaskedLM, BertConfig),
}
DEFAULTS = {
    "gpt1": {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 16, "vocab_size": 41},
    "llama": SIZES,
    "mistral": SIZES | {"num_key_value_heads": 1},
    "qwen2": SIZES | {"num_key_value_heads": 1, "tie_word_embeddings": True},
    "neox": SIZES | {"hidden_size": 24},
    "bert": SIZES,
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
    },
    "mistral": {"multi-query": {}, "window": {"sliding_window": 9, **GROUPED}, "no window": {"sliding_window": None}},
    "qwen2": {"tied": {}, "untied, grouped": GROUPED | {"tie_word_embeddings": False, "head_dim": 8}},
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
}
CASES = [(family, name) for family, variants in VARIANTS.items() for name in variants]
ROTARY = ("llama", "mistral", "qwen2", "neox")


def random_foreign(family, *, seed=0, dtype=torch.float64, **fields):
    kind, config = CLASSES[family]
    module = draw(kind(config(**DEFAULTS[family] | fields)).double().eval(), seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.ndim == 1 and name.endswith("weight") and "ln_" not in name:
                parameter += 1  # a norm scales around 1
            elif parameter.ndim == 2:
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
