"""What a script may rely on in the JSON of every command that leaves something."""

import json

import pytest


@pytest.mark.parametrize("command", ["heads", "ablate --task agreement", "patch --task agreement"])
def test_json_says_where_and_how_long(run, tmp_path, command):
    printed = json.loads(run(*command.split(), "--out", tmp_path / "r", "--json").stdout)
    assert (printed["folder"], printed["page"]) == (str(tmp_path / "r"), str(tmp_path / "r" / "report.html"))
    assert (tmp_path / "r" / "report.html").is_file()
    assert printed["seconds"] > 0


@pytest.mark.parametrize("command", ["ablate --task agreement", "patch --task agreement"])
def test_what_is_not_written_is_null(run, command):
    printed = json.loads(run(*command.split(), "--json").stdout)
    assert (printed["folder"], printed["page"]) == (None, None)
