"""What is asked for anew is measured anew; until it is complete, the answer of before stays, whatever happens."""

import os
import shutil
from contextlib import contextmanager
from contextvars import Context
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest
from kept_sweeps import stop_after, sweep, the_run, whole_files

from interp.errors import InputError, OutputError
from interp.runs.anew import anew_together, folders_anew, root_before
from interp.runs.catalogue import find_run, runs_in
from interp.runs.lock import locked
from interp.runs.run import Run

pytestmark = [pytest.mark.unchecked, pytest.mark.usefixtures("small_parts")]


def _same(one, other):
    pd.testing.assert_frame_equal(one.frame, other.frame, check_exact=True)


def _which(folder):
    """Which run it is: what is measured within a second has the same lines, but another file."""
    return (folder / "log.jsonl").stat().st_ino


def _failing_afterwards(run):
    """What is asked together, before another question is refused."""
    with anew_together():
        sweep(run)
        raise InputError("another task: expected one that is known")


@pytest.fixture
def begun_anew(tmp_path):
    """A finished run, its result, and the finished one that has not yet taken its place."""
    first = sweep(Run(tmp_path))
    with pytest.raises(InputError, match="another task"):
        _failing_afterwards(Run(tmp_path, fresh=True))
    (folder,) = folders_anew(tmp_path)
    return tmp_path / first.provenance["run"], first, folder / first.provenance["run"]


def _both(folder):
    with anew_together():
        for seed in (0, 1):
            sweep(Run(folder, fresh=True), seed=seed)


class _Killed(BaseException):
    """The process is gone."""


def _killed_at_renaming(monkeypatch, number, ask):
    """Ask, and be killed before the renaming of this number: from there on nothing happens."""
    rename, calls = Path.rename, iter(range(9))

    def dying(self, target):
        if next(calls) == number:
            raise _Killed
        return rename(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", dying)
        patched.setattr("interp.runs.anew._settle", Mock())
        with pytest.raises(_Killed):
            ask()


class TestAnew:
    def test_all_is_measured_anew(self, tmp_path, measured):
        first = sweep(Run(tmp_path))
        before, log = whole_files(tmp_path), _which(the_run(tmp_path))
        again = sweep(Run(tmp_path, fresh=True))
        assert measured == 2 * measured[: len(measured) // 2]
        assert whole_files(tmp_path) == before
        assert _which(the_run(tmp_path)) != log
        _same(first, again)

    def test_interrupted_the_answer_stays_and_the_same_call_goes_on(self, tmp_path, measured, monkeypatch):
        first = sweep(Run(tmp_path))
        n, folder, log = len(measured), the_run(tmp_path), _which(the_run(tmp_path))
        measured.clear()
        with monkeypatch.context() as patched:
            patched.setattr("interp.runs.executors.Local.stream", stop_after(n * 3 // 4))
            with pytest.warns(RuntimeWarning, match="interrupted"):
                sweep(Run(tmp_path, fresh=True))
        assert len(measured) == n * 3 // 4
        _same(sweep(Run(tmp_path)), first)
        assert len(measured) == n * 3 // 4, "the answer of before was found"
        _same(sweep(Run(tmp_path, fresh=True)), first)
        assert sorted(measured) == list(range(n)), "none twice"
        assert the_run(tmp_path) == folder
        assert _which(folder) != log

    def test_of_what_was_asked_together_none_is_measured_twice(self, begun_anew, tmp_path, measured):
        with anew_together():
            sweep(Run(tmp_path, fresh=True))
            assert measured == []
            sweep(Run(tmp_path, fresh=True), seed=1)
        n = len(measured)
        assert n > 0
        keys = sorted(sweep(Run(tmp_path), seed=seed).provenance["run"] for seed in (0, 1))
        assert sorted(path.name for path in tmp_path.iterdir()) == keys
        assert len(measured) == n

    def test_until_the_last_is_answered_none_takes_its_place(self, tmp_path, monkeypatch, measured):
        logs = {}
        for seed in (0, 1):
            folder = tmp_path / sweep(Run(tmp_path), seed=seed).provenance["run"]
            logs[folder] = _which(folder)
        n = len(measured) // 2
        with monkeypatch.context() as patched, anew_together():
            sweep(Run(tmp_path, fresh=True))
            patched.setattr("interp.runs.executors.Local.stream", stop_after(n * 3 // 4))
            with pytest.warns(RuntimeWarning, match="interrupted"):
                sweep(Run(tmp_path, fresh=True), seed=1)
        assert {folder: _which(folder) for folder in logs} == logs
        measured.clear()
        _both(tmp_path)
        assert len(measured) == n - n * 3 // 4
        assert not [folder for folder, log in logs.items() if _which(folder) == log]

    def test_what_a_worker_measures_is_a_part_of_it(self, tmp_path, measured):
        log = _which(tmp_path / sweep(Run(tmp_path)).provenance["run"])
        n, anew = len(measured), Run(tmp_path, fresh=True)
        with anew.place(lambda: {"kind": "a question of a sweep"}, {}) as (folder, _):
            key = sweep(anew.inner).provenance["run"]
            assert (folder.folder.parent / key).is_dir()
            assert _which(tmp_path / key) == log
            folder.finish({}, {"answers": []})
        assert len(measured) == 2 * n
        assert _which(tmp_path / key) != log

    def test_who_has_nothing_gets_it_as_well(self, tmp_path):
        key = sweep(Run(tmp_path, fresh=True)).provenance["run"]
        assert the_run(tmp_path).name == key


class TestNothingIsLost:
    @pytest.mark.parametrize("fresh", [False, True])
    @pytest.mark.parametrize("renaming", [0, 1, 2])
    def test_by_a_kill_while_the_place_is_taken(self, tmp_path, monkeypatch, measured, renaming, fresh):
        first = sweep(Run(tmp_path))
        _killed_at_renaming(monkeypatch, renaming, lambda: sweep(Run(tmp_path, fresh=True)))
        n = len(measured)
        _same(sweep(Run(tmp_path, fresh=fresh)), first)
        assert (tmp_path / first.provenance["run"]).is_dir()
        _same(sweep(Run(tmp_path, fresh=True)), first)
        found = 1 if renaming == 2 else 0  # it had its place already
        assert len(measured) == n + n // 2 * (found + fresh)
        assert the_run(tmp_path).name == first.provenance["run"]

    def test_by_a_kill_between_the_places_of_a_question_and_its_parts(self, tmp_path, monkeypatch):
        computed = []

        def whole():
            with Run(tmp_path, fresh=True).place(lambda: {"kind": "a question of a sweep"}, {}) as (folder, known):
                if known is None:
                    sweep(Run(tmp_path, fresh=True))
                    computed.append(folder.finish({}, {"answers": []}))

        _killed_at_renaming(monkeypatch, 1, whole)
        assert len(runs_in(tmp_path)) == 1
        whole()
        assert len(computed) == 1, "the question itself is moved last, and found until then"
        assert len(list(tmp_path.iterdir())) == 2

    def test_by_a_kill_after_which_the_new_one_is_removed(self, tmp_path, monkeypatch, measured):
        first = sweep(Run(tmp_path))
        _killed_at_renaming(monkeypatch, 1, lambda: sweep(Run(tmp_path, fresh=True)))
        (folder,) = folders_anew(tmp_path)
        find_run(folder, first.provenance["run"]).remove()
        measured.clear()
        _same(sweep(Run(tmp_path)), first)
        assert measured == []
        assert the_run(tmp_path).name == first.provenance["run"]

    def test_by_a_disk_that_is_full_at_the_second_renaming(self, tmp_path, monkeypatch):
        first = sweep(Run(tmp_path))
        rename, calls = Path.rename, iter(range(9))

        def full(self, target):
            if next(calls) == 1:
                raise OSError(28, "no space")
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", full)
        with pytest.raises(OutputError, match="No space left on device"):
            sweep(Run(tmp_path, fresh=True))
        (run,) = runs_in(tmp_path)
        assert run.key == first.provenance["run"], "it is there at once"

    def test_of_what_is_removed_after_a_kill_while_it_is_removed(self, tmp_path, monkeypatch, measured):
        first = sweep(Run(tmp_path))
        with monkeypatch.context() as patched:
            patched.setattr("interp.runs.anew.shutil.rmtree", Mock(side_effect=_Killed))
            with pytest.raises(_Killed):
                sweep(Run(tmp_path, fresh=True))
        find_run(tmp_path, first.provenance["run"]).remove()
        n = len(measured)
        sweep(Run(tmp_path))
        assert len(measured) == n + n // 2, "half of it may be gone: it is not put back"

    def test_by_another_process_at_one_of_the_places(self, tmp_path, measured):
        keys = [sweep(Run(tmp_path), seed=seed).provenance["run"] for seed in (0, 1)]
        logs = [_which(tmp_path / key) for key in keys]
        for held in keys:
            with (
                locked(tmp_path / held / "lock", tmp_path / held),
                pytest.raises(OutputError, match=f"run .*{held}: another process"),
            ):
                _both(tmp_path)
            assert [_which(tmp_path / key) for key in keys] == logs
        n = len(measured)
        _both(tmp_path)
        assert len(measured) == n, "all was found"
        assert len({*logs, *(_which(tmp_path / key) for key in keys)}) == 4

    def test_by_a_process_that_begins_it_between_the_renamings(self, tmp_path, monkeypatch):
        first = sweep(Run(tmp_path))
        rename = Path.rename

        def interposed(self, target):
            rename(self, target)
            if target.suffix == ".before":
                (tmp_path / first.provenance["run"] / "parts").mkdir(parents=True)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", interposed)
            with pytest.raises(OutputError, match="another process has begun it meanwhile; wait for it, and ask again"):
                sweep(Run(tmp_path, fresh=True))
        _same(sweep(Run(tmp_path, fresh=True)), first)
        assert the_run(tmp_path).name == first.provenance["run"]

    def test_by_what_cannot_be_removed(self, tmp_path, monkeypatch, measured):
        first = sweep(Run(tmp_path))
        _killed_at_renaming(monkeypatch, 1, lambda: sweep(Run(tmp_path, fresh=True)))
        (folder,) = folders_anew(tmp_path)
        for number in range(9):
            (folder / (str(number) * 16)).with_suffix(".gone").write_text("no folder")
        measured.clear()
        _same(sweep(Run(tmp_path)), first)
        assert measured == []

    def test_by_many_places_of_which_each_is_held(self, tmp_path, monkeypatch):
        held, most = [], []

        @contextmanager
        def counted(path, *what):
            with locked(path, *what):
                held.append(path)
                most.append(len(held))
                yield
                held.pop()

        with anew_together():
            for seed in range(3):
                sweep(Run(tmp_path, fresh=True), seed=seed)
            monkeypatch.setattr("interp.runs.anew.locked", counted)
        assert len(runs_in(tmp_path)) == 3
        assert max(most) <= 2, "a process may open few files"

    def test_by_a_question_that_is_refused_by_itself(self, tmp_path):
        log = _which(tmp_path / sweep(Run(tmp_path)).provenance["run"])
        with anew_together():
            sweep(Run(tmp_path, fresh=True))
            with pytest.raises(InputError, match="refused"), Run(tmp_path, fresh=True).place(lambda: {}, {}):
                raise InputError("refused")
        assert _which(the_run(tmp_path)) != log

    def test_by_two_who_ask_the_same(self, tmp_path):
        first = sweep(Run(tmp_path))
        with anew_together():
            sweep(Run(tmp_path, fresh=True))
            with pytest.raises(OutputError, match=rf"measured anew .* another process \(process {os.getpid()} on "):
                Context().run(sweep, Run(tmp_path, fresh=True))
            _same(Context().run(sweep, Run(tmp_path)), first)
        assert the_run(tmp_path).name == first.provenance["run"]

    def test_by_a_damaged_part(self, begun_anew, tmp_path, measured, caplog):
        old, first, new = begun_anew
        part = next((new / "parts").iterdir())
        part.write_bytes(part.read_bytes()[:-1])
        log = _which(old)
        sweep(Run(tmp_path, fresh=True))
        assert f"{part}: damaged or missing" in caplog.text
        assert f"{new.parent}: not all is complete; the answers of before stay" in caplog.text
        assert _which(old) == log, "the intact one has stayed"
        assert measured == []
        _same(sweep(Run(tmp_path, fresh=True)), first)
        assert len(measured) == 1
        assert _which(the_run(tmp_path)) != log

    def test_of_what_is_no_run_asked_together(self, begun_anew, tmp_path):
        old, _, new = begun_anew
        others = [tmp_path / ".anew" / "notes", new.parent / "mine.before", new.parent / ("0" * 16)]
        for each in others:
            each.mkdir()
            (each / "result.json").write_text("{}")
        shutil.copytree(new, new.parent / ("1" * 16))
        sweep(Run(tmp_path, fresh=True))
        assert not new.exists()
        assert [(each / "result.json").read_text() for each in others] == ["{}"] * 3
        assert sorted(path.name for path in tmp_path.iterdir()) == [".anew", old.name]

    def test_that_a_link_leads_to(self, tmp_path):
        (tmp_path / "runs").mkdir()
        folder = tmp_path / "runs" / sweep(Run(tmp_path / "runs")).provenance["run"]
        moved = folder.rename(tmp_path / "moved")
        folder.symlink_to(moved)
        log = _which(moved)
        sweep(Run(tmp_path / "runs", fresh=True))
        assert _which(moved) == log
        assert not folder.is_symlink()
        assert the_run(tmp_path / "runs") == folder

    def test_behind_a_link(self, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "runs").mkdir()
        (tmp_path / "runs" / ".anew").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OutputError, match="expected a folder, got a link to one"):
            sweep(Run(tmp_path / "runs", fresh=True))
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_where_a_file_has_its_name(self, tmp_path):
        (tmp_path / ".anew").write_text("mine")
        with pytest.raises(OutputError, match="expected a place that can be written"):
            sweep(Run(tmp_path, fresh=True))
        sweep(Run(tmp_path))
        assert len(runs_in(tmp_path)) == 1
        assert folders_anew(tmp_path) == {}


@pytest.mark.parametrize(
    ("folder", "root"),
    [
        ("runs/.anew/0123456789abcdef", "runs"),
        ("runs/.anew/0123456789abcdef/../0123456789abcdef", "runs"),
        ("runs/anew", None),
        ("runs/.anew", None),
        ("runs/.anew/notes", None),
        ("anew/0123456789abcdef", None),
    ],
)
def test_what_is_measured_anew_for_which_folder_of_runs(tmp_path, folder, root):
    assert root_before(tmp_path / folder) == (None if root is None else tmp_path / root)
