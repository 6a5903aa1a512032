"""The few lines that every number and word on a dossier's page rests on, and what other seeds and declared claims add.

What they say of the statistics is what ``interp.claims.claim`` and ``interp.methods.dossier`` do.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from interp.report.heads_frames import FEWEST_CLUSTERS, MORE_CLUSTERS, VERDICTS
from interp.report.words import counted

CORRECTIONS = {
    "max-T": "by max-T, which bounds the chance of any false claim",
    "fdr": "by Benjamini & Hochberg (also called q), exploratory, which bounds the share of false claims of one kind",
}


def how_to_read(cells: pd.DataFrame, provenance: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs."""
    attention = cells["min_attention"].iloc[0]
    return (
        (
            "[low, high]",
            "the 95 % interval of the estimate before it: a studentised bootstrap that draws whole clusters, among "
            "those of the same templates.",
        ),
        ("Adjusted p", what_p_is(provenance)),
        (
            "Minimum",
            f"an effect counts from the size that each task's first sentence names, attention from {attention:.2f} of "
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


REPLICATES = "replicates"
_IN_WORDS = {
    "no": "in none",
    "open": "in none, where heads are undecided",
    "not judged": "where no other seed is judged",
}


def replication_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per task and verdict: the heads of each model that get it, and whether it replicates.

    Args:
        frame: One row per task, verdict and model, the model in question first; as of
            ``interp.methods.judging.replication``.

    Returns:
        ``task``, ``verdict``, a column for each model, and ``replicates``: ``yes`` (in all others), ``in 1 of 2``,
        ``in 1 of 1 judged`` where another cannot be judged on the task, ``no``; ``open`` where no other model gets it
        and heads of one are undecided; ``not judged`` where no other model can be; or ``not here`` where only others
        get it. By task, the strongest verdicts first.
    """
    models = list(dict.fromkeys(frame["model"]))
    rows = []
    for (task, verdict), own in frame.groupby(["task", "verdict"], sort=False):
        by_model = own.set_index("model").loc[models]
        named = dict(zip(models, map(_found, by_model.to_dict("records")), strict=True))
        rows.append({"task": task, "verdict": verdict, **named, REPLICATES: _replicates(by_model)})
    table = pd.DataFrame(rows, columns=["task", "verdict", *models, REPLICATES])
    tasks = {task: number for number, task in enumerate(dict.fromkeys(frame["task"]))}
    place = {name: number for number, name in enumerate(VERDICTS)}
    order = table.assign(_task=table["task"].map(tasks), _place=table["verdict"].map(place))
    return order.sort_values(["_task", "_place"], kind="stable")[table.columns].reset_index(drop=True)


def _found(row: Mapping[Hashable, Any]) -> str | None:
    """One model's heads, or why none is named."""
    if row["heads"]:
        return ", ".join(row["heads"].split())
    if not row["judged"]:
        return "not judged"
    return f"{row['n_undecided']} undecided" if row["n_undecided"] else None


def _replicates(by_model: pd.DataFrame) -> str:
    if not by_model["heads"].iloc[0]:
        return "not here"
    others = by_model.iloc[1:]
    judged = others[others["judged"]]
    n_found = int((judged["heads"] != "").sum())
    if judged.empty:
        return "not judged"
    if n_found == len(others):
        return "yes"
    if n_found:
        return f"in {n_found} of {len(judged)}{'' if len(judged) == len(others) else ' judged'}"
    return "open" if (judged["n_undecided"] > 0).any() else "no"


def replication_sentence(table: pd.DataFrame) -> str:
    """How many of the first model's verdicts replicate.

    Args:
        table: As of ``replication_table``.
    """
    here = table[table[REPLICATES] != "not here"]
    found, n_others = int((here[REPLICATES] == "yes").sum()), table.shape[1] - 4
    whom = {1: "the other seed", 2: "both other seeds"}.get(n_others, f"all {n_others} other seeds")
    missing = here[here[REPLICATES] != "yes"]
    rest = "; ".join(
        f"{row['task']}: “{row['verdict']}” {_IN_WORDS.get(row[REPLICATES], row[REPLICATES])}"
        for row in missing.to_dict("records")
    )
    verb = "replicates" if found == 1 else "replicate"
    return f"Of {counted(len(here), 'verdict')} on tasks, {found} {verb} in {whom}.{f' Not so {rest}.' if rest else ''}"


EVERYTHING = "Found by looking at everything: every head is tested on every task, and corrected for."
CHOSEN = "Found among the heads that were chosen on other items: only of these is anything shown, and corrected for."


def how_found(provenance: Mapping[str, Any]) -> list[str]:
    """Sentences: what was declared and what became of it; or that nothing was.

    Args:
        provenance: Of a dossier; ``declared`` is as of ``interp.claims.declared``.
    """
    declared = provenance.get("declared")
    if not declared:
        return [CHOSEN if provenance.get("chosen_on") else EVERYTHING]
    claims = declared["claims"]
    when = "Declared before measuring these items, as far as is known here"
    if declared["measured"] < declared["written"]:
        when = "Declared, but measuring began before the file was last written, so the claims may rest on what was seen"
    file = f"{counted(len(claims), 'claim')} of {declared['file']} (SHA-256 {declared['sha256'][:12]}"
    first = f"{when}: {file}, last written {declared['written']}; measuring began {declared['measured']})."
    return [f"{first} Only these can be shown, and are corrected for among themselves.", *map(_became, claims)]


def _became(claim: Mapping[str, str]) -> str:
    unsaid = "a part of it is undecided or was not tested" if claim["outcome"] == "open" else ""
    reason = claim["reason"] or unsaid
    declared = f"head {claim['head']} on {claim['task']} was declared “{claim['expected']}”"
    because = f" ({reason})" if reason else ""
    return f"{claim['outcome'].capitalize()}: {declared}, and is “{claim['verdict']}”{because}."
