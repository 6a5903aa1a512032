"""What are cells, sites, features, probes and controls called?"""

import pandas as pd

from interp.report.amounts import counted
from interp.report.probes.frames import ProbeFrames

CONTROLS = {
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
