"""How heads that were scored on relations are saved and printed by ``interp attend``."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

from interp.cli.answers import left, page_line
from interp.cli.saying import say
from interp.cli.terminal import console, print_json, records
from interp.methods.relations.scores import RelationResult
from interp.report.relations import page_of
from interp.report.relations_sentences import leading
from interp.report.terminal import lines_of

_COUNTED = ("data", "n_documents", "n_clusters", "n_sentences", "n_words", "attention_dir")


def save(result: RelationResult, out: Path | None) -> Path | None:
    """Write the folder, where one is asked for."""
    return None if out is None else result.save(out, command=shlex.join(["interp", *sys.argv[1:]]))


def first(result: RelationResult) -> str:
    """The relation with the most telling head; empty where nothing was scored."""
    found = leading(result.cells)
    return "" if found.empty else str(found["relation"].iloc[0])


def print_json_object(result: RelationResult, folder: Path | None, started: float) -> None:
    """Print the headline numbers as one JSON object."""
    print_json(
        {
            **{name: result.provenance[name] for name in _COUNTED},
            "verdicts": {str(name): int(n) for name, n in result.cells["verdict"].value_counts().items()},
            "relations": records(result.relations),
            "best": records(leading(result.cells)),
            **left(folder, started),
        }
    )


def print_text(result: RelationResult, folder: Path | None, started: float) -> None:
    """Print the findings and a table."""
    for line in lines_of(page_of(replace(result, maps=None))):
        if isinstance(line, str):
            say(line)
        else:
            console().print(line)
    if folder is not None:
        say(page_line(folder, started))
