"""Which sentences show a relation to the eye? The first of a corpus, which nobody picked.

1. Of the first documents of the corpus, an example each. For what is read sentence by sentence: the last word that can
   be scored in the first sentence of ``READABLE`` words that has one. For what is read in windows: the first word that
   stands, with the nearest word that it should find, in sentences of ``MOST_SHOWN`` words at most. Whether a head is
   right there plays no part.
2. Where too few documents have such an example, the first that can be scored at all, cut to ``MOST_SHOWN`` words.

Words that share a token count as one, and are numbered so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from interp.methods.relations.items import items_of
from interp.tasks.corpus import Corpus
from interp.tasks.relations import Direction
from interp.tasks.treebank import Document
from interp.tasks.windows import Window, Windows
from interp.tasks.word_tokens import NONE

READABLE = range(6, 26)
MOST_SHOWN = 60


@dataclass(frozen=True)
class Example:
    """A word that looks and those that it should find, as numbers of units of a window."""

    window: Window
    query: int
    related: tuple[int, ...]

    @property
    def readable(self) -> bool:
        """Whether it can be shown whole, and is more than a few words."""
        n_shown = len(self._whole)
        return n_shown in READABLE if len(self.window.sentences) == 1 else n_shown <= MOST_SHOWN

    @property
    def shown(self) -> range:
        """The units from the nearest related word's sentence to the query's, as far as they are not too many."""
        whole = self._whole
        start = min(max(whole.start, self.query - MOST_SHOWN // 2), max(whole.stop - MOST_SHOWN, whole.start))
        return range(start, min(start + MOST_SHOWN, whole.stop))

    @property
    def sentence(self) -> str:
        """The name of the query's sentence."""
        return self.window.sentences[int(_sentence_of_unit(self.window)[self.query])].id

    @property
    def _whole(self) -> range:
        sentence = _sentence_of_unit(self.window)
        nearest = min(self.related, key=lambda each: abs(each - self.query))
        first, last = sorted((int(sentence[self.query]), int(sentence[nearest])))
        inside = np.flatnonzero((sentence >= first) & (sentence <= last))
        return range(int(inside[0]), int(inside[-1]) + 1)


@dataclass(frozen=True)
class Examples:
    """Finds examples in documents, cut as the model that was scored read them.

    Attributes:
        sentences: Cuts sentences.
        documents: Cuts windows of documents.
        causal: Whether only earlier words can be looked at.
    """

    sentences: Windows
    documents: Windows
    causal: bool

    def first(self, corpus: Corpus, wanted: Sequence[Direction], n_each: int) -> dict[Direction, list[Example]]:
        """The first readable examples of each direction, then the first others; of each document one."""
        readable: dict[Direction, list[Example]] = {each: [] for each in wanted}
        others: dict[Direction, list[Example]] = {each: [] for each in wanted}
        for document in corpus:
            missing = [each for each in wanted if len(readable[each]) < n_each]
            if not missing:
                break
            for direction, example in self._one_each(document, missing).items():
                (readable if example.readable else others)[direction].append(example)
        return {each: (readable[each] + others[each])[:n_each] for each in wanted}

    def _one_each(self, document: Document, wanted: Sequence[Direction]) -> dict[Direction, Example]:
        """One example of each direction, as far as the document has any."""
        found: dict[Direction, Example] = {}
        for direction, example in self._all(document, wanted):
            if direction not in found or (example.readable and not found[direction].readable):
                found[direction] = example
            if len(found) == len(wanted) and all(each.readable for each in found.values()):
                break
        return found

    def _all(self, document: Document, wanted: Sequence[Direction]) -> Iterator[tuple[Direction, Example]]:
        """All that can be scored, in order; of a sentence the last words first."""
        for context, cut in (("sentence", self.sentences.sentences), ("document", self.documents.documents)):
            own = [each for each in wanted if each.context == context]
            for window in cut(document) if own else ():
                items = items_of(window, own, causal=self.causal)
                numbers = range(len(items.query))
                for number in reversed(numbers) if context == "sentence" else numbers:
                    related = tuple(np.flatnonzero(items.related[number]).tolist())
                    yield own[items.direction[number]], Example(window, int(items.query[number]), related)


def _sentence_of_unit(window: Window) -> Int[np.ndarray, " unit"]:
    """The number of the sentence that each unit stands in."""
    words = window.tokens.word_of_unit.copy()
    for unit in np.flatnonzero(words == NONE):  # it follows the word before it
        words[unit] = words[unit - 1] + 1 if unit else 0
    return np.searchsorted(np.array(window.starts), words, side="right") - 1
