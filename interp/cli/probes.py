"""How are probes saved and shown by ``interp probe``?"""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from interp.cli.answers import left, page_line
from interp.cli.saying import say
from interp.cli.terminal import console, print_json, records, verbatim
from interp.methods.probes.judging import ProbeResult
from interp.report.folder import plain
from interp.report.probes import save_probes
from interp.report.probes_sentences import asked, cautions, summarise, title
from interp.report.probes_words import CONTROL_NAMES, cell_kind, cell_name, measure_of, ranked

_SHOWN = 12
_ASKED = ("feature", "site", "kind", "measure", "task", "data", "store", "held_out", "n_probes")


def with_source(result: ProbeResult, *, data: list[str] | None, store: Path | None) -> ProbeResult:
    """The result with the names of its files, or of its store, in the provenance."""
    names: dict[str, Any] = {"data": data} if data else {} if store is None else {"store": str(store)}
    return replace(result, provenance={**result.provenance, **names})


def save(result: ProbeResult, out: Path) -> Path:
    """Write the folder."""
    return save_probes(result, out, command=shlex.join(["interp", *sys.argv[1:]]))


def print_json_object(result: ProbeResult, folder: Path | None, started: float) -> None:
    """Print the headline numbers as one JSON object."""
    summary, best = summarise(result), ranked(result.frame).head(_SHOWN)
    print_json(
        {
            **{name: plain(result.provenance.get(name)) for name in _ASKED},
            "n": int(result.frame["n"].max()),
            "n_documents": int(result.frame["n_documents"].max()),
            "verdict": summary.verdict,
            "headline": summary.headline,
            "cautions": cautions(result),
            "verdicts": {str(name): int(n) for name, n in result.frame["verdict"].value_counts().items()},
            "best": records(best),
            **left(folder, started),
        }
    )


def print_text(result: ProbeResult, folder: Path | None, started: float) -> None:
    """Print what was asked, what was found, and the best cells in a table."""
    say(title(result))
    for name, text in asked(result):
        say(f"{name}: {text}")
    for caution in cautions(result):
        say(f"\n{caution}")
    summary = summarise(result)
    say(f"\n{summary.headline}")
    for finding in summary.findings:
        say(f"- {finding}")
    for note in summary.notes:
        say(note)
    say()
    console().print(_table(result))
    say(_scale(result))
    if folder is not None:
        say(page_line(folder, started))


def _table(result: ProbeResult) -> Table:
    """The best cells, for a terminal of 80 columns."""
    measure, shown = measure_of(result), ranked(result.frame).head(_SHOWN)
    table = Table(box=None, padding=(0, 2, 0, 0))
    kind = cell_kind(result)
    table.add_column(kind if len(shown) == len(result.frame) else f"best of {len(result.frame)}")
    for heading in ("score", "baseline", "excess", "adj. p", "selectivity"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("which baseline", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for _, row in shown.iterrows():
        names = ("score", "score_baseline", "excess", "selectivity")
        score, baseline, excess, selectivity = (measure.plain(row[name]) for name in names)
        p = "—" if row["p_adjusted"] != row["p_adjusted"] else f"{row['p_adjusted']:.4f}"
        cell = verbatim(cell_name(row))
        table.add_row(cell, score, baseline, excess, p, selectivity, CONTROL_NAMES[row["baseline"]], row["verdict"])
    return table


def _scale(result: ProbeResult) -> str:
    if measure_of(result).in_points:
        return "Of 100 words: those that a probe, and the baseline (its toughest control), get right."
    return (
        f"Of the number's variance: {measure_of(result).title} of a probe, and of the baseline (its toughest control)."
    )
