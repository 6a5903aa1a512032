"""What a calibration looks like: recall by difficulty, verdicts by role, false claims on nulls."""

from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import seaborn as sns

from interp.errors import InputError
from interp.report.dots import Dots, dots_figure, series
from interp.report.drawing import Figure, chosen, despined, label_text, require
from interp.report.heads_frames import VERDICTS
from interp.report.heatmap import SEQUENTIAL

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
    figure = Figure(figsize=(1.9 + 0.78 * table.shape[1], 1.9 + 0.42 * len(table)), dpi=150, layout="constrained")
    ax = figure.subplots()
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
    return dots_figure(Dots(names, {"rate": series(table, "rate", "low", "high")}, across, "", origin=alpha))


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
