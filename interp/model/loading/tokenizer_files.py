"""Reading the tokenizer beside the weights: ``tokenizer.json``, or the older files of its family. No code is run."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from transformers import (
    AutoTokenizer,
    BertTokenizer,
    GPT2Tokenizer,
    LlamaTokenizer,
    OpenAIGPTTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Tokenizer,
)

from interp.errors import LoadError
from interp.model.loading.checkpoint import read_json

TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True)
class Vocabulary:
    """How a family kept its tokenizer before there was ``tokenizer.json``, and what its ends are called.

    Attributes:
        files: What is read.
        kind: The class of transformers' own that reads it.
        ends: The tokens that stand before and after a text where the files name none: the defaults of the family's
            own class. None where it has none.
    """

    files: tuple[str, ...]
    kind: Any
    ends: tuple[str, str] | None = None

    def lies_in(self, folder: Path) -> bool:
        """Whether the files are there."""
        return all((folder / name).is_file() for name in self.files)


GPT2 = Vocabulary(("vocab.json", "merges.txt"), GPT2Tokenizer, (END_OF_TEXT, END_OF_TEXT))
GPT1 = Vocabulary(("vocab.json", "merges.txt"), OpenAIGPTTokenizer)
QWEN2 = Vocabulary(("vocab.json", "merges.txt"), Qwen2Tokenizer)
BERT = Vocabulary(("vocab.txt",), BertTokenizer, ("[CLS]", "[SEP]"))
LLAMA = Vocabulary(("tokenizer.model",), LlamaTokenizer, ("<s>", "</s>"))
FILES = (TOKENIZER, CONFIG, "special_tokens_map.json", *GPT2.files, *BERT.files, *LLAMA.files)


def holds_tokenizer(folder: Path, vocabulary: Vocabulary = GPT2) -> bool:
    """Whether a folder has a tokenizer that can be read."""
    return (folder / TOKENIZER).is_file() or vocabulary.lies_in(folder)


def load_tokenizer(folder: Path, vocabulary: Vocabulary = GPT2) -> PreTrainedTokenizerBase | None:
    """The fast tokenizer of a checkpoint folder, or None where it has none. No code of the folder's is run.

    Args:
        folder: Where the files lie.
        vocabulary: The older files that take the place of ``tokenizer.json``.

    Raises:
        LoadError: Its files cannot be read, or it would need code of its own.
    """
    if not holds_tokenizer(folder, vocabulary):
        return None
    whole, has_code = (folder / TOKENIZER).is_file(), _has_code(folder)
    if has_code and not whole:
        raise LoadError(
            f"{folder / CONFIG}: the tokenizer needs code of its own ('auto_map'), which is not run; save it as "
            f"{TOKENIZER}, or give load_model(..., tokenizer=...)"
        )
    try:
        tokenizer = _as_transformers_does(folder) if whole and not has_code else None
        kind: Any = PreTrainedTokenizerFast if whole else vocabulary.kind
        if tokenizer is None:
            tokenizer = cast(PreTrainedTokenizerBase, kind.from_pretrained(folder, local_files_only=True))
        tokenizer.decode(tokenizer.encode("", add_special_tokens=False))  # some settings are looked at only then
        return tokenizer
    except Exception as error:  # tokenizers raises bare Exceptions
        raise LoadError(
            f"{folder}: the tokenizer's files cannot be read ({error}); fetch or save them again"
        ) from error


def name_ends(tokenizer: PreTrainedTokenizerBase, vocabulary: Vocabulary) -> None:
    """Give `tokenizer` its family's BOS and EOS where its files name none."""
    known = tokenizer.get_vocab()
    if vocabulary.ends is not None and all(each in known for each in vocabulary.ends):
        tokenizer.bos_token = tokenizer.bos_token or vocabulary.ends[0]
        tokenizer.eos_token = tokenizer.eos_token or vocabulary.ends[1]


def _has_code(folder: Path) -> bool:
    """Whether a tokenizer is more than its vocabulary: what its code does is in no file that is read here."""
    return (folder / CONFIG).is_file() and "auto_map" in read_json(folder / CONFIG)


def _as_transformers_does(folder: Path) -> PreTrainedTokenizerBase | None:
    """The tokenizer by the class that its config names, which may read ``tokenizer.json`` otherwise than it stands.

    None where transformers does not know the folder's model, where it cannot, or where that is a slow one.
    """
    config = folder / "config.json"
    if not config.is_file() or "model_type" not in read_json(config):
        return None
    try:
        found = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception:
        return None
    if not found.is_fast:
        warnings.warn(
            f"{folder / CONFIG}: transformers would read this tokenizer by {type(found).__name__}, which gives no "
            f"offsets, and maybe other ids; {TOKENIZER} is read as it stands",
            RuntimeWarning,
            stacklevel=6,
        )
        return None
    return found
