"""Tokens and characters, tokens and words, what a model reads at once, and what two prompts have in common.

1. The tokenizer is asked for the text without its own special tokens; those of ``special_tokens.py`` are added, but to
   a text in a chat template, which has its own.
2. A token covers a span when it holds at least one of its characters. White space at a token's edges does not count,
   since tokenizers differ in whether a leading space is part of the word.
3. Words: a token belongs to the word whose characters it covers. Words that share a token (``don't`` as ``don`` and
   ``'t``) form one **unit** that can be looked at, but that no relation is scored on. Tokens of no word belong to no
   unit.
4. A model reads a sentence by itself, or a window of its document: whole sentences, joined by a space. Half of a window
   at most is what the window before it has read, so that the first words that look here have something before them.
   Each word looks in one window only. A sentence that is longer than the context is left out, counted and named; no
   window reaches across it.
5. Prompts of two examples: what the task names in both (special tokens in front, related word, distractors, query, last
   token) corresponds, token by token where both have as many, else by the last token. The tokens between two
   neighbouring names correspond where the same two are neighbours in the other prompt with as many tokens between them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, pairwise
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
from interp.tasks.treebank import Document, Mention, Sentence, Word, joined


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


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, chat: bool = False) -> list[TokenizedText]:
    """Tokenize `texts`, with the special tokens in front of each; where it is a `chat` template's, they are there."""
    require_fast(tokenizer)
    if not texts:
        return []
    before, after = special_around(tokenizer)
    if chat:
        return [
            TokenizedText(text, ids, offsets, len(before) if ids[: len(before)] == before else 0, ())
            for text, (ids, offsets) in zip(texts, without_special(tokenizer, texts), strict=True)
        ]
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
        except UnicodeEncodeError as why:
            raise TaskError(f"expected Unicode text, got half of a surrogate pair in {text!r}; read it again") from why
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


@dataclass(frozen=True)
class Window:
    """Some sentences of a document as a row of tokens."""

    document: str  # the document's name
    sentences: tuple[Sentence, ...]  # they follow each other
    tokens: WordTokens  # their tokens
    mentions: tuple[Mention, ...] = ()  # those in these sentences; their sentences are numbered as in the window
    n_before: int = 0  # the first sentences, whose words have looked in another window and are only looked at here
    spoken_of: frozenset[str] = frozenset()  # entities that are mentioned in the document before the window
    # entities that are mentioned in it after the window, each with the part of speech of a mention's head
    to_come: frozenset[tuple[str, str]] = frozenset()

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """All words, one after the other."""
        return tuple(word for sentence in self.sentences for word in sentence.words)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The number of each sentence's first word."""
        return tuple(accumulate((len(each.words) for each in self.sentences[:-1]), initial=0))

    @property
    def first_query(self) -> int:
        """The first word that looks here."""
        return (*self.starts, len(self.words))[self.n_before]

    def start_of(self, word: int) -> int:
        """The first word of the sentence that a word stands in."""
        return max(start for start in self.starts if start <= word)

    def head_of(self, mention: Mention) -> int:
        """The number of a mention's head in the window."""
        return self.starts[mention.sentence] + mention.head


@dataclass
class Windows:
    """Cuts documents into what one model can read; counts what it cannot.

    Attributes:
        around: Special tokens before and after every text.
    """

    tokenizer: PreTrainedTokenizerBase  # a fast one
    n_ctx: int  # most tokens of a row, special ones included
    both_sides: bool  # whether the model reads a text from both sides, so that special tokens stand behind it, too
    # sentences longer than the context, by document and name, and their tokens
    too_long: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.around = special_around(self.tokenizer, both_sides=self.both_sides)
        self._room = self.n_ctx - sum(map(len, self.around))

    def sentences(self, document: Document) -> Iterator[Window]:
        """Each sentence by itself."""
        rows = without_special(self.tokenizer, [each.text for each in document.sentences])
        for number, (sentence, (ids, offsets)) in enumerate(zip(document.sentences, rows, strict=True)):
            if self._fits(document, sentence, len(ids)):
                spans = [word.span for word in sentence.words]
                tokens = align_words(sentence.text, spans, ids, offsets, self.around)
                yield Window(document.id, (sentence,), tokens, _mentions(document, number, number + 1))

    def documents(self, document: Document) -> Iterator[Window]:
        """The document in windows."""
        lengths = [len(ids) for ids, _ in without_special(self.tokenizer, [each.text for each in document.sentences])]
        fits = [self._fits(document, sentence, n) for sentence, n in zip(document.sentences, lengths, strict=True)]
        fresh = 0
        while fresh < len(lengths):
            if not fits[fresh]:
                fresh += 1
                continue
            first, stop = self._reach(lengths, fits, fresh)
            window = self._window(document, first, fresh, stop)
            yield window
            fresh += len(window.sentences) - window.n_before

    def _fits(self, document: Document, sentence: Sentence, n_tokens: int) -> bool:
        if n_tokens > self._room:
            self.too_long[f"{document.id}: {sentence.id}"] = n_tokens
        return n_tokens <= self._room

    def _reach(self, lengths: Sequence[int], fits: Sequence[bool], fresh: int) -> tuple[int, int]:
        """The first sentence of the window in which `fresh` looks, and the one after its last."""
        first, stop, before = fresh, fresh + 1, min(self._room // 2, self._room - lengths[fresh])
        while first and fits[first - 1] and sum(lengths[first - 1 : fresh]) <= before:
            first -= 1
        while stop < len(lengths) and fits[stop] and sum(lengths[first : stop + 1]) <= self._room:
            stop += 1
        return first, stop

    def _window(self, document: Document, first: int, fresh: int, stop: int) -> Window:
        """The sentences from `first` on, as many before `stop` as fit when they are joined."""
        while True:
            sentences = document.sentences[first:stop]
            text, spans = joined(sentences)
            ((ids, offsets),) = without_special(self.tokenizer, [text])
            if len(ids) <= self._room:
                break
            first, stop = (first, stop - 1) if stop > fresh + 1 else (first + 1, stop)
        spoken_of = frozenset(each.entity for each in document.mentions if each.sentence < first)
        later = (each for each in document.mentions if each.sentence >= stop)
        to_come = frozenset((each.entity, document.head_of(each).upos) for each in later)
        tokens = align_words(text, [*chain(*spans)], ids, offsets, self.around)
        inside = _mentions(document, first, stop)
        return Window(document.id, sentences, tokens, inside, fresh - first, spoken_of, to_come)


def _mentions(document: Document, first: int, stop: int) -> tuple[Mention, ...]:
    """The mentions in these sentences, numbered from the first of them."""
    inside = (each for each in document.mentions if first <= each.sentence < stop)
    return tuple(replace(each, sentence=each.sentence - first) for each in inside)


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
