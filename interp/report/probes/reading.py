"""How does one read a page about probes? The few lines that every number on it rests on.

What they say of the statistics is what ``interp.methods.probing`` and ``interp.methods.probes.result`` do.
"""

from interp.report.probes.frames import ProbeFrames, measure_of
from interp.report.probes.words import cell_kind, of_task, resampled
from interp.report.reading import CORRECTIONS
from interp.report.verdicts import FEWEST_CLUSTERS


def how_to_read(frames: ProbeFrames) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs."""
    unit = "in points of 100 words" if measure_of(frames).in_points else "as a share of the variance"
    return (
        ("Score", _score(frames)),
        ("Controls", _controls(frames)),
        (
            "Excess",
            "the score less that of the toughest control (of majority, embedding, position and untrained) on the same "
            f"words, {unit}. With fewer than {FEWEST_CLUSTERS} {resampled(frames).replace('and', 'or')} nothing is "
            "decided.",
        ),
        ("Selectivity", _selectivity(unit)),
        (
            "Compression",
            "how many times fewer bits describe all labels, where probes that have seen more and more of them predict "
            "the next (online code), than where nothing is known. A feature that is easy to extract compresses much, "
            "the control task should not; below 1 the probes predict worse than chance.",
        ),
        ("Adjusted p", _p(frames)),
        ("Verdict", _verdict(frames)),
        *([_CLUSTER] if of_task(frames) else []),
    )


_CLUSTER = ("Cluster", "the words of one lexical draw, such as a subject's noun with both of its numbers.")


def _score(frames: ProbeFrames) -> str:
    measure, groups = measure_of(frames), resampled(frames)
    wider = "; of the two the wider counts" if "lemmas" in groups else ""
    return (
        f"{measure.title}: {measure.meaning}, on words that share nothing that is held out with those that the probe "
        f"was trained on. [low, high] is its 95 % interval: a bootstrap that draws whole {groups}{wider}. It tells how "
        f"much {groups} differ: where all words are right it has no width. It is that of one {cell_kind(frames)} by "
        "itself: of the best of many it is too narrow, and the adjusted p speaks."
    )


def _p(frames: ProbeFrames) -> str:
    groups = resampled(frames)
    larger = "; of the two the larger counts" if "lemmas" in groups else ""
    return (
        "the p-value of “an excess of no more than the minimum”, by a studentised bootstrap of whole "
        f"{groups}{larger}. It is corrected over all cells of this report "
        f"{CORRECTIONS[frames.provenance['correction']]}."
    )


def _controls(frames: ProbeFrames) -> str:
    return (
        f"what is reached without the feature being there. Majority: {measure_of(frames).ignorant}. Embedding: a probe "
        "on the embedding of the token that is read, which has seen no other word. Position: on where it stands. "
        "Untrained: on the same place of a model of the same shape with random weights. Permuted: on the labels in "
        "random order; it shows how far chance goes, and is no bar."
    )


def _selectivity(unit: str) -> str:
    return (
        "the score less that of the control task, both on folds in which words may be known from training (“score, "
        f"known words”), {unit}. In the control task every type of the word that carries the feature (of senses, which "
        "no word carries, every occurrence) has a label at random, always the same: what a probe learns of it, it has "
        "learnt by heart. A probe that is not selective is strong enough to find what the model has not put there."
    )


def _verdict(frames: ProbeFrames) -> str:
    how, measure = frames.provenance, measure_of(frames)
    minimum = f"{100 * how['minimum']:g} points" if measure.in_points else f"{how['minimum']:g}"
    return (
        f"“encodes” needs an excess that is shown to be above {minimum} (adjusted p ≤ {how['alpha']:g}) and a "
        f"selectivity that is shown to be above 0; “none” one that is shown to be below {minimum}, over all cells, "
        "too; what is neither is undecided, and so is all where a control leaves less than that to be better by. "
        "Encoding is what can be read: whether the model uses it, erasure and ablation tell."
    )
