"""What cells, sites, features, verdicts and controls of probes are called, and how a score is written."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import pandas as pd

from interp.report.heads_frames import Verdict
from interp.report.words import counted, decimal, percent, points


@dataclass(frozen=True)
class Measure:
    """What a probe is scored by.

    Attributes:
        title: Its name for readers.
        meaning: Of what it is the share.
        ignorant: What the control called majority says.
        in_points: Whether it is written in parts of 100.
    """

    title: str
    meaning: str
    ignorant: str
    in_points: bool

    def value(self, score: float) -> str:
        """A score."""
        return percent(score) if self.in_points else decimal(score, 3)

    def difference(self, difference: float) -> str:
        """A difference of scores, with its unit."""
        return f"{self.plain(difference)} points" if self.in_points else self.plain(difference)

    def interval(self, low: float, high: float) -> str:
        """An interval of scores, or of differences; said where none is known."""
        if math.isnan(low) or math.isnan(high):
            return "(no interval)"
        return f"[{self.plain(low)}, {self.plain(high)}]"

    def reached(self, row: pd.Series) -> str:
        """What a cell reaches, on how many words."""
        words, ends = counted(int(row["n"]), "word"), self.interval(row["low"], row["high"])
        if self.in_points:
            return f"{self.value(row['score'])} of {words} right {ends}"
        return f"{self.title} {self.value(row['score'])} {ends} on {words}"

    def plain(self, number: float) -> str:
        """A score or a difference without a unit."""
        return points(number) if self.in_points else self.value(number)


MEASURES = {
    "accuracy": Measure("accuracy", "the share of the words whose class is found", "always the commonest class", True),
    "R2": Measure(
        "R²",
        "the share of the number's variance that is explained: below 0 where the mean is nearer",
        "always the mean",
        False,
    ),
}


ENCODES, UNDECIDED, NONE = "encodes", "undecided", "none"
VERDICTS = {
    verdict.name: verdict
    for verdict in (
        Verdict(
            ENCODES,
            "●",
            "o",
            True,
            "the feature can be read there beyond every control, by the minimum at least, and selectively",
        ),
        Verdict(UNDECIDED, "?", r"$\mathbf{?}$", True, "the data do not decide"),
        Verdict(NONE, "·", ".", False, "what can be read beyond the toughest control is shown to be below the minimum"),
    )
}


BASELINES = ("majority", "embedding", "position", "untrained")
"""The controls of which the toughest is a cell's baseline."""
CONTROLS = (*BASELINES, "permuted")


@runtime_checkable
class Probed(Protocol):
    """Cells that were probed for a feature: a ``ProbeResult``."""

    @property
    def cells(self) -> pd.DataFrame:
        """One row per cell."""

    @property
    def words(self) -> pd.DataFrame:
        """One row per word that was read."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""

    def at(self, site: str) -> Self:
        """What was found at one of several sites."""


def sites_of(result: Probed) -> list[str]:
    """The sites that were probed."""
    return list(dict.fromkeys(result.cells["site"]))


def measure_of(result: Probed) -> Measure:
    """What the probes are scored by."""
    return MEASURES[result.provenance["measure"]]


def has_heads(result: Probed) -> bool:
    """Whether cells are heads; else they are layers, or a single place before them."""
    return "head" in result.cells


def scale_of(result: Probed, column: str) -> tuple[float, float]:
    """What has no colour, and what has the strongest: the majority's level and 1; of selectivity 0, and as much."""
    majority = float(result.cells["majority"].max())
    span = max(1 - majority, 0.01)
    low = 0.0 if column == "selectivity" else majority
    return low, low + span


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
KINDS = {
    "logistic": "logistic regression (linear), penalised by L2",
    "ridge": "least squares (linear), penalised by L2",
    "lda": "linear discriminant analysis, shrunk",
    "mlp": "a network with one hidden layer (not linear), by weight decay",
}
_SITES = {
    "z": "what each head reads off the words that it attends to",
    "result": "what each head writes into the stream",
    "q": "queries",
    "k": "keys",
    "v": "values",
    "embed": "embeddings of tokens",
    "pos_embed": "embeddings of positions",
    "resid_pre": "the stream before each layer",
    "resid_mid": "the stream between each layer's attention and its MLP",
    "resid_post": "the stream after each layer",
    "attn_out": "what each layer's attention writes",
    "mlp_out": "what each layer's MLP writes",
    "mlp_pre": "neurons of each layer's MLP, before their function",
    "mlp_post": "neurons of each layer's MLP",
}
_FEATURES = {
    "upos": "universal part of speech of the word that is read",
    "deprel": "dependency label of the word that is read, without its subtype",
    "distance": "how many words after the word that is read its head stands (below 0: before it)",
    "entity": "type of the entity that is mentioned, read at the mention's head",
    "number": "number of a verb's subject, read at the word before the verb",
    "gender": "gender of a pronoun's antecedent, read at the word before the pronoun",
    "antecedent": "lemma of a pronoun's antecedent, read at the pronoun",
}


def cell_name(row: pd.Series) -> str:
    """A cell in lists: a head as L.H, a layer by its number, else its site."""
    if "head" in row:
        return f"{row['layer']}.{row['head']}"
    return str(row["layer"] if "layer" in row else row["site"])


def cell_kind(result: Probed) -> str:
    """What cells are: ``head``, ``layer`` or ``place``."""
    return next((kind for kind in ("head", "layer") if kind in result.cells), "place")


def spoken(result: Probed, row: pd.Series) -> str:
    """A cell as the subject of a sentence."""
    kind = cell_kind(result)
    return cell_name(row) if kind == "place" else f"{kind} {cell_name(row)}"


def site_name(result: Probed) -> str:
    """The site, and what it is."""
    site = str(result.provenance["site"])
    return f"{site} ({_SITES[site]})" if site in _SITES else site


def feature_name(result: Probed) -> str:
    """The feature, and where it is read."""
    name = str(result.provenance["feature"])
    kind, colon, rest = name.partition(":")
    if of_task(result):
        return f"{name}, as the task's examples have it"
    if colon and kind in ("feats", "sense"):
        what = f"morphological feature {rest}" if kind == "feats" else f"sense of “{rest}”"
        return f"{name}: {what} of the word that is read"
    return f"{name}: {_FEATURES[name]}" if name in _FEATURES else name


def subject(result: Probed) -> str:
    """What is read, where, and of which model: the beginning of a figure's title."""
    how = result.provenance
    return f"{how['feature']} in {how['site']} of {how.get('model', 'a model')}"


def of_task(result: Probed) -> bool:
    """Whether the words are a task's: their templates have names."""
    return bool((result.words["template"].fillna("").astype(str) != "").any())


def clusters(result: Probed) -> str:
    """What is resampled beside lemmas: documents, or a task's lexical draws."""
    return "cluster" if of_task(result) else "document"


def resampled(result: Probed) -> str:
    """All that is resampled: lemmas too, where they are held out and are not the clusters themselves."""
    return f"{clusters(result)}s and lemmas" if _with_lemmas(result) else f"{clusters(result)}s"


def counts(result: Probed) -> str:
    """How many there are of what is resampled."""
    first = result.cells.iloc[0]
    n_clusters = counted(int(first["n_documents"]), clusters(result))
    return f"{n_clusters} and {counted(int(first['n_lemmas']), 'lemma')}" if _with_lemmas(result) else n_clusters


def _with_lemmas(result: Probed) -> bool:
    same = (result.words["lemma"] == result.words["document"]).all()
    return bool(result.cells["n_lemmas"].notna().all() and not same)


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells in this order; of equal excess, the more selective first."""
    order = frame.assign(_encodes=frame["verdict"] == ENCODES)
    order = order.sort_values(["_encodes", "excess", "selectivity"], ascending=False, kind="stable")
    return order.drop(columns="_encodes")
