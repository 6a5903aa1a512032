"""What is said of probes: the findings in sentences, how to read the page, and what speaks against the scores.

The cell that speaks for all is the first of those that encode the feature, then of the largest excess. No sentence
claims anything without its numbers. What is said of the statistics is what ``interp.methods.probes.verdicts`` does.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.cells import and_p, capital, descending, is_are
from interp.report.heads_frames import Verdict
from interp.report.page_texts import CORRECTIONS, explained
from interp.report.words import FEWEST_CLUSTERS, MORE_CLUSTERS, counted, decimal, estimate, listed, percent

ENCODES, UNDECIDED, NONE = "encodes", "undecided", "none"
_MEANINGS = (
    (
        ENCODES,
        "●",
        "o",
        True,
        "the feature can be read there beyond every control, by the minimum at least, and selectively",
    ),
    (UNDECIDED, "?", r"$\mathbf{?}$", True, "the data are inconclusive"),
    (NONE, "·", ".", False, "what can be read beyond the toughest control is shown to be below the minimum"),
)
VERDICTS = {meaning[0]: Verdict(*meaning) for meaning in _MEANINGS}
BASELINES = ("majority", "embedding", "position", "untrained")
"""The controls of which the toughest is a cell's baseline."""
CONTROLS = (*BASELINES, "permuted")
CONTROL_NAMES = {
    "majority": "majority",
    "embedding": "embedding of the word",
    "position": "position",
    "untrained": "untrained model",
    "permuted": "permuted labels",
    "control": "control task",
    "score_seen": "score, known words",
}
"""What stands beside a score; the last is what the control task is held against."""
_MOST = 5
"""Further cells with a sentence of their own."""


@dataclass(frozen=True)
class Measure:
    """What a probe is scored by: its name, of what it is the share, and what the control called majority says.

    `in_points` are those that are written in parts of 100.
    """

    title: str
    meaning: str
    ignorant: str
    in_points: bool

    def value(self, score: float) -> str:
        """A score without an interval."""
        return percent(score) if self.in_points else decimal(score)

    def estimate(self, row: pd.Series, column: str, unit: str = "points") -> str:
        """A score, or a difference of scores, with its unit and its interval."""
        names = ("score", "low", "high") if column == "score" else (column, f"{column}_low", f"{column}_high")
        number, low, high = row[list(names)].astype(float)
        if self.in_points:
            return estimate(100 * number, 100 * low, 100 * high, unit, digits=1)
        return estimate(number, low, high)

    def reached(self, row: pd.Series) -> str:
        """What a cell reaches, on how many words."""
        words = counted(int(row["n"]), "word")
        if self.in_points:
            return self.estimate(row, "score", f"% of {words} right")
        return f"{self.title} {self.estimate(row, 'score')} on {words}"


_VARIANCE = "the share of the number's variance that is explained: below 0 where the mean is nearer"
_MEASURES = {
    "accuracy": Measure("accuracy", "the share of the words whose class is found", "always the commonest class", True),
    "R2": Measure("R²", _VARIANCE, "always the mean", False),
}


def measure_of(result: Any) -> Measure:
    """What the probes are scored by."""
    return _MEASURES[result.provenance["measure"]]


def scale_of(result: Any, column: str) -> tuple[float, float]:
    """What has no colour, and how far from there the strongest is: the majority's level, or 0, as far as to 1."""
    majority = float(result.cells["majority"].max())
    return 0.0 if column == "selectivity" else majority, max(1 - majority, 0.01)


def minimum_of(result: Any) -> str:
    """The smallest excess that counts."""
    minimum = result.provenance["min_effect"]
    return f"{100 * minimum:g} points" if measure_of(result).in_points else f"{minimum:g}"


def cell_name(row: pd.Series) -> str:
    """A cell in lists: a head as L.H, a layer by its number, else its site."""
    if "head" in row:
        return f"{row['layer']}.{row['head']}"
    return str(row["layer"] if "layer" in row else row["site"])


def cell_kind(result: Any) -> str:
    """What cells are: ``head``, ``layer`` or ``place``."""
    return next((kind for kind in ("head", "layer") if kind in result.cells), "place")


def spoken(result: Any, row: pd.Series) -> str:
    """A cell as the subject of a sentence."""
    kind = cell_kind(result)
    return cell_name(row) if kind == "place" else f"{kind} {cell_name(row)}"


def ranked(cells: pd.DataFrame) -> pd.DataFrame:
    """Those that encode the feature first, then by their excess; of equal excess, the more selective first."""
    return descending(cells, cells["verdict"] == ENCODES, "excess", "selectivity")


def of_task(result: Any) -> bool:
    """Whether the words are a task's: their templates have names."""
    return bool((result.words["template"].fillna("").astype(str) != "").any())


def resampled(result: Any) -> dict[str, int]:
    """What is resampled, and how many there are: a task's lexical draws, or documents, which may be lemmas themselves.

    Beside them lemmas, where these are held out and are something else.
    """
    first, same = result.cells.iloc[0], (result.words["lemma"] == result.words["document"]).all()
    found = {"cluster" if of_task(result) else "document": int(first["n_documents"])}
    return found if same or result.cells["n_lemmas"].isna().any() else {**found, "lemma": int(first["n_lemmas"])}


def counts(result: Any) -> str:
    """How many there are of what is resampled."""
    return " and ".join(counted(n, name) for name, n in resampled(result).items())


@dataclass(frozen=True)
class ProbeSummary:
    """What was found: ``encodes`` if any cell does, ``none`` if all are shown not to, else ``undecided``; in words."""

    verdict: str
    headline: str
    notes: tuple[str, ...]
    findings: tuple[str, ...]


def summarise(result: Any) -> ProbeSummary:
    """Put what was found into sentences."""
    verdicts = set(result.cells["verdict"])
    verdict = ENCODES if ENCODES in verdicts else NONE if verdicts == {NONE} else UNDECIDED
    findings = (*_others(result), *_counts(result), *_undecided(result))
    return ProbeSummary(verdict, _headline(result, verdict), _notes(result), findings)


def _headline(result: Any, verdict: str) -> str:
    best, feature, kind = ranked(result.cells).iloc[0], result.provenance["feature"], cell_kind(result)
    who, evidence = capital(spoken(result, best)), f"{_evidence(result, best)}; {counts(result)}"
    alone, which = len(result.cells) == 1, f"best {kind}, {cell_name(best)}"
    if verdict == ENCODES:
        return f"{who} encodes {feature}: {evidence}."
    if verdict == NONE:
        said = f"{who} does not encode" if alone else f"No {kind} encodes"
        least = f"by the minimum of {minimum_of(result)} beyond its controls"
        return f"{said} {feature} {least}: {'' if alone else f'the {which}: '}{evidence}."
    return f"Undecided: {feature}. {who if alone else f'The {which}'}: {evidence}; {why_undecided(result, best)}."


def _evidence(result: Any, row: pd.Series) -> str:
    """The numbers of a cell: what it reaches, what a control reaches, and how much more that is."""
    measure = measure_of(result)
    beside = f"{measure.value(row['score_baseline'])} ({CONTROL_NAMES[row['baseline']]})"
    excess = f"{measure.estimate(row, 'excess')}{and_p(row['p_adjusted'])}"
    selectivity = measure.estimate(row, "selectivity")
    return f"{measure.reached(row)}, beside {beside}; excess {excess}; selectivity {selectivity}"


def _notes(result: Any) -> tuple[str, ...]:
    """How easy the feature is to extract, which controls the excess is not over, and what did not converge."""
    best, how, notes = ranked(result.cells).iloc[0], result.provenance, []
    if not pd.isna(best["bits"]):
        notes.append(
            f"Description length: {best['bits']:,.0f} bits for all {best['n']:,} labels with {spoken(result, best)}, a "
            f"compression of {best['compression']:.2f} (of the control task's labels "
            f"{best['compression_control']:.2f}; 1 is none)."
        )
    missing = [CONTROL_NAMES[name] for name in BASELINES if result.cells[name].isna().all()]
    if missing:
        notes.append(f"Not measured: {listed(missing)}. The excess is over the toughest of the other controls.")
    if how.get("n_unconverged"):
        notes.append(f"{how['n_unconverged']:,} of {how['n_probes']:,} probes did not converge.")
    if "cpu" in how.get("fitted_on", "") and how["device"] != "cpu":
        notes.append("Probes as few as these were fitted on the CPU, which is through with them sooner than the GPU.")
    return tuple(notes)


def _others(result: Any) -> list[str]:
    """The further cells that encode the feature: the first with their numbers, the rest by name."""
    further = ranked(result.cells).iloc[1:]
    further = further[further["verdict"] == ENCODES]
    own = [
        f"{capital(spoken(result, row))} encodes it too: {_evidence(result, row)}."
        for _, row in further.head(_MOST).iterrows()
    ]
    rest = [cell_name(row) for _, row in further.iloc[_MOST:].iterrows()]
    verb = "encodes" if len(rest) == 1 else "encode"
    return own + ([f"{_named(result, rest)} {verb} it too."] if rest else [])


def _named(result: Any, names: list[str]) -> str:
    """Cells as the beginning of a sentence."""
    kind = cell_kind(result)
    if len(names) == len(result.cells):
        return f"All {kind}s"
    return capital(f"{kind}{'s' if len(names) > 1 else ''} {listed(names)}")


def _counts(result: Any) -> list[str]:
    """How many cells got which verdict."""
    found, n_cells, kind = Counter(result.cells["verdict"]), len(result.cells), cell_kind(result)
    if n_cells == 1:
        return []
    less = f"less than {minimum_of(result)} beyond the controls"
    said = {
        ENCODES: ("encodes it", "encode it"),
        UNDECIDED: ("is undecided", "are undecided"),
        NONE: (f"has {less}", f"have {less}"),
    }
    parts = [(found[name], texts[found[name] > 1]) for name, texts in said.items() if name in found]
    if len(parts) == 1:
        return [f"All {n_cells} {kind}s {parts[0][1]}."]
    return [f"Of {counted(n_cells, kind)}, {listed([f'{n} {text}' for n, text in parts])}."]


def _undecided(result: Any) -> list[str]:
    """Why cells are undecided, those with one reason together."""
    rows = ranked(result.cells)
    rows = rows[rows["verdict"] == UNDECIDED]
    if len(result.cells) == 1 or rows.empty:
        return []
    names = pd.Series([cell_name(row) for _, row in rows.iterrows()])
    reasons = [why_undecided(result, row) for _, row in rows.iterrows()]
    by_reason = names.groupby(reasons, sort=False).agg(list)
    return [f"{_named(result, own)} {is_are(len(own))} undecided: {reason}." for reason, own in by_reason.items()]


def why_undecided(result: Any, row: pd.Series) -> str:
    """What is missing for a verdict on a cell, as a clause."""
    minimum, names = f"the minimum of {minimum_of(result)}", resampled(result)
    if row["n_documents"] < FEWEST_CLUSTERS:
        return f"a verdict needs {FEWEST_CLUSTERS} {next(iter(names))}s" + f": {MORE_CLUSTERS}" * of_task(result)
    if row["n_lemmas"] < FEWEST_CLUSTERS:
        return f"a verdict needs {FEWEST_CLUSTERS} lemmas"
    if row["score_baseline"] > 1 - result.provenance["min_effect"]:
        return f"the control leaves less than {minimum} of room for improvement"
    if pd.isna(row["excess_low"]):
        return f"it is not known how much {_plural(names)} differ"
    if row["p_adjusted"] > result.provenance["alpha"]:
        return f"neither an excess is shown, nor that it is less than {minimum}"
    return "its selectivity is not shown to be above 0"


def _plural(names: Iterable[str]) -> str:
    return " and ".join(f"{name}s" for name in names)


def how_to_read(result: Any) -> list[tuple[str, str]]:
    """What the page's terms mean, as (term, explanation) pairs."""
    measure, groups, how = measure_of(result), _plural(resampled(result)), result.provenance
    two = "lemmas" in groups
    terms = explained(
        "probes",
        measure=measure,
        unit="in points of 100 words" if measure.in_points else "as a share of the variance",
        groups=groups,
        either=groups.replace("and", "or"),
        wider="; of the two the wider counts" if two else "",
        larger="; of the two the larger counts" if two else "",
        kind=cell_kind(result),
        fewest=FEWEST_CLUSTERS,
        correction=CORRECTIONS[how["correction"]],
        minimum=minimum_of(result),
        alpha=how["alpha"],
    )
    return [(term, text) for term, text in terms.items() if term != "Cluster" or of_task(result)]


def cautions(result: Any) -> list[str]:
    """What speaks against the scores: that the embedding alone reaches the best, or that no probe is selective."""
    measure, cells, said = measure_of(result), result.cells, []
    best = cells.loc[cells["score"].idxmax()]
    says_something = best["embedding"] - best["majority"] >= result.provenance["min_effect"]
    if says_something and best["embedding"] >= best["low"]:
        said.append(
            "The word itself gives the feature away: a probe on its embedding alone reaches "
            f"{measure.value(best['embedding'])}, the best score is {measure.estimate(best, 'score', '%')} "
            f"({spoken(result, best)}). What is read there need not have been computed by the model: read another "
            "word, or balance the data."
        )
    low = cells["selectivity_low"]
    if low.notna().any() and not (low > 0).any():
        said.append(
            "Nothing is selective: no probe is shown to do better at the feature than at the control task, whose "
            "labels it can only learn by heart. The scores say as much of the probe as of the model."
        )
    return said
