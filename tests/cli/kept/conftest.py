"""A run that a command has kept."""

import json

import pytest
from giving_commands import ABLATE, interp


@pytest.fixture(autouse=True)
def calls():
    """Here nothing is faked, and commands measure."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of runs with one in it, the folder that it was asked in, and what was printed."""
    runs, asked_in = tmp_path_factory.mktemp("kept"), tmp_path_factory.mktemp("asked in")
    done = interp(*ABLATE, "--runs", runs, cwd=asked_in)
    assert done.exit_code == 0, done.stderr
    (folder,) = runs.iterdir()
    return folder, asked_in, json.loads(done.stdout)


@pytest.fixture
def few(monkeypatch):
    """Few references, for what is asked in this process alone."""
    monkeypatch.setattr("interp.tasks.catalogue.REFERENCES", 40)


@pytest.fixture
def folder(kept):
    return kept[0]


@pytest.fixture
def runs(monkeypatch, folder):
    """`interp runs` in this process, on these runs."""
    monkeypatch.setenv("INTERP_RUNS", str(folder.parent))
    return lambda *arguments: interp("runs", *arguments)
