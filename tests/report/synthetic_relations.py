"""Synthetic scorings of heads on relations: frames as the report takes them, with invented numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd

from interp.methods.relations.relation_scores import RelationResult

TO_DEPENDENT, TO_HEAD = "head to dependent", "dependent to head"
BASE = 0.5
EXCESS = {"attends": 0.2, "undecided": 0.12, "none": -0.1, "not testable": np.nan}
LEFT_OUT = {"ahead": 7, "unaligned": 4, "outside": 0, "no choice": 1, "no baseline": 0}
_NUMBERS = ["accuracy", "attention", "excess", "low", "high", "p", "p_adjusted", "accuracy_baseline"]
HOSTILE = "<script>alert(1)</script>"


def scoring(directions=None, *, shape=(2, 2), causal=False, **how):
    """A scoring; each direction's verdict is that of head 0.1, all other heads have none."""
    given = directions or {("nsubj", TO_DEPENDENT): "attends"}
    verdicts = {key: each if isinstance(each, dict) else {(0, 1): each} for key, each in given.items()}
    cells = pd.DataFrame([_head(*key, *head, own.get(head)) for key, own in verdicts.items() for head in _heads(shape)])
    untestable = [own == {(0, 1): "not testable"} for own in verdicts.values()]
    for key, none in zip(verdicts, untestable, strict=True):
        if none:
            rows = (cells["relation"] == key[0]) & (cells["looks"] == key[1])
            cells.loc[rows, ["verdict", "n", "n_documents"]] = ["not testable", 0, 0]
            cells.loc[rows, _NUMBERS] = np.nan
    relations = [_relation(*key, none) for key, none in zip(verdicts, untestable, strict=True)]
    return RelationResult(_examples(cells), _provenance(shape, causal) | how, cells, pd.DataFrame(relations))


def with_row(result, **changed):
    """The scoring with these values for head 0.1 of its first direction."""
    cells = result.cells.copy()
    for name, value in changed.items():
        cells.loc[1, name] = value
    return replace(result, cells=cells)


def _examples(cells):
    """All pairs of each head in one document."""
    own = cells[["relation", "looks", "layer", "head"]].assign(document="d0", pairs=cells["n"])
    return own.assign(right=cells["n"] * cells["accuracy"].fillna(0), attention=cells["attention"])


def _heads(shape):
    return [(layer, head) for layer in range(shape[0]) for head in range(shape[1])]


def _head(relation, looks, layer, head, verdict):
    verdict = verdict or "none"
    excess = EXCESS[verdict] if verdict != "none" or (layer, head) == (0, 1) else -0.3 - layer / 100 - head / 10_000
    return {
        "relation": relation,
        "looks": looks,
        "layer": layer,
        "head": head,
        "accuracy": BASE + excess,
        "attention": 0.25,
        "baseline": "offset -2",
        "accuracy_baseline": BASE,
        "excess": excess,
        "low": excess - 0.05,
        "high": excess + 0.05,
        "p": 0.001,
        "p_adjusted": {"attends": 0.0004, "undecided": 0.3}.get(verdict, 1.0),
        "accuracy_random_head": 0.21,
        "n": 1500,
        "n_documents": 40,
        "chosen": True,
        "verdict": verdict,
    }


def _relation(relation, looks, untestable):
    left_out = LEFT_OUT | ({"ahead": 1507} if untestable else {})
    rules = {"offset": "offset -2", "accuracy_offset": 0.5, "nearest": "nearest NOUN before", "accuracy_nearest": 0.4}
    n = 0 if untestable else 1500
    counted = {"n_pairs": 1512, "n": n, **left_out, "n_documents": 0 if untestable else 40}
    return {"relation": relation, "looks": looks, **counted, **rules, "chance": 0.1}


def _provenance(shape, causal):
    return {
        "model": "<b>tiny</b>",
        "model_hash": "0123456789abcdef",
        "dtype": "float32",
        "device": "cpu",
        "attention_dir": "causal" if causal else "bidirectional",
        "data_hash": "fedcba9876543210",
        "n_documents": 40,
        "n_clusters": 40,
        "n_sentences": 1464,
        "n_words": 28397,
        "data": ["/home/me/bank.conllu"],
        "chosen_on": "the other half of the corpus",
        "exclude": ["special", "self"],
        "too_long": {},
        "min_effect": 0.1,
        "alpha": 0.05,
        "correction": "max-T",
        "seed": 0,
        "shape": shape,
    }


def maps_of(result, *, is_right=True, tokens=("The", HOSTILE, "dogs", "barked")):
    """Two examples of head 0.1 in the first direction; the last word looks at the third, or is wrong with the first."""
    first = result.cells.iloc[1]
    head = {name: first[name] for name in ("relation", "looks", "layer", "head")} | {"rank": 0}
    return pd.DataFrame(
        [
            head
            | {"document": f"d{number}", "sentence": f"d{number}-1", "query": len(tokens) - 1, "word": word}
            | {"token": token, "weight": 0.5 if word == 2 * is_right else 0.1}
            | {"is_query": word == len(tokens) - 1, "is_related": word == 2, "is_choice": word == 2 * is_right}
            | {"is_right": is_right}
            for number in range(2)
            for word, token in enumerate(tokens)
        ]
    )
