"""Is a dependency that is absent, too old or broken told in a sentence, with the command that mends it?"""

import re
from email.message import Message
from importlib import metadata

import pytest

import interp
from interp.doctor import requirements


@pytest.fixture
def asked(monkeypatch):
    """Makes interp's metadata ask for this."""
    return lambda *needs: monkeypatch.setattr(metadata, "requires", lambda _name: list(needs))


def found(look):
    return {each.what: each for each in look()}


def test_what_interp_declares_is_all_here():
    everything = found(requirements.dependencies)
    declared = {re.match(r"[\w-]+", each)[0] for each in metadata.requires("interp") if ";" not in each}
    assert {"torch", "transformer-lens", "typer"} <= declared <= set(everything)
    assert {each.state for name, each in everything.items() if name != "ray"} == {"well"}
    assert "pytest" not in everything, "what tests need is nothing to users"


def test_what_is_absent(asked):
    asked("numpy>=2", "no-such-library>=3.1")
    each = found(requirements.dependencies)["no-such-library"]
    assert (each.state, each.says) == ("wrong", "not installed; expected >=3.1")
    assert each.todo.endswith("-m pip install 'no-such-library>=3.1'")


@pytest.mark.parametrize("needed", [">=1000", "<1"])
def test_what_is_of_another_version(asked, needed):
    asked(f"numpy{needed}")
    each = found(requirements.dependencies)["numpy"]
    assert (each.state, each.says) == ("wrong", f"{metadata.version('numpy')}; expected {needed}")
    assert each.todo.endswith(f"install 'numpy{needed}'")


def test_a_build_of_its_own_is_of_its_version(asked, monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda _name: "2.10.0+cu130")
    asked("torch>=2.10")
    assert found(requirements.dependencies)["torch"].state == "well"


def test_what_this_python_does_not_need_is_not_asked_for(asked):
    asked("no-such-library; python_version < '3'")
    assert found(requirements.dependencies) == {}


def test_an_optional_part_may_be_absent_but_not_old(asked, monkeypatch):
    asked("ray>=2.52; extra == 'ray'", "pytest>=8; extra == 'dev'")
    monkeypatch.setattr(metadata, "version", lambda _name: "1.0")
    assert found(requirements.dependencies)["ray"].state == "wrong"

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    (ray,) = found(requirements.dependencies).values()
    assert (ray.state, ray.todo.split()[-1]) == ("note", "'ray>=2.52'")
    assert "several machines" in ray.says


def test_a_python_that_interp_is_not_made_for(monkeypatch):
    made_for = Message()
    made_for["Requires-Python"] = ">=3.99"
    monkeypatch.setattr(metadata, "metadata", lambda _name: made_for)
    (each,) = requirements.python()
    assert each.state == "wrong"
    assert each.says.endswith("expected >=3.99")


def test_another_interp_that_lies_before_the_installed_one(monkeypatch):
    assert next(requirements.own()).state == "well"
    monkeypatch.setattr(interp, "__version__", "9.9")
    each = next(requirements.own())
    assert each.state == "wrong"
    assert "9.9 in " in each.says
