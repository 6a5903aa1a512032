"""What was asked of the probes? The few facts that belong at the top of a page, and on a terminal."""

from collections import Counter
from pathlib import Path

import pandas as pd

from interp.report.amounts import counted, listed
from interp.report.document import flatten, model_with_hash
from interp.report.probes.frames import ProbeFrames, measure_of
from interp.report.probes.words import KINDS, counts, feature_name, site_name

_CLASSES = 6
"""Of so many at most each is named with its words."""


def title(frames: ProbeFrames) -> str:
    """What a page is called."""
    how = frames.provenance
    return f"Probes: {how['feature']} in {how['site']}"


def asked(frames: ProbeFrames) -> list[tuple[str, str]]:
    """Names of facts, and what they are; the rest stands under `How it was made`."""
    how = frames.provenance
    known = dict(flatten(how))
    facts = [
        ("Model", model_with_hash(known).get("model", "")),
        ("Feature", feature_name(frames)),
        ("Site", site_name(frames)),
        ("Data", _data(frames)),
        ("Words", f"{counted(len(frames.examples), 'word')} with a label, in {counts(frames)}"),
        ("Labels", _labels(frames)),
        ("Read at", _read_at(frames)),
        ("Held out", _held_out(frames)),
        ("Probe", _probe(frames)),
        ("Score", f"{measure_of(frames).title}: {measure_of(frames).meaning}"),
        *((key.capitalize(), known.get(key, "")) for key in ("seed", "device", "dtype")),
    ]
    return [(name, text) for name, text in facts if text]


def _data(frames: ProbeFrames) -> str:
    how = frames.provenance
    ending = f" (hash {str(how['data_hash'])[:12]})" if "data_hash" in how else ""
    if "task" in how:
        return f"task {how['task']}{ending}"
    if how.get("store"):
        folder = f", {Path(how['store']).name}" if isinstance(how["store"], str) else ""
        return f"stored activations{folder}{ending}"
    files = ", ".join(Path(path).name for path in how.get("data", ()))
    read = counted(how["n_documents"], "document") if "n_documents" in how else ""
    return ": ".join(filter(None, (files, read))) + ending


def _labels(frames: ProbeFrames) -> str:
    """The classes by their size, or the span of the numbers."""
    values = frames.examples["value"].astype(str)
    if frames.provenance["measure"] == "R2":
        numbers = pd.to_numeric(values)
        return f"numbers from {numbers.min():g} to {numbers.max():g}, on average {numbers.mean():.2f}"
    counts = Counter(values).most_common()
    named = [f"{name} ({n:,})" for name, n in counts]
    if len(named) <= _CLASSES:
        return listed(named)
    return f"{len(named)} classes, from {named[0]} to {named[-1]}"


def _read_at(frames: ProbeFrames) -> str:
    how = frames.provenance
    at = {"query": "the position that predicts the answer", "related": "the related word"}.get(how.get("at", ""), "")
    context = {"document": "in windows of documents", "sentence": "in sentences by themselves"}
    tokens = {"first": "first token of a word", "last": "last token of a word", "mean": "mean over a word's tokens"}
    parts = (at, tokens.get(how.get("pooling", ""), ""), context.get(how.get("context", ""), ""))
    return ", ".join(filter(None, parts))


def _held_out(frames: ProbeFrames) -> str:
    how = frames.provenance
    return (
        f"{' and '.join(how['held_out'])}: no word is tested that shares one of these with a word of the training "
        f"({how['folds']} folds of each)"
    )


def _probe(frames: ProbeFrames) -> str:
    how = frames.provenance
    strengths = how["strengths"]
    chosen = ""
    if len(strengths) > 1:
        chosen = f"; of {len(strengths)} strengths of the penalty, one is chosen within each training set"
    fitted = f"; {how['n_probes']:,} fitted" if "n_probes" in how else ""
    return f"{KINDS.get(how['kind'], how['kind'])}{chosen}{fitted}"
