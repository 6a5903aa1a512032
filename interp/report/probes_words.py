"""What cells, sites, features, verdicts and controls of probes are called, how scores are written, what was asked.

``result`` is what ``interp.probe`` returns, of one site where it is not said otherwise.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from interp.report.heads_frames import Verdict
from interp.report.html import flatten, model_with_hash
from interp.report.words import counted, decimal, estimate, listed, percent

ENCODES, UNDECIDED, NONE = "encodes", "undecided", "none"
VERDICTS = {
    ENCODES: Verdict(
        ENCODES,
        "●",
        "o",
        True,
        "the feature can be read there beyond every control, by the minimum at least, and selectively",
    ),
    UNDECIDED: Verdict(UNDECIDED, "?", r"$\mathbf{?}$", True, "the data do not decide"),
    NONE: Verdict(
        NONE, "·", ".", False, "what can be read beyond the toughest control is shown to be below the minimum"
    ),
}
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
        prefix = "" if column == "score" else f"{column}_"
        numbers = row[column], row[f"{prefix}low"], row[f"{prefix}high"]
        if self.in_points:
            number, low, high = (100 * each for each in numbers)
            return estimate(number, low, high, unit, digits=1)
        return estimate(*numbers)

    def reached(self, row: pd.Series) -> str:
        """What a cell reaches, on how many words."""
        words = counted(int(row["n"]), "word")
        if self.in_points:
            return self.estimate(row, "score", f"% of {words} right")
        return f"{self.title} {self.estimate(row, 'score')} on {words}"


_MEASURES = {
    "accuracy": Measure("accuracy", "the share of the words whose class is found", "always the commonest class", True),
    "R2": Measure(
        "R²",
        "the share of the number's variance that is explained: below 0 where the mean is nearer",
        "always the mean",
        False,
    ),
}
_KINDS = {
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
_READ_AT = {
    "at": {"query": "the position that predicts the answer", "related": "the related word"},
    "pooling": {
        "first": "first token of a word",
        "last": "last token of a word",
        "mean": "mean over a word's tokens",
    },
    "context": {"document": "in windows of documents", "sentence": "in sentences by themselves"},
}
_CLASSES = 6
"""Of so many at most each is named with its words."""


def title(result: Any) -> str:
    """What a page is called; `result` may be of several sites."""
    return f"Probes: {result.provenance['feature']} in {result.provenance['site']}"


def sites_of(result: Any) -> list[str]:
    """The sites that were probed."""
    return list(dict.fromkeys(result.cells["site"]))


def measure_of(result: Any) -> Measure:
    """What the probes are scored by."""
    return _MEASURES[result.provenance["measure"]]


def has_heads(result: Any) -> bool:
    """Whether cells are heads; else they are layers, or a single place before them."""
    return "head" in result.cells


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


def capital(text: str) -> str:
    """A sentence's beginning."""
    return f"{text[0].upper()}{text[1:]}"


def ranked(cells: pd.DataFrame) -> pd.DataFrame:
    """Those that encode the feature first, then by their excess; of equal excess, the more selective first."""
    order = cells.assign(_encodes=cells["verdict"] == ENCODES)
    order = order.sort_values(["_encodes", "excess", "selectivity"], ascending=False, kind="stable")
    return order.drop(columns="_encodes")


def of_task(result: Any) -> bool:
    """Whether the words are a task's: their templates have names."""
    return bool((result.words["template"].fillna("").astype(str) != "").any())


def clusters(result: Any) -> str:
    """What is resampled beside lemmas: documents, or a task's lexical draws."""
    return "cluster" if of_task(result) else "document"


def resampled(result: Any) -> str:
    """All that is resampled: lemmas too, where they are held out and are not the clusters themselves."""
    return f"{clusters(result)}s and lemmas" if _with_lemmas(result) else f"{clusters(result)}s"


def counts(result: Any) -> str:
    """How many there are of what is resampled."""
    first = result.cells.iloc[0]
    n_clusters = counted(int(first["n_documents"]), clusters(result))
    return f"{n_clusters} and {counted(int(first['n_lemmas']), 'lemma')}" if _with_lemmas(result) else n_clusters


def _with_lemmas(result: Any) -> bool:
    same = (result.words["lemma"] == result.words["document"]).all()
    return bool(result.cells["n_lemmas"].notna().all() and not same)


def asked(result: Any) -> list[tuple[str, str]]:
    """Names of facts, and what they are; the rest stands under `How it was made`."""
    how, measure = result.provenance, measure_of(result)
    known = dict(flatten(how))
    site, penalties = str(how["site"]), how["penalties"]
    chosen = f"; of {len(penalties)} strengths of the penalty, one is chosen within each training set"
    fitted = f"; {how['n_probes']:,} fitted" if "n_probes" in how else ""
    facts = [
        ("Model", model_with_hash(known).get("model", "")),
        ("Feature", _feature_name(result)),
        ("Site", f"{site} ({_SITES[site]})" if site in _SITES else site),
        ("Data", _data(result)),
        ("Words", f"{counted(len(result.words), 'word')} with a label, in {counts(result)}"),
        ("Labels", _labels(result)),
        ("Read at", ", ".join(names[how[key]] for key, names in _READ_AT.items() if how.get(key) in names)),
        (
            "Held out",
            f"{' and '.join(how['held_out'])}: no word is tested that shares one of these with a word of the training "
            f"({how['cv']} folds of each)",
        ),
        ("Probe", f"{_KINDS.get(how['kind'], how['kind'])}{chosen if len(penalties) > 1 else ''}{fitted}"),
        ("Score", f"{measure.title}: {measure.meaning}"),
        *((key.capitalize(), known.get(key, "")) for key in ("seed", "device", "dtype")),
    ]
    return [(name, text) for name, text in facts if text]


def _feature_name(result: Any) -> str:
    """The feature, and where it is read."""
    name = str(result.provenance["feature"])
    kind, colon, rest = name.partition(":")
    if of_task(result):
        return f"{name}, as the task's examples have it"
    if colon and kind in ("feats", "sense"):
        what = f"morphological feature {rest}" if kind == "feats" else f"sense of “{rest}”"
        return f"{name}: {what} of the word that is read"
    return f"{name}: {_FEATURES[name]}" if name in _FEATURES else name


def _data(result: Any) -> str:
    how = result.provenance
    ending = f" (hash {str(how['data_hash'])[:12]})" if "data_hash" in how else ""
    if "task" in how:
        return f"task {how['task']}{ending}"
    if how.get("store"):
        folder = f", {Path(how['store']).name}" if isinstance(how["store"], str) else ""
        return f"stored activations{folder}{ending}"
    files = ", ".join(Path(path).name for path in how.get("data", ()))
    read = counted(how["n_documents"], "document") if "n_documents" in how else ""
    return ": ".join(filter(None, (files, read))) + ending


def _labels(result: Any) -> str:
    """The classes by their size, or the span of the numbers."""
    values = result.words["value"].astype(str)
    if result.provenance["measure"] == "R2":
        numbers = pd.to_numeric(values)
        return f"numbers from {numbers.min():g} to {numbers.max():g}, on average {numbers.mean():.2f}"
    named = [f"{name} ({n:,})" for name, n in Counter(values).most_common()]
    return listed(named) if len(named) <= _CLASSES else f"{len(named)} classes, from {named[0]} to {named[-1]}"
