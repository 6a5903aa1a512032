"""Synthetic probings: frames as the report takes them, with invented numbers and hostile text."""

import dataclasses

import numpy as np
import pandas as pd

from interp.methods.probes.verdicts import ProbeResult, scores_by_example

EXCESS = {"encodes": 0.4, "undecided": 0.12, "none": 0.02}
BASE = {"accuracy": 0.5, "R2": 0.0}
HOSTILE = "<script>alert(1)</script>"
N = 240


def probing(verdicts=None, *, shape=(2, 3), heads=True, measure="accuracy", of_task=True, lemmas=None, **how):
    """A probing; cells without a verdict of their own have ``none``.

    Args:
        verdicts: By (layer, head), or by layer.
        shape: Layers, and heads of each.
        heads: Whether cells are heads; else layers.
        measure: ``accuracy`` or ``R2``.
        of_task: Whether the words are a task's; else of a treebank.
        lemmas: How many are resampled beside documents; None for none.
        how: Of the provenance.
    """
    places = [(layer, head) for layer in range(shape[0]) for head in range(shape[1] if heads else 1)]
    given = {(1, 2) if heads else 1: "encodes"} if verdicts is None else verdicts
    own = [given.get(place if heads else place[0], "none") for place in places]
    rows = [_cell(*place, verdict, measure, lemmas) for place, verdict in zip(places, own, strict=True)]
    frame = pd.DataFrame(rows).assign(site="z" if heads else "resid_post")
    frame = frame if heads else frame.drop(columns="head")
    return _result(frame, _words(measure, of_task), _provenance(frame, measure, of_task) | how)


def with_cell(result, number=0, **changed):
    """The probing with these values in one cell; of all cells where `number` is None."""
    frame = result.cells.copy()
    for name, value in changed.items():
        frame.loc[slice(None) if number is None else number, name] = value
    return dataclasses.replace(result, cells=frame)


def _result(cells, words, how):
    labels = cells[[name for name in ("site", "layer", "head") if name in cells]]
    return ProbeResult(scores_by_example(labels, np.ones((len(cells), N))), how, words, cells)


def _cell(layer, head, verdict, measure, lemmas):
    base = BASE[measure]
    # No two cells have the same excess.
    excess = EXCESS[verdict] - layer / 1000 - head / 10_000
    return {
        "layer": layer,
        "head": head,
        "score": base + 0.03 + excess,
        "low": base + excess - 0.02,
        "high": base + excess + 0.08,
        "baseline": "untrained",
        "score_baseline": base + 0.03,
        "excess": excess,
        "excess_low": excess - 0.05,
        "excess_high": excess + 0.05,
        "p": 0.0001,
        "p_adjusted": {"encodes": 0.0004, "undecided": 0.3}.get(verdict, 1.0),
        "score_seen": base + 0.05 + excess,
        "control": base + 0.05,
        "selectivity": excess,
        "selectivity_low": excess - 0.06,
        "selectivity_high": excess + 0.06,
        "selectivity_p": 0.0001,
        "selectivity_p_adjusted": 0.0004,
        "majority": base,
        "embedding": base,
        "position": base,
        "untrained": base + 0.03,
        "permuted": base - 0.02,
        "bits": 100.0,
        "compression": 2.4,
        "compression_prior": 2.3,
        "compression_control": 0.95,
        "n": N,
        "n_documents": 40,
        "n_lemmas": np.nan if lemmas is None else lemmas,
        "verdict": verdict,
    }


def _words(measure, of_task):
    numbers = range(N)
    values = [str(number % 7 - 3) for number in numbers] if measure == "R2" else ["plural", HOSTILE] * (N // 2)
    return pd.DataFrame(
        {
            "document": [f"d{number % 40}" for number in numbers],
            "template": ["simple" if of_task else ""] * N,
            "sentence": [str(number) for number in numbers],
            "word": 3,
            "token": 4,
            "n_tokens": 1,
            "form": [HOSTILE] * N,
            "value": values,
            "carrier": [f"word{number}" for number in numbers],
            "lemma": [f"d{number % 40}" if of_task else f"l{number % 60}" for number in numbers],
        }
    )


def _provenance(frame, measure, of_task):
    source = {"task": "agreement", "at": "query"} if of_task else {"n_documents": 40, "context": "document"}
    return {
        "model": "<b>tiny</b>",
        "model_hash": "0123456789abcdef",
        "dtype": "float32",
        "device": "cpu",
        **source,
        "data_hash": "fedcba9876543210",
        "pooling": "last",
        "feature": "number",
        "site": frame["site"].iloc[0],
        "kind": "logistic" if measure == "accuracy" else "ridge",
        "penalties": [1.0, 0.1, 0.01],
        "cv": 5,
        "held_out": ["templates" if of_task else "documents", "lemmas"],
        "measure": measure,
        "classes": ["plural", HOSTILE] if measure == "accuracy" else [],
        "min_examples": 1,
        "untrained": True,
        "n_probes": 1234,
        "n_unconverged": 0,
        "description_uniform": np.float64(240.0),
        "min_effect": 0.1,
        "alpha": 0.05,
        "correction": "max-T",
        "seed": 0,
    }
