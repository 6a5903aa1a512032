"""Can a feature be read out of what a head writes, beyond what its controls reach?

1. **Words** with a label, of a task, a corpus or a store of activations (``tasks/features.py``).
2. **Probes** at every cell (a head's ``z``, a layer's stream), thousands fitted together. They are tested on documents
   (or templates) and on lemmas that they were not trained on; the penalty is chosen within the training examples.
3. **Controls** beside every score: the control task and selectivity, majority, embedding, position, the same model
   untrained, permuted labels; description lengths by the online code (``scores.py``).
4. **Verdicts** from the excess over the toughest control, documents resampled, one correction over all cells.

Alain & Bengio (2017), "Understanding intermediate layers using linear classifier probes"; Hewitt & Liang (2019);
Voita & Titov (2020); Belinkov (2022), "Probing classifiers: promises, shortcomings, and advances".
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from torch import Tensor

from interp.arguments import as_list
from interp.errors import InputError, shown
from interp.interventions.provenance import model_asked, task_asked
from interp.interventions.sweep import Progress
from interp.methods.ablation import Part
from interp.methods.probes import verdicts
from interp.methods.probes.cross_fitting import PENALTIES
from interp.methods.probes.data import Held, choose_cells, drawn, held, labelled, passages_of, with_labels
from interp.methods.probes.scores import Measured, Measuring, untrained
from interp.methods.probes.verdicts import ProbeResult
from interp.methods.task_arguments import as_task
from interp.model.devices import documented, place_of
from interp.model.loading.bridge import require_model
from interp.model.provenance import model_provenance
from interp.model.sites import SITES, Site, require_sites
from interp.model.weights import hash_of_values
from interp.options import ProbeKind, ProbeOptions
from interp.runs.run import Run, answered, as_run
from interp.runs.store import ActivationStore
from interp.tasks.corpus import Corpus, Documents, is_named
from interp.tasks.task import Task

MLP_PENALTIES = (1e-4,)
"""An MLP is stopped early, and takes a thousand times as long."""

Activations = ActivationStore | Held
Data = Task | ActivationStore | Corpus
EMBEDDING = Site("embed")
WITH_POSITIONS = tuple(name for name, (_, axes) in SITES.items() if axes[1] == "pos")
"""Sites where a word has an activation of its own."""


@documented
def probe(
    model: Any,
    data: Task | ActivationStore | Corpus | Documents,
    feature: str,
    options: ProbeOptions | None = None,
    *,
    labels: Sequence[str] | None = None,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> ProbeResult:
    """Probe every head, or every layer, for a feature.

    A score is the share of the words whose class is read right, or, of a number, the share of its variance explained.

    Source: Alain & Bengio (2017), "Understanding intermediate layers using linear classifier probes"; Hewitt & Liang
    (2019), "Designing and interpreting probes with control tasks"; Voita & Titov (2020), "Information-theoretic
    probing with minimum description length".

    Args:
        model: Follows TransformerLens' protocol.
        data: A task or the name of one; files in CoNLL-U, documents or ``senses:bank``
            (``tasks/generated_corpus.py``); or a store of this model's activations.
        feature: One of the data's: of a task a key of its examples' ``features``, of a corpus as in
            ``tasks/features.py``.
        options: What is asked; or its fields by name: see ``ProbeOptions``.
        labels: Labels of one's own in place of the data's, one for each word that is read (for each row of a store's
            index, for each example of a task).
        progress: Called with (cells done, cells in all).
        run: A folder of runs, or an ``interp.Run``, where what is found is kept, and found again. None to keep nothing.
        **fields: Fields of `options`.

    Returns:
        Every word's score at every cell, and each cell's score beside its controls. Where the word itself gives the
        feature away, it warns.

    Raises:
        InputError: A feature that the data lack (with those that they have), one class, a class with one example,
            labels of another length, activations that are not numbers (which site, which word), a store of another
            model, or an option that is unknown.
        TaskError: The data cannot be read.
        LoadError: The store is damaged.

    Examples:
        >>> import interp
        >>> found = interp.probe(interp.load_model(), "agreement", "number", heads=[(2, 2)], n=40, kind="lda")
        >>> found.summary()[["layer", "head", "score", "verdict"]].round(2).values.tolist()
        [[2, 2, 1.0, 'encodes']]
    """
    asked = ProbeOptions.of(options, fields)
    if asked.cv < 2:
        raise InputError(f"cv: expected 2 at least, got {asked.cv}")
    require_model(model)
    cells = choose_cells(asked.site, model, asked.layers, asked.heads)
    sites = list(dict.fromkeys(each.site.name for each in cells))
    given = _given(model, data, asked)
    if isinstance(given, Task):  # its units were drawn: they are all read
        asked = replace(asked, n=None)
    if labels is not None and as_list(labels) is None:
        raise InputError(f"labels: expected a list, one for each word that is read, got {shown(labels)}")
    own = model_provenance(model)
    known = {"feature": feature, "site": sites[0] if len(sites) == 1 else sites}

    def fitting() -> ProbeResult:
        features = [feature] if labels is None else []
        source, twin = _activations(model, given, features, [each.site for each in cells], asked)
        index = source.index if labels is None else with_labels(source.index, feature, labels)
        if asked.n is not None:
            index = drawn(index, feature, asked.n, asked.seed)
        marked = labelled(index, feature, asked.min_examples)
        used: ProbeKind = asked.kind if marked.classes else "ridge"
        penalties = tuple(asked.penalties or (MLP_PENALTIES if used == "mlp" else PENALTIES))
        measuring = Measuring(marked, replace(asked, kind=used, penalties=penalties), place_of(model)[0])
        found = _measured(measuring, cells, source, twin, progress)
        how = {
            **own,
            **_data_provenance(given, asked),
            **known,
            "kind": used,
            "penalties": list(penalties),
            "held_out": measuring.held_out,
            "measure": "accuracy" if marked.classes else "R2",
            "classes": list(marked.classes),
            "untrained": twin is not None,
            "fitted_on": " and ".join(sorted(measuring.fitted_on)),
            "n_probes": measuring.counts[1],
            "n_unconverged": measuring.counts[0],
            "description_uniform": None if np.isnan(found.uniform) else found.uniform,
            "description_prior": None if np.isnan(found.prior) else found.prior,
        }
        frame, own_words = verdicts.frame_of(cells), marked.words.reset_index(drop=True)
        examples = verdicts.scores_by_example(frame, found.scores["probe"])
        return ProbeResult(examples, how, own_words, verdicts.tabulate(frame, found, marked, asked))

    def request() -> dict[str, Any]:
        own_labels = None if labels is None else hash_of_values({"labels": as_list(labels)})
        how = {"labels": own_labels, "cells": [str(each) for each in cells], "probe": asked.asked()}
        return {"kind": "probe", **model_asked(model, own), **_data_asked(given), **known, **how}

    result = answered(as_run(run), request, own, ProbeResult, fitting)
    _warn(result.cells, feature, asked.min_effect)
    return result


def _activations(
    model: Any, data: Data, features: Sequence[str], sites: Sequence[Site], asked: ProbeOptions
) -> tuple[Activations, Activations | None]:
    """What was collected; or run the model, and its untrained twin, over the data."""
    if isinstance(data, ActivationStore):
        data.require_model(model)
        return data, None
    require_sites(model, sites, WITH_POSITIONS)
    passages = passages_of(model, data, features, asked)
    known = getattr(model, "hook_dict", {EMBEDDING.hook_name: None})
    also = [EMBEDDING] if EMBEDDING.hook_name in known and EMBEDDING not in sites else []
    twin = untrained(model)
    found = held(model, passages, [*sites, *also], asked.pooling)
    return found, None if twin is None else held(twin, passages, sites, asked.pooling)


def _data_asked(data: Data) -> dict[str, Any]:
    """What tells the data from others."""
    if isinstance(data, ActivationStore):
        return {"store": hash_of_values({"manifest": data.manifest.text()})}
    return {"task": task_asked(data)} if isinstance(data, Task) else {"corpus": data.contents.hash}


def _data_provenance(data: Data, asked: ProbeOptions) -> dict[str, Any]:
    """Of the data and the options, as far as they say something of such data."""
    options = {name: value for name, value in asked.asked().items() if value is not None}
    said: dict[str, Any]
    if isinstance(data, ActivationStore):
        request, foreign = data.manifest.request, {"at", "context"}
        said = {"data_hash": request.data_hash, "store": str(data.folder)}
        options["pooling"] = request.pooling
    elif isinstance(data, Task):
        said, foreign = {"task": data.name, "data_hash": data.hash}, {"context"}
    else:
        said, foreign = {"data_hash": data.contents.hash, "n_documents": len(data.contents.documents)}, {"at"}
    return {**said, **{name: value for name, value in options.items() if name not in foreign}}


def _given(model: Any, data: Data | Documents, asked: ProbeOptions) -> Data:
    """What is probed; a text that names no file is the name of a task."""
    if isinstance(data, ActivationStore):
        return data
    if isinstance(data, Task) or (isinstance(data, str) and not is_named(data) and not Path(data).exists()):
        return as_task(data, model, n=asked.n, seed=asked.seed)
    return Corpus.of(data)


def _measured(
    measuring: Measuring,
    cells: Sequence[Part],
    source: Activations,
    twin: Activations | None,
    progress: Progress | None,
) -> Measured:
    """Fit the probes of every cell, a site at a time."""
    rows = measuring.labelled.words.index.to_numpy()
    parts: list[dict[str, np.ndarray]] = []
    n_cells, done = len(verdicts.frame_of(cells)), 0
    for each in cells:
        x = _by_cell(source.read(each.site, rows, each.heads))
        also = None if twin is None else _by_cell(twin.read(each.site, rows, each.heads))
        for part in measuring.cells(x, also):
            parts.append(part)
            done += len(part["probe"])
            if progress is not None:
                progress(done, n_cells)
    return measuring.joined(parts, source.read(EMBEDDING, rows) if EMBEDDING in source.sites else None)


def _by_cell(found: Float[Tensor, "word ..."]) -> Float[Tensor, "cell word feature"]:
    return found.transpose(0, 1) if found.ndim == 3 else found[None]


def _warn(cells: pd.DataFrame, feature: str, minimum: float) -> None:
    """Say where the word itself gives the feature away."""
    best = cells.loc[cells["score"].idxmax()]
    if best["embedding"] >= max(best["low"], best["majority"] + minimum):
        warnings.warn(
            f"{feature}: a probe on the embedding of the word that is read alone reaches {best['embedding']:.3f}, the "
            f"best cell {best['score']:.3f} [{best['low']:.3f}, {best['high']:.3f}]: the word gives the feature away; "
            "read another word, or balance the data",
            RuntimeWarning,
            stacklevel=3,
        )
