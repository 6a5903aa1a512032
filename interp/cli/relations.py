"""How are heads that were scored on relations saved and shown by ``interp attend``?"""

import shlex
import sys
from pathlib import Path
from typing import Any

from rich.table import Table

from interp.cli.answers import left, page_line
from interp.cli.saying import say
from interp.cli.terminal import console, print_json, records, verbatim
from interp.methods.relations.examples import relation_maps
from interp.methods.relations.scores import RelationResult
from interp.report.relations import asked, save_relations
from interp.report.relations_sentences import direction_name, head_name, leading, looks_back_only, summarise
from interp.report.words import points
from interp.tasks.corpus import Corpus

_COUNTED = ("data", "n_documents", "n_clusters", "n_sentences", "n_words")


def save(model: Any, corpus: Corpus, result: RelationResult, out: Path) -> Path:
    """Draw the best heads on examples of `corpus`, and write the folder."""
    maps = relation_maps(model, corpus, result)
    return save_relations(result, maps, out, command=shlex.join(["interp", *sys.argv[1:]]))


def first(result: RelationResult) -> str:
    """The relation with the most telling head; empty where nothing was scored."""
    found = leading(result.frame)
    return "" if found.empty else str(found["relation"].iloc[0])


def print_json_object(result: RelationResult, folder: Path | None, started: float) -> None:
    """Print the headline numbers as one JSON object."""
    how = result.provenance
    print_json(
        {
            **{name: how[name] for name in (*_COUNTED, "attention_dir")},
            "verdicts": {str(name): int(n) for name, n in result.frame["verdict"].value_counts().items()},
            "relations": records(result.relations),
            "best": records(leading(result.frame)),
            **left(folder, started),
        }
    )


def print_text(result: RelationResult, folder: Path | None, started: float) -> None:
    """Print what was asked, a block for each direction, and all of them in a table."""
    for name, text in asked(result):
        say(f"{name}: {text}")
    if looks_back_only(result):
        say(f"\n{looks_back_only(result)}")
    for each in summarise(result):
        say(f"\n{each.name}: {each.verdict}")
        for line in filter(None, (each.finding, each.attention, each.counted, each.left_out)):
            say(f"  {line[0].upper()}{line[1:]}{'' if line.endswith('.') else '.'}")
    say()
    console().print(_table(result))
    say("Of 100 pairs: those that the best head and the best rule without attention get right.")
    if folder is not None:
        say(page_line(folder, started))


def _table(result: RelationResult) -> Table:
    """The best head of each direction, for a terminal of 80 columns."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("relation", overflow="fold")
    for heading in ("head", "right", "rule", "excess", "adjusted p"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for _, row in leading(result.frame).iterrows():
        shares = [points(row[name]) for name in ("accuracy", "accuracy_baseline", "excess")]
        p = "—" if row["p_adjusted"] != row["p_adjusted"] else f"{row['p_adjusted']:.4f}"
        name = verbatim(direction_name(row["relation"], row["looks"]))
        table.add_row(name, head_name(row), *shares, p, row["verdict"])
    return table
