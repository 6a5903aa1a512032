"""Tab: commands, options and names, in a shell that waits for no torch."""

import os
import subprocess
import sys

import pytest
from parsed import commands

from interp.cli import completing
from interp.model.devices import resolve_dtype
from interp.model.loading import embedded_models
from interp.model.presets import ALIASES, PRESETS
from interp.model.sites import SITES
from interp.tasks.catalogue import list_tasks

SCRIPT = """if True:
    import sys
    from interp.cli import app
    try:
        app(prog_name="interp")
    finally:
        print("|", *{"torch", "pandas", "numpy", "transformers", "rich"} & set(sys.modules))
"""


def offered(line):
    """What bash is told at the end of a line."""
    words = line.split(" ")
    asked = {"_INTERP_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=os.environ | asked, capture_output=True, text=True)
    found, heavy = done.stdout.rsplit("|", 1)
    assert (done.returncode, done.stderr, heavy.strip()) == (0, "", "")
    return found.split()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("interp he", ["heads", "head"]),
        ("interp model ", ["info", "plan", "convert", "fetch", "families"]),
        ("interp ablate --replacement t", ["template_mean"]),
        ("interp heads --task i", ["ioi", "induction"]),
        ("interp patch --site resid_p", ["resid_pre", "resid_post"]),
    ],
)
def test_a_shell_is_told_and_nothing_heavy_is_loaded(line, names):
    assert offered(line) == names


@pytest.mark.parametrize("line", ["interp --nonsense ", "interp nonsense ", "interp heads --nonsense "])
def test_a_line_that_is_wrong_disturbs_nobody(line):
    offered(line)


def test_names_are_those_of_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where nothing was fetched
    generated = [name for name in list_tasks()["name"] if ":" not in name]
    assert sorted(completing.TASKS("")) == sorted(generated)
    assert set(completing.PRESETS("")) == {*PRESETS, *ALIASES}
    assert completing.models("") == sorted(embedded_models())
    assert completing.models("b") == ["books"]
    assert completing.sites("") == list(SITES)
    assert all(resolve_dtype(name) is not None for name in completing.DTYPES(""))


def test_every_piece_of_hardware_can_be_planned_for(run):
    for hardware in completing.HARDWARE(""):
        assert '"preset": "gpt2"' in run("model", "plan", "gpt2", "--device", hardware, "--json").stdout


def test_a_list_goes_on_with_what_is_not_in_it():
    assert completing.AXES("layer,") == ["layer,pos", "layer,head", "layer,key", "layer,neuron"]
    assert completing.AXES("la") == ["layer"]
    assert completing.sites("z,resid_mi") == ["z,resid_mid"]


def test_completion_is_installed_by_the_first_help_and_is_in_no_other(run):
    assert "--install-completion" in run("--help").stdout
    for name in commands():
        assert "completion" not in run(*name.split(), "--help").stdout


def test_the_script_for_a_shell_is_shown():
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "interp", "--show-completion", "bash"]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "_INTERP_COMPLETE=complete_bash" in shown
