"""llama2.c's ``tokenizer.bin``, or ``tok512.bin``: every token's score and text, as a fast tokenizer.

llama2.c encodes a text so: a space in front, a token for each character (a character that is none becomes its bytes),
then, again and again, the two neighbours that make the token with the best score become that token. Byte-pair encoding
does the same with a list of pairs, best first, so all pairs that make a token are listed by its score. Where the same
token could be made of two pairs that overlap, such as ``ab a`` and ``a ba``, llama2.c takes the left one, and byte-pair
encoding the one that is listed first.
"""

import math
import struct
from pathlib import Path

from tokenizers import Tokenizer, decoders, normalizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from interp.errors import LoadError

TOKENIZER_BIN = "tokenizer.bin"
LONGEST = 1_024
"""Bytes of a token: each place where one can be cut in two is tried."""
BOS, EOS = "<s>", "</s>"
"""Tokens 1 and 2, which the file writes with a line break on either side."""


def tokenizer_beside(path: Path, d_vocab: int) -> PreTrainedTokenizerFast | None:
    """The tokenizer beside the model in `path`: ``tok512.bin``, as of a vocabulary of its own, or ``tokenizer.bin``."""
    names = (own_name(d_vocab), TOKENIZER_BIN)
    beside = next((path.parent / name for name in names if (path.parent / name).is_file()), None)
    return None if beside is None else read_tokenizer_bin(beside, d_vocab)


def own_name(d_vocab: int) -> str:
    """What llama2.c calls the tokenizer of a vocabulary of that size which it trained itself."""
    return f"tok{d_vocab}.bin"


def read_tokenizer_bin(path: Path, d_vocab: int) -> PreTrainedTokenizerFast:
    """The tokenizer in `path`.

    Args:
        path: llama2.c's file.
        d_vocab: How many tokens the model has: the file does not say.

    Raises:
        LoadError: The file ends too soon, has another number of tokens, or holds what is no text or no score.
    """
    pieces, scores = _read(path)
    if len(pieces) < 3:
        raise LoadError(
            f"{path}: expected at least three tokens (unknown, BOS and EOS), got {len(pieces)}; export it again"
        )
    if len(pieces) != d_vocab:
        raise LoadError(
            f"{path}: {len(pieces)} tokens, but the model's vocabulary has {d_vocab}; "
            f"put its own tokenizer beside it, as {own_name(d_vocab)}, or give load_model(..., tokenizer=...)"
        )
    pieces[1:3] = [BOS, EOS]
    vocabulary: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        vocabulary.setdefault(piece, index)
    tokenizer = Tokenizer(
        BPE(vocab=vocabulary, merges=_pairs(vocabulary, scores), unk_token=pieces[0], byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        unk_token=pieces[0],
        clean_up_tokenization_spaces=False,
    )


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
        if at + 8 > len(content) or at + 8 + (length := struct.unpack_from("<I", content, at + 4)[0]) > len(content):
            raise LoadError(f"{path}: ends in the middle of token {len(pieces)}; fetch or export it again")
        if length > LONGEST:
            raise LoadError(
                f"{path}: token {len(pieces)}: expected at most {LONGEST:,} bytes, got {length:,}; fetch it anew"
            )
        scores.append(struct.unpack_from("<f", content, at)[0])
        if not math.isfinite(scores[-1]):
            raise LoadError(
                f"{path}: token {len(pieces)}: expected a number as its score, got {scores[-1]}; fetch it anew"
            )
        try:
            pieces.append(content[at + 8 : at + 8 + length].decode())
        except UnicodeDecodeError as error:
            raise LoadError(f"{path}: token {len(pieces)} is no UTF-8 text; fetch or export it again") from error
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
