"""What is sent to a terminal, and to what is none: colours and bars to the one, plain lines to the other."""

import logging
import os
import pty
import subprocess
import sys

import pytest

from interp.cli import terminal
from interp.cli.running import events_as_lines

ESCAPE = b"\x1b"
PROGRESS = """if True:
    from interp.cli.terminal import console, progress_bar
    with progress_bar("heads") as tell:
        for done in range(1, 4):
            tell(done, 3)
    console().print("[bold red]12[/]")
"""


def on_a_terminal(script, **environment):
    """What standard output and standard error send to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM", "FORCE_COLOR")}
    environment = plain | {"TERM": "xterm-256color", "COLUMNS": "80"} | environment
    with subprocess.Popen([sys.executable, "-c", script], stdout=theirs, stderr=theirs, env=environment) as begun:
        os.close(theirs)
        sent = b""
        try:
            while part := os.read(ours, 4096):
                sent += part
        except OSError:  # so Linux tells that the other end is closed
            pass
    os.close(ours)
    assert begun.returncode == 0, sent
    return sent


def test_a_terminal_gets_colours_and_a_bar():
    sent = on_a_terminal(PROGRESS)
    assert b"\x1b[1;31m12" in sent
    assert b"3/3" in sent


def test_no_color_takes_the_colours_and_leaves_the_bar():
    sent = on_a_terminal(PROGRESS, NO_COLOR="1")
    assert b"3/3" in sent
    assert b"m12" not in sent
    assert b"[38;" not in sent


def test_a_dumb_terminal_gets_plain_text():
    assert on_a_terminal(PROGRESS, TERM="dumb").split() == [b"12"]


def test_no_color_means_no_escape_in_what_is_printed():
    script = "from interp.cli import app; app({})"
    for arguments in (["tasks"], ["heads", "--help"]):
        assert ESCAPE not in on_a_terminal(script.format(arguments), NO_COLOR="1")
    assert ESCAPE in on_a_terminal(script.format(["heads", "--help"]))


def test_a_pipe_gets_no_bar():
    done = subprocess.run([sys.executable, "-c", PROGRESS], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"12\n", b"")


@pytest.mark.parametrize(("seldom", "lines"), [(0.0, 2), (1000.0, 0)])
def test_what_takes_long_says_so_in_plain_lines(seldom, lines, monkeypatch, capsys):
    monkeypatch.setattr(terminal, "SELDOM", seldom)
    with terminal.progress_bar("heads") as tell:
        tell(1, 2_000)
        tell(2_000, 2_000)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == lines
    assert not lines or told[-1].startswith("heads: 2,000 of 2,000 after 0 s")


def test_what_is_being_done_stands_before_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "SELDOM", 0.0)
    with terminal.progress_bar("heads") as tell:
        tell.about("ioi: ablation, 60 of 144 heads")
        tell(1, 4)
    assert capsys.readouterr().err.startswith("ioi: ablation, 60 of 144 heads: 25% after 0 s")
    named = PROGRESS.replace("tell(done, 3)", "tell.about(f'ioi, {done} of 3 heads'); tell(done, 3)")
    sent = on_a_terminal(named)
    assert b"ioi, 3 of 3 heads" in sent
    assert b"100%" in sent


@pytest.mark.parametrize(("seconds", "said"), [(30.0, ""), (3600.0, "heads: ablation 60.0 minutes, cards 5.2 s\n")])
def test_what_took_long_says_by_stage_how_long(seconds, said, capsys):
    with terminal.progress_bar("heads") as tell:
        tell.took({"ablation": seconds, "cards": 5.2})
    assert capsys.readouterr().err == said


def test_a_logged_warning_is_said_once_and_at_once(capsys):
    with events_as_lines():
        for _ in range(3):
            logging.getLogger("interp.methods").warning("few clusters")
        assert capsys.readouterr().err == "warning: few clusters\n"
    assert capsys.readouterr().err == ""
