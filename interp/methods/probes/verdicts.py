"""Verdicts on cells: intervals over documents and lemmas, one family of tests over all cells, and the result.

1. The **baseline** of a cell is the control that reaches most there: majority, embedding, position, the untrained
   model. The **excess** is the score less the baseline's, word by word. Choosing the toughest control on the scored
   words themselves can only make it tougher.
2. Documents are resampled. Words of one lemma are not independent either: a head that knows words alone is right or
   wrong about a new lemma as a whole. So where lemmas are held out they are resampled, too, and the wider interval and
   the larger p count (Cameron, Gelbach & Miller 2011, "Robust inference with multiway clustering").
3. ``encodes``: an excess of no more than the minimum is rejected, over all cells, and so is a selectivity of no more
   than 0. ``none``: an excess of the minimum at least is rejected. All else is ``undecided``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.claims.bootstrap import FEWEST_CLUSTERS, cluster_bootstrap
from interp.claims.claim import Claims, claim
from interp.claims.claim import Measured as Held
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError, suggest
from interp.methods.ablation import Part
from interp.methods.probes.data import Labelled
from interp.methods.probes.scores import Measured
from interp.options import ProbeOptions
from interp.result import Result

BASELINES = ("majority", "embedding", "position", "untrained")
CONTROLS = (*BASELINES, "permuted")
CELL = ("site", "layer", "head")

_TESTED = ("p", "p_adjusted", "p_absent", "standard_error", "critical")
Values = Float[np.ndarray, "#cell example"]


@dataclass(frozen=True, eq=False, repr=False)
class ProbeResult(Result):
    """How well a feature can be read at every cell, beside its controls.

    Attributes:
        examples: One row per cell and word: ``site``, ``layer``, ``head`` (where the site has heads), ``example`` (the
            word's row in `words`) and ``score``: 1 where the probe found the word's class, else 0; of a number
            ``1 - e^2 / mean e0^2``, with e the probe's error and e0 that of the mean.
        provenance: How the numbers were made.
        words: One row a word: where it stands, its ``value``, ``carrier`` and ``lemma``.
        cells: One row a cell; see ``summary``.
    """

    words: pd.DataFrame
    cells: pd.DataFrame

    shown_by: ClassVar[str] = "probes"

    def summary(self) -> pd.DataFrame:
        """One row a cell: ``site``, ``layer``, ``head``, the score, its controls and the verdict.

        Columns: ``score`` (accuracy; R^2 of a number) on documents and lemmas that the probe was not trained on, with
        its 95 % interval ``low``, ``high`` (documents, or lemmas, resampled: the wider); ``baseline`` (the control that
        reaches most), ``score_baseline``; ``excess`` over it with ``excess_low``, ``excess_high``; ``p`` (that it is no
        more than the minimum; documents, or lemmas, resampled: the larger), ``p_adjusted`` (over all cells),
        ``p_absent`` (that it is the minimum at least, over all cells and whichever control is the toughest),
        ``standard_error`` and ``critical`` (standard errors that the test asks for); ``score_seen`` and ``control``
        (the feature and the control task, on folds in which words may be known from training), ``selectivity`` (their
        difference) with its interval; the controls ``majority``, ``embedding``, ``position``, ``untrained``,
        ``permuted``; ``bits`` (description length of all labels), ``compression`` (the uniform code's length over it),
        ``compression_prior`` (that of a code that learns the classes' frequencies), ``compression_control`` (of the
        control task); ``n`` words, ``n_documents`` (of a task lexical draws), ``n_lemmas`` (NaN where none are held
        out), ``verdict``. What was not measured is NaN.
        """
        return self.cells.copy()

    def best(self, n: int = 1) -> pd.DataFrame:
        """The cells at which the feature is read best: those that encode before others, then by their excess.

        Args:
            n: How many.

        Returns:
            Their rows of ``cells``.
        """
        encodes = self.cells["verdict"] == "encodes"
        order = self.cells.assign(encodes=encodes).sort_values(["encodes", "excess"], ascending=False, kind="stable")
        return self.cells.loc[order.index[:n]]

    def at(self, site: str) -> "ProbeResult":
        """What was found at one of several sites; p and verdicts stay those of all.

        Args:
            site: One that was probed.

        Returns:
            The result of this site alone.

        Raises:
            InputError: Nothing was probed there.
        """
        cells, examples = (frame[frame["site"] == site] for frame in (self.cells, self.examples))
        if cells.empty:
            raise InputError(f"nothing was probed at {site!r}; {suggest(site, self.cells['site'].unique())}")
        own = {"cells": cells.reset_index(drop=True), "examples": examples.reset_index(drop=True)}
        return replace(self, **own, provenance={**self.provenance, "site": site})


def scores_by_example(cells: pd.DataFrame, scores: Float[np.ndarray, "cell example"]) -> pd.DataFrame:
    """``ProbeResult.examples``; in small types, because a model's heads times a corpus' words are many."""
    n = scores.shape[1]
    labels: dict[str, Any] = {
        name: pd.Categorical(values).repeat(n) if name == "site" else values.to_numpy(np.int16).repeat(n)
        for name, values in cells.items()
    }
    example = np.tile(np.arange(n, dtype=np.int32), len(cells))
    return pd.DataFrame({**labels, "example": example, "score": scores.reshape(-1).astype(np.float32)})


def tabulate(cells: pd.DataFrame, found: Measured, labelled: Labelled, asked: ProbeOptions) -> pd.DataFrame:
    """``ProbeResult.cells``: scores beside their controls, tests and verdicts."""
    index, strata = pd.MultiIndex.from_frame(cells), labelled.words["template"].tolist()

    def tables(values: Values) -> list[UnitTable]:
        wide = np.ascontiguousarray(np.broadcast_to(values, (len(cells), values.shape[1])).T)
        return [UnitTable(wide, names, strata, index) for names in labelled.resampled]

    means = {name: estimates(tables(each)[0]) for name, each in found.scores.items()}
    names = [name for name in BASELINES if name in means]
    toughest = np.stack([means[name] for name in names]).argmax(axis=0)
    base = np.stack([np.broadcast_to(found.scores[name], found.scores["probe"].shape) for name in names])
    excess = tables(found.scores["probe"] - base[toughest, np.arange(len(cells))])
    tested = _tested("excess", excess, asked.min_effect, asked)
    # The toughest control was chosen on these words, which makes the excess small: that must not pass for an absence.
    tested["excess_p_absent"] = np.minimum(1.0, len(names) * tested["excess_p_absent"])
    selectivity = _tested("selectivity", tables(found.scores["seen"] - found.scores["control"]), 0.0, asked)
    intervals = [cluster_bootstrap(table, seed=asked.seed) for table in tables(found.scores["probe"])]
    frame = cells.assign(
        score=means["probe"],
        low=np.min([each.low for each in intervals], axis=0),
        high=np.max([each.high for each in intervals], axis=0),
        baseline=[names[each] for each in toughest],
        score_baseline=np.stack([means[name] for name in names]).max(axis=0),
        **{name: tested[name] for name in ("excess", "excess_low", "excess_high")},
        **{name: tested[f"excess_{name}"] for name in _TESTED},
        score_seen=means["seen"],
        control=means["control"],
        **{name: selectivity[name] for name in ("selectivity", "selectivity_low", "selectivity_high")},
        **{name: selectivity[name] for name in ("selectivity_p", "selectivity_p_adjusted")},
        **{name: means.get(name, np.nan) for name in CONTROLS},
        bits=found.bits,
        compression=found.uniform / found.bits,
        compression_prior=found.prior / found.bits,
        compression_control=found.uniform / found.control_bits,
        n=len(labelled.words),
        n_documents=labelled.words["document"].nunique(),
        n_lemmas=np.nan if labelled.lemmas is None else len(set(labelled.lemmas)),
    )
    few = (frame[["n_documents", "n_lemmas"]] < FEWEST_CLUSTERS).any(axis=1)
    no_room = frame["score_baseline"] > 1 - asked.min_effect  # a control leaves no room to be better
    shown = (frame[["p_adjusted", "selectivity_p_adjusted"]] <= asked.alpha).all(axis=1)
    states = [few | no_room, shown, frame["p_absent"] <= asked.alpha]
    return frame.assign(verdict=np.select(states, ["undecided", "encodes", "none"], "undecided"))


def _tested(kind: str, tables: Sequence[UnitTable], minimum: float, asked: ProbeOptions) -> pd.DataFrame:
    """Documents and lemmas by themselves, as ``Claims.frame``; what is less sure of the two counts."""
    how: Any = {"correction": asked.correction, "alpha": asked.alpha, "seed": asked.seed}
    found = [claim([Held(table, minimum, counted=True)], alternative="greater", **how)[0] for table in tables]
    by_table = np.stack([each.frame(kind) for each in found])
    worst = by_table.max(axis=0)
    worst[:, 1] = by_table[..., 1].min(axis=0)  # the lower end of the interval
    return pd.DataFrame(worst, columns=Claims.columns(kind))


def frame_of(cells: Sequence[Part]) -> pd.DataFrame:
    """One row a cell: ``site``, ``layer`` and ``head`` as far as there are any."""
    rows = [(each.site.name, each.site.layer, head) for each in cells for head in each.heads or (None,)]
    return pd.DataFrame(rows, columns=list(CELL)).dropna(axis="columns")
