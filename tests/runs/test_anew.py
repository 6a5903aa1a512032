"""What is asked for anew is measured anew; until it is complete, the answer of before stays."""

from pathlib import Path

import pandas as pd
import pytest
from kept_sweeps import stop_after, sweep, the_run, whole_files

from interp.errors import InputError
from interp.runs.anew import anew_together
from interp.runs.run import Run

pytestmark = [pytest.mark.unchecked, pytest.mark.usefixtures("small_parts")]


def _together(run):
    with anew_together():
        sweep(run)
        raise InputError("another task: expected one that is known")


class TestAnew:
    def test_all_is_measured_anew(self, tmp_path, measured):
        first = sweep(Run(tmp_path))
        before, log = whole_files(tmp_path), (the_run(tmp_path) / "log.jsonl").read_bytes()
        again = sweep(Run(tmp_path, fresh=True))
        assert measured == 2 * measured[: len(measured) // 2]
        assert whole_files(tmp_path) == before
        assert (the_run(tmp_path) / "log.jsonl").read_bytes() != log
        pd.testing.assert_frame_equal(first.frame, again.frame, check_exact=True)

    def test_interrupted_the_answer_stays_and_the_same_call_goes_on(self, tmp_path, measured, monkeypatch):
        first = sweep(Run(tmp_path))
        n, (folder, log) = len(measured), (the_run(tmp_path), (the_run(tmp_path) / "log.jsonl").read_bytes())
        measured.clear()
        with monkeypatch.context() as patched:
            patched.setattr("interp.runs.executors.Local.stream", stop_after(n * 3 // 4))
            with pytest.warns(RuntimeWarning, match="interrupted"):
                sweep(Run(tmp_path, fresh=True))
        assert len(measured) == n * 3 // 4
        pd.testing.assert_frame_equal(sweep(Run(tmp_path)).frame, first.frame, check_exact=True)
        assert len(measured) == n * 3 // 4, "the answer of before was found"
        pd.testing.assert_frame_equal(sweep(Run(tmp_path, fresh=True)).frame, first.frame, check_exact=True)
        assert sorted(measured) == list(range(n)), "none twice"
        assert the_run(tmp_path) == folder
        assert (folder / "log.jsonl").read_bytes() != log

    def test_of_what_was_asked_together_none_is_measured_twice(self, tmp_path, measured):
        sweep(Run(tmp_path))
        n, anew = len(measured), Run(tmp_path, fresh=True)
        with pytest.raises(InputError, match="another task"):
            _together(anew)
        assert len(measured) == 2 * n
        with anew_together():
            sweep(anew)
            sweep(anew, seed=1)
        assert len(measured) == 3 * n
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
            sweep(Run(tmp_path), seed=seed).provenance["run"] for seed in (0, 1)
        )
        assert len(measured) == 3 * n

    def test_killed_between_two_renamings_both_are_there(self, tmp_path, monkeypatch, measured):
        first = sweep(Run(tmp_path))
        rename, calls = Path.rename, iter(range(9))

        def dying(self, target):
            if next(calls) == 1:
                raise SystemExit
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", dying)
        with pytest.raises(SystemExit):
            sweep(Run(tmp_path, fresh=True))
        monkeypatch.setattr(Path, "rename", rename)
        assert len(list((tmp_path / "anew").iterdir())) == 2
        n = len(measured)
        pd.testing.assert_frame_equal(sweep(Run(tmp_path, fresh=True)).frame, first.frame, check_exact=True)
        assert len(measured) == n
        assert the_run(tmp_path).name == first.provenance["run"]

    def test_who_has_nothing_gets_it_as_well(self, tmp_path):
        key = sweep(Run(tmp_path, fresh=True)).provenance["run"]
        assert the_run(tmp_path).name == key
