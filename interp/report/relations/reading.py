"""How does one read a page about relations? The few lines that every number on it rests on.

What they say of the statistics is what ``interp.methods.attention`` and ``interp.methods.relations.result`` do.
"""

from interp.report.amounts import points
from interp.report.reading import CORRECTIONS
from interp.report.relations.frames import RelationFrames, is_causal
from interp.report.relations.verdicts import FEWEST_DOCUMENTS


def how_to_read(frames: RelationFrames) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs."""
    how, minimum = frames.provenance, points(frames.provenance["minimum"], 0)
    halves = bool(frames.frame["chosen"].astype(bool).all())
    tested = "all heads and relations" if halves else "the heads that were chosen"
    return (
        (
            "Pair",
            "a word that looks, and the words that it should find; any of them counts as found. A word that several "
            "others depend on is one pair, so the two directions of a relation can differ in number.",
        ),
        (
            "Accuracy",
            "the share of the pairs in which the word that the head attends to most, of those it may choose among, is "
            f"one of these. {_choice(frames)} Attention to a word of several tokens is the sum over them; attention "
            "from it is the mean.",
        ),
        (
            "Baseline",
            "the rule that is right most often without any attention: a fixed offset (offset -2: two words before), "
            "the first or last word, the nearest word of a part of speech (nearest VERB before), the word of the most "
            f"tokens, or chance. It is chosen on {_chosen_on(halves)}",
        ),
        (
            "Excess",
            "accuracy less the baseline's on the same pairs, in points of 100. [low, high] is its 95 % interval: a "
            f"bootstrap that draws whole documents. {_selected(halves)}With fewer than {FEWEST_DOCUMENTS} documents "
            "nothing is decided.",
        ),
        (
            "Adjusted p",
            "the p-value of “an excess of no more than the minimum”, by a studentised bootstrap of whole documents, "
            f"corrected over {tested} of this report {CORRECTIONS[how['correction']]}.",
        ),
        (
            "Verdict",
            f"“attends” needs an excess that is shown to be above {minimum} points (adjusted p ≤ {how['alpha']:g}); "
            "“none” one that is shown to be below, over all heads, too; what is neither is undecided, and so is every "
            f"head where the baseline leaves less than {minimum} points to be better by. That is where a head looks: "
            "whether the model needs it, ablation tells.",
        ),
        ("Left out", _left_out(frames)),
    )


def _selected(halves: bool) -> str:
    if not halves:
        return ""
    return "It is that of one head by itself: of the best of many it is too narrow, and the adjusted p speaks. "


def _choice(frames: RelationFrames) -> str:
    excluded = set(frames.provenance["excluded"])
    if excluded == {"special", "self"}:
        return "The word itself and tokens of no word, such as BOS, are no choice."
    if not excluded:
        return "The word itself and tokens of no word, such as BOS, may be chosen too."
    if excluded == {"self"}:
        return "The word itself is no choice; tokens of no word, such as BOS, are."
    return "Tokens of no word, such as BOS, are no choice; the word itself is."


def _chosen_on(halves: bool) -> str:
    if not halves:
        return (
            "another corpus, as the head of each relation is. The other heads were measured, and not tested: they have "
            "no p and no verdict."
        )
    return "the other half of the documents; where the halves choose different rules, both are named."


def _left_out(frames: RelationFrames) -> str:
    ahead = "the related word stands ahead of one that looks back only; " if is_causal(frames) else ""
    return (
        f"pairs of which nothing can be told: {ahead}a word shares a token with another, or has none (unaligned); the "
        "related words stand outside of what is read at once (outside); there is nothing, or nothing wrong, to choose "
        "(no choice); or no other document could choose a baseline (no baseline). The table of relations counts them."
    )
