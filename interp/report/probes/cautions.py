"""What speaks against reading anything into the scores? Said before all else, where it is so."""

from interp.report.probes.frames import ProbeFrames, measure_of
from interp.report.probes.words import spoken


def cautions(frames: ProbeFrames) -> list[str]:
    """Warnings, in sentences; none where nothing speaks against the scores."""
    return [text for text in (_given_away(frames), _unselective(frames)) if text]


def _given_away(frames: ProbeFrames) -> str:
    """That the embedding alone, which says something, reaches the interval of the best score."""
    measure, best = measure_of(frames), frames.frame.loc[frames.frame["score"].idxmax()]
    says_something = best["embedding"] - best["majority"] >= frames.provenance["minimum"]
    if not (says_something and best["embedding"] >= best["low"]):
        return ""
    return (
        "The word itself gives the feature away: a probe on its embedding alone reaches "
        f"{measure.value(best['embedding'])}, the best score is {measure.value(best['score'])} "
        f"{measure.interval(best['low'], best['high'])} ({spoken(frames, best)}). What is read there need not have "
        "been computed by the model: read another word, or balance the data."
    )


def _unselective(frames: ProbeFrames) -> str:
    """That no probe learns the feature better than labels at random."""
    low = frames.frame["selectivity_low"]
    if low.isna().all() or (low > 0).any():
        return ""
    return (
        "Nothing is selective: no probe is shown to do better at the feature than at the control task, whose labels it "
        "can only learn by heart. The scores say as much of the probe as of the model."
    )
