"""Tokens and characters, tokens and words, and the positions of two prompts that mean the same.

1. The tokenizer is asked for the text without its own special tokens; those of ``special_tokens.py`` are added.
2. A token covers a span when it holds at least one of its characters. White space at a token's edges does not count,
   since tokenizers differ in whether a leading space is part of the word.
3. Words: a token belongs to the word whose characters it covers. Words that share a token (``don't`` as ``don`` and
   ``'t``) form one **unit** that can be looked at, but that no relation is scored on. Tokens of no word belong to no
   unit.
4. Prompts of two examples: what the task names in both (special tokens in front, related word, distractors, query, last
   token) corresponds, token by token where both have as many, else by the last token. The tokens between two
   neighbouring names correspond where the same two are neighbours in the other prompt with as many tokens between them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from transformers import PreTrainedTokenizerBase

from interp.errors import InputError, NotCarriedError, TaskError
from interp.special_tokens import special_around
from interp.tasks.example import Span
from interp.tasks.task import EncodedExample


@dataclass(frozen=True)
class TokenizedText:
    """A text in token ids, with the characters that each token came from."""

    text: str  # what was tokenized
    ids: tuple[int, ...]  # token ids, special tokens in front included
    # for each token the half-open range of characters of ``text``; empty for special tokens
    offsets: tuple[tuple[int, int], ...]
    n_before: int  # special tokens in front
    after: tuple[int, ...]  # special tokens that stand behind the text where it is complete

    def positions(self, span: Span) -> tuple[int, ...]:
        """Positions of the tokens that cover `span`, special tokens in front counted."""
        touching = [pos for pos, (start, stop) in enumerate(self.offsets) if start < span.stop and span.start < stop]
        inside = zip(touching, inked(self.text, [self.offsets[pos] for pos in touching]), strict=True)
        covering = tuple(pos for pos, (start, stop) in inside if max(start, span.start) < min(stop, span.stop))
        if not covering:
            raise InputError(
                f"no token covers characters {span.start} to {span.stop} ({span.of(self.text)!r}) of "
                f"{self.text!r}; expected a span inside the text that is not only white space"
            )
        return covering


def require_fast(tokenizer: object) -> PreTrainedTokenizerBase:
    """Give `tokenizer` back if it can say which characters its tokens came from."""
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
    """Tokenize `texts`, each with the special tokens that stand in front of it."""
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
    """Ids and offsets of each text's own tokens, of a fast tokenizer."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise TaskError(f"expected Unicode text, got half of a surrogate pair in {text!r}; read it anew") from error
    options: Any = {"add_special_tokens": False, "padding": False, "truncation": False, "verbose": False}
    try:
        rows = tokenizer(list(texts), return_offsets_mapping=True, **options)
    except Exception as error:  # tokenizers raises bare Exceptions, as where a word and [UNK] are unknown
        raise NotCarriedError(f"the tokenizer cannot encode the texts ({error})", "use another tokenizer") from error
    return [
        (tuple(ids), tuple((start, stop) for start, stop in offsets))
        for ids, offsets in zip(rows["input_ids"], rows["offset_mapping"], strict=True)
    ]


def inked(text: str, offsets: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The offsets without the white space at each token's edges."""
    found = []
    for start, stop in offsets:
        piece = text[start:stop]
        start += len(piece) - len(piece.lstrip())
        found.append((start, max(start, start + len(piece.strip()))))
    return tuple(found)


NONE = -1
SHARED = "shares a token with another word"
NO_TOKEN = "no token covers it"


@dataclass(frozen=True)
class WordTokens:
    """A row of tokens and the words that they spell."""

    ids: tuple[int, ...]  # token ids of the whole row, special tokens included
    unit_of_token: Int[np.ndarray, " pos"]  # the unit that each token belongs to; ``NONE`` for none
    # the word of each unit, in the text's order; ``NONE`` where several words share tokens
    word_of_unit: Int[np.ndarray, " unit"]
    unit_of_word: Int[np.ndarray, " word"]  # the unit of each word; ``NONE`` where it has none of its own
    unaligned: Mapping[str, int]  # how many words have no unit of their own, by the reason

    @property
    def n_units(self) -> int:
        """Units of the row."""
        return len(self.word_of_unit)


def align_words(
    text: str,
    spans: Sequence[Span],
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    around: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> WordTokens:
    """Find out which tokens each word is made of."""
    begins, ends = np.array(inked(text, offsets), dtype=np.int64).reshape(-1, 2).T
    places = np.array([(span.start, span.stop) for span in spans], dtype=np.int64).reshape(-1, 2, 1)
    words, tokens = np.nonzero(np.maximum(begins, places[:, 0]) < np.minimum(ends, places[:, 1]))
    n_words, n_nodes = len(spans), len(spans) + len(offsets)
    links = coo_array((np.ones(len(words)), (words, n_words + tokens)), shape=(n_nodes, n_nodes))
    groups = connected_components(links, directed=False)[1].tolist()
    of_word, of_token = groups[:n_words], groups[n_words:]
    unit = {group: number for number, group in enumerate(dict.fromkeys(of_word[word] for word in words))}
    size = Counter(of_word)
    own = [unit.get(group, NONE) if size[group] == 1 else NONE for group in of_word]
    before, after = ([NONE] * len(special) for special in around)
    return WordTokens(
        (*around[0], *ids, *around[1]),
        np.array([*before, *(unit.get(group, NONE) for group in of_token), *after], dtype=np.int64),
        np.array([of_word.index(group) if size[group] == 1 else NONE for group in unit], dtype=np.int64),
        np.array(own, dtype=np.int64),
        Counter(SHARED if group in unit else NO_TOKEN for group, at in zip(of_word, own, strict=True) if at == NONE),
    )


def corresponding(run: EncodedExample, source: EncodedExample) -> tuple[int, ...]:
    """For every position of `run`'s prompt, the one of `source`'s prompt that means the same; -1 where none does."""
    if len(run.prompt) == len(source.prompt):
        return tuple(range(len(run.prompt)))
    found = [NONE] * len(run.prompt)
    ours, theirs = spans(run), spans(source)
    both = [name for name in ours if name in theirs]
    for name in both:
        found_here = ours[name][-1:], theirs[name][-1:]
        if len(ours[name]) == len(theirs[name]):
            found_here = ours[name], theirs[name]
        for position, other in zip(*found_here, strict=True):
            found[position] = other
    ends, starts = ({ours[name][end]: theirs[name][end] for name in both} for end in (-1, 0))
    ends[-1] = -1  # what stands in front of a prompt
    stretches = set(fillers(source))
    for between in fillers(run):
        if between.start - 1 not in ends or between.stop not in starts:
            continue
        others = range(ends[between.start - 1] + 1, starts[between.stop])
        if len(between) == len(others) and others in stretches:
            found[between.start : between.stop] = others
            stretches.remove(others)
    return tuple(found)


def fillers(encoded: EncodedExample) -> Iterator[range]:
    """The stretches of a prompt in which the task names nothing; its beginning and the last token bound all."""
    named = sorted({-1, *(position for positions in spans(encoded).values() for position in positions)})
    for before, after in pairwise(named):
        if after - before > 1:
            yield range(before + 1, after)


def spans(encoded: EncodedExample) -> dict[str, tuple[int, ...]]:
    """What the task names in a prompt: where two names meet, the later one is the narrower."""
    last = len(encoded.prompt) - 1
    named = {"BOS": tuple(range(encoded.n_before)), **encoded.distractors, "related": encoded.related}
    if encoded.query is not None and encoded.query < last:
        named["query"] = (encoded.query,)
    named["last"] = (last,)
    return {name: positions for name, positions in named.items() if positions and max(positions) <= last}
