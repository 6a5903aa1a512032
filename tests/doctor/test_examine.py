"""Does what is broken stay one finding among the others, and is the small run exact?"""

import builtins
import sys

import pytest

from interp.doctor import examine as examining
from interp.doctor import small_run as running
from interp.doctor.examine import LOOKS, examine, in_lines, well
from interp.doctor.finding import Finding, Look
from interp.errors import AuditError

CHEAP = [look for look in LOOKS if look.what != "a small run"]


def test_the_small_run_gives_the_numbers_that_it_gave():
    found = {each.what: each for each in running.small_run()}
    assert [each.state for each in found.values()] == ["well", "well"], found
    assert "engine and plain way differ by" in found["head 2.2 ablated"].says


def test_other_numbers_are_wrong(monkeypatch):
    monkeypatch.setattr(running, "EFFECT", running.EFFECT * (1 + 2 * running.TOLERANCE))
    assert [each.state for each in running.small_run()] == ["well", "wrong"]


def test_an_audit_that_fails_is_a_finding(monkeypatch):
    def fail(*_arguments, **_options):
        raise AuditError("cell 3: engine 1.5,\nplain 1.2")

    monkeypatch.setattr("interp.methods.ablation.ablate", fail)
    (look,) = [each for each in LOOKS if each.what == "a small run"]
    assert look() == [Finding("a small run", "wrong", "AuditError: cell 3: engine 1.5, plain 1.2", look.todo)]


@pytest.mark.parametrize("missing", ["torch", "packaging"])
def test_a_library_that_cannot_be_imported_leaves_the_other_looks(monkeypatch, missing):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(name, *arguments, **options)

    monkeypatch.setattr(examining, "LOOKS", CHEAP)
    monkeypatch.setattr(builtins, "__import__", without)
    found = examine()
    monkeypatch.undo()
    wrong = {each.what: each for each in found if each.state == "wrong"}
    assert set(wrong) == ({"torch"} if missing == "torch" else {"Python", "dependencies"})
    assert all(
        each.says == f"ModuleNotFoundError: No module named {missing!r}" and each.todo for each in wrong.values()
    )
    assert {"model default", "folder of runs", "system"} <= {each.what for each in found if each.state == "well"}


def test_nothing_heavy_is_imported_to_begin_with():
    heavy = {"torch", "pandas", "packaging", "typer", "rich"}
    code = f"import interp.doctor.examine, sys; print({heavy} & set(sys.modules))"
    import subprocess

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_lines_say_what_to_do_where_something_is_wrong():
    findings = [
        Finding("a", "well", "fine", "nothing"),
        Finding("long", "wrong", "is broken", "mend it"),
        Finding("c", "note", "absent", "or not"),
    ]
    assert list(in_lines(findings)) == [
        "ok     a     fine",
        "WRONG  long  is broken",
        "             -> mend it",
        "note   c     absent",
        "             -> or not",
        "",
        "1 wrong: long",
    ]
    assert not well(findings)
    assert list(in_lines(findings[::2]))[-1] == "All is well."
    assert well(findings[::2])


def test_a_look_keeps_what_it_found_before_nothing():
    def look():
        yield Finding("a", "well", "fine")
        raise OSError("gone")

    assert Look("b", look, "look again")() == [Finding("b", "wrong", "OSError: gone", "look again")]
