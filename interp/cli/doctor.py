"""``interp doctor``: is all here that interp needs, and does it compute what it should?"""

import time

import typer

from interp.cli.answers import seconds_since
from interp.cli.exits import FAILED
from interp.cli.hints import after_looking, say_next
from interp.cli.options import JsonOption
from interp.cli.saying import say


def doctor(as_json: JsonOption = False) -> None:
    """Is this installation sound? Versions, files, devices, room for runs, and a tiny run that is checked."""
    import json

    from interp.doctor.examine import examine, in_lines, well

    started = time.perf_counter()
    findings = examine()
    if as_json:
        checks = [vars(each) for each in findings]
        say(json.dumps({"well": well(findings), "checks": checks, "seconds": seconds_since(started)}))
    else:
        for line in in_lines(findings):
            say(line)
    if not well(findings):
        raise typer.Exit(FAILED)
    if not as_json:
        say_next(after_looking(None))
