"""Can a feature be read out of what a head writes, beyond what its controls reach?

1. **Words** with a label, of a task, a corpus or a store of activations (``tasks/features.py``).
2. **Probes** at every cell (a head's ``z``, a layer's stream), thousands fitted together (``probes/``). They are tested
   on documents (or templates) and on lemmas that they were not trained on; the penalty is chosen within the training
   examples (``probes/folds.py``).
3. **Controls** beside every score: the control task and selectivity, majority, embedding, position, the same model
   untrained, permuted labels (``controls.py``); description lengths by the online code (``probes/online_code.py``).
4. **Verdicts** from the excess over the toughest control, documents resampled, one correction over all cells
   (``probes/judging.py``).

Alain & Bengio (2017), "Understanding intermediate layers using linear classifier probes"; Hewitt & Liang (2019);
Voita & Titov (2020); Belinkov (2022), "Probing classifiers: promises, shortcomings, and advances".
"""

import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from jaxtyping import Float
from torch import Tensor

from interp.arguments import as_list
from interp.claims.corrections import Correction
from interp.claims.effects import check_share
from interp.errors import InputError, shown, suggest
from interp.interventions.intervention import heads_at
from interp.interventions.provenance import model_asked, model_provenance, task_asked
from interp.interventions.sweep import Progress
from interp.methods.ablation import Head
from interp.methods.probes.cross_fitting import STRENGTHS, Kind
from interp.methods.probes.data import (
    PLACES,
    Activations,
    Labelled,
    device_of,
    drawn,
    held,
    labelled,
    passages_of,
    with_labels,
)
from interp.methods.probes.judging import ProbeResult, SiteCells, choose_cells, distinct_sites, frame_of, tabulate
from interp.methods.probes.scores import Measured, Measuring, untrained
from interp.methods.task_arguments import as_task
from interp.model.devices import documented
from interp.model.loading.modules import require_model
from interp.model.sites import SITES, Site, require_sites
from interp.model.weights import hash_of_values
from interp.residual.collecting import Pooling
from interp.runs.caching import answered
from interp.runs.run import Run, as_run
from interp.runs.store import ActivationStore
from interp.tasks.corpus import Corpus, Documents, is_named
from interp.tasks.passages import At, Context
from interp.tasks.task import Task

MINIMUM = 0.1
"""Smallest excess that counts: a tenth of the words, or of a number's variance."""
MLP_STRENGTHS = (1e-4,)
"""An MLP is stopped early, and takes a thousand times as long."""

EMBEDDING = Site("embed")
WITH_POSITIONS = tuple(name for name, (_, axes) in SITES.items() if axes[1] == "pos")
"""Sites where a word has an activation of its own."""


@documented
def probe(
    model: Any,
    data: Task | ActivationStore | Corpus | Documents,
    feature: str,
    *,
    site: str | Sequence[str] = "z",
    layers: Sequence[int] | None = None,
    heads: Sequence[Head] | None = None,
    labels: Sequence[str] | None = None,
    least: int = 1,
    kind: Kind = "logistic",
    strengths: Sequence[float] | None = None,
    folds: int = 5,
    at: At = "query",
    context: Context = "document",
    pooling: Pooling = "last",
    n: int | None = None,
    description_lengths: bool = True,
    permuted: bool = True,
    minimum: float = MINIMUM,
    alpha: float = 0.05,
    correction: Correction = "max-T",
    seed: int = 0,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> ProbeResult:
    """Probe every head, or every layer, for a feature.

    Args:
        model: Follows TransformerLens' protocol.
        data: A task or the name of one; files in CoNLL-U, documents or ``senses:bank`` (``tasks/senses.py``); or a
            store of this model's activations.
        feature: One of the data's: of a task a key of its examples' ``features``, of a corpus as in
            ``tasks/features.py``.
        site: What is read: ``z``, what a head reads off and writes; or a point of the stream, such as ``resid_post``.
            Several are read in one run and corrected together; all of them have heads, or none has.
        layers: Which; None for all.
        heads: ``(layer, head)`` pairs; None for all.
        labels: Labels of one's own in place of the data's, one for each word that is read (for each row of a store's
            index, for each example of a task).
        least: Classes with fewer examples are left out.
        kind: Of probe; a feature that is a number takes ``ridge``, whatever is given.
        strengths: Of the penalty, one of which is chosen for every fold; None for the kind's own.
        folds: Of documents (or templates), and of lemmas.
        at: Of a task: the position that predicts the answer, or the related word.
        context: Of a corpus: whether windows of documents are read, or sentences by themselves.
        pooling: Over the tokens of a word.
        n: Of a task that is given by its name, the units to draw; of a corpus or a store, the words; None for the
            task's own default, and for all words. The model runs on all of them.
        description_lengths: Whether they are measured, too, which takes about half of the time.
        permuted: Whether probes of permuted labels are fitted, too. No verdict rests on them.
        minimum: Smallest excess over the toughest control that counts.
        alpha: Error rate of the verdicts.
        correction: ``max-T`` bounds the chance of any false claim; ``fdr`` (Benjamini & Hochberg) is exploratory.
        seed: Of folds, control labels and resampling.
        progress: Called with (cells done, cells in all).
        run: A folder of runs, or an ``interp.Run``, where what is found is kept, and found again. None to keep nothing.

    Raises:
        InputError: A feature that the data lack (with those that they have), one class, a class with one example,
            labels of another length, activations that are no numbers (which site, which word), a store of another
            model, or an option that is unknown.
        TaskError: The data cannot be read.
        LoadError: The store is damaged.
    """
    _check(kind, correction, {"minimum": minimum, "alpha": alpha}, folds)
    require_model(model)
    sites = distinct_sites(site)
    cells = [
        cell
        for name in sites
        for cell in choose_cells(name, (model.cfg.n_layers, heads_at(name, model)), layers, heads)
    ]
    reading = _Reading(model, _given(model, data, n, seed), feature, labels, at, context, pooling)
    kept, own = as_run(run), model_provenance(model)
    asked = {
        "feature": feature,
        "site": sites[0] if len(sites) == 1 else list(sites),
        "folds": folds,
        "least": least,
        "n": None if isinstance(reading.data, Task) else n,
        "minimum": minimum,
        "alpha": alpha,
        "correction": correction,
        "seed": seed,
    }

    def fitting() -> ProbeResult:
        source, twin = reading.activations([each.site for each in cells])
        index = source.index if labels is None else with_labels(source.index, feature, labels)
        if n is not None and not isinstance(reading.data, Task):
            index = drawn(index, feature, n, seed)
        words = labelled(index, feature, least)
        used: Kind = kind if words.classes else "ridge"
        chosen = tuple(strengths or (MLP_STRENGTHS if used == "mlp" else STRENGTHS))
        measuring = Measuring(words, used, chosen, folds, device_of(model), seed, description_lengths, permuted)
        found = _measured(measuring, cells, source, twin, words, progress)
        how = {
            **own,
            **reading.provenance(),
            **asked,
            "kind": used,
            "strengths": list(chosen),
            "held_out": measuring.held_out,
            "measure": "accuracy" if words.classes else "R2",
            "classes": list(words.classes),
            "untrained": twin is not None,
            "n_probes": measuring.counts[1],
            "n_unconverged": measuring.counts[0],
            "description_uniform": None if np.isnan(found.uniform) else found.uniform,
            "description_prior": None if np.isnan(found.prior) else found.prior,
        }
        return ProbeResult(tabulate(frame_of(cells), found, words, how), _examples(index, words), how)

    def request() -> dict[str, Any]:
        where = [str(each) for each in cells]
        how = {"kind": kind, "strengths": strengths, "description_lengths": description_lengths, "permuted": permuted}
        return {"kind": "probe", **model_asked(model, own), **reading.asked(), **asked, "cells": where, "probe": how}

    result = answered(kept, request, own, ProbeResult, fitting)
    _warn(result.frame, feature, minimum)
    return result


class _Reading:
    """Runs the model over the data, or opens what was collected.

    Attributes:
        data: What is read.
    """

    def __init__(
        self,
        model: Any,
        data: Task | ActivationStore | Corpus,
        feature: str,
        labels: Sequence[str] | None,
        at: At,
        context: Context,
        pooling: Pooling,
    ):
        self._model, self.data, self._pooling = model, data, pooling
        self._at: At = at
        self._context: Context = context
        self._labels = as_list(labels)
        if labels is not None and self._labels is None:
            raise InputError(f"labels: expected a list, one for each word that is read, got {shown(labels)}")
        self._features, self._only = ([feature], True) if labels is None else ([], False)

    def activations(self, sites: Sequence[Site]) -> tuple[Activations, Activations | None]:
        """Those of the model, and of its untrained twin."""
        if isinstance(self.data, ActivationStore):
            self.data.require_model(self._model)
            return self.data, None
        require_sites(self._model, sites, WITH_POSITIONS)
        passages = passages_of(
            self._model, self.data, self._features, at=self._at, context=self._context, only=self._only
        )
        known = getattr(self._model, "hook_dict", {EMBEDDING.hook_name: None})
        also = [EMBEDDING] if EMBEDDING.hook_name in known and EMBEDDING not in sites else []
        twin = untrained(self._model)
        return (
            held(self._model, passages, [*sites, *also], self._pooling),
            None if twin is None else held(twin, passages, sites, self._pooling),
        )

    def asked(self) -> dict[str, Any]:
        """What tells the data from others."""
        labels = None if self._labels is None else hash_of_values({"labels": self._labels})
        place = {"at": self._at, "context": self._context, "pooling": self._pooling, "labels": labels}
        if isinstance(self.data, ActivationStore):
            return {"store": hash_of_values({"manifest": self.data.manifest.text()}), **place}
        if isinstance(self.data, Task):
            return {"task": task_asked(self.data), **place}
        return {"corpus": self.data.contents.hash, **place}

    def provenance(self) -> dict[str, Any]:
        """Of the data."""
        if isinstance(self.data, ActivationStore):
            request = self.data.manifest.request
            return {"data_hash": request.data_hash, "pooling": request.pooling, "store": str(self.data.folder)}
        if isinstance(self.data, Task):
            return {"task": self.data.name, "data_hash": self.data.hash, "at": self._at, "pooling": self._pooling}
        said = {"data_hash": self.data.contents.hash, "n_documents": len(self.data.contents.documents)}
        return {**said, "context": self._context, "pooling": self._pooling}


def _given(
    model: Any, data: Task | ActivationStore | Corpus | Documents, n: int | None, seed: int
) -> Task | ActivationStore | Corpus:
    """What is probed; a text that names no file is the name of a task."""
    if isinstance(data, ActivationStore):
        return data
    if isinstance(data, Task) or (isinstance(data, str) and not is_named(data) and not Path(data).exists()):
        return as_task(data, model, n=n, seed=seed)
    return Corpus.of(data)


def _measured(
    measuring: Measuring,
    cells: Sequence[SiteCells],
    source: Activations,
    twin: Activations | None,
    words: Labelled,
    progress: Progress | None,
) -> Measured:
    """Fit the probes of every cell, a site at a time."""
    embedding = source.read(EMBEDDING, words.rows) if EMBEDDING in source.sites else None
    parts: list[dict[str, np.ndarray]] = []
    n_cells, done = len(frame_of(cells)), 0
    for each in cells:
        x = _by_cell(source.read(each.site, words.rows, each.heads))
        also = None if twin is None else _by_cell(twin.read(each.site, words.rows, each.heads))
        for part in measuring.cells(x, also):
            parts.append(part)
            done += len(part["probe"])
            if progress is not None:
                progress(done, n_cells)
    together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    bits, control_bits = (together.pop(name)[:, 0] for name in ("bits", "control_bits"))
    return Measured({**measuring.shared(embedding), **together}, bits, control_bits, *measuring.code_lengths)


def _by_cell(found: Float[Tensor, "word ..."]) -> Float[Tensor, "cell word feature"]:
    return found.transpose(0, 1) if found.ndim == 3 else found[None]


def _examples(index: pd.DataFrame, words: Labelled) -> pd.DataFrame:
    columns = {words.feature: "value", f"{words.feature}:carrier": "carrier", f"{words.feature}:lemma": "lemma"}
    return index.loc[words.rows, [*PLACES, *columns]].rename(columns=columns).reset_index(drop=True)


def _warn(frame: pd.DataFrame, feature: str, minimum: float) -> None:
    """Say where the word itself gives the feature away."""
    best = frame.loc[frame["score"].idxmax()]
    if best["embedding"] >= max(best["low"], best["majority"] + minimum):
        warnings.warn(
            f"{feature}: a probe on the embedding of the word that is read alone reaches {best['embedding']:.3f}, the "
            f"best cell {best['score']:.3f} [{best['low']:.3f}, {best['high']:.3f}]: the word gives the feature away; "
            "read another word, or balance the data",
            RuntimeWarning,
            stacklevel=3,
        )


def _check(kind: str, correction: str, shares: dict[str, float], folds: int) -> None:
    for what, given, known in (("kind", kind, get_args(Kind)), ("correction", correction, get_args(Correction))):
        if given not in known:
            raise InputError(f"{what}: {given!r} is unknown; {suggest(str(given), known)}")
    for what, share in shares.items():
        check_share(what, share)
    if folds < 2:
        raise InputError(f"folds: expected 2 at least, got {folds}")
