"""Which tokens of a tokenizer cover which characters of a text?

1. The tokenizer is asked for the text without its own special tokens; those of ``special_tokens.py`` are put
   around it by us.
2. A fast tokenizer reports the characters that each token came from. Byte-level tokenizers may
   count a word's leading space in or out, and SentencePiece may give the space a token of its
   own; so white space at a token's edges does not count.
3. A token covers a span when it holds at least one of the span's characters. Words of several
   tokens have several positions, in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from interp.errors import InputError, NotCarriedError, TaskError
from interp.special_tokens import special_around
from interp.tasks.example import Span


@dataclass(frozen=True)
class TokenizedText:
    """A text in token ids, with the characters that each token came from.

    Attributes:
        text: What was tokenized.
        ids: Token ids, special tokens in front included.
        offsets: For each token the half-open range of characters of ``text``; empty for special tokens.
        n_before: Special tokens in front.
        after: Special tokens that stand behind the text where it is complete.
    """

    text: str
    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    n_before: int
    after: tuple[int, ...]

    def positions(self, span: Span) -> tuple[int, ...]:
        """Positions of the tokens that cover `span`, special tokens in front counted.

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
    """Tokenize `texts`, each with the special tokens that stand in front of it.

    Raises:
        TaskError: The tokenizer is slow, or cannot encode a text.
    """
    require_fast(tokenizer)
    if not texts:
        return []
    before, after = special_around(tokenizer)
    empty = ((0, 0),) * len(before)
    return [
        TokenizedText(text, (*before, *ids), (*empty, *offsets), len(before), after)
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
        raise NotCarriedError(f"the tokenizer cannot encode the texts ({error})", "use another tokenizer") from error
    return [
        (tuple(ids), tuple((start, stop) for start, stop in offsets))
        for ids, offsets in zip(rows["input_ids"], rows["offset_mapping"], strict=True)
    ]


def _require_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TaskError(f"expected Unicode text, got half of a surrogate pair in {text!r}; read it anew") from error


def inked(text: str, offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The offsets without the white space at each token's edges."""
    found = []
    for start, stop in offsets:
        piece = text[start:stop]
        start += len(piece) - len(piece.lstrip())
        found.append((start, max(start, start + len(piece.strip()))))
    return tuple(found)
