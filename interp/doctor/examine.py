"""Is this installation sound? Each look by itself: what is broken is told in a sentence, and the others go on.

Nothing here needs what it looks at: whatever is missing is imported by the look that finds it so.
"""

from collections.abc import Iterator, Sequence

from interp.doctor.files import AGAIN, data, models, record
from interp.doctor.finding import Finding, Look
from interp.doctor.machine import runs_folder, system, torch_devices
from interp.doctor.requirements import command_line, dependencies, own, python
from interp.doctor.small_run import small_run

_INSTALL = "install interp with pip, which brings what it needs"
LOOKS = (
    Look("interp", own, _INSTALL),
    Look("Python", python, _INSTALL),
    Look("system", system, "report it as a fault of interp"),
    Look("dependencies", dependencies, _INSTALL),
    Look("command line", command_line, _INSTALL),
    Look("torch", torch_devices, "install torch again, in a build for this machine"),
    Look("models", models, AGAIN),
    Look("data", data, AGAIN),
    Look("files", record, AGAIN),
    Look("folder of runs", runs_folder, "name another folder with --runs DIR, or with INTERP_RUNS"),
    Look("a small run", small_run, "mend what is wrong above, and ask again"),
)
_SYMBOLS = {"well": "ok", "note": "note", "wrong": "WRONG"}


def examine() -> list[Finding]:
    """All that was found, in order."""
    return [finding for look in LOOKS for finding in look()]


def in_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each, another for what to do, and one for all of them."""
    width = max(len(each.what) for each in findings)
    for each in findings:
        yield f"{_SYMBOLS[each.state]:<5}  {each.what:<{width}}  {each.says}"
        if each.todo and each.state != "well":
            yield f"{'':<5}  {'':<{width}}  -> {each.todo}"
    wrong = [each.what for each in findings if each.state == "wrong"]
    yield ""
    yield f"{len(wrong)} wrong: {', '.join(wrong)}" if wrong else "All is well."


def well(findings: Sequence[Finding]) -> bool:
    """Whether nothing is wrong."""
    return all(each.state != "wrong" for each in findings)
