"""What is a score the share of, and how is it written? Of words that are right, or of a number's variance.

How is each verdict on a cell and a feature shown? One symbol and one meaning.

What does a report about probes need? The frames of a finished probing, checked once.

The report never sees a model: anything with these three attributes can be drawn, for example
``interp.methods.probes.judging.ProbeResult``, or frames read back from a saved folder.

What are cells, sites, features, probes and controls called?

Which cell speaks for all? Those that encode the feature come first, then those with the largest excess.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from interp.errors import InputError
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
FRAME_COLUMNS = (
    *(
        "site",
        "score",
        "low",
        "high",
        "baseline",
        "score_baseline",
        "excess",
        "excess_low",
        "excess_high",
        "p",
        "p_adjusted",
    ),
    *("score_seen", "control", "selectivity", "selectivity_low", "selectivity_high", *CONTROLS),
    *("bits", "compression", "compression_prior", "compression_control", "n", "n_documents", "n_lemmas", "verdict"),
)
EXAMPLE_COLUMNS = ("document", "template", "form", "value", "carrier", "lemma")


@runtime_checkable
class ProbeFrames(Protocol):
    """Cells that were probed for a feature; see ``interp.methods.probes.judging.ProbeResult`` for every column."""

    @property
    def frame(self) -> pd.DataFrame:
        """One row per cell: its ``layer`` and ``head`` as far as it has any, the numbers and the verdict."""

    @property
    def examples(self) -> pd.DataFrame:
        """One row per word that was read."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the numbers were made."""


def check_probes(frames: ProbeFrames) -> None:
    """Refuse frames that could not be drawn, before anything is written.

    Raises:
        InputError: A column is missing, there is no cell, a cell stands twice, or a verdict or the measure is unknown.
    """
    for name, frame, columns in (
        ("frame", frames.frame, FRAME_COLUMNS),
        ("examples", frames.examples, EXAMPLE_COLUMNS),
    ):
        missing = [column for column in columns if column not in frame.columns]
        if missing:
            raise InputError(
                f"the probes' `{name}`: expected the columns {', '.join(columns)}, got none called "
                f"{', '.join(missing)}; build it with interp.probe"
            )
    _check_cells(frames.frame)
    if frames.provenance.get("measure") not in MEASURES:
        raise InputError(
            f"the probes' measure: expected {', '.join(MEASURES)}, got {frames.provenance.get('measure')!r}; add it to "
            "interp/report/probes_words.py"
        )


def _check_cells(frame: pd.DataFrame) -> None:
    if frame.empty:
        raise InputError("the probes' `frame`: expected one cell at least, got none; there is nothing to report")
    labels = [name for name in ("site", "layer", "head") if name in frame]
    twice = frame.duplicated(labels)
    if twice.any():
        raise InputError(
            f"the probes' `frame`: expected one row per cell, got two for {frame.loc[twice, labels].iloc[0].to_dict()}"
        )
    unknown = sorted(set(frame["verdict"].astype(str)) - set(VERDICTS))
    if unknown:
        raise InputError(
            f"the verdicts on probes: expected {', '.join(VERDICTS)}, got {', '.join(unknown)}; add the new verdict to "
            "interp/report/probes_words.py"
        )


def measure_of(frames: ProbeFrames) -> Measure:
    """What the probes are scored by."""
    return MEASURES[frames.provenance["measure"]]


def has_heads(frames: ProbeFrames) -> bool:
    """Whether cells are heads; else they are layers, or a single place before them."""
    return "head" in frames.frame


def scale_of(frames: ProbeFrames, column: str) -> tuple[float, float]:
    """What has no colour, and what has the strongest: the majority's level and 1; of selectivity 0, and as much."""
    majority = float(frames.frame["majority"].max())
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


def cell_kind(frames: ProbeFrames) -> str:
    """What cells are: ``head``, ``layer`` or ``place``."""
    return next((kind for kind in ("head", "layer") if kind in frames.frame), "place")


def spoken(frames: ProbeFrames, row: pd.Series) -> str:
    """A cell as the subject of a sentence."""
    kind = cell_kind(frames)
    return cell_name(row) if kind == "place" else f"{kind} {cell_name(row)}"


def site_name(frames: ProbeFrames) -> str:
    """The site, and what it is."""
    site = str(frames.provenance["site"])
    return f"{site} ({_SITES[site]})" if site in _SITES else site


def feature_name(frames: ProbeFrames) -> str:
    """The feature, and where it is read."""
    name = str(frames.provenance["feature"])
    kind, colon, rest = name.partition(":")
    if of_task(frames):
        return f"{name}, as the task's examples have it"
    if colon and kind in ("feats", "sense"):
        what = f"morphological feature {rest}" if kind == "feats" else f"sense of “{rest}”"
        return f"{name}: {what} of the word that is read"
    return f"{name}: {_FEATURES[name]}" if name in _FEATURES else name


def subject(frames: ProbeFrames) -> str:
    """What is read, where, and of which model: the beginning of a figure's title."""
    how = frames.provenance
    return f"{how['feature']} in {how['site']} of {how.get('model', 'a model')}"


def of_task(frames: ProbeFrames) -> bool:
    """Whether the words are a task's: their templates have names."""
    return bool((frames.examples["template"].fillna("").astype(str) != "").any())


def clusters(frames: ProbeFrames) -> str:
    """What is resampled beside lemmas: documents, or a task's lexical draws."""
    return "cluster" if of_task(frames) else "document"


def resampled(frames: ProbeFrames) -> str:
    """All that is resampled: lemmas too, where they are held out and are not the clusters themselves."""
    return f"{clusters(frames)}s and lemmas" if _with_lemmas(frames) else f"{clusters(frames)}s"


def counts(frames: ProbeFrames) -> str:
    """How many there are of what is resampled."""
    first = frames.frame.iloc[0]
    n_clusters = counted(int(first["n_documents"]), clusters(frames))
    return f"{n_clusters} and {counted(int(first['n_lemmas']), 'lemma')}" if _with_lemmas(frames) else n_clusters


def _with_lemmas(frames: ProbeFrames) -> bool:
    same = (frames.examples["lemma"] == frames.examples["document"]).all()
    return bool(frames.frame["n_lemmas"].notna().all() and not same)


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells in this order; of equal excess, the more selective first."""
    order = frame.assign(_encodes=frame["verdict"] == ENCODES)
    order = order.sort_values(["_encodes", "excess", "selectivity"], ascending=False, kind="stable")
    return order.drop(columns="_encodes")
