"""TransformerLens' bridges of tiny random models, booted from folders as a user boots them."""

import torch
from foreign_models import GROUPED, random_foreign
from tiny_models import random_gpt2, word_tokenizer
from transformer_lens.model_bridge import TransformerBridge
from transformers import CodeGenConfig, CodeGenForCausalLM

CODEGEN = {
    "vocab_size": 41,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 32,
    "rotary_dim": 4,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
"""Of an architecture that is not known here."""

MODULES = {
    "gpt2": random_gpt2,
    "gpt1": lambda: random_foreign("gpt1"),
    "llama": lambda: random_foreign("llama"),
    "llama, grouped": lambda: random_foreign("llama", **GROUPED),
    "mistral": lambda: random_foreign("mistral", **GROUPED),
    "qwen2": lambda: random_foreign("qwen2"),
    "neox": lambda: random_foreign("neox"),
    "neox, one after the other": lambda: random_foreign("neox", use_parallel_residual=False),
    "bert": lambda: random_foreign("bert"),
    "codegen": lambda: CodeGenForCausalLM(CodeGenConfig(**CODEGEN)).double().eval(),
}


def booted(module, folder, *, dtype=torch.float32, tokenizer=None):
    """The bridge of a module of transformers, by way of a folder; a name stands for one of ``MODULES``."""
    module = MODULES[module]() if isinstance(module, str) else module
    module.save_pretrained(folder)
    (tokenizer or word_tokenizer()).save_pretrained(folder)
    return TransformerBridge.boot_transformers(str(folder), device="cpu", dtype=dtype).eval()
