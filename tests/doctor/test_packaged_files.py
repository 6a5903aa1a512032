"""Is a file that is damaged, missing or not readable named?"""

import base64
import hashlib
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from interp.doctor import files


@pytest.fixture
def package(tmp_path):
    """A copy of the package's models, and one file of each other kind."""
    package = tmp_path / "interp"
    shutil.copytree(files.PACKAGE / "model" / "zoo", package / "model" / "zoo", ignore=shutil.ignore_patterns("*.py"))
    for pattern in files.PARTS.values():
        path = package / pattern.replace("*", "one")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return package


def states(findings):
    return {each.what: each.state for each in findings}


def test_sums_are_those_of_every_file_of_every_model():
    zoo = files.PACKAGE / "model" / "zoo"
    there = sorted(path for path in zoo.glob("*/*") if path.suffix in (".json", ".safetensors"))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(zoo)}" for path in there]
    assert (zoo / "SHA256SUMS").read_text().splitlines() == lines, "in interp/model/zoo: sha256sum */*.json */*.saf..."


def test_what_is_whole_is_well(package):
    assert set(states([*files.models(package), *files.data(package)]).values()) == {"well"}
    assert set(states([*files.models(), *files.data()]).values()) == {"well"}


def test_a_bit_of_the_weights_is_missed(package):
    weights = package / "model" / "zoo" / "default" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    (package / "model" / "zoo" / "default" / "tokenizer.json").unlink()
    found = {each.what: each for each in files.models(package)}
    default = found.pop("model default")
    assert (default.state, default.says) == ("wrong", "model.safetensors is damaged; tokenizer.json is missing")
    assert "install interp again" in default.todo
    assert states(found.values()) == dict.fromkeys(("model books", "model sibling-1", "model sibling-2"), "well")


@pytest.mark.parametrize("what", files.PARTS)
def test_what_else_is_missing_is_named(package, what):
    for path in package.glob(files.PARTS[what]):
        path.unlink()
    found = states(files.data(package))
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
        (each,) = files.record(package)
        n = len([path for path in package.rglob("*") if path.is_file()])
        assert (each.state, each.says) == ("well", f"{n}, each as it was packaged")

    def test_what_was_changed_is_named(self, package):
        (package / "recipes" / "one.toml").write_text("y")
        (package / "report" / "templates" / "one.css").unlink()
        (each,) = files.record(package)
        assert each.state == "wrong"
        assert each.says.startswith("2 of ")
        assert "interp/recipes/one.toml" in each.says
        assert "interp/report/templates/one.css" in each.says

    def test_of_another_place_it_says_nothing(self):
        (each,) = files.record(Path(files.__file__).parent.parent)
        assert each.state == "note"
