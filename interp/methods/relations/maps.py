"""Where does the best head of a relation look in real sentences? A few examples for the eye.

1. Of each direction the head that speaks for it, those that track first; of ``MOST_HEADS`` directions at most.
2. On the first examples of the corpus, right or wrong (``examples.py``).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.errors import InputError
from interp.methods.relations.examples import Example, Examples
from interp.methods.relations.result import RelationResult
from interp.methods.relations.word_attention import ReadingRow, WordAttention, read_words
from interp.model.modes import documented
from interp.report.relations_sentences import MAP_COLUMNS, leading
from interp.tasks.alignment import require_fast
from interp.tasks.corpus import Corpus, Documents
from interp.tasks.relations import Direction
from interp.tasks.windows import Window, Windows
from interp.tasks.word_tokens import NONE

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
    heads = leading(result.frame).head(MOST_HEADS)
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
        Windows(tokenizer, length, both_sides=not causal) for length in (model.cfg.n_ctx, how["longest_window"])
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
    allowed[example.query] = "self" not in how["excluded"]
    allowed[n_units:] = "special" not in how["excluded"]
    return int(np.where(allowed, weights, -1.0).argmax())


def _text(window: Window, unit: int, tokenizer: Any) -> str:
    """A word as it is spelled; of words that share tokens, what these spell, without the spaces that decoding adds."""
    word = window.tokens.word_of_unit[unit]
    if word != NONE:
        return window.words[word].form
    own = np.flatnonzero(window.tokens.unit_of_token == unit)
    return "".join(str(tokenizer.decode([window.tokens.ids[each] for each in own])).split())
