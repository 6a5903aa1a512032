"""The families of Hugging Face that are known here: one table, by ``model_type``.

A row says where the weights are (``family_tensors.py``), what the config means (``family_configs.py``), and what the
tokenizer's older files are. The loader, the documentation's table and the tests derive from it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import pandas as pd
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError, shown
from interp.model.config import TransformerConfig
from interp.model.loading import family_configs as configs
from interp.model.loading import family_tensors as at
from interp.model.loading import tokenizer as tokenizers
from interp.model.loading.foreign import ForeignConfig
from interp.model.loading.layout import Layout, norm
from interp.model.loading.native import ARCHITECTURE
from interp.model.loading.tensors import Checkpoint, Parameters, Taker
from interp.model.loading.tokenizer import Vocabulary

OTHER_TENSORS = ("score.weight", "classifier.weight", "qa_outputs.weight")
"""What transformers writes of heads that classify texts or words, or answer questions."""
NEOX_BUFFERS = re.compile(r"\.(attention|self_attention)\.(bias|masked_bias|rotary_emb\.inv_freq)$")
GPT_BUFFERS = re.compile(r"\.attn(\.attention)?\.(bias|masked_bias)$|^multiple_choice_head\.")
FREQUENCIES = re.compile(r"\.rotary_emb\.inv_freq$")
BERT_OTHERS = re.compile(r"(^|\.)pooler\.|(^|\.)cls\.seq_relationship\.|(^|\.)embeddings\.position_ids$")
"""What says nothing about tokens: the pooler and the head for the next sentence."""


@dataclass(frozen=True)
class Family:
    """How checkpoints of one ``model_type`` are read."""

    name: str  # what people call it
    about: str  # what its models have that GPT-2's and Llama's have not
    config: Callable[[ForeignConfig], TransformerConfig]  # makes our config of its own
    layout: Layout  # where its weights are
    vocabulary: Vocabulary  # what its tokenizer's older files are, and what its ends are called
    left_out: re.Pattern[str] = FREQUENCIES  # names of tensors that are no weights of a language model
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


def bert_head(take: Taker, config: TransformerConfig) -> Parameters:
    """The head that predicts masked tokens, and what BERT adds to the embedding."""
    body = take.prefix(at.BERT.prefix, at.BERT.embed)
    kinds, d_model, dense = config.n_token_types, config.d_model, f"{at.BERT_HEAD}.transform.dense"
    _require_head(take, f"{dense}.weight", tied=False)
    if kinds:
        yield "token_type_embed.W_token_type", take(f"{body}embeddings.token_type_embeddings.weight", kinds, d_model)
    yield "ln_final.W", take(f"{dense}.weight", d_model, d_model).T
    yield "ln_final.b", take(f"{dense}.bias", d_model)
    yield from norm(take, f"{at.BERT_HEAD}.transform.LayerNorm", "ln_final.ln", config)
    # The decoder's bias is kept under one or both of two names; where both are there, the decoder's is added.
    names = [name for name in (f"{at.BERT_HEAD}.decoder.bias", f"{at.BERT_HEAD}.bias") if name in take]
    biases = [take(name, config.d_vocab) for name in names or [f"{at.BERT_HEAD}.bias"]]
    yield "unembed.b_U", biases[0]


FAMILIES = {
    "gpt2": Family("GPT-2", "", configs.gpt2, at.GPT2, tokenizers.GPT2, GPT_BUFFERS),
    "openai-gpt": Family("GPT-1", "the stream is normalised", configs.gpt1, at.GPT1, tokenizers.GPT1, GPT_BUFFERS),
    "llama": Family("Llama", "positions stretched in any of its ways", configs.llama, at.LLAMA, tokenizers.LLAMA),
    "mistral": Family("Mistral", "windows", configs.mistral, at.LLAMA, tokenizers.LLAMA),
    "mixtral": Family("Mixtral", "experts; windows", configs.mixtral, at.MIXTRAL, tokenizers.LLAMA),
    "qwen2": Family("Qwen 2", "windows", configs.qwen2, at.LLAMA, tokenizers.QWEN2),
    "qwen3": Family("Qwen 3", "norms of queries and keys by head", configs.qwen3, at.QWEN3, tokenizers.QWEN2),
    "qwen3_moe": Family(
        "Qwen 3 MoE", "norms of queries and keys by head; experts", configs.qwen3_moe, at.QWEN3_MOE, tokenizers.QWEN2
    ),
    "gemma": Family(
        "Gemma",
        "scaled embedding; norms multiply by 1 + w, which is kept as one weight",
        configs.gemma,
        at.GEMMA,
        tokenizers.LLAMA,
    ),
    "gemma2": Family(
        "Gemma 2",
        "Gemma's; norms of what is written; caps of scores and logits; windows in every other layer",
        configs.gemma2,
        at.GEMMA2,
        tokenizers.LLAMA,
    ),
    "gemma3_text": Family(
        "Gemma 3",
        "Gemma 2's without caps; norms of queries and keys by head; positions of their own in layers with a window",
        configs.gemma3,
        at.GEMMA3,
        tokenizers.LLAMA,
    ),
    "olmo": Family("OLMo", "LayerNorm without weights", configs.olmo, at.OLMO, tokenizers.GPT2),
    "olmo2": Family(
        "OLMo 2",
        "norms of what is written alone; of all queries, and keys, as one vector",
        configs.olmo2,
        at.OLMO2,
        tokenizers.GPT2,
    ),
    "olmo3": Family("OLMo 3", "OLMo 2's; windows in three of four layers", configs.olmo3, at.OLMO2, tokenizers.GPT2),
    "phi": Family(
        "Phi", "attention and MLP side by side, with one norm; a bias of logits", configs.phi, at.PHI, tokenizers.GPT2
    ),
    "phi3": Family(
        "Phi 3",
        "positions stretched by LongRoPE are read up to the trained length",
        configs.phi3,
        at.PHI3,
        tokenizers.LLAMA,
    ),
    "stablelm": Family("StableLM", "a quarter of each head turns", configs.stablelm, at.STABLELM, tokenizers.GPT2),
    "gpt_oss": Family(
        "gpt-oss",
        "sinks; experts with clamped gates; windows in every other layer; 4-bit weights are refused",
        configs.gpt_oss,
        at.GPT_OSS,
        tokenizers.GPT2,
    ),
    "gpt_neox": Family(
        "GPT-NeoX",
        "attention and MLP side by side; a part of each head turns (Pythia)",
        configs.neox,
        at.NEOX,
        tokenizers.GPT2,
        NEOX_BUFFERS,
        unembed_before="embed_out.weight",
    ),
    "gptj": Family(
        "GPT-J",
        "attention and MLP side by side, with one norm; neighbouring components turn, and are reordered",
        configs.gptj,
        at.GPTJ,
        tokenizers.GPT2,
        GPT_BUFFERS,
    ),
    "gpt_neo": Family(
        "GPT-Neo",
        "scores without a scale; windows in every other layer",
        configs.gpt_neo,
        at.GPT_NEO,
        tokenizers.GPT2,
        GPT_BUFFERS,
    ),
    "opt": Family("OPT", "two unused positions are left out", configs.opt, at.OPT, tokenizers.OPT),
    "bloom": Family(
        "BLOOM", "ALiBi; the embedding is normalised", configs.bloom, at.BLOOM, tokenizers.GPT2, NEOX_BUFFERS
    ),
    "falcon": Family(
        "Falcon",
        "one key head, or groups; those with ALiBi are refused",
        configs.falcon,
        at.FALCON,
        tokenizers.GPT2,
        NEOX_BUFFERS,
    ),
    "bert": Family(
        "BERT",
        "bidirectional; a head that predicts masked tokens",
        configs.bert,
        at.BERT,
        tokenizers.BERT,
        BERT_OTHERS,
        head=bert_head,
    ),
}
"""By the ``model_type`` in their configs."""


def families() -> pd.DataFrame:
    """The families of Hugging Face's checkpoints that are read into a model of ours.

    Returns:
        One row a family: ``family``, ``model_type`` (as configs name it), ``architecture`` (its class in
        ``transformers``) and ``about``, what its models have that others have not.

    Examples:
        >>> from interp.model.loading.huggingface import families
        >>> families().query("model_type == 'qwen3'")["architecture"].item()
        'Qwen3ForCausalLM'
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASSES

    rows = [
        (each.name, kind, "BertForMaskedLM" if kind == "bert" else CLASSES[kind], each.about)
        for kind, each in FAMILIES.items()
    ]
    return pd.DataFrame(rows, columns=["family", "model_type", "architecture", "about"])


def family_of(fields: Mapping[str, Any], source: str) -> Family:
    """The family that a config names; one that is not known here raises."""
    kind = fields.get("model_type")
    if isinstance(kind, str) and kind in FAMILIES:
        return FAMILIES[kind]
    kind = kind or fields.get("architecture")
    listed = "interp model families lists those that are"
    if not kind:
        raise LoadError(f"{source}: its config.json names no model_type, so nobody knows its architecture; {listed}")
    nearest = get_close_matches(shown(kind), [*FAMILIES, ARCHITECTURE], n=1)
    raise LoadError(
        f"{source}: architecture {shown(kind)} is not known here{f'; did you mean {nearest[0]!r}' if nearest else ''}; "
        f"{listed}; load_model('bridge:NAME') takes what TransformerLens knows, by its name on the hub"
    )
