"""How ``interp probe`` saves and shows what was found."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from interp.cli.answers import left, page_line
from interp.cli.saying import say
from interp.cli.terminal import console, print_json, records
from interp.methods.probes.judging import ProbeResult
from interp.report.folder import plain
from interp.report.probes import page_of
from interp.report.probes_sentences import cautions, summarise
from interp.report.probes_words import ranked
from interp.report.terminal import lines_of

_SHOWN = 12
_ASKED = ("feature", "site", "kind", "measure", "task", "data", "store", "held_out", "n_probes")


def with_source(result: ProbeResult, *, data: list[str] | None, store: Path | None) -> ProbeResult:
    """The result with the names of its files, or of its store, in the provenance."""
    names: dict[str, Any] = {"data": data} if data else {} if store is None else {"store": str(store)}
    return replace(result, provenance={**result.provenance, **names})


def save(result: ProbeResult, out: Path) -> Path:
    """Write the folder."""
    return result.save(out, command=shlex.join(["interp", *sys.argv[1:]]))


def print_json_object(result: ProbeResult, folder: Path | None, started: float) -> None:
    """Print the headline numbers as one JSON object."""
    summary, cells = summarise(result), result.cells
    print_json(
        {
            **{name: plain(result.provenance.get(name)) for name in _ASKED},
            "n": int(cells["n"].max()),
            "n_documents": int(cells["n_documents"].max()),
            "verdict": summary.verdict,
            "headline": summary.headline,
            "cautions": cautions(result),
            "verdicts": {str(name): int(n) for name, n in cells["verdict"].value_counts().items()},
            "best": records(ranked(cells).head(_SHOWN)),
            **left(folder, started),
        }
    )


def print_text(result: ProbeResult, folder: Path | None, started: float) -> None:
    """Print what was found, and the best cells in a table."""
    for line in lines_of(page_of(result)):
        if isinstance(line, str):
            say(line)
        else:
            console().print(line)
    if folder is not None:
        say(page_line(folder, started))
