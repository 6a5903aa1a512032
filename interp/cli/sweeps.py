"""What ``interp ablate`` and ``interp patch`` have in common: how a finished sweep is saved and shown."""

import shlex
import sys
from pathlib import Path
from typing import Any

import typer

from interp.cli.answers import left, page_line
from interp.cli.exits import INTERRUPTED
from interp.cli.running import interrupted
from interp.cli.saying import say
from interp.cli.terminal import console, print_json, records, verbatim
from interp.report.folder import plain
from interp.report.sweep_cells import Swept, strongest_first
from interp.report.sweep_sentences import (
    at_chance,
    done,
    evidence,
    findings,
    nothing_changed,
    partial_sentence,
    task_name,
    unchanged,
)
from interp.report.words import or_dash
from interp.result import Result

_SHOWN = 10
_HEADLINE = ("effect", "low", "high", "p_adjusted", "value", "accuracy_intervened", "status")


def save(result: Result, out: Path | None) -> Path | None:
    """Write the sweep's folder, where one is asked for."""
    if out is None:
        return None
    return result.save(out, command=shlex.join(["interp", *sys.argv[1:]]))


def end(frames: Swept, folder: Path | None, started: float) -> None:
    """Say where the report is, and what speaks against it; an interrupted sweep ends with its own exit code."""
    if at_chance(frames):
        say(f"warning: {at_chance(frames)}", err=True)
    if folder is not None:
        say(page_line(folder, started))
    exit_if_partial(frames)


def exit_if_partial(frames: Swept) -> None:
    """End the command as interrupted, where the sweep was, and say what becomes of it.

    Raises:
        Exit: With code 130.
    """
    if not frames.complete:
        say(interrupted(), err=True)
        raise typer.Exit(INTERRUPTED)


def facts(frames: Swept, folder: Path | None, started: float) -> dict[str, Any]:
    """What the JSON of every sweep has: whether it is whole, where it lies, and how long it took."""
    first = records(frames.runs)[0]
    return {
        "above_chance": first["above_chance"],
        "complete": frames.complete,
        "examples": frames.n_measured,
        **left(folder, started),
    }


def print_sweep_json(frames: Swept, asked: dict[str, Any], folder: Path | None, started: float) -> None:
    """Print a sweep's headline numbers as one JSON object."""
    normalised = ("normalised", "normalised_low", "normalised_high") if frames.patched else ()
    strongest = strongest_first(frames.cells).head(_SHOWN)[[*frames.labels, *normalised, *_HEADLINE]]
    print_json(
        {
            **asked,
            "cells": len(frames.cells),
            "beyond_correction": int((frames.cells["found"] != "").sum()),
            "strongest": records(strongest),
            "runs": records(frames.runs),
            **{name: plain(frames.provenance.get(name)) for name in ("screen", "audit")},
            **facts(frames, folder, started),
        }
    )


def print_sweep(frames: Swept) -> None:
    """Print a sweep's strongest cells as a table, with what was found in sentences."""
    say(f"{task_name(frames)}: {done(frames)}\n{evidence(frames)}")
    if partial_sentence(frames):
        say(partial_sentence(frames))
    for sentence in unchanged(frames):
        say(sentence)
    say()
    console().print(_table(frames))
    for sentence in (*findings(frames), *nothing_changed(frames)):
        say(f"- {sentence}")


def _table(frames: Swept) -> Any:
    from rich.table import Table

    shown = strongest_first(frames.cells).head(_SHOWN)
    quantity = "share" if frames.patched else "effect"
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("cell" if len(shown) == len(frames.cells) else f"strongest of {len(frames.cells)}")
    for heading in (quantity, "95 % interval", "adjusted p", "accuracy"):
        table.add_column(heading, justify="right")
    for row in records(shown):
        interval = f"{or_dash(row['shown_low'])} to {or_dash(row['shown_high'])}"
        if row["shown_low"] is None:
            interval = row["state"] or "—"
        numbers = (or_dash(row["shown"]), interval, or_dash(row["p_adjusted"], 3), or_dash(row["accuracy_intervened"]))
        table.add_row(verbatim(row["name"]), *numbers)
    return table
