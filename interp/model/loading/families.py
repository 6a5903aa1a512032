"""Which architectures of Hugging Face are known here, and how is each read? One file a family; this is the table."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError, shown
from interp.model.config import TransformerConfig
from interp.model.loading import (
    huggingface_bert,
    huggingface_gpt1,
    huggingface_gpt2,
    huggingface_llama,
    huggingface_neox,
    tokenizer_files,
)
from interp.model.loading.build import Checkpoint
from interp.model.loading.fields import ForeignConfig
from interp.model.loading.layers import Parameters
from interp.model.loading.native import ARCHITECTURE
from interp.model.loading.taker import Taker
from interp.model.loading.tokenizer_files import Vocabulary


@dataclass(frozen=True)
class Family:
    """How checkpoints of one ``model_type`` are read.

    Attributes:
        name: What people call it.
        config: Makes our config of its own.
        weights: Makes our parameters of its tensors.
        vocabulary: What its tokenizer's older files are, and what its ends are called.
        left_out: Names of tensors that are no weights of a language model.
    """

    name: str
    config: Callable[[ForeignConfig], TransformerConfig]
    weights: Callable[[Taker, TransformerConfig], Parameters]
    vocabulary: Vocabulary
    left_out: re.Pattern[str] | None = None

    def checkpoint(
        self,
        fields: Mapping[str, Any],
        read: Callable[[], Mapping[str, Tensor]],
        source: str,
        tokenizer: PreTrainedTokenizerBase | None,
    ) -> Checkpoint:
        """A checkpoint of this family; its config is checked, and the tensors are not read yet.

        Raises:
            LoadError: The config asks for what is not supported.
        """
        config = self.config(ForeignConfig(fields, source, self.name))
        return Checkpoint(source, self.name, config, read, self.weights, tokenizer, self.left_out)


FAMILIES = {
    "gpt2": Family(
        "GPT-2",
        huggingface_gpt2.gpt2_config,
        huggingface_gpt2.gpt2_weights,
        tokenizer_files.GPT2,
        huggingface_gpt2.MASKS,
    ),
    "openai-gpt": Family(
        "GPT-1",
        huggingface_gpt1.gpt1_config,
        huggingface_gpt1.gpt1_weights,
        tokenizer_files.GPT1,
        huggingface_gpt2.MASKS,
    ),
    "llama": Family(
        "Llama",
        huggingface_llama.llama_config,
        huggingface_llama.llama_weights,
        tokenizer_files.LLAMA,
        huggingface_llama.FREQUENCIES,
    ),
    "mistral": Family(
        "Mistral",
        huggingface_llama.mistral_config,
        huggingface_llama.llama_weights,
        tokenizer_files.LLAMA,
        huggingface_llama.FREQUENCIES,
    ),
    "qwen2": Family(
        "Qwen 2",
        huggingface_llama.qwen2_config,
        huggingface_llama.llama_weights,
        tokenizer_files.QWEN2,
        huggingface_llama.FREQUENCIES,
    ),
    "gpt_neox": Family(
        "GPT-NeoX",
        huggingface_neox.neox_config,
        huggingface_neox.neox_weights,
        tokenizer_files.GPT2,
        huggingface_neox.LEFT_OUT,
    ),
    "bert": Family(
        "BERT",
        huggingface_bert.bert_config,
        huggingface_bert.bert_weights,
        tokenizer_files.BERT,
        huggingface_bert.LEFT_OUT,
    ),
}


def family_of(fields: Mapping[str, Any], source: str) -> Family:
    """The family that a config names.

    Raises:
        LoadError: It is not known here; the nearest one that is, is named.
    """
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
