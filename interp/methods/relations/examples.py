"""Where the best head of a relation looks in real sentences: the first of a corpus, which nobody picked.

1. Of each direction the head that speaks for it (``RelationResult.best``); of ``MOST_HEADS`` directions at most.
2. Of the first documents an example each. For what is read sentence by sentence: the last word that can be scored in
   the first sentence of ``READABLE`` words that has one. For what is read in windows: the first word that stands, with
   the nearest word that it should find, in sentences of ``MOST_SHOWN`` words at most. Whether a head is right there
   plays no part.
3. Where too few documents have such an example, the first that can be scored at all, cut to ``MOST_SHOWN`` words.

Words that share a token count as one, and are numbered so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from interp.errors import InputError
from interp.methods.relations.scores import RelationResult
from interp.methods.relations.words import ReadingRow, WordAttention, items_of, read_words
from interp.model.devices import documented
from interp.report.relations_sentences import MAP_COLUMNS, leading
from interp.tasks.alignment import NONE, require_fast
from interp.tasks.corpus import Corpus, Documents
from interp.tasks.relations import Direction
from interp.tasks.treebank import Document
from interp.tasks.windows import Window, Windows

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
    """Finds examples in documents, cut into sentences and windows as the model that was scored read them."""

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


MOST_HEADS = 12


@documented
def relation_maps(model: Any, corpus: Documents | Corpus, result: RelationResult, n_sentences: int = 2) -> pd.DataFrame:
    """Attention of each relation's best head in a few sentences.

    Args:
        model: The one that was scored.
        corpus: What it was scored on.
        result: Of ``interp.attend``.
        n_sentences: Examples for each direction, of as many documents.

    Returns:
        One row per example and word that is shown: ``relation``, ``looks``, ``layer``, ``head``, ``rank`` (of the
        direction, from 0), ``document``, ``sentence`` (of the query), ``query`` and ``word`` (numbers in what was
        read; words that share a token count as one), ``token`` (the word's text), ``weight`` (attention from the
        query), ``is_query``, ``is_related``, ``is_choice`` (the head attends to it most, of what could be chosen) and
        ``is_right`` (whether its choice, shown or not, is a related word).

    Raises:
        InputError: The model has other layers or heads than the result, or no example is asked for.
        TaskError: The corpus cannot be read, or the tokenizer gives no offsets.
    """
    how, given = result.provenance, (model.cfg.n_layers, model.cfg.n_heads)
    if given != tuple(how["shape"]) or n_sentences < 1:
        raise InputError(
            f"relation_maps: expected the model that was scored, of layers x heads {tuple(how['shape'])}, and an "
            f"example or more, got {given} and {n_sentences} examples; give what interp.attend was given"
        )
    heads = leading(result.cells).head(MOST_HEADS)
    wanted = [Direction(row.relation, row.looks) for row in heads.itertuples()]
    found = _finder(model, how).first(Corpus.of(corpus), wanted, n_sentences)
    parts = [
        _drawn(model, example, (int(row.layer), int(row.head)), how).assign(
            relation=row.relation, looks=row.looks, layer=row.layer, head=row.head, rank=rank
        )
        for rank, (row, direction) in enumerate(zip(heads.itertuples(), wanted, strict=True))
        for example in found[direction]
    ]
    if not parts:
        return pd.DataFrame(columns=list(MAP_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(MAP_COLUMNS)]


def _finder(model: Any, how: Mapping[str, Any]) -> Examples:
    tokenizer, causal = require_fast(getattr(model, "tokenizer", None)), how["attention_dir"] == "causal"
    sentences, documents = (
        Windows(tokenizer, length, both_sides=not causal) for length in (model.cfg.n_ctx, how["max_window"])
    )
    return Examples(sentences, documents, causal)


def _drawn(model: Any, example: Example, where: tuple[int, int], how: Mapping[str, Any]) -> pd.DataFrame:
    """The words of one example, each with the attention that the head at `where` gives it."""
    weights = _weights(model, example, where)
    choice, shown = _choice(weights, example, how), np.array(example.shown)
    return pd.DataFrame(
        {
            "document": example.window.document,
            "sentence": example.sentence,
            "query": example.query,
            "word": shown,
            "token": [_text(example.window, unit, model.tokenizer) for unit in shown.tolist()],
            "weight": weights[shown],
            "is_query": shown == example.query,
            "is_related": np.isin(shown, example.related),
            "is_choice": shown == choice,
            "is_right": choice in example.related,
        }
    )


def _weights(model: Any, example: Example, where: tuple[int, int]) -> Float[np.ndarray, " key_word"]:
    """Attention from the query to every word, then to every token of no word."""
    layer, head = where
    kept: list[np.ndarray] = []

    def take(number: int, words: WordAttention) -> None:
        if number == layer:
            kept.append(words[0, head, 0].double().cpu().numpy())

    read_words(model, [ReadingRow(example.window, (example.query,))], take, special=True)
    return kept[0]


def _choice(weights: Float[np.ndarray, " key_word"], example: Example, how: Mapping[str, Any]) -> int:
    """What is attended to most, of what ``attend`` chose among."""
    n_units = example.window.tokens.n_units
    allowed = np.zeros(len(weights), dtype=bool)
    allowed[: example.query if how["attention_dir"] == "causal" else n_units] = True
    allowed[example.query] = "self" not in how["exclude"]
    allowed[n_units:] = "special" not in how["exclude"]
    return int(np.where(allowed, weights, -1.0).argmax())


def _text(window: Window, unit: int, tokenizer: Any) -> str:
    """A word as it is spelled; of words that share tokens, what these spell, without the spaces that decoding adds."""
    word = window.tokens.word_of_unit[unit]
    if word != NONE:
        return window.words[word].form
    own = np.flatnonzero(window.tokens.unit_of_token == unit)
    return "".join(str(tokenizer.decode([window.tokens.ids[each] for each in own])).split())
