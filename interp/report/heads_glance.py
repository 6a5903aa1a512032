"""What does a notebook show of a dossier? What each task's heads do, and the findings with their numbers."""

import pandas as pd

from interp.report.frames import HeadsFrames
from interp.report.glance import MOST_DRAWN, Glance, with_interval
from interp.report.left_out import left_out
from interp.report.metrics import UNITS
from interp.report.names import with_shown_names
from interp.report.plots import overview
from interp.report.sentences import TaskSummary, summarise
from interp.report.verdicts import FINDINGS, VERDICTS


def heads_glance(report: HeadsFrames) -> Glance:
    """What a notebook shows of ``interp.heads``."""
    named = with_shown_names(report)
    table = found_first(named.frame)
    return Glance(
        f"Which heads track what: {', '.join(named.tasks['task'])}",
        [*left_out(report.provenance), *(_in_short(each, named.frame) for each in summarise(report))],
        evidence_table(table),
        len(report.frame),
        ".frame",
        report.provenance,
        "interp.plots.overview(report)",
        (lambda: overview(report)) if len(report.frame) <= MOST_DRAWN else None,
    )


def _in_short(task: TaskSummary, frame: pd.DataFrame) -> str:
    """A task's headline; where no head's attention or effect was found, also what is open."""
    found = frame.loc[frame["task"] == task.task, "verdict"].isin(FINDINGS).any()
    more = () if found else (*filter(None, [task.untested]), *task.open_questions)
    return " ".join([f"{task.task}: {task.headline}", *more])


def found_first(frame: pd.DataFrame) -> pd.DataFrame:
    """A dossier's rows by their verdicts, then by the size of the effect."""
    order = frame.assign(_verdict=frame["verdict"].map(list(VERDICTS).index), _size=-frame["effect"].abs())
    return order.sort_values(["_verdict", "_size"], kind="stable").drop(columns=["_verdict", "_size"])


def evidence_table(table: pd.DataFrame) -> pd.DataFrame:
    """Attention, resampling and probe on each row, with intervals."""
    units = table["metric"].map(lambda metric: UNITS.get(metric, metric))
    effects = with_interval(table, "effect", "effect_low", "effect_high")
    marks = table["verdict"].map(lambda verdict: f"{VERDICTS[verdict].symbol} {verdict}")
    return pd.DataFrame(
        {
            "head": [f"{layer}.{head}" for layer, head in zip(table["layer"], table["head"], strict=True)],
            "task": table["task"],
            "verdict": marks,
            "excess attention": with_interval(table, "excess", "excess_low", "excess_high"),
            "effect of resampling": [f"{text} {unit}" for text, unit in zip(effects, units, strict=True)],
            "probe, excess": with_interval(table, "probe_excess", "probe_excess_low", "probe_excess_high"),
        }
    )
