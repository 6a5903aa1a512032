"""What the verdicts say in plain words: numbers with every claim, and no claim without them.

1. A task gets one short line, without numbers: the heads with a finding, and the head with the largest effect.
2. Its headline says how much was measured, how well the unablated model does, and from what size an effect counts.
3. Each head with a finding gets a sentence or two: where it looks, what its ablation costs. The sentences are templates
   of ``page_texts.toml``, one a verdict; what they name is a column of the head's row, or made by ``_CLAUSES``.
4. What stayed undecided is listed with the reason, and with the number of units that would decide.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from interp.report.heads_frames import FINDINGS, VERDICTS, head_names, with_shown_names
from interp.report.page_texts import texts
from interp.report.words import METRICS, UNITS, change, counted, estimate, listed, percent, size

_MOST_UNITS = 1_000_000
_MOST_NAMED = 3
"""Verdicts that a task's line names, and heads of each; the grid and the task's own section have all."""
_MOST_AT_REST = 0.5
"""Attention on the query itself and the first token that is worth a word."""
_TEXTS: Mapping[str, str] = texts()["clauses"]


@dataclass(frozen=True)
class TaskSummary:
    """What the evidence says about one task.

    Attributes:
        task: The task's name, for readers.
        line: What its heads come to: those with a finding, by verdict, and the one with the largest effect.
        largest: What is said of the head with the largest effect, with its numbers; empty where none was measured.
        headline: What was measured and how many heads got a finding.
        untested: On how many examples attention was not measured, and why; empty where it was on all.
        findings: One per head with a finding, strongest effect first within a verdict; and one of all the heads that
            carry the task's feature unused.
        open_questions: What was left undecided, and what would decide it.
    """

    task: str
    line: str
    largest: str
    headline: str
    untested: str
    findings: tuple[str, ...]
    open_questions: tuple[str, ...]


def summarise(report: Any) -> tuple[TaskSummary, ...]:
    """Put every task's verdicts into sentences, in the order of ``report.tasks``.

    Args:
        report: What ``interp.heads`` returned.

    Returns:
        One ``TaskSummary`` for each task.

    Examples:
        >>> from interp.report.heads_sentences import summarise
        >>> report = interp.heads(interp.load_model(), "agreement", n=40, probes=False, max_group=0)
        >>> [each.task for each in summarise(report)]
        ['agreement']
    """
    report = with_shown_names(report)
    return tuple(_summary(task, rows_of(report.summary(), task)) for _, task in report.tasks.iterrows())


def _summary(task: pd.Series, heads: pd.DataFrame) -> TaskSummary:
    found = [head_sentence(row) for _, row in strongest_first(heads).iterrows()]
    findings, asked = (*found, *unused_sentence(heads)), tuple(_open_questions(heads))
    name, sizes = str(task["task"]), heads["effect"].abs()
    largest = heads.loc[sizes.idxmax()] if sizes.notna().any() else None
    line, said = _short_line(name, heads, largest, asked), ""
    if largest is not None:
        is_found = largest["verdict"] in FINDINGS
        said = head_sentence(largest) if is_found else _TEXTS["largest"].format_map(_Said(largest))
    return TaskSummary(name, line, said, _headline(task, heads), _untested(task, heads), findings, asked)


def rows_of(cells: pd.DataFrame, task: pd.Series) -> pd.DataFrame:
    """The heads of one task."""
    return cells[cells["task"] == task["task"]]


def head_sentence(row: pd.Series) -> str:
    """One head's finding for one task, with the numbers that it rests on.

    Args:
        row: A row of the dossier's ``summary()`` whose verdict is one of ``FINDINGS``.
    """
    by_verdict = texts()["finding"]
    template = by_verdict.get(row["verdict"], by_verdict["other"])
    return (template + "{in_templates}.{if_carried}").format_map(_Said(row))


def verdict_sentence(verdicts: pd.DataFrame) -> str:
    """One head's verdict on one task: its finding, or, where it has none, what the verdict means, with the effects."""
    row = verdicts.iloc[0]
    if row["verdict"] in FINDINGS:
        return head_sentence(row)
    if row["verdict"] == "encodes, unused":
        return unused_sentence(verdicts)[0]
    return _TEXTS["verdict"].format_map(_Said(row))


def unused_sentence(heads: pd.DataFrame) -> list[str]:
    """One sentence of all heads that carry the feature and are not shown to do anything with it."""
    found = heads[heads["verdict"] == "encodes, unused"].sort_values("probe", ascending=False)
    if found.empty:
        return []
    names = head_names(found)
    several = {"who": f"Heads {listed(names)} carry", "whose": "any one of them", "first": "the first: "}
    one = {"who": f"Head {names[0]} carries", "whose": "it", "first": ""}
    return [_TEXTS["unused"].format_map(_Said({**found.iloc[0], **(one if len(names) == 1 else several)}))]


class _Said(dict[str, Any]):
    """What a template may name of a row: its columns, and clauses, which are made when they are asked for."""

    def __missing__(self, name: str) -> Any:
        return _CLAUSES[name](self) if name in _CLAUSES else _TEXTS[name].format_map(self)


def _does(value: str, ends: str, said: _Said) -> str:
    low, high = said[f"{ends}_low"], said[f"{ends}_high"]
    return change(said[value], low, high, said["unit"], n_clusters=said.get("n_clusters"))


def _amount(value: str, said: _Said) -> str:
    ends = (said[f"{value}_low"], said[f"{value}_high"])
    return estimate(said[value], *ends, said["unit"], n_clusters=said["n_clusters"])


def _where(said: _Said) -> str:
    """Where a head looks: at which value of the feature, and how much more than its best baseline."""
    best = ""
    if pd.notna(said["attention_baseline"]):
        name = f", {said['baselines']}" if pd.notna(said["baseline"]) else ""
        best = f"; its best baseline{name}, has {said['on_baseline']}"
    return f"{said['at_value']}({said['on_related']} of its attention{best})"


def _at_value(said: _Said) -> str:
    """At which value of the feature a head looks; empty where it is not shown to, or there are none."""
    value = said["attention_value"]
    if said["attention_state"] != "shown" or pd.isna(value) or not value:
        return ""
    only = len(str(said["attention_values"]).split(", ")) < said["n_attention_values"]
    where = f"where {said['feature']} is {value}"
    return f"{where} only " if only else f"most clearly {where} "


def _elsewhere(said: _Said) -> str:
    """Where a head that is not shown to attend to the related word does look."""
    case = said["attention_state"]
    if pd.isna(said["attention"]):
        case = "unknown"
    elif case not in ("not testable", "shown") and said["excess"] <= -said["min_attention"]:
        case = "more"
    return str(texts()["elsewhere"][case].format_map(said))


def _rests(said: _Said) -> str:
    """Where most of a head's attention is that it has no use for; empty if it is not much."""
    own, first = said["attention_self"], said["attention_first"]
    name, share = ("the first token", first) if first >= own else ("the query itself", own)
    return f"; {share:.2f} of its attention rests on {name}" if own + first >= _MOST_AT_REST else ""


def _in_templates(said: _Said) -> str:
    """That the mean over templates rests on some of them; empty where it does not."""
    some = said["attention_state"] == "shown" and said["n_templates_attended"] < said["n_templates"]
    return str(said["templates"]) if some else ""


def _baselines(said: Mapping[str, Any]) -> str:
    """As a sentence has them: ``offset -3``, but ``the first attractor``."""
    names = str(said["baseline"]).split(" / ")
    return " / ".join(name if re.search(r"\d$", name) else f"the {name}" for name in names)


def _overlap(said: _Said) -> str:
    share = said["baseline_overlap"]
    return "every example" if share == 1 else f"{percent(share)} of the examples"


def _unless_missing(clause: str, column: str, said: _Said) -> str:
    return "" if pd.isna(said[column]) else _TEXTS[clause].format_map(said)


_CLAUSES: Mapping[str, Callable[[_Said], str]] = {
    "unit": lambda said: UNITS.get(said["metric"], said["metric"]),
    "mean": lambda said: str(said["mean_replacement"]).replace("_", " "),
    "minimum": lambda said: size(said["min_effect"]),
    "cost": lambda said: _unless_missing("cost", "effect", said) or "its ablation was not measured",
    "there": partial(_unless_missing, "there", "exchange"),
    "resampled": partial(_does, "effect", "effect"),
    "averaged": partial(_does, "mean_effect", "mean_effect"),
    "exchanged": partial(_does, "exchange", "exchange"),
    "all_gone": partial(_does, "group_effect", "group"),
    "last": partial(_does, "group_share", "group_share"),
    "accuracy": lambda said: accuracy_clause(said["accuracy_base"], said["accuracy_ablated"]),
    "where": _where,
    "on_related": lambda said: size(said["attention"]),
    "on_baseline": lambda said: size(said["attention_baseline"]),
    "at_value": _at_value,
    "if_it_looks": lambda said: said["looks"] if said["attention_state"] == "shown" else _TEXTS["not shown to look"],
    "elsewhere": _elsewhere,
    "baselines": _baselines,
    "overlap": _overlap,
    "there_reason": lambda said: said["reason"].replace("at the related word", "there"),
    "if_measured": partial(_unless_missing, "measured", "attention"),
    "because": lambda said: f": {reason}" if (reason := reason_of(said)) else "",
    "also": lambda said: f". {reason}" if (reason := reason_sentence(said)) else "",
    "rests": _rests,
    "in_templates": _in_templates,
    "of_templates": lambda said: counted(int(said["n_templates"]), "template"),
    "others": lambda said: listed(str(said["partners"]).split()),
    "together": lambda said: listed(str(said["group"]).split("+")),
    "meaning": lambda said: VERDICTS[said["verdict"]].meaning,
    "in_brackets": lambda said: f" ({reason})" if (reason := reason_of(said)) else "",
    "resampled_by": partial(_amount, "effect"),
    "averaged_by": partial(_amount, "mean_effect"),
    "needed": lambda said: _TEXTS["needed units"].format_map(said) if np.isfinite(said["n_to_decide"]) else "",
    "if_carried": lambda said: said["carried"] if said["representation"] == "carried" else "",
}


def place_note(sentences: Iterable[str]) -> str:
    """What a baseline such as ``position 9`` is; empty where no sentence names one."""
    named = re.search(r"(?:baseline, |more to )(position \d+)", " ".join(sentences))
    return _TEXTS["place"].format(place=named[1]) if named else ""


def reason_of(row: Mapping[Any, Any] | pd.Series) -> str:
    """The verdict's reason as a clause; empty where there is none (frames read from CSV have NaN there)."""
    return "" if pd.isna(row["reason"]) else str(row["reason"]).rstrip(".")


def reason_sentence(row: Mapping[Any, Any] | pd.Series) -> str:
    """The verdict's reason as a sentence of its own, without a full stop; empty where there is none."""
    reason = reason_of(row)
    return reason[:1].upper() + reason[1:]


def accuracy_clause(base: float, ablated: float) -> str:
    """What happens to the accuracy, as the end of a sentence; empty where it is not known."""
    if pd.isna(base) or pd.isna(ablated):
        return ""
    before, after = f"{base:.2f}", f"{ablated:.2f}"
    return f", accuracy stays at {before}" if before == after else f", accuracy goes from {before} to {after}"


def _headline(task: pd.Series, heads: pd.DataFrame) -> str:
    unit, counts = UNITS.get(task["metric"], task["metric"]), heads["verdict"].value_counts()
    # Of a file, the accuracy that others report: of its items alone, each as often as it stands there.
    of_a_file = pd.notna(task["coverage"]) and task["coverage"]
    return _TEXTS["headline"].format(
        units=_units(task),
        clusters=counted(task["n_clusters"], "cluster"),
        examples=counted(task["n_examples"], "example"),
        accuracy_base=task["accuracy_base"],
        published=f" ({task['accuracy_items']:.3f} on the file's own items)" if of_a_file else "",
        metric=METRICS.get(task["metric"], task["metric"]),
        base=estimate(task["base"], task["base_low"], task["base_high"], unit, n_clusters=task["n_clusters"]),
        minimum=size(heads["min_effect"].median()),  # of each head a share of the base on its own units
        unit=unit,
        heads=counted(len(heads), "head"),
        found=", ".join(f"{counts[verdict]} “{verdict}”" for verdict in VERDICTS if verdict in counts),
        ablated=_ablated(task, heads),
    )


def _ablated(task: pd.Series, heads: pd.DataFrame) -> str:
    """On how many of the units heads were ablated, where that is not all."""
    fewest, most = (int(each) for each in (heads["n_units"].min(), heads["n_units"].max()))
    if fewest == task["n_units"]:
        return ""
    predicted = _TEXTS["predicted"] if (heads["n_effective"] != heads["n_units"]).any() else ""
    units = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return " " + _TEXTS["ablated"].format(units=units, predicted=predicted)


def _units(task: pd.Series) -> str:
    """How many units there are, and how many of them have a counterfactual."""
    n_units, n_balanced = task["n_units"], task["n_examples"] - task["n_units"]
    if n_balanced == n_units:
        return counted(n_units, "balanced unit")
    return f"{counted(n_units, 'unit')}, {n_balanced or 'none'} of them balanced,"


def _untested(task: pd.Series, heads: pd.DataFrame) -> str:
    """Why attention was not measured on some examples, or on any."""
    n_examples, testable = task["n_examples"], heads["attention"].notna().any()
    reasons = {
        "the related word is the first token, or does not stand before the query": task["n_excluded"],
        "no related word could be tagged": task["n_untagged"],
    }
    if not testable:
        reasons["there is nothing to choose a baseline on"] = n_examples - sum(reasons.values())
    parts = [f"in {_share(n, n_examples)} {reason}" for reason, n in reasons.items() if n]
    what = "Attention is left out on some examples" if testable else "Attention is not testable"
    return " ".join(filter(None, (f"{what}: {'; '.join(parts)}." if parts else "", _without_room(heads))))


def _without_room(heads: pd.DataFrame) -> str:
    """Of how many heads position alone finds the related word, and what would help; empty if of none."""
    without = heads[(heads["attention_state"] == "not testable") & heads["attention"].notna()]
    if without.empty:
        return ""
    return _TEXTS["no room"].format(
        n=len(without),
        heads=counted(len(heads), "head"),
        named=listed([_baselines({"baseline": names}) for names in without["baseline"].unique()]),
        overlap=percent(without["baseline_overlap"].min()),
        **without.iloc[0][["relation", "min_attention"]],
    )


def _share(n: int, n_all: int) -> str:
    return f"all {counted(n_all, 'example')}" if n == n_all else f"{n:,} of {counted(n_all, 'example')}"


def strongest_first(heads: pd.DataFrame) -> pd.DataFrame:
    """The heads of one task with a finding, by verdict and then by the size of the effect."""
    found = heads[heads["verdict"].isin(FINDINGS)]
    order = found.assign(place=found["verdict"].map(FINDINGS.index), size=-found["effect"].abs())
    return order.sort_values(["place", "size", "layer", "head"])


def _open_questions(heads: pd.DataFrame) -> list[str]:
    """A sentence for each reason why heads are undecided."""
    undecided, found = heads[heads["verdict"] == "undecided"], []
    reasons = undecided["reason"].fillna("").astype(str).str.rstrip(".")
    for reason, rows in undecided.groupby(reasons, sort=False):
        sentence = f"Undecided {'is' if len(rows) == 1 else 'are'} {_heads(rows)}"
        if len(rows) == len(heads):
            every = f"Every one of the {len(heads)} heads is undecided"
            sentence = every if len(heads) > 1 else "The only head is undecided"
        because = f": {reason}" if reason else ""
        found.append(f"{sentence}{because}{_would_decide(rows['n_to_decide'].astype(float))}.")
    return found


def _heads(rows: pd.DataFrame) -> str:
    return f"{'head' if len(rows) == 1 else 'heads'} {listed(head_names(rows))}"


def _would_decide(needed: pd.Series) -> str:
    """How many units would decide, as the end of a sentence; empty where that is not known."""
    known = needed[needed <= _MOST_UNITS]
    if known.empty:
        return "; no number of units that one could measure would decide" if (needed > _MOST_UNITS).any() else ""
    fewest, most = int(known.min()), int(known.max())
    units = f"{most}" if fewest == most else f"{fewest} to {most}"
    of = "" if len(known) == len(needed) else f" on {len(known)} of these"
    return f"; about {units} units would decide{of}"


def _short_line(task: str, heads: pd.DataFrame, largest: pd.Series | None, open_questions: Sequence[str]) -> str:
    found, parts, end = strongest_first(heads), ["no head has a finding.", *open_questions[:1]], []
    if largest is not None and (found.empty or largest.name != found.index[0]):
        why = f"; {reason_of(largest)}" if largest["verdict"] == "needed" else ""
        end = [f"Largest effect: head {largest['layer']}.{largest['head']} ({largest['verdict']}{why})."]
        found = found.drop(largest.name, errors="ignore")
    if groups := [rows for _, rows in found.groupby("verdict", sort=False)]:
        first, *others = map(_named, groups[:_MOST_NAMED])
        more = [f"{sum(map(len, groups[_MOST_NAMED:]))} more with a finding"] if groups[_MOST_NAMED:] else []
        also = f"; also {'; '.join([*others, *more])}" if others else ""
        parts = [f"{'head' if len(groups[0]) == 1 else 'heads'} {first}{also}."]
    return " ".join([f"{task}:", *parts, *end])


def _named(rows: pd.DataFrame) -> str:
    """Heads of one verdict: ``2.1 and 2.2 track``, ``0.3 (causal)``."""
    names, verdict = listed(head_names(rows), _MOST_NAMED), rows["verdict"].iloc[0]
    return f"{names} {'tracks' if len(rows) == 1 else 'track'}" if verdict == "tracks" else f"{names} ({verdict})"
