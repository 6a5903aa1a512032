"""How often are verdicts right? Each rate with its interval and what it is a share of: figures, and the page."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import seaborn as sns

from interp.errors import InputError
from interp.report.dots import dots_figure, series
from interp.report.drawing import Figure, chosen, despined, label_text, one_panel, require
from interp.report.heads_frames import VERDICTS
from interp.report.heatmap import SEQUENTIAL
from interp.report.page_texts import explained
from interp.report.sections import Custom, Facts, Page, Picture, Sentences, Table
from interp.report.tables import Column
from interp.report.words import about, counted, estimate

AXES = {
    "n": "units of each task",
    "sharpness": "sharpness of attention",
    "noise": "noise on the answers (a tracker writes 1)",
    "share": "share of the answer that it writes",
    "glance": "read of the related word, by glancers",
}
Shown = Literal["confusion", "false claims", "recall"]


def calibration(result: Any, show: Shown = "confusion") -> Figure:
    """How often verdicts are right.

    Args:
        result: What ``interp.calibration.calibrate.calibrate`` returns.
        show: ``confusion`` (verdicts by what heads are), ``false claims`` (where nothing is to be found, with 95 %
            intervals) or ``recall`` (by what makes heads hard to find).

    Raises:
        InputError: It is something else, an unknown figure, or recall of a calibration without curves.
    """
    made_by = "interp.calibration.calibrate.calibrate"
    require(result, ("confusion", "false_discoveries", "curves", "provenance"), "calibration", made_by)
    which = chosen("show", show, get_args(Shown))
    if which == "confusion":
        return _confusion(result.confusion)
    if which == "false claims":
        return _false_claims(result.false_discoveries, result.provenance["alpha"])
    if not result.curves:
        raise InputError("show: a quick calibration has no curves of recall; run the full one, or show 'confusion'")
    return _recall(result.curves)


def _confusion(table: pd.DataFrame) -> Figure:
    """Roles down, verdicts across: the share of a role's heads that gets each verdict, and how many."""
    table = table[[name for name in VERDICTS if name in table.columns]]
    figure, ax = one_panel(1.9 + 0.78 * table.shape[1], 1.9 + 0.42 * len(table))
    shares = table.div(table.sum(axis=1), axis=0)
    counts = table.map(lambda count: f"{count:,}" if count else "")
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    how = {"cmap": palette, "vmin": 0, "vmax": 1, "linewidths": 0.5, "xticklabels": False, "yticklabels": False}
    sns.heatmap(shares, annot=counts, fmt="", ax=ax, cbar_kws={"label": "share"}, **how)
    ax.set(xlabel="verdict", ylabel="what the head is")
    ax.set_xticks(np.arange(table.shape[1]) + 0.5, table.columns, rotation=40, ha="right")
    ax.set_yticks(np.arange(len(table)) + 0.5, list(map(label_text, table.index)), parse_math=False)
    return figure


def _false_claims(table: pd.DataFrame, alpha: float) -> Figure:
    """How many nulls have a head with a false claim, with intervals, beside the error rate that was asked for."""
    table = table[table["of"] > 0]
    names = [f"{kind}: {claim}" for kind, claim in zip(table["kind"], table["claim"], strict=True)]
    across = f"share of models with a false claim (line: {alpha:g}, as asked)"
    return dots_figure(names, {"rate": series(table, "rate", "low", "high")}, across, "", origin=alpha)


def _recall(curves: Any) -> Figure:
    """How often a head is said to track, by what makes it hard to find; a panel for each."""
    figure = Figure(figsize=(3.1 * len(curves), 3.0), dpi=150, layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(curves), sharey=True))
    blue, orange = sns.color_palette("colorblind")[:2]
    for ax, (name, table) in zip(panels, curves.items(), strict=True):
        ends = np.abs(table[["low", "high"]].to_numpy().T - table["rate"].to_numpy())
        ax.errorbar(
            table[name], table["rate"], yerr=ends, fmt="o-", markersize=4, capsize=2, color=blue, label="“tracks”"
        )
        ax.plot(table[name], table["wrong"], "s:", markersize=3.5, color=orange, label="a wrong verdict")
        ax.set(xlabel=AXES[name], ylim=(-0.03, 1.03))
        despined(ax)
    panels[0].set_ylabel("share of heads")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


_TABLES = {
    "false_discoveries": "False claims on nulls",
    "recall": "Trackers found",
    "false_tracks": "Others said to track",
    "decoys": "Decoys",
    "special": "Models with something that the others lack",
    "single_heads": "Trained models of one head",
    "halves": "Fewer examples",
}
_PICTURES: Mapping[str, tuple[str, Shown]] = {
    "confusion": ("Verdicts on the heads of planted models, by what they are", "confusion"),
    "false_claims": ("False claims where nothing is to be found", "false claims"),
    "recall": ("How often a head is said to track, by what makes that hard to tell", "recall"),
}


def page_of(result: Any) -> Page:
    """The sections of a ``Calibration``."""
    pictures = [
        Picture(caption, name, partial(calibration, result, show), caption, inline=True)
        for name, (caption, show) in _PICTURES.items()
        if show != "recall" or result.curves
    ]
    frames = {name: getattr(result, name) for name in _TABLES}
    curves = {f"recall_by_{name}": table for name, table in result.curves.items()}
    captions = {**_TABLES, **{f"recall_by_{name}": f"Heads by {name}" for name in result.curves}}
    first, *others = (_table({**frames, **curves}[name], name, caption) for name, caption in captions.items())
    return Page(
        title="How often are verdicts right?",
        kind="calibration",
        sections=[
            pictures[0],
            Sentences("Findings", findings(result)),
            *pictures[1:],
            first,
            Custom("", "folded_tables", {"tables": others}),
            Facts("How to read this", tuple(explained("calibration").items())),
        ],
        provenance={name: value for name, value in result.provenance.items() if value is not None},
        about=about({}, counted(result.examples["job"].nunique(), "judged model")),
        call="interp.plots.calibration(result)",
        frames={**frames, "confusion": result.confusion.reset_index(), **curves},
        draws={each.name: each.draw for each in pictures},
    )


def _table(frame: pd.DataFrame, name: str, caption: str) -> Table:
    ends = ("low", "high")
    rate = Column("rate", "rate, %", *ends, percent=True)
    columns = [rate if each == "rate" else Column(each) for each in frame if each not in ends]
    return Table("Tables" if name == "false_discoveries" else "", caption, frame, columns, f"{name}.csv")


def findings(result: Any) -> list[str]:
    """The headline numbers, one sentence each; what is worst comes first."""
    able = result.false_discoveries.set_index(["kind", "claim"]).loc[("able", "tracks")]
    by_model, by_head = (result.recall.set_index("per").loc[per] for per in ("model", "head and task"))
    per_model = result.false_tracks.set_index("per").loc["model"]
    claims = _claims(result)
    false, found = claims[claims["false"]], claims[~claims["false"]]
    named = ", ".join(f"{row['role']} {share(row)}" for row in result.decoys.to_dict("records") if row["of"])
    return [
        f"Worst of what is said falsely: {_claim(false.nlargest(1, ['rate', 'high']).iloc[0])}.",
        f"Least of what is found: {_claim(found.nsmallest(1, ['rate', 'low']).iloc[0])}.",
        f"Of the heads that track, {share(by_head)} are found to; of the models, all in {share(by_model)}.",
        f"Of the models with planted heads, {share(per_model)} have a head that is said to track and does not.",
        f"Of the models on which nothing tracks, and that are shown to do a task, {share(able)} have a head that is "
        "said to.",
        f"Decoys that get their own verdict: {named}.",
        *(_single(row) for row in result.single_heads.to_dict("records")),
        *(_halved(row) for row in result.halves.to_dict("records") if row["on all"] == "right"),
    ]


def _claims(result: Any) -> pd.DataFrame:
    """The rates of verdicts that are ``false``, and of what is there and found; of all kinds of models."""
    nulls, special, single, decoys = result.false_discoveries, result.special, result.single_heads, result.decoys
    recall, others = (each[each["per"] == "model"] for each in (result.recall, result.false_tracks))
    rates = [
        (True, others.assign(kind="planted", claim="some head is said to track and does not")),
        (True, special[special["claim"].str.contains("is said|contradicted")]),
        (True, nulls[(nulls["claim"] == "any false verdict") & (nulls["of"] > 0)]),
        (False, recall.assign(kind="planted", claim="all that track are found")),
        (False, decoys[decoys["of"] > 0].assign(kind=decoys["role"], claim="its own verdict")),
        (False, special[special["claim"].str.contains("found|named|verdict")]),
        (False, single.assign(kind="single head", claim=single["task"] + ", the right verdict")),
    ]
    joined = pd.concat([each.assign(false=is_false) for is_false, each in rates], ignore_index=True)
    return joined.astype(dict.fromkeys(("rate", "low", "high"), float))


def _claim(row: pd.Series) -> str:
    return f"“{row['kind']}”, {row['claim']} in {share(row)}"


def _single(row: Mapping[Any, Any]) -> str:
    """What is said of the only head of trained models."""
    if row["truth"] == "none":
        return f"Of {row['task']}, which trained models of one head cannot do, nothing is said in {share(row)}."
    return f"The only head of trained models is found to track {row['task']} in {share(row)}."


def _halved(row: Mapping[Any, Any]) -> str:
    """What becomes of right verdicts on half of the examples."""
    whom = "idle heads" if row["heads"] == "idle" else f"heads {row['heads']}"
    return (
        f"With half of the examples, of {row['of']:,} right verdicts on {whom}, {row['right']:,} stay right, "
        f"{row['weaker']:,} say less, {row['undecided']:,} become undecided and {row['wrong']:,} wrong."
    )


def share(rate: Mapping[Any, Any] | pd.Series) -> str:
    """``3 of 200 (1.5 % [0.3, 4.3])``."""
    if not rate["of"]:
        return "none of none"
    value, low, high = (100 * rate[name] for name in ("rate", "low", "high"))
    return f"{rate['count']:,.0f} of {rate['of']:,.0f} ({estimate(value, low, high, '%', digits=1)})"
