"""How does one read the page? The few lines that every number and word on it rests on.

What they say of the statistics is what ``interp.stats`` and ``interp.methods.dossier`` do.
"""

from collections.abc import Mapping
from typing import Any

from interp.report.frames import HeadsFrames

CORRECTIONS = {
    "max-T": "by max-T, which bounds the chance of any false claim",
    "fdr": "by Benjamini & Hochberg, which is exploratory and bounds the expected share of false claims",
}


def how_to_read(report: HeadsFrames) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs.

    Args:
        report: The frames of a finished dossier.
    """
    attention = report.frame["minimum_attention"].iloc[0]
    return (
        (
            "[low, high]",
            "the 95 % interval of the estimate before it: a bootstrap that draws whole clusters, as wide as "
            "Student's t asks for at their number.",
        ),
        ("q", what_q_is(report.provenance)),
        (
            "Minimum",
            f"an effect counts from the size that each task's first line names, attention from {attention:.2f} of "
            "all attention above the best baseline. What is smaller is no claim, however certain it is not 0.",
        ),
        (
            "Baseline",
            "what a head could look at without knowing the relation: offset -3 (three tokens before the query; "
            "offset 0 is the query itself), position 5 (counted from 0; shorter prompts have nothing there), or a word "
            "that could be mistaken for the related one, such as an attractor. Each head is held against the one that "
            "explains most of it, chosen on other examples.",
        ),
        (
            "Ablation",
            "what is put in a head's place. Where it is zero or the mean, a head that writes the same thing in every "
            "item is missed too: “causal, by another route” then says that the task is built on the head, not that the "
            "head tracks anything. Positional mean and resample keep what a template's items share.",
        ),
        (
            "At the related word",
            "of a head that looks at the related word and is needed: what it costs to ablate only what it reads there "
            "(its values, for all words that look there). A head that is needed for what it finds elsewhere loses less "
            "than the minimum, and tracks nothing. Not testable where heads share their values.",
        ),
        (
            "Probe, erasure",
            "a logistic regression reads the task's feature out of what the head holds where it looks back, on "
            "templates and lemmas that it was not trained on. Toughest control: the best of always saying the "
            "commonest value, the word's embedding, its position and the untrained model. Control task: a random label "
            "for every word, which only a probe that knows words by heart reads; selectivity is the distance to it. "
            "Where the feature can be read, it is erased there (LEACE), and as many random directions for comparison.",
        ),
        (
            "Redundant, general",
            "heads that look at the related word or carry the feature are ablated two by two, too; two are redundant "
            "where both together cost the task, and more than one by one. A head is general where its ablation costs "
            "each of three tasks or more, and it is shown not to look at the related word on some of them.",
        ),
        (
            "Left out",
            "of the attention, the units where the query is the related word itself or stands before it, or where "
            "no related word could be tagged. Each task says how many examples these are.",
        ),
        (
            "Unit, cluster",
            "a unit is an item, balanced by its counterfactual where there is one, and counts once in its template; "
            "each template counts the same. Units with the same lexical draw, such as the subject's noun or the pair "
            "of names, form a cluster. With fewer than 20 clusters nothing is decided.",
        ),
        (
            "Generated tasks",
            "all but those from files come from the generator of English that wrote the training texts of the "
            "embedded models. Decisive pairs of words are held out, the constructions are not: what an embedded "
            "model does there is no evidence about English elsewhere.",
        ),
    )


def what_q_is(provenance: Mapping[str, Any]) -> str:
    """The test behind a dossier's q, and over what it is corrected."""
    name = provenance.get("correction", "max-T")
    what, probes = "all heads and tasks of this report", ""
    if provenance.get("chosen_on"):
        what = "the heads and tasks of this report that were chosen on other items, which are all that is tested,"
        probes = " (probes by Holm)"
    elif name == "max-T":
        probes = "; probes are one by task, and count as often as there are tasks"
    return (
        "the p-value of a permutation test that flips the signs of whole clusters, corrected over "
        f"{what} {CORRECTIONS[name]}; a claim needs q ≤ {provenance.get('alpha', 0.05):g}. Attention, effects, probes "
        f"and pairs of heads are a family each, so a report may err in each{probes}. “attends and causal” must also "
        "pass with both kinds together, “tracks” with all (Holm)."
    )
