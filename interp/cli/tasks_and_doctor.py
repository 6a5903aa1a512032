"""``interp tasks`` and ``interp doctor``: what can be asked, and is all here that it takes?"""

import time
from typing import Annotated

import typer

from interp.cli.dataclass_options import Fields
from interp.cli.exits import FAILED
from interp.cli.hints import after_looking, say_next
from interp.cli.messages import say
from interp.cli.running import Work, seconds_since


def tasks(work: Annotated[Work, Fields(only=("as_json",))]) -> None:
    """What can heads be asked? Lists the tasks, what each says, and its metric."""
    from interp.cli.terminal import print_json, print_table, records
    from interp.tasks.catalogue import list_tasks

    rows = records(list_tasks())
    if work.as_json:
        print_json({"tasks": rows})
        return
    cells = [(row["name"], row["description"], row["metric"].replace("_", " ")) for row in rows]
    print_table(("task", "what it says", "measured by"), cells, spaced=True)
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
