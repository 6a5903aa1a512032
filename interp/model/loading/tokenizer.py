"""The tokenizer beside the weights: ``tokenizer.json``, its family's older files, or llama2.c's. No code is run.

llama2.c's ``tokenizer.bin`` holds every token's score and text. It encodes a text so: a space in front, a token for
each character (an unknown one becomes its bytes), then repeatedly the two neighbours that make the token with the best
score are joined. Byte-pair encoding does the same with a list of pairs, so all pairs that make a token are listed by
its score. Where two overlapping pairs make the same token, llama2.c takes the left one, byte-pair encoding the one
listed first.
"""

import math
import struct
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import transformers
from tokenizers import Tokenizer, decoders, normalizers
from tokenizers.models import BPE
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from interp.errors import LoadError
from interp.model.loading.tensors import read_json

TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True)
class Vocabulary:
    """How a family kept its tokenizer before there was ``tokenizer.json``, and what its ends are called."""

    files: tuple[str, ...]  # what is read
    kind: Any  # the class of transformers' own that reads it
    # the tokens that stand before and after a text where the files name none: the defaults of the family's own class.
    # None where it has none
    ends: tuple[str, str] | None = None


GPT2 = Vocabulary(("vocab.json", "merges.txt"), transformers.GPT2Tokenizer, (END_OF_TEXT, END_OF_TEXT))
GPT1 = Vocabulary(("vocab.json", "merges.txt"), transformers.OpenAIGPTTokenizer)
QWEN2 = Vocabulary(("vocab.json", "merges.txt"), transformers.Qwen2Tokenizer)
OPT = Vocabulary(("vocab.json", "merges.txt"), transformers.GPT2Tokenizer, ("</s>", "</s>"))
BERT = Vocabulary(("vocab.txt",), transformers.BertTokenizer, ("[CLS]", "[SEP]"))
LLAMA = Vocabulary(("tokenizer.model",), transformers.LlamaTokenizer, ("<s>", "</s>"))
FILES = (TOKENIZER, CONFIG, "special_tokens_map.json", *GPT2.files, *BERT.files, *LLAMA.files)


def holds_tokenizer(folder: Path, vocabulary: Vocabulary = GPT2) -> bool:
    """Whether a folder has a tokenizer that can be read."""
    return (folder / TOKENIZER).is_file() or all((folder / name).is_file() for name in vocabulary.files)


def load_tokenizer(folder: Path, vocabulary: Vocabulary = GPT2) -> PreTrainedTokenizerBase | None:
    """The fast tokenizer of a checkpoint folder, or None where it has none. No code of the folder's is run."""
    if not holds_tokenizer(folder, vocabulary):
        return None
    whole = (folder / TOKENIZER).is_file()
    # a tokenizer may be more than its vocabulary: what its code does is in no file that is read here
    has_code = (folder / CONFIG).is_file() and "auto_map" in read_json(folder / CONFIG)
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


LONGEST = 1_024
"""Bytes of a token: each place where one can be cut in two is tried."""
BOS, EOS = "<s>", "</s>"
"""Tokens 1 and 2, which the file writes with a line break on either side."""


def tokenizer_beside(path: Path, d_vocab: int) -> PreTrainedTokenizerFast | None:
    """The tokenizer beside the model in `path`: ``tok512.bin``, as of a vocabulary of its own, or ``tokenizer.bin``."""
    names = (f"tok{d_vocab}.bin", "tokenizer.bin")
    beside = next((path.parent / name for name in names if (path.parent / name).is_file()), None)
    return None if beside is None else read_tokenizer_bin(beside, d_vocab)


def read_tokenizer_bin(path: Path, d_vocab: int) -> PreTrainedTokenizerFast:
    """The tokenizer in `path`."""
    pieces, scores = _read(path)
    if len(pieces) < 3:
        raise LoadError(
            f"{path}: expected at least three tokens (unknown, BOS and EOS), got {len(pieces)}; export it again"
        )
    if len(pieces) != d_vocab:
        raise LoadError(
            f"{path}: {len(pieces)} tokens, but the model's vocabulary has {d_vocab}; "
            f"put its own tokenizer beside it, as tok{d_vocab}.bin, or give load_model(..., tokenizer=...)"
        )
    pieces[1:3] = [BOS, EOS]
    vocabulary: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        vocabulary.setdefault(piece, index)
    pairs = _pairs(vocabulary, scores)
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=pairs, unk_token=pieces[0], byte_fallback=True))
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special = {"bos_token": BOS, "eos_token": EOS, "unk_token": pieces[0]}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **special)


def _read(path: Path) -> tuple[list[str], list[float]]:
    """The tokens' texts and scores, in the order of their ids."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LoadError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    pieces: list[str] = []
    scores: list[float] = []
    at = 4  # behind the length of the longest
    while at < len(content):
        token = f"{path}: token {len(pieces)}"
        if at + 8 > len(content) or at + 8 + (length := struct.unpack_from("<I", content, at + 4)[0]) > len(content):
            raise LoadError(f"{path}: ends in the middle of token {len(pieces)}; fetch or export it again")
        if length > LONGEST:
            raise LoadError(f"{token}: expected at most {LONGEST:,} bytes, got {length:,}; fetch it again")
        scores.append(struct.unpack_from("<f", content, at)[0])
        if not math.isfinite(scores[-1]):
            raise LoadError(f"{token}: expected a number as its score, got {scores[-1]}; fetch it again")
        try:
            pieces.append(content[at + 8 : at + 8 + length].decode())
        except UnicodeDecodeError as error:
            raise LoadError(f"{token} is no UTF-8 text; fetch or export it again") from error
        at += 8 + length
    return pieces, scores


def _pairs(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """All pairs of tokens that make a token, those with the best score first."""
    found = (
        (piece[:cut], piece[cut:])
        for piece in sorted(vocabulary, key=lambda piece: -scores[vocabulary[piece]])
        for cut in range(1, len(piece))
    )
    return [(left, right) for left, right in found if left in vocabulary and right in vocabulary]
