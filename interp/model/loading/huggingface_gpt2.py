"""GPT-2 as Hugging Face writes it: the names, the transposed ``Conv1D`` weights, the joined ``c_attn``.

Loading changes no number: splitting and reshaping only.
"""

from collections.abc import Mapping
from typing import Any

import einops
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import ConfigError, LoadError
from interp.model.config import TransformerConfig, require_count
from interp.model.loading.checkpoint import State, check_numbers

ACT_FNS = {"gelu_new": "gelu_new", "gelu_pytorch_tanh": "gelu_new", "gelu": "gelu", "relu": "relu"}
UNSUPPORTED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
END_OF_TEXT = "<|endoftext|>"
BUFFERS = (".attn.bias", ".attn.masked_bias")


def gpt2_config(config: Mapping[str, Any], source: str) -> TransformerConfig:
    """Our config of a Hugging Face GPT-2's.

    Raises:
        LoadError: A field is missing or asks for something that GPT-2 as built here does not do.
    """
    for name, supported in UNSUPPORTED.items():
        if config.get(name, supported) != supported:
            raise LoadError(f"{source}: {name}={config[name]!r} is not supported, expected {supported!r}")
    activation = config.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in ACT_FNS:
        raise LoadError(f"{source}: activation_function={activation!r}, expected one of {', '.join(ACT_FNS)}")
    try:
        d_model, n_heads = config["n_embd"], config["n_head"]
        require_count("n_embd", d_model)
        require_count("n_head", n_heads)
        if d_model % n_heads:
            raise LoadError(f"{source}: n_embd={d_model} is not a multiple of n_head={n_heads}")
        fields = {
            "n_layers": config["n_layer"],
            "n_heads": n_heads,
            "d_model": d_model,
            "d_head": d_model // n_heads,
            "d_mlp": config.get("n_inner") or 4 * d_model,
            "d_vocab": config["vocab_size"],
            "n_ctx": config.get("n_positions", config.get("n_ctx", 1024)),
            "act_fn": ACT_FNS[activation],
            "eps": config.get("layer_norm_epsilon", 1e-5),
            "tied": config.get("tie_word_embeddings", True),
        }
        return TransformerConfig.from_dict(fields)
    except KeyError as error:
        raise LoadError(f"{source}: the config has no field {error.args[0]!r}, which GPT-2 needs") from error
    except ConfigError as error:
        raise LoadError(f"{source}: {error}") from error


def gpt2_state(state: Mapping[str, Tensor], config: TransformerConfig, source: str) -> State:
    """Our parameters from a Hugging Face GPT-2 state dict, with or without the ``transformer.`` prefix.

    Raises:
        LoadError: A tensor is missing, extra, of another shape, or holds what is no number, or the config ties
            embeddings that differ; the tensor is named as the file names it.
    """
    left = {name: tensor for name, tensor in state.items() if not name.endswith(BUFFERS)}
    check_numbers(left, source)
    body = "transformer." if any(name.startswith("transformer.") for name in left) else ""
    take = _Taker(left, source)
    d, h, e, m = config.d_model, config.n_heads, config.d_head, config.d_mlp
    out: State = {
        "embed.W_E": take(f"{body}wte.weight", config.d_vocab, d),
        "pos_embed.W_pos": take(f"{body}wpe.weight", config.n_ctx, d),
    }
    for layer in range(config.n_layers):
        theirs, ours = f"{body}h.{layer}.", f"blocks.{layer}."
        for norm, name in (("ln1", "ln_1"), ("ln2", "ln_2")):
            out[f"{ours}{norm}.w"] = take(f"{theirs}{name}.weight", d)
            out[f"{ours}{norm}.b"] = take(f"{theirs}{name}.bias", d)
        weight = take(f"{theirs}attn.c_attn.weight", d, 3 * d)
        bias = take(f"{theirs}attn.c_attn.bias", 3 * d)
        for letter, w, b in zip("QKV", weight.split(d, dim=1), bias.split(d), strict=True):
            out[f"{ours}attn.W_{letter}"] = einops.rearrange(w, "d (h e) -> h d e", h=h)
            out[f"{ours}attn.b_{letter}"] = b.reshape(h, e)
        out[f"{ours}attn.W_O"] = take(f"{theirs}attn.c_proj.weight", d, d).reshape(h, e, d)
        out[f"{ours}attn.b_O"] = take(f"{theirs}attn.c_proj.bias", d)
        out[f"{ours}mlp.W_in"] = take(f"{theirs}mlp.c_fc.weight", d, m)
        out[f"{ours}mlp.b_in"] = take(f"{theirs}mlp.c_fc.bias", m)
        out[f"{ours}mlp.W_out"] = take(f"{theirs}mlp.c_proj.weight", m, d)
        out[f"{ours}mlp.b_out"] = take(f"{theirs}mlp.c_proj.bias", d)
    out["ln_final.w"], out["ln_final.b"] = take(f"{body}ln_f.weight", d), take(f"{body}ln_f.bias", d)
    out["unembed.b_U"] = out["embed.W_E"].new_zeros(config.d_vocab)
    if not config.tied:
        out["unembed.W_U"] = take("lm_head.weight", config.d_vocab, d).T
    elif "lm_head.weight" in left and (take("lm_head.weight", config.d_vocab, d) != out["embed.W_E"]).any():
        raise LoadError(
            f"{source}: the config ties the embeddings, but 'lm_head.weight' and '{body}wte.weight' differ; "
            "set tie_word_embeddings to false in the config"
        )
    take.finish()
    return out


def name_special_tokens(tokenizer: PreTrainedTokenizerBase) -> None:
    """Give `tokenizer` GPT-2's BOS and EOS where its files name none: they are defaults of GPT-2's own class."""
    if END_OF_TEXT in tokenizer.get_vocab():
        tokenizer.bos_token = tokenizer.bos_token or END_OF_TEXT
        tokenizer.eos_token = tokenizer.eos_token or END_OF_TEXT


class _Taker:
    """Takes tensors out of a state dict by name and shape, and at the end finds what nobody took."""

    def __init__(self, left: dict[str, Tensor], source: str):
        self.left, self.source = left, source

    def __call__(self, name: str, *shape: int) -> Tensor:
        if name not in self.left:
            raise LoadError(f"{self.source}: tensor {name!r} is missing")
        tensor = self.left.pop(name)
        if tensor.shape != shape:
            raise LoadError(
                f"{self.source}: tensor {name!r}: expected shape {shape}, got {tuple(tensor.shape)}; "
                "does the config describe these weights?"
            )
        return tensor

    def finish(self) -> None:
        if self.left:
            raise LoadError(f"{self.source}: tensor {next(iter(self.left))!r} is not part of GPT-2")
