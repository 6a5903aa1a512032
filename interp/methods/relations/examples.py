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
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from interp.errors import InputError
from interp.methods.relations.relation_scores import DIRECTION, RelationResult
from interp.methods.relations.words import ReadingRow, WordAttention, items_of, read_words
from interp.model.devices import documented
from interp.tasks.alignment import NONE, Window, Windows, require_fast
from interp.tasks.corpus import Corpus, Documents
from interp.tasks.relations import Direction
from interp.tasks.treebank import Document

MAP_COLUMNS = (
    *(*DIRECTION, "layer", "head", "rank", "document", "sentence", "query", "word", "token", "weight"),
    *("is_query", "is_related", "is_choice", "is_right"),
)
READABLE = range(6, 26)
MOST_SHOWN = 60


@dataclass(frozen=True)
class Example:
    """A word that looks and those that it should find, as numbers of units of a window, and what it can choose."""

    window: Window
    query: int
    related: Int[np.ndarray, " _"]
    allowed: Bool[np.ndarray, " key"]

    @cached_property
    def sentence_of_unit(self) -> Int[np.ndarray, " unit"]:
        """The number of the sentence that each unit stands in."""
        words = self.window.tokens.word_of_unit.copy()
        for unit in np.flatnonzero(words == NONE):  # it follows the word before it
            words[unit] = words[unit - 1] + 1 if unit else 0
        return np.searchsorted(np.array(self.window.starts), words, side="right") - 1

    @property
    def sentence(self) -> str:
        """The name of the query's sentence."""
        return self.window.sentences[int(self.sentence_of_unit[self.query])].id

    @property
    def whole(self) -> range:
        """The units from the nearest related word's sentence to the query's."""
        sentence = self.sentence_of_unit
        nearest = self.related[np.abs(self.related - self.query).argmin()]
        first, last = sorted((sentence[self.query], sentence[nearest]))
        inside = np.flatnonzero((sentence >= first) & (sentence <= last))
        return range(int(inside[0]), int(inside[-1]) + 1)

    @property
    def readable(self) -> bool:
        """Whether it can be shown whole, and is more than a few words."""
        n_shown = len(self.whole)
        return n_shown in READABLE if len(self.window.sentences) == 1 else n_shown <= MOST_SHOWN

    @property
    def shown(self) -> Int[np.ndarray, " _"]:
        """The units of the whole, as far as they are not too many."""
        whole = self.whole
        start = min(max(whole.start, self.query - MOST_SHOWN // 2), max(whole.stop - MOST_SHOWN, whole.start))
        return np.arange(start, min(start + MOST_SHOWN, whole.stop))


def _first_examples(
    model: Any, corpus: Corpus, wanted: Sequence[Direction], n_each: int, how: Mapping[str, Any]
) -> dict[Direction, list[Example]]:
    """The first readable examples of each direction, then the first others; of each document one."""
    tokenizer, causal = require_fast(getattr(model, "tokenizer", None)), how["attention_dir"] == "causal"
    sentences, documents = (
        Windows(tokenizer, length, both_sides=not causal) for length in (model.cfg.n_ctx, how["max_window"])
    )

    def scored(document: Document, direction: Direction) -> Iterator[Example]:
        """All that can be scored, in order; of a sentence the last words first."""
        alone = direction.context == "sentence"
        for window in sentences.sentences(document) if alone else documents.documents(document):
            items = items_of(window, [direction], causal=causal, exclude=how["exclude"])
            numbers = range(len(items.query))
            for at in reversed(numbers) if alone else numbers:
                related = np.flatnonzero(items.related[at])
                yield Example(window, int(items.query[at]), related, items.allowed[at])

    readable: dict[Direction, list[Example]] = {each: [] for each in wanted}
    others: dict[Direction, list[Example]] = {each: [] for each in wanted}
    for document in corpus:
        missing = [each for each in wanted if len(readable[each]) < n_each]
        if not missing:
            break
        for direction in missing:
            examples = scored(document, direction)
            for first in islice(examples, 1):
                best = next((each for each in chain([first], examples) if each.readable), first)
                (readable if best.readable else others)[direction].append(best)
    return {each: (readable[each] + others[each])[:n_each] for each in wanted}


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

    Examples:
        >>> from interp.methods.relations.examples import relation_maps
        >>> from interp.tasks import agreement
        >>> from interp.tasks.generated_corpus import linked_documents
        >>> model, corpus = interp.load_model(), list(linked_documents(agreement.pairs(40, seed=0)))
        >>> maps = relation_maps(model, corpus, interp.attend(model, corpus, ["subject"]))
        >>> maps["relation"].unique().tolist()
        ['subject']
    """
    how, given = result.provenance, (model.cfg.n_layers, model.cfg.n_heads)
    if given != tuple(how["shape"]) or n_sentences < 1:
        raise InputError(
            f"relation_maps: expected the model that was scored, of layers x heads {tuple(how['shape'])}, and an "
            f"example or more, got {given} and {n_sentences} examples; give what interp.attend was given"
        )
    heads = result.leading().head(MOST_HEADS)
    wanted = [Direction(row.relation, row.looks) for row in heads.itertuples()]
    found = _first_examples(model, Corpus.of(corpus), wanted, n_sentences, how)
    parts = [
        _drawn(model, example, row, how).assign(rank=rank)
        for rank, (row, direction) in enumerate(zip(heads.itertuples(), wanted, strict=True))
        for example in found[direction]
    ]
    if not parts:
        return pd.DataFrame(columns=list(MAP_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(MAP_COLUMNS)]


def _drawn(model: Any, example: Example, row: Any, how: Mapping[str, Any]) -> pd.DataFrame:
    """The words of one example, each with the attention that the head of a `row` gives it."""
    kept: list[Float[np.ndarray, " key"]] = []

    def take(layer: int, words: WordAttention) -> None:
        if layer == row.layer:
            kept.append(words[0, row.head, 0].double().cpu().numpy())

    window, shown = example.window, example.shown
    read_words(model, [ReadingRow(window, (example.query,))], take, special="special" not in how["exclude"])
    (weights,) = kept
    choice = np.where(example.allowed, weights, -1.0).argmax()
    return pd.DataFrame(
        {
            "document": window.document,
            "sentence": example.sentence,
            "query": example.query,
            "word": shown,
            "token": [_text(window, unit, model.tokenizer) for unit in shown.tolist()],
            "weight": weights[shown],
            "is_query": shown == example.query,
            "is_related": np.isin(shown, example.related),
            "is_choice": shown == choice,
            "is_right": choice in example.related,
        }
    ).assign(relation=row.relation, looks=row.looks, layer=row.layer, head=row.head)


def _text(window: Window, unit: int, tokenizer: Any) -> str:
    """A word as it is spelled; of words that share tokens, what these spell, without the spaces that decoding adds."""
    word = window.tokens.word_of_unit[unit]
    if word != NONE:
        return window.words[word].form
    own = np.flatnonzero(window.tokens.unit_of_token == unit)
    return "".join(str(tokenizer.decode([window.tokens.ids[each] for each in own])).split())
