"""A run whose files are damaged: what is not as it was written is never read, and who asks again gets the same bits."""

import json
from collections import Counter

import pandas as pd
import pytest
from cases import LONGEST, Reader, bounded, damaged, files_of, outcome
from damage import BYTES, deep, inserted, json_changed
from kept_sweeps import in_small_parts, sweep
from test_stores import signed_anew
from typer.testing import CliRunner

from interp.cli import app
from interp.errors import LoadError
from interp.runs.catalogue import runs_in
from interp.runs.files import OtherVersionError, signed
from interp.runs.run import Run

pytestmark = pytest.mark.unchecked

JSON = (*BYTES, inserted, deep, *[json_changed] * 8, *[signed_anew] * 12)
FINISHED = {"*/manifest.json": JSON, "*/result.json": JSON, "*/frame.parquet": BYTES}
BEGUN = {"*/manifest.json": JSON, "*/parts/*.parquet": BYTES}
REFUSALS = (LoadError, OtherVersionError)
COMMANDS = ("ls", "ls --json", "show {}", "verify", "verify {} --json", "export {} --out /dev/null/a", "resume {}")


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """A folder with a finished run, and the table of it."""
    in_small_parts(monkeypatch)
    return tmp_path / "whole", sweep(Run(tmp_path / "whole"), n=2).examples


def table_of(folder):
    (run,) = runs_in(folder)
    return run.table()


def asked_again(folder):
    """The table; None where a version is claimed that this program does not read."""
    try:
        return sweep(Run(folder), n=2).examples
    except LoadError as error:
        refusal = str(error)
    assert "in version" in refusal
    return None


@pytest.mark.parametrize("n", [16, pytest.param(250, marks=pytest.mark.slow)])
@pytest.mark.parametrize("files", [FINISHED, BEGUN], ids=["finished", "begun"])
def test_a_damaged_run_is_refused_or_what_it_was(whole, files, n, tmp_path, record_property):
    (given, table), folder, found = whole, tmp_path / "damaged", Counter()
    reader = Reader("run", lambda _: None, table_of, files, REFUSALS)
    if files is BEGUN:
        for each in (*given.glob("*/result.json"), *given.glob("*/frame.parquet")):
            each.unlink()
    for seed in range(n):
        what = damaged(reader, given, folder, seed)
        before = files_of(folder)
        found[outcome(reader, folder)] += 1
        assert files_of(folder) == before, f"{what}: the reader wrote"
        again = asked_again(folder)
        if again is None:
            continue
        pd.testing.assert_frame_equal(again, table, check_exact=True, obj=what)
        assert [run.damage() for run in runs_in(folder)] == [[]], what
    record_property("malformed", dict(found))
    assert found["refused"] > n / 4


def test_a_result_without_tables_is_made_anew(whole):
    given, table = whole
    (result,) = given.glob("*/result.json")
    content = json.loads(result.read_text())
    del content["sha256"]
    result.write_text(signed({**content, "tables": {}}))
    with pytest.raises(LoadError, match="its tables are damaged"):
        table_of(given)
    pd.testing.assert_frame_equal(asked_again(given), table, check_exact=True)


@pytest.mark.parametrize("n", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_commands_on_damaged_runs(whole, n, tmp_path, monkeypatch, record_property):
    (given, _), folder, codes = whole, tmp_path / "damaged", Counter()
    monkeypatch.setenv("INTERP_RUNS", str(folder))
    reader = Reader("run", lambda _: None, table_of, {**FINISHED, **BEGUN}, REFUSALS)
    key = next(given.iterdir()).name
    for seed in range(n):
        what = damaged(reader, given, folder, seed)
        for command in COMMANDS:
            with bounded():
                result = CliRunner().invoke(app, ["runs", *command.format(key).split()])
            assert result.exception is None or isinstance(result.exception, SystemExit), f"{what}: {command}"
            assert result.exit_code in (0, 2), f"{what}: {command}: {result.output}"
            assert "Traceback" not in result.output
            assert all(len(line) < 2 * LONGEST for line in result.stderr.splitlines())
            codes["refused" if result.exit_code else "read"] += 1
    record_property("malformed", dict(codes))
    assert codes["refused"] > n
