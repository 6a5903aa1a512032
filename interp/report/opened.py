"""What does a head's card on the page need? Every row of the dossier, with the sentence that says what was found."""

from typing import Any

import pandas as pd

from interp.report.colours import reach
from interp.report.frames import HeadsFrames
from interp.report.metrics import UNITS
from interp.report.sentences import head_sentence, reason_sentence
from interp.report.verdicts import FINDINGS, VERDICTS


def for_cards(report: HeadsFrames) -> pd.DataFrame:
    """The dossier's frame, with the heads' names and, as ``sentence``, what each row says.

    Args:
        report: With the tasks named for readers.
    """
    names = [f"{layer}.{head}" for layer, head in zip(report.frame["layer"], report.frame["head"], strict=True)]
    said = [_says(row) for _, row in report.frame.iterrows()]
    return report.frame.assign(name=names, sentence=said)


def _says(row: pd.Series) -> str:
    if row["verdict"] in FINDINGS:
        return head_sentence(row)
    reason = reason_sentence(row)
    return f"{reason}." if reason else ""


def of_tasks(report: HeadsFrames) -> list[dict[str, Any]]:
    """Of every task, in their order: what the numbers of its heads are, and how far the effects reach."""
    return [_of_task(task, report.frame[report.frame["task"] == task["task"]]) for _, task in report.tasks.iterrows()]


def _of_task(task: pd.Series, heads: pd.DataFrame) -> dict[str, Any]:
    present = [VERDICTS[str(name)] for name in heads["verdict"].unique()]
    ends = heads[["effect", "effect_low", "effect_high", "exchange", "exchange_low", "exchange_high"]]
    return {
        "name": str(task["task"]),
        "unit": UNITS.get(task["metric"], str(task["metric"])),
        "relation": str(heads["relation"].iloc[0]),
        "reach": reach(ends),
        "verdicts": {each.name: {"slug": each.slug, "symbol": each.symbol} for each in present},
    }
