"""Which cells encode the feature? Intervals over documents and lemmas, one family of tests over all cells, verdicts.

1. The **baseline** of a cell is the control that reaches most there: majority, embedding, position, the untrained
   model. The **excess** is the score less the baseline's, word by word. Choosing the toughest control on the scored
   words themselves can only make it tougher.
2. Documents are resampled. Where lemmas are held out, words of one lemma are not independent either: a head that knows
   words alone is right or wrong about a new lemma as a whole, and 40 lemmas have luck that 10,000 words hide. So lemmas
   are resampled, too, and the wider interval and the larger p count.
3. ``encodes``: an excess of no more than the minimum is rejected, over all cells, and so is a selectivity of no more
   than 0. ``none``: an excess of the minimum at least is rejected. What is neither, or has too few documents or lemmas,
   or a control that leaves less than the minimum to be better by, is ``undecided``.

Cameron, Gelbach & Miller (2011), "Robust inference with multiway clustering".

Where are probes fitted? Heads of a site that has heads, or layers of one that has none.

What does one get of probing? A table of cells with their controls, and how it was made; see ``probing.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.arguments import numbers_below
from interp.claims.bootstrap import FEWEST_CLUSTERS, cluster_bootstrap
from interp.claims.claim import Claims, claim
from interp.claims.claim import Measured as Held
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError, suggest
from interp.methods.ablation import Head
from interp.methods.in_one_line import counted_verdicts
from interp.methods.probes.data import Labelled
from interp.methods.probes.scores import Measured
from interp.model.sites import SITES, Site, is_layered

BASELINES = ("majority", "embedding", "position", "untrained")
CONTROLS = (*BASELINES, "permuted")

PerCell = Float[np.ndarray, " cell"]
Values = Float[np.ndarray, "#cell example"]


def tabulate(cells: pd.DataFrame, found: Measured, labelled: Labelled, how: Mapping[str, Any]) -> pd.DataFrame:
    """One row a cell: scores beside their controls, tests and verdicts.

    Args:
        cells: Labels of the cells.
        found: What was measured.
        labelled: The examples.
        how: ``minimum``, ``alpha``, ``correction`` and ``seed``.
    """
    index = pd.MultiIndex.from_frame(cells)

    def tables(values: Values) -> list[UnitTable]:
        wide = np.ascontiguousarray(np.broadcast_to(values, (len(cells), values.shape[1])).T)
        return [UnitTable(wide, names, labelled.strata, index) for names in labelled.resampled]

    means = {name: estimates(tables(each)[0]) for name, each in found.scores.items()}
    names = [name for name in BASELINES if name in means]
    toughest = np.stack([means[name] for name in names]).argmax(axis=0)
    base = np.stack([np.broadcast_to(found.scores[name], found.scores["probe"].shape) for name in names])
    excess = tables(found.scores["probe"] - base[toughest, np.arange(len(cells))])
    selective = tables(found.scores["seen"] - found.scores["control"])
    tested, of_selectivity = _tested(excess, how["minimum"], how), _tested(selective, 0.0, how)
    # The toughest control was chosen on these words, which makes the excess small: that must not pass for an absence.
    tested["p_absent"] = np.minimum(1.0, len(names) * tested["p_absent"])
    frame = cells.assign(
        **_interval("score", "", tables(found.scores["probe"]), how),
        baseline=[names[each] for each in toughest],
        score_baseline=np.stack([means[name] for name in names]).max(axis=0),
        **_interval("excess", "excess_", excess, how),
        **tested,
        score_seen=means["seen"],
        control=means["control"],
        **_interval("selectivity", "selectivity_", selective, how),
        **{f"selectivity_{name}": of_selectivity[name] for name in ("p", "p_adjusted")},
        **{name: means.get(name, np.nan) for name in CONTROLS},
        bits=found.bits,
        compression=found.uniform / found.bits,
        compression_prior=found.prior / found.bits,
        compression_control=found.uniform / found.control_bits,
        n=len(labelled.values),
        n_documents=len(set(labelled.clusters)),
        n_lemmas=np.nan if labelled.lemmas is None else len(set(labelled.lemmas)),
    )
    return frame.assign(verdict=[_verdict(row, how) for row in frame.to_dict("records")])


def _interval(name: str, prefix: str, tables: Sequence[UnitTable], how: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The estimate, and the ends of the widest of the intervals."""
    found = [cluster_bootstrap(table, seed=how["seed"]) for table in tables]
    return {
        name: found[0].estimate,
        f"{prefix}low": np.min([each.low for each in found], axis=0),
        f"{prefix}high": np.max([each.high for each in found], axis=0),
    }


_TESTED = ("p", "p_adjusted", "p_absent", "standard_error", "critical")


def _tested(tables: Sequence[UnitTable], minimum: float, how: Mapping[str, Any]) -> dict[str, PerCell]:
    """Documents and lemmas by themselves; what is less sure of the two counts."""
    found: list[Claims] = [
        claim(
            [Held(table, minimum, counted=True)],
            alternative="greater",
            correction=how["correction"],
            alpha=how["alpha"],
            seed=how["seed"],
        )[0]
        for table in tables
    ]
    return {name: np.max([getattr(each, name) for each in found], axis=0) for name in _TESTED}


def _verdict(row: Mapping[Any, Any], how: Mapping[str, Any]) -> str:
    if row["n_documents"] < FEWEST_CLUSTERS or row["n_lemmas"] < FEWEST_CLUSTERS:
        return "undecided"
    if row["score_baseline"] > 1 - how["minimum"]:  # a control leaves no room to be better
        return "undecided"
    if row["p_adjusted"] <= how["alpha"] and row["selectivity_p_adjusted"] <= how["alpha"]:
        return "encodes"
    return "none" if row["p_absent"] <= how["alpha"] else "undecided"


@dataclass(frozen=True)
class SiteCells:
    """The cells of one site: its heads, or itself.

    Attributes:
        site: With its layer.
        heads: Which; None where it has none.
    """

    site: Site
    heads: tuple[int, ...] | None


def distinct_sites(site: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the sites that are meant.

    Raises:
        InputError: An unknown site, one twice, none, or some that have heads beside some that have none.
    """
    names = (site,) if isinstance(site, str) else tuple(site)
    for name in names:
        if name not in SITES:
            raise InputError(f"no site is called {name!r}; {suggest(str(name), SITES)}")
    if not names or len(set(names)) < len(names):
        raise InputError(f"site: expected different ones, at least one, got {list(names)}")
    kinds = {(is_layered(name), "head" in SITES[name][1]) for name in names}
    if len(kinds) > 1:
        raise InputError(
            f"site: expected sites of heads, or sites of layers, got {', '.join(names)}; probe them one after the other"
        )
    return names


def choose_cells(
    site: str,
    shape: tuple[int, int],
    layers: Sequence[int] | None = None,
    heads: Sequence[Head] | None = None,
) -> list[SiteCells]:
    """The cells that are meant, layer by layer.

    Args:
        site: The name of one, such as ``z`` or ``resid_post``.
        shape: Layers, and heads of a layer.
        layers: Which; None for all.
        heads: ``(layer, head)`` pairs; None for all of these layers.

    Raises:
        InputError: A site of pairs of positions; layers or heads that the model does not have, or
            heads of a site without heads.
    """
    axes = SITES[site][1]
    if axes[1] != "pos":
        raise InputError(f"site {site!r}: a word has no activation of its own there; take z, or a point of the stream")
    if heads is not None and (layers is not None or "head" not in axes):
        raise InputError(f"heads: expected them without layers, and a site that has heads, got site {site!r}")
    n_layers, n_heads = shape
    if not is_layered(site):
        return [SiteCells(Site(site), None)]
    if heads is not None:
        return _of_heads(site, heads, shape)
    chosen = range(n_layers) if layers is None else sorted(numbers_below(n_layers, "layers", layers))
    every = tuple(range(n_heads)) if "head" in axes else None
    return [SiteCells(Site(site, layer), every) for layer in chosen]


def frame_of(cells: Sequence[SiteCells]) -> pd.DataFrame:
    """One row a cell: ``site``, ``layer`` and ``head`` as far as there are any."""
    rows = [
        {"site": each.site.name, "layer": each.site.layer, "head": head}
        for each in cells
        for head in (each.heads if each.heads is not None else (None,))
    ]
    frame = pd.DataFrame(rows)
    return frame[[name for name in frame.columns if frame[name].notna().all()]]


def _of_heads(site: str, heads: Sequence[Head], shape: tuple[int, int]) -> list[SiteCells]:
    chosen: dict[int, set[int]] = {}
    for layer, head in heads:
        if not (0 <= layer < shape[0] and 0 <= head < shape[1]):
            raise InputError(
                f"head {layer}.{head}: there are {shape[0]} layers (0 to {shape[0] - 1}) of {shape[1]} heads (0 to "
                f"{shape[1] - 1}); choose one of these"
            )
        chosen.setdefault(layer, set()).add(head)
    if not chosen:
        raise InputError("heads: expected (layer, head) pairs, got none")
    return [SiteCells(Site(site, layer), tuple(sorted(chosen[layer]))) for layer in sorted(chosen)]


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
