"""A fresh answer is kept beside the old one, which holds until the new one is complete, whatever happens."""

import json
import os
import signal
import sys
import warnings
from contextlib import suppress
from contextvars import Context
from pathlib import Path

import pandas as pd
import pytest
from kept_sweeps import in_small_parts, stop_after, sweep, whole_files

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))
from killing import begun, killed_before

from interp.errors import InputError, OutputError
from interp.runs.catalogue import find_run, runs_in
from interp.runs.files import locked
from interp.runs.fresh import asked_together
from interp.runs.run import Run

pytestmark = [pytest.mark.unchecked, pytest.mark.usefixtures("small_parts")]


def _same(one, other):
    pd.testing.assert_frame_equal(one.examples, other.examples, check_exact=True)


def _names(root):
    return sorted(path.name for path in root.iterdir())


def _key(result):
    return result.provenance["run"]


def _interrupted(run, monkeypatch, n, **options):
    with monkeypatch.context() as patched:
        patched.setattr("interp.runs.executors.Local.stream", stop_after(n))
        with suppress(KeyboardInterrupt), warnings.catch_warnings(action="ignore"):
            sweep(run, **options)


def _both(root):
    with asked_together():
        return [sweep(Run(root, fresh=True), seed=seed) for seed in (0, 1)]


def _refused_afterwards(root):
    with asked_together():
        sweep(Run(root, fresh=True))
        raise InputError("another task: expected one that is known")


@pytest.fixture
def refused(tmp_path):
    """A finished run, and its fresh answer, finished before another question of the same call was refused."""
    first = sweep(Run(tmp_path))
    with pytest.raises(InputError, match="another task"):
        _refused_afterwards(tmp_path)
    return first


class TestFresh:
    def test_all_is_measured_anew_and_the_newest_answer_is_found(self, tmp_path, measured):
        first = sweep(Run(tmp_path))
        before, n = whole_files(tmp_path), len(measured)
        for generation in (1, 2):
            again = sweep(Run(tmp_path, fresh=True))
            assert _key(again) == f"{_key(first)}-{generation}"
            _same(first, again)
            assert _key(sweep(Run(tmp_path))) == _key(again)
        assert measured == 3 * measured[:n]
        assert before.items() <= whole_files(tmp_path).items(), "the old answer is as it was"
        assert _names(tmp_path) == [_key(first) + end for end in ("", "-1", "-2")]

    def test_interrupted_the_old_answer_holds_and_the_same_call_goes_on(self, tmp_path, measured, monkeypatch):
        first = sweep(Run(tmp_path))
        n = len(measured)
        measured.clear()
        _interrupted(Run(tmp_path, fresh=True), monkeypatch, n * 3 // 4)
        assert len(measured) == n * 3 // 4
        found = sweep(Run(tmp_path))
        _same(found, first)
        assert _key(found) == _key(first)
        assert len(measured) == n * 3 // 4, "the old answer was found"
        _same(sweep(Run(tmp_path, fresh=True)), first)
        assert sorted(measured) == list(range(n)), "none twice"
        assert _names(tmp_path) == [_key(first), f"{_key(first)}-1"]

    def test_of_what_was_asked_together_none_is_measured_twice(self, refused, tmp_path, measured, monkeypatch):
        key = _key(refused)
        assert f"{key}-1.fresh" in _names(tmp_path)
        with asked_together():
            sweep(Run(tmp_path, fresh=True))
            assert measured == []
            _interrupted(Run(tmp_path, fresh=True), monkeypatch, 3, seed=1)
        assert f"{key}-1.fresh" in _names(tmp_path), "its second question is not complete"
        both = _both(tmp_path)
        assert sorted(measured) == list(range(len(measured))), "what was found is not measured again"
        assert _names(tmp_path) == sorted([key, *map(_key, both)]), "it is complete"
        assert [_key(each)[-2:] for each in both] == ["-1", "-1"]
        assert [_key(each)[-2:] for each in _both(tmp_path)] == ["-2", "-2"]

    def test_what_a_worker_measures_is_a_part_of_it(self, tmp_path, measured):
        key = _key(sweep(Run(tmp_path)))
        n, fresh = len(measured), Run(tmp_path, fresh=True)
        with fresh.place(lambda: {"kind": "a question of a sweep"}, {}) as (folder, _):
            for _ in range(2):
                assert _key(Context().run(sweep, fresh.inner)) == f"{key}-1"
            folder.finish({}, {"answers": []})
        assert len(measured) == 2 * n
        assert _names(tmp_path) == sorted([key, f"{key}-1", folder.folder.name])

    @pytest.mark.parametrize("fresh", [False, True])
    def test_where_there_is_no_old_answer_who_asks_goes_on(self, tmp_path, measured, monkeypatch, fresh):
        _interrupted(Run(tmp_path, fresh=True), monkeypatch, 3)
        found = sweep(Run(tmp_path, fresh=fresh))
        assert sorted(measured) == list(range(len(measured))), "none twice"
        assert _key(found).endswith("-1")


class TestNothingIsLost:
    def test_by_damage_of_the_newest_answer(self, tmp_path, measured, caplog):
        first = sweep(Run(tmp_path))
        new = tmp_path / _key(sweep(Run(tmp_path, fresh=True)))
        (new / "frame.parquet").write_bytes(b"")
        n = len(measured)
        found = sweep(Run(tmp_path))
        assert _key(found) == _key(first)
        assert len(measured) == n, "the intact one before was found"
        assert caplog.text.count(f"{new / 'frame.parquet'}: damaged or missing") == 1
        find_run(tmp_path, _key(first)).remove()
        _same(sweep(Run(tmp_path)), first)
        assert len(measured) == n, "its parts are intact"
        assert [run.damage() for run in runs_in(tmp_path)] == [[]]

    def test_by_removing_either_answer(self, tmp_path, measured):
        first = sweep(Run(tmp_path))
        keys = [_key(sweep(Run(tmp_path, fresh=True))) for _ in range(2)]
        n = len(measured)
        for removed, left in ((keys[1], keys[0]), (_key(first), keys[0])):
            find_run(tmp_path, removed).remove()
            found = sweep(Run(tmp_path))
            _same(found, first)
            assert _key(found) == left
        assert len(measured) == n

    def test_by_a_question_that_is_refused_by_itself(self, tmp_path):
        with asked_together():
            key = _key(sweep(Run(tmp_path, fresh=True)))
            with pytest.raises(InputError, match="refused"), Run(tmp_path, fresh=True).place(lambda: {}, {}):
                raise InputError("refused")
        assert _names(tmp_path) == [key], "it was complete"
        with pytest.raises(InputError, match="refused"), Run(tmp_path, fresh=True).place(lambda: {}, {}):
            raise InputError("refused")
        assert _names(tmp_path) == [key]

    def test_by_two_who_ask_the_same(self, tmp_path):
        first = sweep(Run(tmp_path))
        with asked_together():
            sweep(Run(tmp_path, fresh=True))
            with pytest.raises(OutputError, match=rf"measured again .* another process \(process {os.getpid()} on "):
                Context().run(sweep, Run(tmp_path, fresh=True))
            _same(Context().run(sweep, Run(tmp_path)), first)

    def test_while_it_is_measured_others_get_the_old_answer(self, tmp_path, measured):
        first = sweep(Run(tmp_path))
        n, found = len(measured), []

        def reading(_done, _total):
            found.append(Context().run(sweep, Run(tmp_path)))

        sweep(Run(tmp_path, fresh=True), progress=reading)
        assert len(found) > 3
        assert {_key(each) for each in found[:-1]} == {_key(first)}
        assert len(measured) == 2 * n

    def test_of_an_old_answer_that_another_process_holds(self, tmp_path):
        old = tmp_path / _key(sweep(Run(tmp_path)))
        with locked(old / "lock", old):
            new = sweep(Run(tmp_path, fresh=True))
            assert _key(sweep(Run(tmp_path))) == _key(new)

    @pytest.mark.parametrize("name", ["{}-1.fresh", "{}-1"])
    def test_behind_a_link(self, tmp_path, name, monkeypatch):
        root = tmp_path / "runs"
        key = _key(sweep(Run(root)))
        _interrupted(Run(root, fresh=True), monkeypatch, 3)
        path = root / name.format(key)
        moved = path.rename(tmp_path / "moved")
        path.symlink_to(moved)
        if name.endswith("fresh"):
            with pytest.raises(OutputError, match="symbolic links"):
                sweep(Run(root, fresh=True))
        else:
            find_run(root, f"{key}-1")
            sweep(Run(root, fresh=True))
            assert (moved / "result.json").exists()
        assert _key(sweep(Run(root))).startswith(key)

    def test_of_what_is_no_run(self, tmp_path):
        for name in ("notes-7", "0" * 16 + "-08", "mine.fresh"):
            (tmp_path / name).mkdir()
        before = _names(tmp_path)
        key = _key(sweep(Run(tmp_path, fresh=True)))
        assert key.endswith("-1")
        assert _names(tmp_path) == sorted([*before, key])

    def test_where_a_file_has_the_folders_name(self, tmp_path):
        (tmp_path / "runs").write_text("mine")
        with pytest.raises(OutputError, match="expected a place that can be written"):
            sweep(Run(tmp_path / "runs", fresh=True))


def _small(root, fresh=False):
    return sweep(Run(root, fresh=fresh), n=3)


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_before_every_operation_on_the_disk(tmp_path, step, monkeypatch):
    in_small_parts(monkeypatch)
    for number in range(0, 10**6, step):
        root = tmp_path / str(number)
        first = _small(root)
        child = begun(killed_before, number, _small, root, True)
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL)
        _same(_small(root), first)
        if child.exitcode == 0:
            break
        again = _small(root, fresh=True)
        _same(again, first)
        assert _key(again)[-2:] in ("-1", "-2"), "a kill after the last operation that counts begins another"
        assert _key(_small(root)) == _key(again)
        assert not list(root.glob("*.fresh"))
        log = map(json.loads, (root / _key(again) / "log.jsonl").read_text().splitlines())
        kept = [each["part"] for each in log if each["event"] == "kept"]
        parts = {each.name.split(".")[0] for each in (root / _key(again) / "parts").iterdir()}
        assert len(kept) == len(set(kept)), "none was kept twice"
        assert set(kept) <= parts
        assert len(parts) - len(kept) <= 1, "a kill behind a part, and before its line of the log, leaves out this line"
    assert number > 20, "the operations were counted"
