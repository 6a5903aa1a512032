"""What was found, in words that can be quoted? No claim without its numbers.

1. The **headline**: the cell that speaks for all (``leading.py``), what it reaches, its toughest control, the excess
   with p, and selectivity; or that nothing is shown, or decided.
2. **Notes**: how short a description of the labels it gives, which controls were not measured, what did not converge.
3. **Findings**: the other cells that encode the feature, how many got which verdict, and why some are undecided.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.amounts import counted, listed, p_value
from interp.report.probes.frames import BASELINES, ProbeFrames, measure_of
from interp.report.probes.leading import ranked
from interp.report.probes.verdicts import ENCODES, NONE, UNDECIDED
from interp.report.probes.words import CONTROLS, cell_kind, cell_name, clusters, counts, of_task, resampled, spoken
from interp.report.verdicts import FEWEST_CLUSTERS, MORE_CLUSTERS

_MOST = 5
"""Further cells with a sentence of their own."""


@dataclass(frozen=True)
class ProbeSummary:
    """What the evidence says.

    Attributes:
        verdict: ``encodes`` if any cell does, ``none`` if all are shown not to, else ``undecided``.
        headline: What was found, to be quoted.
        notes: What else to know of it.
        findings: What was found of the other cells.
    """

    verdict: str
    headline: str
    notes: tuple[str, ...]
    findings: tuple[str, ...]


def summarise(frames: ProbeFrames) -> ProbeSummary:
    """Put what was found into sentences."""
    verdicts = set(frames.frame["verdict"])
    verdict = ENCODES if ENCODES in verdicts else NONE if verdicts == {NONE} else UNDECIDED
    notes = (_description(frames), *_unmeasured(frames), _unconverged(frames.provenance))
    findings = (*_others(frames), _counts(frames), *_undecided(frames))
    return ProbeSummary(verdict, _headline(frames, verdict), _said(notes), _said(findings))


def _said(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, texts))


def _headline(frames: ProbeFrames, verdict: str) -> str:
    best = ranked(frames.frame).iloc[0]
    feature, kind, alone = frames.provenance["feature"], cell_kind(frames), len(frames.frame) == 1
    who, evidence = _capital(spoken(frames, best)), f"{_evidence(frames, best)}; {counts(frames)}"
    if verdict == ENCODES:
        return f"{who} encodes {feature}: {evidence}."
    if verdict == NONE:
        said = f"{who} does not encode" if alone else f"No {kind} encodes"
        which = "" if alone else f"the best {kind}, {cell_name(best)}: "
        by = f"by the minimum of {_minimum(frames)} beyond its controls"
        return f"{said} {feature} {by}: {which}{evidence}."
    which = who if alone else f"The best {kind}, {cell_name(best)}"
    return f"Undecided: {feature}. {which}: {evidence}; {why_undecided(frames, best)}."


def _evidence(frames: ProbeFrames, row: pd.Series) -> str:
    """The numbers of a cell: what it reaches, what a control reaches, and how much more that is."""
    measure = measure_of(frames)
    excess = f"{measure.difference(row['excess'])} {measure.interval(row['excess_low'], row['excess_high'])}"
    p = p_value(row["p_adjusted"])
    selectivity = measure.interval(row["selectivity_low"], row["selectivity_high"])
    return (
        f"{measure.reached(row)}, beside {measure.value(row['score_baseline'])} ({CONTROLS[row['baseline']]}); excess "
        f"{excess}{f', {p}' if p else ''}; selectivity {measure.difference(row['selectivity'])} {selectivity}"
    )


def _description(frames: ProbeFrames) -> str:
    best = ranked(frames.frame).iloc[0]
    if pd.isna(best["bits"]):
        return ""
    return (
        f"Description length: {best['bits']:,.0f} bits for all {best['n']:,} labels with {spoken(frames, best)}, a "
        f"compression of {best['compression']:.2f} (of the control task's labels {best['compression_control']:.2f}; 1 "
        "is none)."
    )


def _unmeasured(frames: ProbeFrames) -> list[str]:
    """Which controls the excess is not over."""
    missing = [CONTROLS[name] for name in BASELINES if frames.frame[name].isna().all()]
    if not missing:
        return []
    return [f"Not measured: {listed(missing)}. The excess is over the toughest of the other controls."]


def _unconverged(how: Mapping[str, Any]) -> str:
    if not how.get("n_unconverged"):
        return ""
    return f"{how['n_unconverged']:,} of {how['n_probes']:,} probes did not come to their optimum."


def _others(frames: ProbeFrames) -> list[str]:
    """The further cells that encode the feature: the first with their numbers, the rest by name."""
    further = ranked(frames.frame).iloc[1:]
    further = further[further["verdict"] == ENCODES]
    own = [
        f"{_capital(spoken(frames, row))} encodes it too: {_evidence(frames, row)}."
        for _, row in further.head(_MOST).iterrows()
    ]
    rest = [cell_name(row) for _, row in further.iloc[_MOST:].iterrows()]
    kinds = f"{cell_kind(frames)}{'s' if len(rest) > 1 else ''}"
    return own + ([f"So {'do' if len(rest) > 1 else 'does'} {kinds} {listed(rest)}."] if rest else [])


def _counts(frames: ProbeFrames) -> str:
    """How many cells got which verdict."""
    verdicts = frames.frame["verdict"].value_counts()
    n_cells = len(frames.frame)
    if n_cells == 1:
        return ""
    texts = {
        ENCODES: "encodes it" if verdicts.get(ENCODES) == 1 else "encode it",
        UNDECIDED: "is undecided" if verdicts.get(UNDECIDED) == 1 else "are undecided",
        NONE: f"{'has' if verdicts.get(NONE) == 1 else 'have'} less than {_minimum(frames)} beyond the controls",
    }
    parts = [f"{verdicts[name]} {text}" for name, text in texts.items() if name in verdicts]
    if len(parts) == 1:
        return f"All {parts[0].replace(' ', f' {cell_kind(frames)}s ', 1)}."
    return f"Of {counted(n_cells, cell_kind(frames))}, {listed(parts)}."


def _undecided(frames: ProbeFrames) -> list[str]:
    """Why cells are undecided, those with one reason together."""
    rows = ranked(frames.frame)
    rows = rows[rows["verdict"] == UNDECIDED]
    if len(frames.frame) == 1 or rows.empty:
        return []
    reasons = pd.Series([why_undecided(frames, row) for _, row in rows.iterrows()], index=rows.index)
    return [
        f"Undecided {_names(frames, rows[reasons == reason])}: {reason}." for reason in dict.fromkeys(reasons.tolist())
    ]


def _names(frames: ProbeFrames, rows: pd.DataFrame) -> str:
    kind, names = cell_kind(frames), [cell_name(row) for _, row in rows.iterrows()]
    if len(names) == len(frames.frame):
        return f"are all {kind}s"
    return f"is {kind} {names[0]}" if len(names) == 1 else f"are {kind}s {listed(names)}"


def why_undecided(frames: ProbeFrames, row: pd.Series) -> str:
    """What is missing for a verdict on a cell, as a clause."""
    if row["n_documents"] < FEWEST_CLUSTERS:
        return f"a verdict needs {FEWEST_CLUSTERS} {clusters(frames)}s" + f": {MORE_CLUSTERS}" * of_task(frames)
    if row["n_lemmas"] < FEWEST_CLUSTERS:
        return f"a verdict needs {FEWEST_CLUSTERS} lemmas"
    if row["score_baseline"] > 1 - frames.provenance["minimum"]:
        return f"the control leaves less than the minimum of {_minimum(frames)} to be better by"
    if pd.isna(row["excess_low"]):
        return f"how much {resampled(frames)} differ is not known"
    if row["p_adjusted"] > frames.provenance["alpha"]:
        return f"neither an excess is shown, nor that it is less than the minimum of {_minimum(frames)}"
    return "that its selectivity is above 0 is not shown"


def _minimum(frames: ProbeFrames) -> str:
    measure, minimum = measure_of(frames), frames.provenance["minimum"]
    return f"{100 * minimum:g} points" if measure.in_points else f"{minimum:g}"


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
