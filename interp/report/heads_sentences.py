"""What the verdicts say in plain words: numbers with every claim, and no claim without them.

1. A task gets one short line: its strongest finding, the other heads, and the head with the largest effect.
2. Its headline says how much was measured, how well the unablated model does, and from what size an effect counts.
3. Each head with a finding gets a sentence or two: where it looks, what its ablation costs.
4. What stayed undecided is listed with the reason, and with the number of units that would decide.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.heads_frames import FINDINGS, VERDICTS, with_shown_names
from interp.report.words import METRICS, UNITS, change, counted, estimate, listed, percent, size


def unused_sentence(heads: pd.DataFrame) -> list[str]:
    """One sentence of all heads that carry the feature and are not shown to do anything with it."""
    found = heads[heads["verdict"] == "encodes, unused"].sort_values("probe", ascending=False)
    if found.empty:
        return []
    names = [f"{layer}.{head}" for layer, head in zip(found["layer"], found["head"], strict=True)]
    best = found.iloc[0]
    who = f"Head {names[0]} carries" if len(names) == 1 else f"Heads {listed(names)} carry"
    whose = "it" if len(names) == 1 else "any one of them"
    return [
        f"{who} {best['feature']} ({'' if len(names) == 1 else 'the first: '}{_readings(best)}), unused: "
        f"ablating {whose} costs {best['task']} less than the minimum."
    ]


def carried_sentence(row: pd.Series) -> str:
    """What a probe reads there; empty where it is not carried."""
    return f" A probe reads {row['feature']} there ({_readings(row)})." if row["representation"] == "carried" else ""


def _readings(row: pd.Series) -> str:
    return (
        f"accuracy {row['probe']:.2f} on unseen words; {row['probe_baseline']} {row['probe_baseline_score']:.2f}, "
        f"control task {row['probe_control']:.2f}"
    )


_MOST_UNITS = 1_000_000
_MOST_AT_REST = 0.5
"""Attention on the query itself and the first token that is worth a word."""


@dataclass(frozen=True)
class TaskSummary:
    """What the evidence says about one task.

    Attributes:
        task: The task's name, for readers.
        headline: What was measured and how many heads got a finding.
        untested: On how many examples attention was not measured, and why; empty where it was on all.
        findings: One per head with a finding, strongest effect first within a verdict; and one of all the heads that
            carry the task's feature unused.
        open_questions: What was left undecided, and what would decide it.
    """

    task: str
    headline: str
    untested: str
    findings: tuple[str, ...]
    open_questions: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, in reading order."""
        return (*filter(None, (self.headline, self.untested)), *self.findings, *self.open_questions)


def summarise(report: Any) -> tuple[TaskSummary, ...]:
    """Put every task's verdicts into sentences, in the order of ``report.tasks``."""
    report = with_shown_names(report)
    return tuple(
        TaskSummary(
            task=str(task["task"]),
            headline=_headline(task, heads),
            untested=_untested(task, heads),
            findings=(*(head_sentence(row) for _, row in strongest_first(heads).iterrows()), *unused_sentence(heads)),
            open_questions=tuple(_open_questions(heads)),
        )
        for _, task in report.tasks.iterrows()
        for heads in [report.summary()[report.summary()["task"] == task["task"]]]
    )


def head_sentence(row: pd.Series) -> str:
    """One head's finding for one task, with the numbers that it rests on.

    Args:
        row: A row of the dossier's ``summary()`` whose verdict is one of ``FINDINGS``.
    """
    return f"{verdict_sentence(row)}.{carried_sentence(row)}"


def verdict_sentence(row: pd.Series) -> str:
    """Where one head looks and what its ablation costs, without a full stop.

    Args:
        row: As ``head_sentence`` takes it.
    """
    return f"{_found(row)}{_in_templates(row)}"


def _found(row: pd.Series) -> str:
    name, task = f"Head {row['layer']}.{row['head']}", row["task"]
    where, cost = _attention_clause(row), _effect_clause(row)
    if row["verdict"] in ("tracks", "attends and causal"):
        does = "tracks" if row["verdict"] == "tracks" else "matters for"
        attends = f"it attends to the {row['relation']} {where}"
        return f"{name} {does} {task}: {attends}, and {cost}{_there(row)}{_also(row)}"
    if row["verdict"] == "redundant":
        return f"{name} is redundant for {task} with {_partners(row)}: {_alone(row)}{_also(row)}"
    if row["verdict"] == "general":
        can = f"{name} matters for every task that the model can do"
        return f"{can}, whether or not it looks at the related word: here {cost}"
    if row["verdict"] == "attends, not causal":
        return f"{name} attends to the {row['relation']} {where}, but {_small_effect(row)}: {cost}{_also(row)}"
    if row["verdict"] == "opposes":
        return f"{name} works against {task}: {cost}"
    return f"{name} matters for {task}: {cost}. {_looks_elsewhere(row, where)}"


def _in_templates(row: pd.Series) -> str:
    """That the mean over templates rests on some of them, as a sentence that follows; empty where it does not."""
    if row["attention_state"] != "shown" or not row["n_templates_attended"] < row["n_templates"]:
        return ""
    attended, of = f"{row['n_templates_attended']:.0f}", counted(int(row["n_templates"]), "template")
    return f". It looks there beyond its baseline in {attended} of {of} only"


def _there(row: pd.Series) -> str:
    """What it reads at the related word is worth, as the end of a sentence; empty where that was not measured."""
    if pd.isna(row["exchange"]):
        return ""
    does = change(row["exchange"], row["exchange_low"], row["exchange_high"], UNITS.get(row["metric"], row["metric"]))
    return f"; exchanging the {row['relation']} for this head alone {does}"


def _also(row: pd.Series) -> str:
    """The verdict's reason as a sentence that follows."""
    reason = reason_sentence(row)
    return f". {reason}" if reason else ""


def _partners(row: pd.Series) -> str:
    return listed(str(row["partners"]).split())


def _alone(row: pd.Series) -> str:
    """What a redundant head costs by itself, with those that it shares the work with, and after them."""
    unit = UNITS.get(row["metric"], row["metric"])
    does = change(row["group_effect"], row["group_low"], row["group_high"], unit)
    then = change(row["group_share"], row["group_share_low"], row["group_share_high"], unit)
    where = "it is not shown to look at the related word"
    if row["attention_state"] == "shown":
        where = f"it attends to the {row['relation']} {_attention_clause(row)}"
    mean = str(row["mean_replacement"]).replace("_", " ")
    together = f"the {mean} in the places of {listed(str(row['group']).split('+'))} {does}"
    return f"{where}; {_effect_clause(row)}. Together, {together}; ablating this one where the others are gone {then}"


def _looks_elsewhere(row: pd.Series, where: str) -> str:
    """Where a head that is not shown to attend to the related word does look."""
    if pd.isna(row["attention"]):
        return "Its attention is not testable"
    if row["attention_state"] == "not testable":
        return f"Whether it attends to the {row['relation']} is not testable {where}: {_no_room(row)}"
    if row["attention_state"] == "shown":
        there = "but " + row["reason"].replace("at the related word", "there")
        return f"It attends to the {row['relation']} {where}, {there}{_there(row)}"
    if row["excess"] <= -row["min_attention"]:
        share = f"{row['attention_baseline']:.2f} of its attention"
        more = _baseline(row["baseline"])
        return f"It attends more to {more} ({share}) than to the {row['relation']} ({row['attention']:.2f})"
    reason = reason_of(row)
    because = f": {reason}" if reason else ""
    rests = f"{because}{_rests(row)}"
    if row["attention_state"] == "none":
        return f"It attends to the {row['relation']} {where} by less than the minimum beyond a baseline{rests}"
    return f"It is not shown to attend to the {row['relation']} {where}{rests}"


def _rests(row: pd.Series) -> str:
    """Where most of a head's attention is that it has no use for, as the end of a sentence; empty if it is not much."""
    own, first = row["attention_self"], row["attention_first"]
    if not own + first >= _MOST_AT_REST:
        return ""
    name, size = ("the first token", first) if first >= own else ("the query itself", own)
    return f"; {size:.2f} of its attention rests on {name}"


def _no_room(row: pd.Series) -> str:
    """Why no excess is possible: the baseline is the related word."""
    share = "every example" if row["baseline_overlap"] == 1 else f"{percent(row['baseline_overlap'])} of the examples"
    return f"{_baseline(row['baseline'])} is the {row['relation']} itself in {share}"


def reason_of(row: pd.Series) -> str:
    """The verdict's reason as a clause; empty where there is none (frames read from CSV have NaN there)."""
    return "" if pd.isna(row["reason"]) else str(row["reason"]).rstrip(".")


def reason_sentence(row: pd.Series) -> str:
    """The verdict's reason as a sentence of its own, without a full stop; empty where there is none."""
    reason = reason_of(row)
    return f"{reason[0].upper()}{reason[1:]}" if reason else ""


def _small_effect(row: pd.Series) -> str:
    """An effect that is shown to be smaller than what counts."""
    unit = UNITS.get(row["metric"], row["metric"])
    return f"its effect is below the minimum that counts ({size(row['min_effect'])} {unit})"


def _attention_clause(row: pd.Series) -> str:
    where = _where_clearest(row)
    one_only = where and len(str(row["attention_values"]).split(", ")) < row["n_attention_values"]
    at = f"{where} only " if one_only else f"most clearly {where} " if where else ""
    clause = f"{at}({row['attention']:.2f} of its attention"
    if pd.notna(row["attention_baseline"]):
        name = f", {_baseline(row['baseline'])}" if pd.notna(row["baseline"]) else ""
        clause += f"; its best baseline{name}, has {row['attention_baseline']:.2f}"
    return clause + ")"


def _where_clearest(row: pd.Series) -> str:
    """At which value of the feature a head looks most clearly; empty where it is not shown to, or there are none."""
    if row["attention_state"] != "shown" or pd.isna(row["attention_value"]) or not row["attention_value"]:
        return ""
    return f"where {row['feature']} is {row['attention_value']}"


def _baseline(names: str) -> str:
    """Baselines as a sentence has them: ``offset -3``, but ``the first attractor``."""
    return " / ".join(_place(name) for name in names.split(" / "))


def _place(name: str) -> str:
    return name if re.search(r"\d$", name) else f"the {name}"


def _effect_clause(row: pd.Series) -> str:
    if pd.isna(row["effect"]):
        return "its ablation was not measured"
    unit = UNITS.get(row["metric"], row["metric"])
    does = change(row["effect"], row["effect_low"], row["effect_high"], unit)
    accuracy = accuracy_clause(row["accuracy_base"], row["accuracy_ablated"])
    return f"resampling it {does}{accuracy}{_mean_clause(row, unit)}"


def _mean_clause(row: pd.Series, unit: str) -> str:
    """What its mean in its place does."""
    does = change(row["mean_effect"], row["mean_effect_low"], row["mean_effect_high"], unit)
    return f"; its {str(row['mean_replacement']).replace('_', ' ')} in its place {does}"


def accuracy_clause(base: float, ablated: float) -> str:
    """What happens to the accuracy, as the end of a sentence; empty where it is not known."""
    if pd.isna(base) or pd.isna(ablated):
        return ""
    before, after = f"{base:.2f}", f"{ablated:.2f}"
    return f", accuracy stays at {before}" if before == after else f", accuracy goes from {before} to {after}"


def _headline(task: pd.Series, heads: pd.DataFrame) -> str:
    metric, unit = METRICS.get(task["metric"], task["metric"]), UNITS.get(task["metric"], task["metric"])
    counts = heads["verdict"].value_counts()
    found = [f"{counts[verdict]} “{verdict}”" for verdict in VERDICTS if verdict in counts]
    return (
        f"{_units(task)} in {counted(task['n_clusters'], 'cluster')}, {counted(task['n_examples'], 'example')}; "
        f"the whole model's accuracy is {task['accuracy_base']:.2f}{_published(task)}, its {metric} "
        f"{estimate(task['base'], task['base_low'], task['base_high'], unit)}; "
        f"an effect counts from {size(heads['min_effect'].iloc[0])} {unit} on. "
        f"Of {counted(len(heads), 'head')}: {', '.join(found)}."
    )


def _units(task: pd.Series) -> str:
    """How many units there are, and how many of them have a counterfactual."""
    n_units, n_balanced = task["n_units"], task["n_examples"] - task["n_units"]
    if n_balanced == n_units:
        return counted(n_units, "balanced unit")
    return f"{counted(n_units, 'unit')}, {n_balanced or 'none'} of them balanced,"


def _published(task: pd.Series) -> str:
    """The accuracy that others report of a file: of its items alone, each as often as it stands there."""
    of_a_file = pd.notna(task["coverage"]) and task["coverage"]
    return f" ({task['accuracy_items']:.3f} on the file's own items)" if of_a_file else ""


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
    named, first = listed([_baseline(names) for names in without["baseline"].unique()]), without.iloc[0]
    return (
        f"Where {len(without)} of {counted(len(heads), 'head')} look is not testable: the best rule of position "
        f"({named}) finds the {first['relation']}, too, in {without['baseline_overlap'].min():.0%} of the examples or "
        f"more, and leaves less than {first['min_attention']:.2g} of the attention to be better by; vary where the "
        "word stands, and how far from the query."
    )


def _share(n: int, n_all: int) -> str:
    return f"all {counted(n_all, 'example')}" if n == n_all else f"{n:,} of {counted(n_all, 'example')}"


def strongest_first(heads: pd.DataFrame) -> pd.DataFrame:
    """The heads of one task with a finding, by verdict and then by the size of the effect."""
    found = heads[heads["verdict"].isin(FINDINGS)]
    order = found.assign(place=found["verdict"].map(FINDINGS.index), size=-found["effect"].abs())
    return order.sort_values(["place", "size", "layer", "head"])


def _open_questions(heads: pd.DataFrame) -> list[str]:
    undecided = heads[heads["verdict"] == "undecided"]
    reasons = pd.Series([reason_of(row) for _, row in undecided.iterrows()], index=undecided.index, dtype=object)
    return [_open_question(undecided[reasons == reason], reason, len(heads)) for reason in reasons.unique()]


def _open_question(undecided: pd.DataFrame, reason: str, n_heads: int) -> str:
    names = [f"{layer}.{head}" for layer, head in zip(undecided["layer"], undecided["head"], strict=True)]
    if len(names) == n_heads:
        sentence = f"Every one of the {n_heads} heads is undecided" if n_heads > 1 else "The only head is undecided"
    else:
        sentence = f"Undecided {'is head' if len(names) == 1 else 'are heads'} {listed(names)}"
    if reason:
        sentence += f": {reason}"
    needed = undecided["n_to_decide"].astype(float)
    known = needed[needed <= _MOST_UNITS]
    if known.empty and (needed > _MOST_UNITS).any():
        return f"{sentence}; no number of units that one could measure would decide."
    if known.empty:
        return sentence + "."
    fewest, most = int(known.min()), int(known.max())
    units = f"{most}" if fewest == most else f"{fewest} to {most}"
    of = "" if len(known) == len(needed) else f" on {len(known)} of these"
    return f"{sentence}; about {units} units would decide{of}."


def short_line(task: str, heads: pd.DataFrame, open_questions: Sequence[str]) -> str:
    """What a task's heads come to in one line: the strongest finding, the other heads, and the largest effect."""
    found = strongest_first(heads)
    parts = [f"{task}:"]
    if found.empty:
        parts += ["no head has a finding.", *open_questions[:1]]
    else:
        parts += [f"{_in_short(found.iloc[0])}.", _others(found.iloc[1:])]
    sizes = heads["effect"].abs()
    if sizes.notna().any() and (found.empty or sizes.idxmax() != found.index[0]):
        parts.append(f"Largest effect: {_in_short(heads.loc[sizes.idxmax()])}.")
    return " ".join(filter(None, parts))


def _in_short(row: pd.Series) -> str:
    """A head with its verdict and its numbers, as a clause."""
    verdict = f"{row['verdict']}; {reason_of(row)}" if row["verdict"] == "needed" else str(row["verdict"])
    numbers = []
    if pd.notna(row["attention"]):
        baseline = f" (best baseline {row['attention_baseline']:.2f})" if pd.notna(row["attention_baseline"]) else ""
        numbers.append(f"{row['attention']:.2f} of its attention on the {row['relation']}{baseline}")
    if pd.notna(row["effect"]):
        unit = UNITS.get(row["metric"], row["metric"])
        numbers.append(f"resampling it {change(row['effect'], row['effect_low'], row['effect_high'], unit)}")
    return f"head {row['layer']}.{row['head']} “{verdict}”: {', '.join(numbers)}"


def _others(found: pd.DataFrame) -> str:
    names = found.assign(name=[f"{row.layer}.{row.head}" for row in found.itertuples()])
    groups = [f"“{verdict}”: {listed(list(rows['name']))}" for verdict, rows in names.groupby("verdict", sort=False)]
    return f"Also {'; '.join(groups)}." if groups else ""
