"""Every command that takes ``--device``, on the device: exit code 0, and the numbers that it prints on the CPU."""

import json
import math

import pytest
import typer
from typer.testing import CliRunner

from interp.cli import app

pytestmark = [pytest.mark.gpu, pytest.mark.unchecked, pytest.mark.filterwarnings("ignore")]

SENTENCES = """\
# newdoc id = d{number}
# sent_id = d{number}-1
# text = The {noun} are old.
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\t{noun}\t{noun}\tNOUN\t_\tNumber=Plur\t4\tnsubj\t_\t_
3\tare\tbe\tAUX\t_\tTense=Pres\t4\tcop\t_\t_
4\told\told\tADJ\t_\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_

"""
TASK, FEW = "--task agreement --n 6", "--anyway --no-probes --max-group 0"
LDA = "--kind lda --cv 2 --penalties 0.1 --no-description-lengths"
COMMANDS = {
    "heads": f"heads {TASK} {FEW} --no-cards --out {{folder}}",
    "head": f"head 2.2 {TASK} {FEW} --max-units 2",
    "ablate": f"ablate {TASK}",
    "patch": f"patch {TASK} --site resid_pre --by layer,pos --layer 2",
    "attend": "attend --data {data} --relation nsubj,det",
    "probe": f"probe --task agreement --n 24 --feature number --head 2.2 {LDA}",
    "activations collect": "activations collect --data {data} --site z --layer 2 --out {folder}",
}
SLOW = {"head", "heads"}
CHANGES = {"seconds", "folder", "page", "bytes"}
"""What is not equal in two runs."""


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr("interp.tasks.catalogue.REFERENCES", 40)
    path = tmp_path / "bank.conllu"
    nouns = ("keys", "doors", "books", "cats")
    path.write_text("".join(SENTENCES.format(number=number, noun=nouns[number % 4]) for number in range(12)))
    return path


def commands(group, path=()):
    for name, each in group.commands.items():
        yield from commands(each, (*path, name)) if hasattr(each, "commands") else [(" ".join((*path, name)), each)]


def test_every_command_with_a_device_is_here():
    """But for the one that says what a device would take, and computes on none."""
    every = commands(typer.main.get_command(app))
    found = {name for name, each in every if "--device" in {o for p in each.params for o in p.opts}}
    assert found == {*COMMANDS, "model plan"}


def numbers_of(told, where=""):
    """All that is printed, by its place."""
    if isinstance(told, dict | list):
        for name, each in told.items() if isinstance(told, dict) else enumerate(told):
            if name not in CHANGES:
                yield from numbers_of(each, f"{where}.{name}")
    else:
        yield where, told


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow) if each in SLOW else each for each in COMMANDS]
)
def test_a_command(name, data, tmp_path, monkeypatch):
    printed = []
    for device in ("cpu", "cuda"):
        monkeypatch.setenv("INTERP_RUNS", str(tmp_path / f"{device} runs"))
        arguments = COMMANDS[name].format(data=data, folder=tmp_path / device).split()
        result = CliRunner().invoke(app, [*arguments, "--device", device, "--json"])
        assert result.exit_code == 0, result.output
        printed.append(dict(numbers_of(json.loads(result.stdout))))
    cpu, cuda = printed
    assert cpu
    assert list(cpu) == list(cuda)
    for place, each in cpu.items():
        same = (
            math.isclose(each, cuda[place], rel_tol=1e-3, abs_tol=1e-4)
            if isinstance(each, float)
            else each == cuda[place]
        )
        assert same, (place, each, cuda[place])


@pytest.mark.slow
def test_the_doctor_multiplies_there():
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "torch on cuda:0" in result.stdout
