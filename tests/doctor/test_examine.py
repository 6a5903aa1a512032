"""Is every fault of an installation named with what to do, while the other looks go on?"""

import base64
import builtins
import hashlib
import os
import re
import shutil
import subprocess
import sys
from email.message import Message
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import interp
from interp.doctor import examine as doctor
from interp.doctor.examine import LOOKS, Finding, Look, examine, in_lines, well
from interp.errors import AuditError

CHEAP = [look for look in LOOKS if look.what != "a small run"]


def test_the_small_run_gives_the_numbers_that_it_gave():
    found = {each.what: each for each in doctor.small_run()}
    assert [each.state for each in found.values()] == ["well", "well"], found
    assert "engine and plain way differ by" in found["head 2.2 ablated"].says


def test_other_numbers_are_wrong(monkeypatch):
    monkeypatch.setattr(doctor, "EFFECT", doctor.EFFECT * (1 + 2 * doctor.TOLERANCE))
    assert [each.state for each in doctor.small_run()] == ["well", "wrong"]


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

    monkeypatch.setattr(doctor, "LOOKS", CHEAP)
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


@pytest.fixture
def asked(monkeypatch):
    """Makes interp's metadata ask for this."""
    return lambda *needs: monkeypatch.setattr(metadata, "requires", lambda _name: list(needs))


def found(look):
    return {each.what: each for each in look()}


def test_what_interp_declares_is_all_here():
    everything = found(doctor.dependencies)
    declared = {re.match(r"[\w-]+", each)[0] for each in metadata.requires("interp") if ";" not in each}
    assert {"torch", "transformer-lens", "typer"} <= declared <= set(everything)
    assert {each.state for name, each in everything.items() if name != "ray"} == {"well"}
    assert "pytest" not in everything, "what tests need is nothing to users"


def test_what_is_absent(asked):
    asked("numpy>=2", "no-such-library>=3.1")
    each = found(doctor.dependencies)["no-such-library"]
    assert (each.state, each.says) == ("wrong", "not installed; expected >=3.1")
    assert each.todo.endswith("-m pip install 'no-such-library>=3.1'")


@pytest.mark.parametrize("needed", [">=1000", "<1"])
def test_what_is_of_another_version(asked, needed):
    asked(f"numpy{needed}")
    each = found(doctor.dependencies)["numpy"]
    assert (each.state, each.says) == ("wrong", f"{metadata.version('numpy')}; expected {needed}")
    assert each.todo.endswith(f"install 'numpy{needed}'")


def test_a_build_of_its_own_is_of_its_version(asked, monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda _name: "2.10.0+cu130")
    asked("torch>=2.10")
    assert found(doctor.dependencies)["torch"].state == "well"


def test_what_this_python_does_not_need_is_not_asked_for(asked):
    asked("no-such-library; python_version < '3'")
    assert found(doctor.dependencies) == {}


def test_an_optional_part_may_be_absent_but_not_old(asked, monkeypatch):
    asked("ray>=2.52; extra == 'ray'", "pytest>=8; extra == 'dev'")
    monkeypatch.setattr(metadata, "version", lambda _name: "1.0")
    assert found(doctor.dependencies)["ray"].state == "wrong"

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    (ray,) = found(doctor.dependencies).values()
    assert (ray.state, ray.todo.split()[-1]) == ("note", "'ray>=2.52'")
    assert "several machines" in ray.says


def test_a_python_that_interp_is_not_made_for(monkeypatch):
    made_for = Message()
    made_for["Requires-Python"] = ">=3.99"
    monkeypatch.setattr(metadata, "metadata", lambda _name: made_for)
    (each,) = doctor.python()
    assert each.state == "wrong"
    assert each.says.endswith("expected >=3.99")


def test_another_interp_that_lies_before_the_installed_one(monkeypatch):
    assert next(doctor.own()).state == "well"
    monkeypatch.setattr(interp, "__version__", "9.9")
    each = next(doctor.own())
    assert each.state == "wrong"
    assert "9.9 in " in each.says


@pytest.fixture
def package(tmp_path):
    """A copy of the package's models, and one file of each other kind."""
    package = tmp_path / "interp"
    shutil.copytree(doctor.PACKAGE / "model" / "zoo", package / "model" / "zoo", ignore=shutil.ignore_patterns("*.py"))
    for pattern in doctor.PARTS.values():
        path = package / pattern.replace("*", "one")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return package


def states(findings):
    return {each.what: each.state for each in findings}


def test_sums_are_those_of_every_file_of_every_model():
    zoo = doctor.PACKAGE / "model" / "zoo"
    there = sorted(path for path in zoo.glob("*/*") if path.suffix in (".json", ".safetensors"))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(zoo)}" for path in there]
    assert (zoo / "SHA256SUMS").read_text().splitlines() == lines, "in interp/model/zoo: sha256sum */*.json */*.saf..."


def test_what_is_whole_is_well(package):
    assert set(states([*doctor.models(package), *doctor.data(package)]).values()) == {"well"}
    assert set(states([*doctor.models(), *doctor.data()]).values()) == {"well"}


def test_a_bit_of_the_weights_is_missed(package):
    weights = package / "model" / "zoo" / "default" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    (package / "model" / "zoo" / "default" / "tokenizer.json").unlink()
    found = {each.what: each for each in doctor.models(package)}
    default = found.pop("model default")
    assert (default.state, default.says) == ("wrong", "model.safetensors is damaged; tokenizer.json is missing")
    assert "install interp again" in default.todo
    assert states(found.values()) == dict.fromkeys(("model books", "model sibling-1", "model sibling-2"), "well")


@pytest.mark.parametrize("what", doctor.PARTS)
def test_what_else_is_missing_is_named(package, what):
    for path in package.glob(doctor.PARTS[what]):
        path.unlink()
    found = states(doctor.data(package))
    assert found.pop(what) == "wrong"
    assert set(found.values()) == {"well"}


class TestRecord:
    """Of a wheel that is installed in `tmp_path`."""

    @pytest.fixture(autouse=True)
    def installed(self, package, monkeypatch):
        paths = sorted(path for path in package.rglob("*") if path.is_file())
        digests = [base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()) for path in paths]
        rows = [
            f"{path.relative_to(package.parent)},sha256={digest.decode().rstrip('=')},1"
            for path, digest in zip(paths, digests, strict=True)
        ]
        info = package.parent / "interp-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: interp\nVersion: 0.1.0\n")
        (info / "RECORD").write_text("\n".join([*rows, "interp-0.1.0.dist-info/RECORD,,"]))
        distribution = metadata.PathDistribution(info)
        monkeypatch.setattr(metadata, "files", lambda _name: distribution.files)

    def test_every_file_is_compared(self, package):
        (each,) = doctor.record(package)
        n = len([path for path in package.rglob("*") if path.is_file()])
        assert (each.state, each.says) == ("well", f"{n}, each as it was packaged")

    def test_what_was_changed_is_named(self, package):
        (package / "tasks" / "word_senses" / "one.toml").write_text("y")
        (package / "report" / "templates" / "one.css").unlink()
        (each,) = doctor.record(package)
        assert each.state == "wrong"
        assert each.says.startswith("2 of ")
        assert "interp/tasks/word_senses/one.toml" in each.says
        assert "interp/report/templates/one.css" in each.says

    def test_of_another_place_it_says_nothing(self):
        (each,) = doctor.record(Path(doctor.__file__).parent.parent)
        assert each.state == "note"


def test_the_processors_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    (each,) = doctor.system()
    assert each.says.endswith("3 of 8 processors to be used")


def test_torch_multiplies_on_the_cpu():
    found = {each.what: each.state for each in doctor.torch_devices()}
    assert found["torch on cpu"] == "well"


def test_a_product_that_is_wrong_is_found(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda left, _right: left)
    wrong = {each.what for each in doctor.torch_devices() if each.state == "wrong"}
    assert "torch on cpu" in wrong


@pytest.mark.parametrize(
    ("built", "says"), [("13.0", "none is seen, though torch is built for 13.0"), (None, "none; ")]
)
def test_no_gpu_is_no_fault(monkeypatch, built, says):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(torch.version, "hip", None)
    (gpu,) = [each for each in doctor.torch_devices() if each.what == "GPU"]
    assert gpu.state == "note"
    assert gpu.says.startswith(says)


class TestRunsFolder:
    @pytest.fixture
    def root(self, tmp_path, monkeypatch):
        monkeypatch.setenv("INTERP_RUNS", str(tmp_path / "not" / "yet"))
        return tmp_path

    def test_one_that_is_not_there_yet_is_not_made(self, root):
        (each,) = doctor.runs_folder()
        assert each.state == "well"
        assert list(root.iterdir()) == []

    def test_little_room_is_said(self, root, monkeypatch):
        monkeypatch.setattr(shutil, "disk_usage", lambda _place: SimpleNamespace(free=10**8))
        (each,) = doctor.runs_folder()
        assert (each.state, each.says.endswith("0.1 GB free")) == ("note", True)
        assert "interp runs rm" in each.todo

    def test_a_place_that_cannot_be_written(self, root, monkeypatch):
        def refuse(**_where):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
        (each,) = doctor.runs_folder()
        assert each.state == "wrong"
        assert each.says.endswith("not/yet cannot be written (Permission denied)")
        assert "--runs DIR" in each.todo

    def test_a_file_in_its_place(self, root):
        (root / "not").write_text("")
        (each,) = doctor.runs_folder()
        assert each.state == "wrong"
