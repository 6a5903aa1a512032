"""Which tokens of a tokenizer cover which characters of a text?

1. The tokenizer is asked for the text without its own special tokens; BOS is put in front by us,
   so that position 0 is the same token for every tokenizer. One that has no BOS lends its
   end-of-text or its ``[CLS]`` token instead, and the log says so.
2. A fast tokenizer reports the characters that each token came from. Byte-level tokenizers may
   count a word's leading space in or out, and SentencePiece may give the space a token of its
   own; so white space at a token's edges does not count.
3. A token covers a span when it holds at least one of the span's characters. Words of several
   tokens have several positions, in order.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from interp.errors import InputError, TaskError
from interp.tasks.example import Span

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TokenizedText:
    """A text in token ids, BOS first, with the characters that each token came from.

    Attributes:
        text: What was tokenized.
        ids: Token ids; ``ids[0]`` is BOS.
        offsets: For each token the half-open range of characters of ``text``; empty for BOS.
    """

    text: str
    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]

    def positions(self, span: Span) -> tuple[int, ...]:
        """Positions of the tokens that cover `span`, counted from BOS at position 0.

        Raises:
            InputError: No token covers any of the span's characters.
        """
        touching = [pos for pos, (start, stop) in enumerate(self.offsets) if start < span.stop and span.start < stop]
        covering = tuple(
            pos
            for pos, (start, stop) in zip(
                touching, inked(self.text, [self.offsets[pos] for pos in touching]), strict=True
            )
            if max(start, span.start) < min(stop, span.stop)
        )
        if not covering:
            raise InputError(
                f"no token covers characters {span.start} to {span.stop} ({span.of(self.text)!r}) of "
                f"{self.text!r}; expected a span inside the text that is not only white space"
            )
        return covering


def bos_token_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """The id of the token that goes in front of every text.

    BOS; where the tokenizer has none, its end-of-text token (as GPT-2 uses it) or its ``[CLS]``,
    with a warning in the log.

    Raises:
        TaskError: The tokenizer has none of the three.
    """
    if tokenizer.bos_token_id is not None:
        return int(tokenizer.bos_token_id)
    for name in ("eos_token", "cls_token"):
        token_id = getattr(tokenizer, f"{name}_id", None)
        if token_id is not None:
            logger.warning(
                "the tokenizer has no bos_token; its %s %r begins every text", name, getattr(tokenizer, name)
            )
            return int(token_id)
    raise TaskError(
        "the tokenizer has no token to begin a text with: expected a bos_token, eos_token or cls_token, "
        "got none of them; set tokenizer.bos_token"
    )


def require_fast(tokenizer: object) -> PreTrainedTokenizerBase:
    """Give `tokenizer` back if it can say which characters its tokens came from.

    Raises:
        TaskError: It is no tokenizer of ``transformers``, or one without offsets ("slow").
    """
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise TaskError(
            f"expected a transformers fast tokenizer, got {type(tokenizer).__name__}; pass tokenizer=model.tokenizer"
        )
    if not tokenizer.is_fast:
        raise TaskError(
            f"{type(tokenizer).__name__} is a slow tokenizer, which cannot say which characters its tokens "
            "came from; expected a fast one, as AutoTokenizer.from_pretrained(..., use_fast=True) gives"
        )
    return tokenizer


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[TokenizedText]:
    """Tokenize `texts`, each with BOS in front and no other special tokens.

    Raises:
        TaskError: The tokenizer is slow, or has no token to begin a text with.
    """
    require_fast(tokenizer)
    if not texts:
        return []
    bos = bos_token_id(tokenizer)
    return [
        TokenizedText(text, (bos, *ids), ((0, 0), *offsets))
        for text, (ids, offsets) in zip(texts, without_special(tokenizer, texts), strict=True)
    ]


def without_special(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> list[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]]:
    """Ids and offsets of each text's own tokens, of a fast tokenizer.

    Raises:
        TaskError: A text is no Unicode, or the tokenizer cannot encode it.
    """
    for text in texts:
        _require_unicode(text)
    options: Any = {"add_special_tokens": False, "padding": False, "truncation": False, "verbose": False}
    try:
        rows = tokenizer(list(texts), return_offsets_mapping=True, **options)
    except Exception as error:  # tokenizers raises bare Exceptions, as where a word and [UNK] are unknown
        raise TaskError(f"the tokenizer cannot encode the texts ({error}); use another tokenizer") from error
    return [
        (tuple(ids), tuple((start, stop) for start, stop in offsets))
        for ids, offsets in zip(rows["input_ids"], rows["offset_mapping"], strict=True)
    ]


def _require_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TaskError(f"expected Unicode text, got half of a surrogate pair in {text!r}; read it anew") from error


def special_around(tokenizer: PreTrainedTokenizerBase, *, both_sides: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens that stand before and after every text.

    Args:
        tokenizer: A fast one.
        both_sides: Whether they are the tokenizer's own (``[CLS]`` and ``[SEP]`` for an encoder), as far as it has any;
            else BOS alone.

    Raises:
        TaskError: The tokenizer has no token to begin a text with.
    """
    if both_sides:
        row = tokenizer("a", add_special_tokens=True, return_special_tokens_mask=True)
        ids, special = row["input_ids"], row["special_tokens_mask"]
        text = [number for number, each in enumerate(special) if not each]
        before, after = tuple(ids[: text[0]]), tuple(ids[text[-1] + 1 :])
        if before or after:
            return before, after
    return (bos_token_id(tokenizer),), ()


def inked(text: str, offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The offsets without the white space at each token's edges."""
    found = []
    for start, stop in offsets:
        piece = text[start:stop]
        start += len(piece) - len(piece.lstrip())
        found.append((start, max(start, start + len(piece.strip()))))
    return tuple(found)
