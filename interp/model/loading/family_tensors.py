"""Where each family of Hugging Face keeps its weights."""

from dataclasses import replace

from interp.model.loading.layout import ExpertLayout, Layout

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
QWEN3 = replace(LLAMA, qk_norm=("self_attn.q_norm", "self_attn.k_norm"))
STACKED = ExpertLayout("mlp.gate", ("mlp.experts.gate_up_proj",), "mlp.experts.down_proj", "x (two m) d")
"""As transformers keeps experts since version 5; files have them one by one."""
MIXTRAL_EXPERT = "block_sparse_moe.experts.{}.w"
MIXTRAL_FILES = ExpertLayout(
    "block_sparse_moe.gate", (f"{MIXTRAL_EXPERT}1", f"{MIXTRAL_EXPERT}3"), f"{MIXTRAL_EXPERT}2"
)
QWEN_EXPERT = "mlp.experts.{}."
QWEN_FILES = ExpertLayout("mlp.gate", (f"{QWEN_EXPERT}gate_proj", f"{QWEN_EXPERT}up_proj"), f"{QWEN_EXPERT}down_proj")
MIXTRAL = replace(LLAMA, experts=(STACKED, MIXTRAL_FILES))
QWEN3_MOE = replace(QWEN3, experts=(STACKED, QWEN_FILES))
GPT_OSS_EXPERTS = ExpertLayout(
    "mlp.router", ("mlp.experts.gate_up_proj",), "mlp.experts.down_proj", "x d (m two)", "x m d"
)
GPT_OSS = replace(LLAMA, sinks="self_attn.sinks", experts=(GPT_OSS_EXPERTS,))
GEMMA = replace(LLAMA, norms_from_zero=True)
GEMMA2 = replace(
    GEMMA,
    ln2="pre_feedforward_layernorm",
    ln1_post="post_attention_layernorm",
    ln2_post="post_feedforward_layernorm",
)
GEMMA3 = replace(GEMMA2, qk_norm=QWEN3.qk_norm)
OLMO = replace(LLAMA, ln1=None, ln2=None, ln_final=None)
OLMO2 = replace(QWEN3, ln1=None, ln2=None, ln1_post=GEMMA2.ln1_post, ln2_post=GEMMA2.ln2_post)
PHI3 = replace(LLAMA, qkv="self_attn.qkv_proj", mlp=("mlp.gate_up_proj", "mlp.down_proj"))
SAME = ("post_attention_layernorm",)
"""The norm of the MLP where it may be that of attention."""
STABLELM = replace(LLAMA, ln2=SAME)
PHI = replace(
    STABLELM, unembed_bias="lm_head.bias", o="self_attn.dense", mlp=("mlp.fc1", "mlp.fc2"), ln_final="final_layernorm"
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
BLOOM = replace(
    NEOX,
    prefix="transformer.",
    embed="word_embeddings.weight",
    ln_embed="word_embeddings_layernorm",
    blocks="h",
    qkv="self_attention.query_key_value",
    o="self_attention.dense",
    ln_final="ln_f",
)
FALCON = replace(BLOOM, ln_embed=None, ln1=("input_layernorm", "ln_attn"), ln2=(*SAME, "ln_mlp"))
GPTJ = replace(
    GPT2,
    qkv=("attn.q_proj", "attn.k_proj", "attn.v_proj"),
    o="attn.out_proj",
    unembed_bias="lm_head.bias",
    ln2=("ln_2",),
    mlp=("mlp.fc_in", "mlp.fc_out"),
    pos=None,
    conv1d=False,
    neighbours=True,
)
GPT_NEO = replace(
    GPT2,
    qkv=("attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj"),
    o="attn.attention.out_proj",
    conv1d=False,
)
OPT = replace(
    LLAMA,
    prefix="model.decoder.",
    pos="embed_positions.weight",
    unused_positions=2,
    ln1="self_attn_layer_norm",
    o="self_attn.out_proj",
    ln2="final_layer_norm",
    mlp=("fc1", "fc2"),
    ln_final="final_layer_norm",
)
BERT = Layout(
    prefix="bert.",
    embed="embeddings.word_embeddings.weight",
    ln_embed="embeddings.LayerNorm",
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
