"""How does one read the page? The few lines that every number and word on it rests on.

What they say of the statistics is what ``interp.claims.claim`` and ``interp.methods.dossier`` do.
"""

from collections.abc import Mapping
from typing import Any

from interp.report.frames import HeadsFrames
from interp.report.verdicts import FEWEST_CLUSTERS, MORE_CLUSTERS

CORRECTIONS = {
    "max-T": "by max-T, which bounds the chance of any false claim",
    "fdr": "by Benjamini & Hochberg (also called q), exploratory, which bounds the share of false claims of one kind",
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
            "the 95 % interval of the estimate before it: a studentised bootstrap that draws whole clusters, among "
            "those of the same templates.",
        ),
        ("Adjusted p", what_p_is(report.provenance)),
        (
            "Minimum",
            f"an effect counts from the size that each task's first line names, attention from {attention:.2f} of "
            "all attention above the best baseline. What is smaller is no claim, however certain it is not 0.",
        ),
        (
            "Baseline",
            "what a head could look at without knowing the relation: offset -3 (three tokens before the query), "
            "position 5 (counted from 0; shorter prompts have nothing there), or a word "
            "that could be mistaken for the related one, such as an attractor. Each head is held against the one that "
            "explains most of it, chosen on other examples. The query itself and the first token are none: attention "
            "rests there that a head has no use for; heads.csv has how much.",
        ),
        (
            "Attention by value",
            "where the task has a feature, a head may look for one value of it only: each value in 30 clusters or more "
            "is tested, and corrected for; rarer ones are tested together, with the next rarest if they are too few. "
            "Attention, baseline and excess are those at the value where attention is clearest. A head is said not to "
            "look where that is shown of every value.",
        ),
        (
            "Ablation",
            "what a head writes is replaced twice: by what it writes in another example of the same template and "
            "length (resampled), and by its mean at the position or, where positions do not mean the same, in the "
            "template. "
            "An effect is claimed, or excluded, only where both replacements show it; where one shows what the other "
            "excludes, the replacements disagree and nothing is decided.",
        ),
        (
            "Exchanged",
            "of a head that looks at the related word and is needed: for this head alone, keys and values at the "
            "related word are those of a run in which only that word is another one, with another right answer. "
            "Ablation takes the answer away, this turns it into the other one, and may cost twice as much. A head that "
            "needs the word and reads what decides elsewhere turns nothing, and tracks nothing. Not testable where no "
            "item has such a twin, where a twin has the same value of the task's feature, and where keys and values "
            "there hold other words, too (behind the first layer of a bidirectional model).",
        ),
        (
            "Probe",
            "a logistic regression reads the task's feature out of what the head holds where it looks back, on "
            "templates and lemmas that it was not trained on. Toughest control: the best of always saying the "
            "commonest value, the word's embedding, its position and the untrained model. Control task: a random label "
            "for every word, which only a probe that knows words by heart reads; selectivity is the distance to it.",
        ),
        (
            "Redundant, general",
            "heads that look at the related word or carry the feature, and that the task does not miss one by one, are "
            "ablated together, too, and each with the others gone (their means stand in their places). They are "
            "redundant where all of that costs the task, under both replacements. A head is general where its "
            "ablation costs each of three tasks or more, and on some of them it looks at the related word by less than "
            "the minimum beyond a baseline.",
        ),
        (
            "Left out",
            "of the attention, the units where the related word is the first token or does not stand before the query, "
            "or where no related word could be tagged. Each task says how many examples these are.",
        ),
        (
            "Unit, cluster",
            "a unit is an item, balanced by its counterfactual where there is one, and counts once in its template; "
            "each template counts the same. Units with the same lexical draw, such as the subject's noun or the pair "
            f"of names, form a cluster. With fewer than {FEWEST_CLUSTERS} clusters nothing is decided: "
            f"{MORE_CLUSTERS}. The units that “would decide” settle a head without any effect, or one with twice the "
            "minimum, in four of five reports; where there are as many already, they tell the estimate from the "
            "minimum.",
        ),
        (
            "Generated tasks",
            "all but those from files come from the generator of English that wrote the training texts of the "
            "embedded models. Decisive pairs of words are held out, the constructions are not: what an embedded "
            "model does there is no evidence about English elsewhere.",
        ),
    )


def what_p_is(provenance: Mapping[str, Any]) -> str:
    """The test behind a dossier's adjusted p, and over what it is corrected."""
    name = provenance.get("correction", "max-T")
    what, absent, probes = "all heads and tasks of this report", "", ""
    if provenance.get("chosen_on"):
        what = "the heads and tasks of this report that were chosen on other items (nothing is shown of the others)"
        absent, probes = ", for every head", " (probes by Holm)"
    elif provenance.get("declared"):
        what, probes = "the claims that were declared (nothing else can be shown)", " (probes by Holm)"
    elif name == "max-T":
        probes = "; probes are one by task, and count as often as there are tasks"
    return (
        "the p-value of “no more than the minimum”, by a studentised bootstrap of whole clusters, corrected over "
        f"{what} {CORRECTIONS[name]}; a claim needs {provenance.get('alpha', 0.05):g} at most. That something is below "
        f"its minimum is tested, and corrected, in the same way{absent}: “the minimum at least” has to be rejected (of "
        "effects, on either side). Attention, each replacement, the exchanged word and probes are a family each, and "
        f"so is each effect of heads that are ablated together; so a report may err in each{probes}. A verdict that "
        "rests on several kinds has the largest of their p: it is false only if one of these tests shows what the head "
        "does not have."
    )
