"""What does one get of probing? A table of cells with their controls, and how it was made; see ``probing.py``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from interp.errors import InputError, suggest
from interp.methods.in_one_line import counted_verdicts

CELL = ("site", "layer", "head")


@dataclass(frozen=True, repr=False)
class ProbeResult:
    """How well a feature can be read at every cell, beside its controls.

    Attributes:
        frame: One row a cell: ``site``, ``layer``, ``head`` (where the site has heads); ``score`` (accuracy; R^2 of a
            number) on documents and lemmas that the probe was not trained on, with its 95 % interval ``low``, ``high``
            (documents, or lemmas, resampled: the wider); ``baseline`` (the control that reaches most),
            ``score_baseline``; ``excess`` over it with ``excess_low``, ``excess_high``; ``p`` (that it is no more than
            the minimum; documents, or lemmas, resampled: the larger), ``p_adjusted`` (over all cells), ``p_absent``
            (that it is the minimum at least, over all cells and whichever control is the toughest),
            ``standard_error`` and ``critical`` (standard errors that the test asks for); ``score_seen`` and ``control``
            (the feature and the control task, on folds in which words may be known from training), ``selectivity``
            (their difference) with its interval; the controls ``majority``, ``embedding``, ``position``, ``untrained``,
            ``permuted``; ``bits`` (description length of all labels), ``compression`` (the uniform code's length over
            it), ``compression_prior`` (that of a code that learns the classes' frequencies), ``compression_control``
            (of the control task); ``n`` words, ``n_documents`` (of a task lexical draws), ``n_lemmas`` (NaN where none
            are held out), ``verdict``. What was not measured is NaN.
        examples: One row a word: where it stands, its ``value``, ``carrier`` and ``lemma``.
        provenance: How the numbers were made.
    """

    frame: pd.DataFrame
    examples: pd.DataFrame
    provenance: Mapping[str, Any]

    def __repr__(self) -> str:
        best = self.best().iloc[0]
        name = " ".join(f"{name} {best[name]}" for name in CELL if name in best and not pd.isna(best[name]))
        verdicts = counted_verdicts(self.frame)
        return (
            f"ProbeResult({self.provenance['feature']}: {verdicts}; best {name}: {self.provenance['measure']} "
            f"{best['score']:.3f}, {best['baseline']} {best['score_baseline']:.3f}, selectivity "
            f"{best['selectivity']:.3f})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.probes import probes_glance

        return as_html(probes_glance(self))

    def best(self, n: int = 1) -> pd.DataFrame:
        """The first `n` cells: those that encode before others, then by their excess."""
        encodes = self.frame["verdict"] == "encodes"
        order = self.frame.assign(encodes=encodes).sort_values(["encodes", "excess"], ascending=False, kind="stable")
        return self.frame.loc[order.index[:n]]

    def at(self, site: str) -> "ProbeResult":
        """What was found at one of several sites; p and verdicts stay those of all.

        Raises:
            InputError: Nothing was probed there.
        """
        rows = self.frame["site"] == site
        if not rows.any():
            raise InputError(f"nothing was probed at {site!r}; {suggest(site, self.frame['site'].unique())}")
        return replace(
            self, frame=self.frame[rows].reset_index(drop=True), provenance={**self.provenance, "site": site}
        )

    def save(self, out: str | Path) -> Path:
        """Write tables, figures and one self-contained page into the folder `out`; see ``save_probes``.

        Args:
            out: The folder; made, or replaced where it holds an older report.

        Raises:
            OutputError: If `out` cannot be used.
            InputError: If several sites were probed: a page shows one of them, see ``at``.
        """
        sites = self.frame["site"].unique()
        if len(sites) > 1:
            raise InputError(
                f"a page shows one site, got {', '.join(sites)}; save each: result.at({sites[0]!r}).save(...)"
            )
        from interp.report.probes import save_probes

        return save_probes(self, out)
