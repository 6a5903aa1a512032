"""The families of Hugging Face that are known here: one table, by ``model_type``, and a config of ours from theirs.

GPT-2 (Radford et al. 2019), GPT-1 (Radford et al. 2018), Llama and Llama 2 (Touvron et al. 2023), Mistral (Jiang et al.
2023), Qwen 2, GPT-NeoX (Black et al. 2022; Pythia, Biderman et al. 2023) and BERT (Devlin et al. 2019). To add one, add
its ``Layout``, a function from its config to ours, and a row of ``FAMILIES``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError, shown
from interp.model.config import LARGEST, Activation, Bias, TransformerConfig
from interp.model.loading import tokenizer as tokenizers
from interp.model.loading.foreign import ForeignConfig, Layout, norm
from interp.model.loading.native import ARCHITECTURE
from interp.model.loading.tensors import Checkpoint, Parameters, Taker
from interp.model.loading.tokenizer import Vocabulary

GPT_BIASES: tuple[Bias, ...] = ("qkv", "o", "mlp", "norm")
MASKS = re.compile(r"\.attn\.(bias|masked_bias)$|^multiple_choice_head\.")
FREQUENCIES = re.compile(r"\.rotary_emb\.inv_freq$")
CONTEXT = ("n_positions", "max_position_embeddings", "n_ctx")
"""What the longest prompt is called: by GPT-2, by ``transformers`` in general, and in old configs."""
GPT1_ACTIVATIONS: dict[str, Activation] = {"gelu": "gelu_new", "relu": "relu", "silu": "silu", "swish": "silu"}
"""GPT-1's own names: what it calls ``gelu`` is the tanh approximation."""
HIDDEN = {
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_model": "hidden_size",
    "d_mlp": "intermediate_size",
    "d_vocab": "vocab_size",
}
"""Our names of the sizes, and those that most of Hugging Face's configs have for them."""
OTHER_TENSORS = ("score.weight", "classifier.weight", "qa_outputs.weight")
"""What transformers writes of heads that classify texts or words, or answer questions."""
BERT_HEAD = "cls.predictions"

GPT2 = Layout(
    prefix="transformer.",
    embed="wte.weight",
    pos="wpe.weight",
    unembed="lm_head.weight",
    blocks="h",
    ln1="ln_1",
    qkv="attn.c_attn",
    o="attn.c_proj",
    ln2="ln_2",
    mlp=("mlp.c_fc", "mlp.c_proj"),
    ln_final="ln_f",
    conv1d=True,
)
GPT1 = replace(GPT2, embed="tokens_embed.weight", pos="positions_embed.weight", ln_final=None)
LLAMA = Layout(
    prefix="model.",
    embed="embed_tokens.weight",
    unembed="lm_head.weight",
    blocks="layers",
    ln1="input_layernorm",
    qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    o="self_attn.o_proj",
    ln2="post_attention_layernorm",
    mlp=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
    ln_final="norm",
)
NEOX = replace(
    LLAMA,
    prefix="gpt_neox.",
    embed="embed_in.weight",
    qkv="attention.query_key_value",
    by_head=True,
    o="attention.dense",
    mlp=("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
    ln_final="final_layer_norm",
)
BERT = Layout(
    prefix="bert.",
    embed="embeddings.word_embeddings.weight",
    pos="embeddings.position_embeddings.weight",
    unembed=f"{BERT_HEAD}.decoder.weight",
    blocks="encoder.layer",
    qkv=("attention.self.query", "attention.self.key", "attention.self.value"),
    o="attention.output.dense",
    ln1="attention.output.LayerNorm",
    mlp=("intermediate.dense", "output.dense"),
    ln2="output.LayerNorm",
    ln_final=None,
)


@dataclass(frozen=True)
class Family:
    """How checkpoints of one ``model_type`` are read."""

    name: str  # what people call it
    config: Callable[[ForeignConfig], TransformerConfig]  # makes our config of its own
    layout: Layout  # where its weights are
    vocabulary: Vocabulary  # what its tokenizer's older files are, and what its ends are called
    left_out: re.Pattern[str]  # names of tensors that are no weights of a language model
    unembed_before: str | None = None  # what the unembedding was called in older versions
    # makes our parameters of a head that predicts tokens and is more than an unembedding
    head: Callable[[Taker, TransformerConfig], Parameters] | None = None

    def checkpoint(
        self,
        fields: Mapping[str, Any],
        read: Callable[[], Mapping[str, Tensor]],
        source: str,
        tokenizer: PreTrainedTokenizerBase | None,
    ) -> Checkpoint:
        """A checkpoint of this family; its config is checked, and the tensors are not read yet."""
        config = self.config(ForeignConfig(fields, source, self.name))
        return Checkpoint(source, self.name, config, read, self.weights, tokenizer, self.left_out)

    def weights(self, take: Taker, config: TransformerConfig) -> Parameters:
        """Our parameters from the family's tensors, with or without the prefix of the body."""
        take.prefix(self.layout.prefix, self.layout.embed)  # takes off an outer prefix, which the head has too
        layout = self.layout
        if self.unembed_before is not None and layout.unembed not in take:
            layout = replace(layout, unembed=self.unembed_before)
        if self.head is None:
            _require_head(take, layout.unembed, tied=config.tied)
        else:
            yield from self.head(take, config)
        yield from layout.weights(take, config)


def _require_head(take: Taker, name: str, *, tied: bool) -> None:
    """Refuse a body alone, as transformers writes it, and a head that predicts something else than tokens."""
    others = [each for each in OTHER_TENSORS if each in take]
    if others or not (tied or name in take):
        fault = f"tensor {others[0]!r} is of another head" if others else f"tensor {name!r} is missing"
        raise LoadError(
            f"{take.source}: {fault}: this model has no head that predicts tokens, so it has no logits; save one of "
            "a class with a head (AutoModelForCausalLM, BertForMaskedLM) that was trained; interp attend, which reads "
            "no logits, takes it as 'bridge:FOLDER', from the folder that it was saved in"
        )


def gpt2_config(config: ForeignConfig) -> TransformerConfig:
    """GPT-2's."""
    config.require(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    config.require(is_causal=True)
    longest = next((name for name in CONTEXT if name in config.fields), CONTEXT[0])
    inner = {} if config.get("n_inner") is None else config.named({"d_mlp": "n_inner"})
    return _gpt(config, (longest, 1024), config.activation("activation_function", "gelu_new"), **inner)


def gpt1_config(config: ForeignConfig) -> TransformerConfig:
    """GPT-1's: GPT-2's layers, post-norm, and so no norm before the unembedding."""
    act_fn = config.activation("afn", "gelu", GPT1_ACTIVATIONS)
    return _gpt(config, ("n_positions", 512), act_fn, norm_position="post")


def _gpt(config: ForeignConfig, n_ctx: tuple[str, int], act_fn: Activation, **chosen: Any) -> TransformerConfig:
    optional = {"n_ctx": n_ctx, "eps": ("layer_norm_epsilon", 1e-5), "tied": ("tie_word_embeddings", True)}
    sizes = {**config.gpt_sizes(), **config.named(optional)}
    return config.transformer(**{**sizes, "act_fn": act_fn, "biases": GPT_BIASES, **chosen})


def llama_config(config: ForeignConfig) -> TransformerConfig:
    """Llama's, whose config can ask for biases."""
    biases: list[Bias] = ["qkv", "o"] if config.switch("attention_bias", False) else []
    biases += ["mlp"] if config.switch("mlp_bias", False) else []
    return _llama_like(config, biases=tuple(biases), longest=2048)


def mistral_config(config: ForeignConfig) -> TransformerConfig:
    """Mistral's. Within its sliding window a position sees all tokens before, so the window is the longest prompt."""
    whole = _llama_like(config, biases=(), longest=131_072)
    window = config.get("sliding_window", 4096)
    if window is None:
        return whole
    if not isinstance(window, int) or window < 1:
        raise config.refusal("sliding_window", window, "a whole number of tokens, or null")
    return replace(whole, n_ctx=min(whole.n_ctx, window))


def qwen2_config(config: ForeignConfig) -> TransformerConfig:
    """Qwen 2's: queries, keys and values have biases; a sliding window is refused."""
    config.require(use_sliding_window=False)
    return _llama_like(config, biases=("qkv",), longest=32_768)


def _llama_like(config: ForeignConfig, *, biases: tuple[Bias, ...], longest: int) -> TransformerConfig:
    """RMSNorm, rotary positions, grouped heads and SwiGLU."""
    config.require(is_causal=True)
    theta, part = config.rotary()
    if part not in (None, 1.0):
        raise config.refusal("partial_rotary_factor", part, 1.0)
    named = {} if config.get("head_dim") is None else config.named({"d_head": "head_dim"})
    optional = {"eps": ("rms_norm_eps", 1e-6), "n_kv_heads": ("num_key_value_heads", None)}
    rotary = {"positions": "rotary", "rotary_base": theta}
    chosen = {"normalization": "RMS", "gated": True, "biases": biases, **rotary, **named}
    return _usual(config, longest=longest, tied=False, activation="silu", optional=optional, **chosen)


def _usual(
    config: ForeignConfig, *, longest: int, tied: bool, activation: str, optional: dict[str, Any], **chosen: Any
) -> TransformerConfig:
    """A config whose sizes have the names that most of Hugging Face's have; `optional` names more fields."""
    optional = {"n_ctx": ("max_position_embeddings", longest), "tied": ("tie_word_embeddings", tied), **optional}
    sizes = config.named({**HIDDEN, **optional})
    if "d_head" not in chosen:
        sizes["d_head"] = config.head_width("hidden_size", "num_attention_heads")
    act_fn = config.activation("hidden_act", activation)
    return config.transformer(**sizes, act_fn=act_fn, **chosen)


def neox_config(config: ForeignConfig) -> TransformerConfig:
    """GPT-NeoX': rotary positions in a part of each head, attention and MLP side by side, untied."""
    config.require(is_causal=True)
    d_head = config.head_width("hidden_size", "num_attention_heads")
    theta, part = config.rotary("rotary_emb_base", "rotary_pct")
    part = 0.25 if part is None else part
    if not isinstance(part, int | float) or not 0 < part <= 1:
        raise config.refusal("partial_rotary_factor", part, "a part of a head, from 0 to 1")
    biases: list[Bias] = ["qkv", "o"] if config.switch("attention_bias", True) else []
    turned = int(min(d_head, LARGEST) * part)  # a whole number can be beyond every float
    optional = {"eps": ("layer_norm_eps", 1e-5), "parallel": ("use_parallel_residual", True)}
    chosen = {"positions": "rotary", "rotary_dim": turned, "rotary_base": theta, "biases": (*biases, "mlp", "norm")}
    return _usual(config, longest=2048, tied=False, activation="gelu", optional=optional, **chosen)


def bert_config(config: ForeignConfig) -> TransformerConfig:
    """BERT's: bidirectional, post-norm, the embedding normalised too."""
    config.require(is_decoder=False, is_causal=False, add_cross_attention=False)
    if config.get("position_embedding_type") is not None:
        config.require(position_embedding_type="absolute")
    optional = {"eps": ("layer_norm_eps", 1e-12), "n_token_types": ("type_vocab_size", 2)}
    chosen = {"norm_position": "post", "causal": False, "embed_norm": True, "prediction_head": True}
    return _usual(config, longest=512, tied=True, activation="gelu", optional=optional, **chosen)


def bert_head(take: Taker, config: TransformerConfig) -> Parameters:
    """The head that predicts masked tokens, and what BERT adds to the embedding."""
    body = take.prefix(BERT.prefix, BERT.embed)
    kinds, d_model, dense = config.n_token_types, config.d_model, f"{BERT_HEAD}.transform.dense"
    _require_head(take, f"{dense}.weight", tied=False)
    if kinds:
        yield "token_type_embed.W_token_type", take(f"{body}embeddings.token_type_embeddings.weight", kinds, d_model)
    yield from norm(take, f"{body}embeddings.LayerNorm", "ln_embed", config)
    yield "ln_final.W", take(f"{dense}.weight", d_model, d_model).T
    yield "ln_final.b", take(f"{dense}.bias", d_model)
    yield from norm(take, f"{BERT_HEAD}.transform.LayerNorm", "ln_final.ln", config)
    # The decoder's bias is kept under one or both of two names; where both are there, the decoder's is added.
    names = [name for name in (f"{BERT_HEAD}.decoder.bias", f"{BERT_HEAD}.bias") if name in take]
    biases = [take(name, config.d_vocab) for name in names or [f"{BERT_HEAD}.bias"]]
    yield "unembed.b_U", biases[0]


NEOX_BUFFERS = re.compile(r"\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)$")
BERT_OTHERS = re.compile(r"(^|\.)pooler\.|(^|\.)cls\.seq_relationship\.|(^|\.)embeddings\.position_ids$")
"""What says nothing about tokens: the pooler and the head for the next sentence."""
FAMILIES = {
    "gpt2": Family("GPT-2", gpt2_config, GPT2, tokenizers.GPT2, MASKS),
    "openai-gpt": Family("GPT-1", gpt1_config, GPT1, tokenizers.GPT1, MASKS),
    "llama": Family("Llama", llama_config, LLAMA, tokenizers.LLAMA, FREQUENCIES),
    "mistral": Family("Mistral", mistral_config, LLAMA, tokenizers.LLAMA, FREQUENCIES),
    "qwen2": Family("Qwen 2", qwen2_config, LLAMA, tokenizers.QWEN2, FREQUENCIES),
    "gpt_neox": Family("GPT-NeoX", neox_config, NEOX, tokenizers.GPT2, NEOX_BUFFERS, unembed_before="embed_out.weight"),
    "bert": Family("BERT", bert_config, BERT, tokenizers.BERT, BERT_OTHERS, head=bert_head),
}


def family_of(fields: Mapping[str, Any], source: str) -> Family:
    """The family that a config names; one that is not known here raises, and the nearest one is named."""
    kind = fields.get("model_type") or fields.get("architecture")
    if isinstance(kind, str) and kind in FAMILIES:
        return FAMILIES[kind]
    known = ", ".join(FAMILIES)
    if not kind:
        raise LoadError(f"{source}: its config.json names no model_type; expected one of {known}")
    nearest = get_close_matches(shown(kind), [*FAMILIES, ARCHITECTURE], n=1, cutoff=0)[0]
    raise LoadError(
        f"{source}: architecture {shown(kind)} is not known here; the nearest that is, is {nearest!r} (of {known}); "
        "load_model('bridge:NAME') takes what TransformerLens knows, by its name on the hub"
    )
