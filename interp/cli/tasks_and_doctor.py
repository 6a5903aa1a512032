"""``interp tasks`` and ``interp doctor``: what can be asked, and is all here that it takes?"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from interp.cli.dataclass_options import Fields
from interp.cli.exits import FAILED
from interp.cli.hints import after_looking, say_next
from interp.cli.messages import say
from interp.cli.running import Work, seconds_since
from interp.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Vocabularies:
    """Whose words the generated tasks are counted in.

    Attributes:
        tokenizer: Count the units and clusters of each generated task that a tokenizer carries: that of a folder, of a
            hub name or of an embedded model; repeat it for several. None for the list of tasks.
        n: Units that are asked for; None for 200.
    """

    tokenizer: list[str] | None = None
    n: int | None = None


def tasks(work: Annotated[Work, Fields(only=("as_json",))], of: Vocabularies) -> None:
    """What can heads be asked? Lists the tasks, what each says, and its metric; or what a tokenizer carries of each."""
    from interp.cli.terminal import print_json, print_table, records
    from interp.tasks.catalogue import list_tasks

    if of.tokenizer:
        _carried(of.tokenizer, of.n, work.as_json)
        return
    if of.n is not None:
        raise InputError("--n: expected --tokenizer beside it, whose units are counted; leave it out for the list")
    rows = records(list_tasks())
    if work.as_json:
        print_json({"tasks": rows})
        return
    cells = [(row["name"], row["description"], row["metric"].replace("_", " ")) for row in rows]
    print_table(("task", "what it says", "measured by"), cells, spaced=True)
    say_next(after_looking(None))


def _carried(named: Sequence[str], n: int | None, as_json: bool) -> None:
    """Print a row for each tokenizer and generated task."""
    from interp.cli.loading import tokenizer_named
    from interp.cli.terminal import print_json, print_table, records
    from interp.tasks.catalogue import carried_by

    rows = []
    for name in named:
        tokenizer, n_ctx = tokenizer_named(name)
        about = {"tokenizer": name, "vocabulary": len(tokenizer)}
        rows += [{**about, **row} for row in records(carried_by(tokenizer, n=n, n_ctx=n_ctx))]
    if as_json:
        print_json({"carried": rows})
        return
    numbers = ("vocabulary", "units", "clusters", "drawn")
    cells = [(Path(row["tokenizer"]).name, row["task"], *(f"{row[number]:,}" for number in numbers)) for row in rows]
    print_table(("tokenizer", "task", *numbers), cells)
    say_next(after_looking(None))


def doctor(work: Annotated[Work, Fields(only=("as_json",))]) -> None:
    """Is this installation sound? Checks versions, files, devices, room for runs, and a tiny run."""
    import json

    from interp.doctor.examine import examine, in_lines, well

    started = time.perf_counter()
    findings = examine()
    if work.as_json:
        checks = [vars(each) for each in findings]
        say(json.dumps({"well": well(findings), "checks": checks, "seconds": seconds_since(started)}))
    else:
        for line in in_lines(findings):
            say(line)
    if not well(findings):
        raise typer.Exit(FAILED)
    if not work.as_json:
        say_next(after_looking(None))
