"""The page of a calibration: each rate with its interval and what it is a share of; pictures and tables."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from interp.report.calibration_figures import calibration
from interp.report.sections import Custom, Facts, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column
from interp.report.words import about, counted

_TABLES = {
    "false_discoveries": "False claims on nulls",
    "recall": "Trackers found",
    "false_tracks": "Others said to track",
    "decoys": "Decoys",
    "special": "Models with something that the others lack",
    "single_heads": "Trained models of one head",
    "halves": "Fewer examples",
}
READING = (
    (
        "Planted",
        "models whose weights were written by hand, so that heads at random places do a known thing: a tracker looks "
        "at the related word, reads its feature and writes the answer; idle heads look at random and write what "
        "nothing reads, with a little noise on the answers.",
    ),
    (
        "Decoys",
        "stand-in: one of two to four loud trackers, each of which hides that the others are gone; one in a later "
        "layer is a backup, which hardly looks while an earlier one is there. All have to be named as that set. "
        "Looker: looks at the related word, "
        "holds its feature and writes nothing that is read. Carrier: holds the feature, and nothing reads it. Other "
        "route: answers by attractors, which are mostly as the related word is. Glancer: does so, and looks at the "
        "related word, too, even more. Amplifier: looks at the query itself, behind the tracker, and writes the answer "
        "once more. By value: a tracker that looks at the related word where that has one of its two values, and else "
        "at the query itself. Loud: one of two heads that cancel each other, each of which would drown all else. "
        "Loud tracker: one of these that does all that a tracker does, too, and so lacks nothing but specificity. "
        "Previous word: what induction's tracker needs.",
    ),
    (
        "One that sees",
        "trained models with LayerNorm, an MLP and four heads, of which one can find words by their class and the "
        "others are blind to it; grouped: two heads each share keys and values. What the model can do, that head does. "
        "Crossed: the answer depends on a noun's number and a person's gender; a wrong tag says that the number is "
        "read at the person, or the gender at the noun; exchanging that word leaves the feature as it is, so by rule "
        "no head can track there.",
    ),
    (
        "Copied",
        "planted models in which a head copies the feature from the related word to an attractor, and another one "
        "answers by what stands there; a wrong tag says that the attractor is the related word, and that its other "
        "form has the other answer.",
    ),
    (
        "Trained models of one head",
        "attention alone, one layer of one head, trained to do agreement and coreference: what such a model can do, "
        "that head does. It cannot do induction, which takes two layers; right of that is no finding.",
    ),
    (
        "Nulls",
        "trained: models that were trained to do a task without fail in which the related word has no part, for a key "
        "among the words tells the answer; their heads look there, carry its value and are needed. Permuted "
        "labels: right and wrong, and the feature's values, change places in half of the clusters; the model cannot do "
        "that. Permuted pairs: the related word and an attractor change their tags at random; the model does the task "
        "as before. Untrained: random weights.",
    ),
    (
        "Able",
        "a verdict needs a model that is shown to do the task: verdicts on nulls are counted of those that are, kinds "
        "of evidence by themselves of all.",
    ),
    (
        "Sharpness, noise, share, glance, n",
        "what makes heads hard to find: how far a planted head's score for what it looks at is above the others', as a "
        "share of 8 nats; what idle heads write on the answers, where a tracker writes 1; the share of a task's answer "
        "that a tracker writes, where another writes the rest (up to .131 ablating it costs no more than the minimum: "
        "“tracks” would be wrong); what a glancer reads of the related word, where it reads 1 of the attractors; the "
        "units of a task. Minima: how many times the minimum ablating a tracker costs, or exchanging the related word "
        "for a glancer turns the answer (up to 1, “tracks” would be wrong).",
    ),
    (
        "Where heads stand",
        "anywhere, but: induction's tracker behind its previous word; loud heads in the last layer of models without "
        "stand-ins; lookers no later than the first stand-in of their task.",
    ),
    (
        "[low, high]",
        "the exact 95 % interval of a share (Clopper & Pearson). Models are independent; heads of one model are "
        "not, so an interval of heads is too narrow.",
    ),
)


def page_of(result: Any) -> Page:
    """The sections of a ``Calibration``."""
    provenance = {name: value for name, value in result.provenance.items() if value is not None}
    curves = {f"recall_by_{name}": table for name, table in result.curves.items()}
    pictures = _pictures(result)
    tables = [_table(getattr(result, name), name, caption) for name, caption in _TABLES.items()]
    tables += [_table(table, f"recall_by_{name}", f"Heads by {name}") for name, table in result.curves.items()]
    first, *others = tables
    sections: list[Section] = [
        pictures[0],
        Sentences("Findings", findings(result)),
        *pictures[1:],
        first,
        Custom("", "folded_tables", {"tables": others}),
        Facts("How to read this", READING),
    ]
    frames = {name: getattr(result, name) for name in _TABLES} | {"confusion": result.confusion.reset_index()}
    return Page(
        title="How often are verdicts right?",
        kind="calibration",
        sections=sections,
        provenance=provenance,
        about=about({}, counted(result.examples["job"].nunique(), "judged model")),
        call="interp.plots.calibration(result)",
        frames=frames | curves,
        draws={each.name: each.draw for each in pictures},
    )


def _pictures(result: Any) -> list[Picture]:
    drawn = {
        "confusion": ("Verdicts on the heads of planted models, by what they are", partial(calibration, result)),
        "false_claims": (
            "False claims where nothing is to be found",
            partial(calibration, result, "false claims"),
        ),
    }
    if result.curves:
        caption = "How often a head is said to track, by what makes that hard to tell"
        drawn["recall"] = (caption, partial(calibration, result, "recall"))
    return [Picture(caption, name, draw, caption, inline=True) for name, (caption, draw) in drawn.items()]


def _table(frame: pd.DataFrame, name: str, caption: str) -> Table:
    columns = [
        Column(each, "", *(("low", "high") if each == "rate" else ())) for each in frame if each not in ("low", "high")
    ]
    return Table("Tables" if name == "false_discoveries" else "", caption, frame, columns, f"{name}.csv")


def findings(result: Any) -> list[str]:
    """The headline numbers, one sentence each; what is worst comes first."""
    by_claim = result.false_discoveries.set_index(["kind", "claim"])
    able = by_claim.loc[("able", "tracks")].to_dict()
    by_model, by_head = (result.recall.set_index("per").loc[per].to_dict() for per in ("model", "head and task"))
    per_model = result.false_tracks.set_index("per").loc["model"].to_dict()
    false, true = _said_falsely(result), _found(result)
    found = [
        f"Worst of what is said falsely: {_claim(false.nlargest(1, ['rate', 'high']).iloc[0].to_dict())}.",
        f"Least of what is found: {_claim(true.nsmallest(1, ['rate', 'low']).iloc[0].to_dict())}.",
        f"Of the heads that track, {share(by_head)} are found to; of the models, all in {share(by_model)}.",
        f"Of the models with planted heads, {share(per_model)} have a head that is said to track and does not.",
        f"Of the models on which nothing tracks, and that are shown to do a task, {share(able)} have a head that is "
        "said to.",
    ]
    named = ", ".join(f"{row['role']} {share(row)}" for row in result.decoys.to_dict("records") if row["of"])
    found.append(f"Decoys that get their own verdict: {named}.")
    found += [_single(row) for row in result.single_heads.to_dict("records")]
    found += [_halved(row) for row in result.halves.to_dict("records") if row["on all"] == "right"]
    return found


def _said_falsely(result: Any) -> pd.DataFrame:
    """Rates of verdicts that are false, of planted, special and null models."""
    nulls, special = result.false_discoveries, result.special
    planted = result.false_tracks[result.false_tracks["per"] == "model"]
    return pd.concat(
        [
            planted.assign(kind="planted", claim="some head is said to track and does not"),
            special[special["claim"].str.contains("is said|contradicted")],
            nulls[(nulls["claim"] == "any false verdict") & (nulls["of"] > 0)],
        ],
        ignore_index=True,
    ).astype(dict.fromkeys(("rate", "low", "high"), float))


def _found(result: Any) -> pd.DataFrame:
    """Rates of what is there and found, of planted, special and trained models of one head."""
    special, single, decoys = result.special, result.single_heads, result.decoys
    planted = result.recall[result.recall["per"] == "model"]
    return pd.concat(
        [
            planted.assign(kind="planted", claim="all that track are found"),
            decoys[decoys["of"] > 0].assign(kind=decoys["role"], claim="its own verdict"),
            special[special["claim"].str.contains("found|named|verdict")],
            single.assign(kind="single head", claim=single["task"] + ", the right verdict"),
        ],
        ignore_index=True,
    ).astype(dict.fromkeys(("rate", "low", "high"), float))


def _claim(row: Mapping[str, Any]) -> str:
    return f"“{row['kind']}”, {row['claim']} in {share(row)}"


def _single(row: Mapping[str, Any]) -> str:
    """What is said of the only head of trained models."""
    if row["truth"] == "none":
        return f"Of {row['task']}, which trained models of one head cannot do, nothing is said in {share(row)}."
    return f"The only head of trained models is found to track {row['task']} in {share(row)}."


def _halved(row: Mapping[str, Any]) -> str:
    """What becomes of right verdicts on half of the examples."""
    whom = "idle heads" if row["heads"] == "idle" else f"heads {row['heads']}"
    return (
        f"With half of the examples, of {row['of']:,} right verdicts on {whom}, {row['right']:,} stay right, "
        f"{row['weaker']:,} say less, {row['undecided']:,} become undecided and {row['wrong']:,} wrong."
    )


def share(rate: Mapping[str, Any]) -> str:
    """``3 of 200 (1.5 % [0.3, 4.3])``."""
    if not rate["of"]:
        return "none of none"
    low, high = (f"{100 * rate[end]:.1f}" for end in ("low", "high"))
    return f"{rate['count']:,.0f} of {rate['of']:,.0f} ({100 * rate['rate']:.1f} % [{low}, {high}])"
