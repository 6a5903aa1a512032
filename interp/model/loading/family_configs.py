"""What the config of each family of Hugging Face means: ours, made of theirs."""

from typing import Any

from interp.model.config import LARGEST, Activation, Bias, TransformerConfig
from interp.model.loading.foreign import ForeignConfig

GPT_BIASES: tuple[Bias, ...] = ("qkv", "o", "mlp", "norm")
CONTEXT = ("n_positions", "max_position_embeddings", "n_ctx")
"""What the longest prompt is called: by GPT-2, by ``transformers`` in general, and in old configs."""
GPT1_ACTIVATIONS: dict[str, Activation] = {"gelu": "gelu_new", "relu": "relu", "silu": "silu", "swish": "silu"}
"""GPT-1's own names: what it calls ``gelu`` is the tanh approximation."""
HIDDEN = {
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_model": "hidden_size",
    "d_vocab": "vocab_size",
}
"""Our names of the sizes, and those that most of Hugging Face's configs have for them."""


def gpt2(config: ForeignConfig) -> TransformerConfig:
    """GPT-2's."""
    config.require(scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    config.require(is_causal=True)
    longest = next((name for name in CONTEXT if name in config.fields), CONTEXT[0])
    inner = _neurons(config, "n_inner")
    return _gpt(config, (longest, 1024), config.activation("activation_function", "gelu_new"), **inner)


def gpt1(config: ForeignConfig) -> TransformerConfig:
    """GPT-1's: GPT-2's layers, post-norm, and so no norm before the unembedding."""
    act_fn = config.activation("afn", "gelu", GPT1_ACTIVATIONS)
    return _gpt(config, ("n_positions", 512), act_fn, norm_position="post")


def gptj(config: ForeignConfig) -> TransformerConfig:
    """GPT-J's: rotary positions in a part of each head, one norm for attention and MLP side by side."""
    inner = _neurons(config, "n_inner")
    rotary = {"positions": "rotary", **config.usual(rotary_dim="rotary_dim")}
    act_fn, biases = config.activation("activation_function", "gelu_new"), ("mlp", "norm", "unembed")
    tied = config.usual(tied="tie_word_embeddings")
    return _gpt(config, ("n_positions", 2048), act_fn, parallel=True, **rotary, **inner, **tied, biases=biases)


def _gpt(config: ForeignConfig, n_ctx: tuple[str, int], act_fn: Activation, **chosen: Any) -> TransformerConfig:
    optional = {"n_ctx": n_ctx, "eps": ("layer_norm_epsilon", 1e-5), "tied": ("tie_word_embeddings", True)}
    sizes = {**config.gpt_sizes(), **config.named(optional)}
    return config.transformer(**{**sizes, "act_fn": act_fn, "biases": GPT_BIASES, **chosen})


def _usual(config: ForeignConfig, *, eps: str | float, act: str = "hidden_act", **chosen: Any) -> TransformerConfig:
    """A config whose sizes have the names that most of Hugging Face's have; `eps` and `act` name two more fields."""
    config.require(is_causal=chosen.get("causal", True))
    named = {**HIDDEN, "d_mlp": "intermediate_size"}
    optional = {"n_ctx": "max_position_embeddings", "tied": "tie_word_embeddings"}
    if isinstance(eps, str):
        optional["eps"] = eps
    else:
        chosen["eps"] = eps
    sizes = config.named({ours: theirs for ours, theirs in named.items() if ours not in chosen})
    sizes |= config.usual(**{ours: theirs for ours, theirs in optional.items() if ours not in chosen})
    if "d_head" not in chosen:
        sizes["d_head"] = config.head_width("hidden_size", "num_attention_heads")
    if "act_fn" not in chosen:
        sizes["act_fn"] = config.activation(act, config.default(act))
    return config.transformer(**sizes, **chosen)


def llama(config: ForeignConfig, **chosen: Any) -> TransformerConfig:
    """Llama's: RMSNorm, rotary positions, grouped heads and SwiGLU; and of its descendants, which have `chosen` too.

    A config can ask for biases, heads of a width of their own, stretched positions, and a window.
    """
    attention = config.switch("attention_bias", bool(config.default("attention_bias")))
    asked: dict[str, bool] = {"qkv": attention, "o": attention, "mlp": config.switch("mlp_bias", False)}
    biases = {"biases": tuple(name for name, there in asked.items() if there)}
    usual = {"normalization": "RMS", "gated": True, "eps": "rms_norm_eps", **biases, **_head_dim(config)}
    rotary = {} if "positions" in chosen else _whole_heads(config, *config.rotary())
    shared = config.usual(n_kv_heads="num_key_value_heads")
    return _usual(config, **{**usual, **rotary, **shared, **config.windows(), **chosen})


def _neurons(config: ForeignConfig, name: str) -> dict[str, Any]:
    """The MLP's width, where the config says it."""
    return {} if config.get(name) is None else config.named({"d_mlp": name})


def _head_dim(config: ForeignConfig) -> dict[str, Any]:
    """The width of a head, where it is no share of the stream's."""
    found = config.usual(d_head="head_dim")
    return {} if found["d_head"] is None else found


def _whole_heads(config: ForeignConfig, rotary: dict[str, Any], part: Any) -> dict[str, Any]:
    """Rotary positions that turn whole heads; what else is refused."""
    if part not in (None, 1.0):
        raise config.refusal("partial_rotary_factor", part, 1.0)
    return rotary


def _part_of_heads(config: ForeignConfig, part: float, theta: str, name: str) -> dict[str, Any]:
    """Rotary positions that turn a part of each head: `part` of it, unless the config says otherwise."""
    rotary, given = config.rotary(theta, name)
    part = part if given is None else given
    if not isinstance(part, int | float) or not 0 < part <= 1:
        raise config.refusal("partial_rotary_factor", part, "a part of a head, from 0 to 1")
    d_head = _head_dim(config).get("d_head") or config.head_width("hidden_size", "num_attention_heads")
    return {**rotary, "rotary_dim": int(min(d_head, LARGEST) * part)}  # a whole number can be beyond every float


def mistral(config: ForeignConfig) -> TransformerConfig:
    """Mistral's, which has no biases."""
    return llama(config, biases=())


def qwen2(config: ForeignConfig) -> TransformerConfig:
    """Qwen 2's: queries, keys and values have biases."""
    return llama(config, biases=("qkv",))


def qwen3(config: ForeignConfig) -> TransformerConfig:
    """Qwen 3's: queries and keys are normalised by head."""
    return llama(config, qk_norm="by head")


def qwen3_moe(config: ForeignConfig) -> TransformerConfig:
    """Qwen 3's with experts, in every block."""
    config.require(decoder_sparse_step=1)
    if config.get("mlp_only_layers"):
        raise config.refusal("mlp_only_layers", config.get("mlp_only_layers"), [])
    sizes = config.usual(d_mlp="moe_intermediate_size", expert_weights_sum_to_1="norm_topk_prob")
    return llama(config, qk_norm="by head", **sizes, **_experts(config, "num_experts"))


def mixtral(config: ForeignConfig) -> TransformerConfig:
    """Mixtral's: Mistral's with experts."""
    return llama(config, biases=(), **_experts(config, "num_local_experts"))


def gpt_oss(config: ForeignConfig) -> TransformerConfig:
    """gpt-oss's: experts with biases and clamped gates, sinks, every other layer with a window, positions by YaRN."""
    config.require(hidden_act="silu", swiglu_alpha=1.702, swiglu_limit=7.0)
    if not config.switch("attention_bias", True):
        raise config.refusal("attention_bias", False, True)
    biases = ("qkv", "o", "mlp")
    rotary = _whole_heads(config, *config.rotary(filled=True))
    return llama(
        config, act_fn="swiglu_oai", sinks=True, biases=biases, **rotary, **_experts(config, "num_local_experts")
    )


def _experts(config: ForeignConfig, n: str) -> dict[str, Any]:
    return config.usual(n_experts=n, n_active_experts="num_experts_per_tok")


def gemma(config: ForeignConfig, **chosen: Any) -> TransformerConfig:
    """Gemma's: the embedding scaled; and of its successors, which have `chosen` too."""
    if config.get("use_bidirectional_attention"):
        raise config.refusal("use_bidirectional_attention", True, False)
    act_fn = "gelu_new" if config.get("hidden_act") == "gelu" else None  # an old name for the approximation
    act_fn = act_fn or config.activation("hidden_act", "gelu_pytorch_tanh")
    return llama(config, **{"act_fn": act_fn, "embed_scale": config.count("hidden_size") ** 0.5, **chosen})


def gemma2(config: ForeignConfig, **chosen: Any) -> TransformerConfig:
    """Gemma 2's: norms of what is written, caps, a scale of scores of its own, every other layer with a window."""
    caps = config.usual(score_cap="attn_logit_softcapping", logit_cap="final_logit_softcapping")
    (scalar,) = config.usual(score_scale="query_pre_attn_scalar").values()
    if not isinstance(scalar, int | float) or not 0 < scalar < LARGEST:
        raise config.refusal("query_pre_attn_scalar", scalar, "a number above 0")
    act_fn = config.activation("hidden_activation", "gelu_pytorch_tanh")
    own = {"norm_position": "sandwich", "score_scale": float(scalar) ** -0.5, "act_fn": act_fn}
    return gemma(config, **{**own, **caps, **chosen})


def gemma3(config: ForeignConfig) -> TransformerConfig:
    """Gemma 3's: Gemma 2's, with queries and keys normalised by head, and other positions in layers with a window."""
    config.require(attn_logit_softcapping=None)
    return gemma2(config, qk_norm="by head", **_by_kind_of_layer(config))


def _by_kind_of_layer(config: ForeignConfig) -> dict[str, Any]:
    """Rotary positions that are stretched, or have another base, in layers without a window only."""
    rotary = _whole_heads(config, *config.rotary(kind="full_attention"))
    local = _whole_heads(config, *config.rotary(kind="sliding_attention"))
    if set(local) != {"positions", "rotary_base"}:
        raise config.refusal("rope_parameters", config.get("rope_parameters"), "stretched in full_attention alone")
    return {**rotary, "local_rotary_base": local["rotary_base"]} if config.windows() else rotary


def olmo(config: ForeignConfig) -> TransformerConfig:
    """OLMo's: LayerNorm without weights."""
    if config.get("clip_qkv") is not None:
        raise config.refusal("clip_qkv", config.get("clip_qkv"), None)
    return llama(config, normalization="LN", eps=1e-5)


def olmo2(config: ForeignConfig) -> TransformerConfig:
    """OLMo 2's: norms of what is written alone, and of all queries, and keys, of a token as one vector."""
    return llama(config, norm_position="reordered", qk_norm="flat")


def olmo3(config: ForeignConfig) -> TransformerConfig:
    """OLMo 3's: OLMo 2's, three of four layers with a window."""
    return llama(config, norm_position="reordered", qk_norm="flat", **_by_kind_of_layer(config))


def phi3(config: ForeignConfig) -> TransformerConfig:
    """Phi 3's and 4's: a part of each head may turn."""
    return llama(config, biases=(), **_part_of_heads(config, 1.0, "rope_theta", "partial_rotary_factor"))


def phi(config: ForeignConfig) -> TransformerConfig:
    """Phi 1's and 2's: one norm for attention and MLP side by side, biases everywhere."""
    config.require(qk_layernorm=False)
    rotary = _part_of_heads(config, 0.5, "rope_theta", "partial_rotary_factor")
    shared, biases = config.usual(n_kv_heads="num_key_value_heads"), (*GPT_BIASES, "unembed")
    return _usual(config, eps="layer_norm_eps", parallel=True, biases=biases, **rotary, **shared)


def stablelm(config: ForeignConfig) -> TransformerConfig:
    """StableLM's: LayerNorm, and a quarter of each head turns."""
    config.require(qk_layernorm=False)
    biases = ("qkv", "norm") if config.switch("use_qkv_bias", False) else ("norm",)
    parallel = config.usual(parallel="use_parallel_residual")
    own = {"normalization": "LN", "eps": "layer_norm_eps", "biases": biases, **parallel}
    return llama(config, **own, **_part_of_heads(config, 0.25, "rope_theta", "partial_rotary_factor"))


def neox(config: ForeignConfig) -> TransformerConfig:
    """GPT-NeoX': rotary positions in a part of each head, attention and MLP side by side, untied."""
    biases = ("qkv", "o", "mlp", "norm") if config.switch("attention_bias", True) else ("mlp", "norm")
    parallel = config.usual(parallel="use_parallel_residual")
    rotary = _part_of_heads(config, 0.25, "rotary_emb_base", "rotary_pct")
    return _usual(config, eps="layer_norm_eps", biases=biases, **parallel, **rotary)


def bloom(config: ForeignConfig) -> TransformerConfig:
    """BLOOM's: ALiBi, and the embedding is normalised."""
    config.require(apply_residual_connection_post_layernorm=False)
    if config.get("slow_but_exact") and config.get("pretraining_tp", 1) != 1:  # leaves out the bias of attention
        raise config.refusal("slow_but_exact", True, False)
    longest = config.named({"n_ctx": ("seq_length", 2048)})
    own: dict[str, Any] = {"act_fn": "gelu_new", "biases": GPT_BIASES, "embed_norm": True}
    own |= {"d_mlp": 4 * config.count("hidden_size")}
    return _usual(config, eps="layer_norm_epsilon", positions="alibi", **own, **longest)


def falcon(config: ForeignConfig) -> TransformerConfig:
    """Falcon's: attention and MLP side by side, one key head for all or for a group; the first ones in sequence."""
    if config.switch("alibi", False):
        raise config.refusal("alibi", True, "False: its slopes are rounded to bfloat16")
    grouped = config.switch("new_decoder_architecture", False)
    shared = {} if grouped or not config.switch("multi_query", True) else {"n_kv_heads": 1}
    shared |= config.usual(n_kv_heads="num_kv_heads") if grouped else {}
    neurons = _neurons(config, "ffn_hidden_size") or {"d_mlp": 4 * config.count("hidden_size")}
    biases = ("qkv", "o", "mlp", "norm") if config.switch("bias", False) else ("norm",)
    own = {"parallel": grouped or config.switch("parallel_attn", True), "biases": biases, **shared, **neurons}
    rotary = _whole_heads(config, *config.rotary())
    return _usual(config, act="activation", eps="layer_norm_epsilon", **own, **rotary)


def gpt_neo(config: ForeignConfig) -> TransformerConfig:
    """GPT-Neo's: scores that are not scaled, every other layer with a window."""
    kinds = config.filled.attention_layers
    local = tuple(layer for layer, kind in enumerate(kinds) if kind == "local")
    window = {"local_layers": local, **config.usual(window="window_size")} if local else {}
    neurons = _neurons(config, "intermediate_size") or {"d_mlp": 4 * config.count("hidden_size")}
    own = {"scores": "dot", "biases": ("o", "mlp", "norm"), **window, **neurons}
    return _usual(config, act="activation_function", eps="layer_norm_epsilon", **own)


def opt(config: ForeignConfig) -> TransformerConfig:
    """OPT's."""
    config.require(do_layer_norm_before=True, enable_bias=True, layer_norm_elementwise_affine=True)
    config.require(_remove_final_layer_norm=False)
    if config.get("word_embed_proj_dim") is not None:
        config.require(word_embed_proj_dim=config["hidden_size"])
    own = {**config.named({"d_mlp": "ffn_dim"}), "eps": 1e-5, "biases": GPT_BIASES}
    return _usual(config, act="activation_function", **own)


def bert(config: ForeignConfig) -> TransformerConfig:
    """BERT's: bidirectional, post-norm, the embedding normalised too."""
    config.require(is_decoder=False, add_cross_attention=False)
    if config.get("position_embedding_type") is not None:
        config.require(position_embedding_type="absolute")
    own: dict[str, Any] = {"norm_position": "post", "causal": False, "embed_norm": True, "prediction_head": True}
    return _usual(config, eps="layer_norm_eps", **own, **config.usual(n_token_types="type_vocab_size"))
