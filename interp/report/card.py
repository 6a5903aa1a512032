"""The page of a head's card: all tasks at a glance, then each task, then every number in tables.

A section a task: where it looks, what is known in sentences, at which words and by which direct paths its work passes
on, and what its weights say.
"""

from functools import partial
from typing import Any

import pandas as pd

from interp.report.attention_words import attending_heads, scored
from interp.report.card_figures import card as card_figure
from interp.report.card_figures import card_paths
from interp.report.card_sentences import across_tasks, baseline_note, findings, further
from interp.report.card_tables import COLUMNS, at_a_glance, maps_of, measured, named, of_task, quoted, unit_of
from interp.report.heads_frames import VERDICTS, file_names
from interp.report.heads_reading import what_p_is
from interp.report.html import attention_data, flatten, model_with_hash
from interp.report.sections import Custom, Facts, Heatmaps, Page, Picture, Section, Sentences, Table
from interp.report.tables import Column
from interp.report.words import about, counted, estimate, left_out, listed

_CAPTIONS = {
    "shares": "The effect as a share of what the whole model does",
    "halves": "Two random halves of the clusters",
    "replacements": "Every kind of ablation",
    "agreement": "How alike two kinds of ablation order all heads",
    "positions": "Patching by word",
    "feeds": "Direct paths into the head",
    "readers": "Direct paths from the head",
    "feature": "Taken out where it reads",
    "groups": "Ablated together with other heads",
}
_NOTE = (
    "Attention and probe: beyond their toughest control. Ablation: the effect as a share of what the whole model does; "
    "a cost is negative."
)


def page_of(result: Any) -> Page:
    """The sections of a ``HeadCard``; with a way back to the report's page where it knows one."""
    card = named(result)
    draws = {} if card.replacements.empty else {"shares": partial(card_figure, result)}
    for task, name in zip(result.tasks["task"], file_names([str(each) for each in result.tasks["task"]]), strict=True):
        if task in {*result.feeds["task"], *result.readers["task"]}:
            draws[f"paths_{name}"] = partial(card_paths, result, str(task))
    copying = {} if pd.isna(result.copying) else {"copying": result.copying}
    maps = card.attention_maps
    return Page(
        title=f"Head {result.name}",
        kind="head",
        sections=tuple(_sections(result, card)),
        provenance={**result.provenance, **copying},
        about=about(result.provenance, f"{counted(len(card.tasks), 'task')}: {listed(list(card.tasks['task']))}"),
        cautions=left_out(result.provenance),
        call="interp.plots.card(card)",
        frames={name: getattr(result, name) for name in ("verdicts", "tasks", *COLUMNS)},
        draws=draws,
        data={"attention": attention_data(maps[maps["task"] == task] for task in card.tasks["task"])},
        back=(result.back, "All heads") if result.back else (),
    )


def _sections(result: Any, card: Any) -> list[Section]:
    found: list[Section] = [Heatmaps("All tasks", [("Evidence at a glance", at_a_glance(card))], _NOTE)]
    if not card.replacements.empty:
        alt = f"What each task loses without head {card.name}, by what replaces it"
        found.append(Picture("", "shares", partial(card_figure, result), alt))
    found += [Sentences("", across_tasks(card)), _evidence(card)]
    for number, task in enumerate(card.tasks["task"]):
        if task in measured(card):
            found += _of_task(of_task(card, task), number)
    found.append(Custom("Tables", "folded_tables", {"tables": [_table(card, name) for name in _CAPTIONS]}))
    return [*found, Facts("What was asked", _asked(card)), Facts("How to read this", how_to_read(card.provenance))]


def _evidence(card: Any) -> Table:
    """The verdicts with the estimates that they rest on."""
    rows = card.verdicts.merge(card.shares[["task", "share", "share_low", "share_high"]], on="task", how="left")
    effects = [
        estimate(row["effect"], row["effect_low"], row["effect_high"], unit_of(of_task(card, row["task"])))
        for _, row in rows.iterrows()
    ]
    ends = {f"{name}_{end}" for name in ("excess", "probe_excess") for end in ("low", "high")}
    rows = rows.reindex(columns=[*rows.columns, *(name for name in ends if name not in rows)])
    marks = [f"{VERDICTS[name].symbol} {name}" for name in rows["verdict"]]
    columns = [
        Column("task"),
        Column("mark", "verdict"),
        Column("excess", "attention, excess", "excess_low", "excess_high"),
        Column("said", "effect of resampling"),
        Column("share", "as a share", "share_low", "share_high"),
        Column("probe_excess", "probe, excess", "probe_excess_low", "probe_excess_high"),
    ]
    rows = rows.assign(mark=marks, said=effects)
    return Table("", "The verdicts, with what they rest on", rows, columns, "verdicts.csv")


def _of_task(card: Any, number: int) -> list[Section]:
    """The sections of one task; `number` is its place among all."""
    task = card.tasks.iloc[0]
    heads = attending_heads(scored(card.attention_maps), task["task"])
    looks = {
        "question": str(task["description"]),
        "number": number,
        "head": heads[0] if heads else None,
        "name": card.name,
    }
    found: list[Section] = [
        Custom(f"{task['task']}: {card.verdicts['verdict'].iloc[0]}", "card_attention", looks),
        Sentences("", findings(card), further(card), baseline_note(card)),
    ]
    maps = maps_of(card)
    if maps:
        found.append(
            Heatmaps(
                "", maps, "Share brought back: of the clean run's answer, by patching; 0 is none of it and 1 is all."
            )
        )
    weights = _weights(card)
    if weights:
        found.append(Custom("", "folded_facts", {"pairs": weights, "title": "Its weights on the task's own words"}))
    return found


def _weights(card: Any) -> list[tuple[str, str]]:
    """What the weights say of each word: a label, and the tokens."""
    pairs = []
    for (_, word, circuit), rows in card.circuits.groupby(["role", "word", "circuit"], sort=False):
        begin = f"From {quoted(word)}" if circuit == "looks for" else f"Of {quoted(word)}"
        tokens = ", ".join(f"{quoted(row.text)} {row.score:.1f}" for row in rows.itertuples())
        pairs.append((f"{begin} {circuit}", tokens))
    return pairs


def _table(card: Any, name: str) -> Table:
    frame = getattr(card, name)
    words = {each: frame[each].map({True: "yes", False: "no"}) for each in COLUMNS[name] if frame[each].dtype == bool}
    ends = {end for each in COLUMNS[name] for end in _ends(each, name)}
    shown = [Column(each, "", *_ends(each, name)) for each in ("task", *COLUMNS[name]) if each not in ends]
    return Table("", _CAPTIONS[name], frame.assign(**words), shown, f"{name}.csv")


def _ends(column: str, table: str) -> tuple[str, ...]:
    """The columns with the ends of a column's interval, which stand beside its number."""
    alone = {"estimate", "kendall"} | ({"effect"} if table in ("replacements", "feature") else set())
    names = ("low", "high") if column in alone else (f"{column}_low", f"{column}_high")
    return names if set(names) <= set(COLUMNS[table]) else ()


def _asked(card: Any) -> list[tuple[str, str]]:
    known = dict(flatten(card.provenance))
    known |= model_with_hash(known)
    counts = card.tasks[["task", "n_units", "n_clusters"]].itertuples(index=False, name=None)
    tasks = ", ".join(f"{task} ({n} units in {clusters} clusters)" for task, n, clusters in counts)
    facts = [("Head", f"{card.name}: layer and head, both counted from 0"), ("Tasks", tasks)]
    return facts + [(key.capitalize(), known[key]) for key in ("model", "seed", "device") if key in known]


def how_to_read(asked: Any) -> list[tuple[str, str]]:
    """What the page's terms mean; `asked` is the card's provenance."""
    least = asked.get("min_effect", 0.1)
    return [
        (
            "Verdict",
            "the dossier's, corrected for all that the dossier tests. All else on this page describes a head that was "
            "chosen before, and is no test.",
        ),
        ("Adjusted p", what_p_is(asked)),
        ("[low, high]", "the 95 % interval of the estimate before it: a bootstrap that draws whole clusters."),
        (
            "Ablation",
            "zero, mean, positional mean, template mean and resample: what is put in the head's place, on at most 100 "
            "units. A head that writes the same in every item, but not at every position, matters under zero and mean, "
            "and not under positional mean and resample. An effect is a drop or a rise if “no more than the minimum”, "
            f"{least:g} of what the whole model does, is rejected at {asked.get('alpha', 0.05):g}, and below the "
            "minimum if “the minimum at least” is; both are corrected over all heads, one kind by itself.",
        ),
        (
            "Kendall's τ",
            "1 where two kinds of ablation order all heads of the model in the same way, -1 the other way round. The "
            "order of heads whose effects are all too small to count is noise, and keeps it from 1.",
        ),
        (
            "Share of the answer",
            "patching from the clean run into the corrupted one, on at most 100 units, direct paths on fewer: 0 leaves "
            "the answer as in the corrupted run, 1 brings that of the clean run back.",
        ),
        (
            "Direct path",
            "what one component writes is patched into what another one reads, and nowhere else: a single edge, as "
            "heads and MLPs between write what they write in the corrupted run. Paths are measured one by one, and "
            "need not add up.",
        ),
        (
            "Taken out",
            "at one place of the head, all else as it is, on at most 100 units. Its values at the related word become "
            "their mean over the reference sentences, whichever word reads them; how much it looks where stays. Where "
            "a probe reads the task's feature, LEACE erases from what the head writes all that a linear probe could "
            "read of it; as many random directions are the control, as any damage has some effect.",
        ),
        (
            "Its weights",
            "the head's QK and OV circuits on the task's own tokens: what it would look for, make likelier (raise) and "
            "less likely (lower) with the bare embeddings, without what earlier layers write and without positions.",
        ),
    ]
