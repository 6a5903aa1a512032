"""What a model reads at once: a sentence, or as much of its document as fits.

1. **Sentences**: each by itself, between the model's special tokens.
2. **Windows** of a document: whole sentences, joined by a space. Half of a window at most is what the window before it
   has read, so that the first words that look here have something before them. Each word looks in one window only.
3. A sentence that is longer than the context is left out, counted and named; no window reaches across it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain

from transformers import PreTrainedTokenizerBase

from interp.special_tokens import special_around
from interp.tasks.alignment import WordTokens, align_words, without_special
from interp.tasks.treebank import Document, Mention, Sentence, Word, joined


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
