"""What is damaged, missing or anybody's is told and made again, or refused and left alone."""

import json
import os
import time

import pandas as pd
import pyarrow.parquet as pq
import pytest
from kept_sweeps import sweep, the_run, whole_files
from stores import files_of, flipped

from interp.errors import InputError, LoadError, OutputError
from interp.runs.catalogue import runs_in
from interp.runs.files import signed
from interp.runs.key import Record, Result
from interp.runs.run import Run
from interp.runs.run_folder import RunFolder

pytestmark = [pytest.mark.unchecked, pytest.mark.usefixtures("small_parts")]


class TestDamage:
    def test_every_part_that_is_damaged_is_named_and_measured_anew(self, tmp_path, measured, caplog):
        whole = sweep(Run(tmp_path))
        before, folder = whole_files(tmp_path), the_run(tmp_path)
        parts = sorted((folder / "parts").iterdir())
        flipped(parts[1], 40)
        parts[2].write_bytes(parts[2].read_bytes()[:50])
        parts[3].write_bytes(b"")
        parts[4].unlink()
        flipped(folder / "frame.parquet", 100)
        measured.clear()
        again = sweep(Run(tmp_path))
        said = [each.getMessage() for each in caplog.records if "damaged" in each.getMessage()]
        assert [each.split(": ")[0] for each in said] == [str(folder / "frame.parquet"), *map(str, parts[1:4])]
        assert measured == [1, 2, 3, 4]
        assert whole_files(tmp_path) == before
        pd.testing.assert_frame_equal(again.examples, whole.examples, check_exact=True)

    def test_another_runs_part_does_not_pass_for_its_own(self, tmp_path, measured, caplog):
        sweep(Run(tmp_path / "one"))
        sweep(Run(tmp_path / "other"), seed=1)
        own, foreign = (sorted((the_run(tmp_path / name) / "parts").iterdir())[1] for name in ("one", "other"))
        own.unlink()
        (own.parent / foreign.name).write_bytes(foreign.read_bytes())
        (the_run(tmp_path / "one") / "result.json").unlink()
        measured.clear()
        sweep(Run(tmp_path / "one"))
        assert "damaged or missing, and made again" in caplog.text
        assert measured == [1]

    @pytest.mark.parametrize("name", ["manifest.json", "result.json"])
    def test_a_damaged_manifest_or_result_is_written_anew(self, tmp_path, name, caplog):
        whole = sweep(Run(tmp_path))
        path = the_run(tmp_path) / name
        before = path.read_bytes()
        flipped(path, 60)
        (the_run(tmp_path) / "frame.parquet").unlink()
        again = sweep(Run(tmp_path))
        assert f"{path}: damaged or missing, and made again" in caplog.text
        assert path.read_bytes() == before
        pd.testing.assert_frame_equal(again.examples, whole.examples, check_exact=True)

    @pytest.mark.parametrize("fresh", [False, True])
    @pytest.mark.parametrize("name", ["manifest.json", "result.json"])
    def test_a_newer_format_is_refused_and_left_alone(self, tmp_path, name, fresh):
        sweep(Run(tmp_path))
        folder = the_run(tmp_path)
        content = json.loads((folder / name).read_text())
        ours, content["version"] = content["version"], 3
        del content["sha256"]
        (folder / name).write_text(signed(content))
        if name == "manifest.json":
            (folder / "result.json").unlink()
        before = files_of(folder)
        if fresh:  # the answer stands beside it, and is found
            new = sweep(Run(tmp_path, fresh=True)).provenance["run"]
            assert new == f"{folder.name}-1" == sweep(Run(tmp_path)).provenance["run"]
            assert files_of(folder) == before
            return
        with pytest.raises(LoadError, match=f"in version 3, this program reads {ours}; use the version of interp that"):
            sweep(Run(tmp_path))
        assert files_of(folder) == before

    def test_what_cannot_be_read_is_no_damage(self, tmp_path, monkeypatch):
        sweep(Run(tmp_path))
        folder = the_run(tmp_path)
        (folder / "result.json").unlink()
        before = whole_files(tmp_path)

        def too_many_files(_path):
            raise OSError(24, "Too many open files")

        monkeypatch.setattr("interp.runs.run_folder.sha256_of", too_many_files)
        with pytest.raises(LoadError, match=r"parquet: cannot be read \(Too many open files\); it is left as it is"):
            sweep(Run(tmp_path))
        assert whole_files(tmp_path) == before

    @pytest.mark.parametrize("fresh", [False, True])
    def test_a_place_that_no_folder_can_have(self, tmp_path, fresh):
        (tmp_path / "file").write_text("mine")
        for name in ("x" * 300, "file/runs"):
            with pytest.raises(OutputError, match="expected a place that can be written"):
                sweep(Run(tmp_path / name, fresh=fresh))
        with pytest.raises(InputError, match="expected a path, got one with a null character"):
            sweep(Run(f"{tmp_path}/a\0b", fresh=fresh))
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_parts_that_lie_elsewhere_are_left_alone(self, tmp_path):
        sweep(Run(tmp_path / "runs"))
        folder = the_run(tmp_path / "runs")
        (folder / "parts").rename(tmp_path / "elsewhere")
        (folder / "parts").symlink_to(tmp_path / "elsewhere")
        (folder / "result.json").unlink()
        with pytest.raises(OutputError, match="expected a folder of parts, got a link to one"):
            sweep(Run(tmp_path / "runs"))
        sweep(Run(tmp_path / "runs", fresh=True))
        assert len(list((tmp_path / "elsewhere").iterdir())) > 3

    @pytest.mark.parametrize("name", ["lock", "log.jsonl"])
    def test_a_link_to_anybodys_file_is_not_written_to(self, tmp_path, name):
        sweep(Run(tmp_path / "runs"))
        folder, precious = the_run(tmp_path / "runs"), tmp_path / "precious"
        precious.write_text("precious")
        (folder / name).unlink()
        (folder / name).symlink_to(precious)
        (folder / "result.json").unlink()
        with pytest.raises(OutputError, match="got 'Too many levels of symbolic links'"):
            sweep(Run(tmp_path / "runs"))
        assert precious.read_text() == "precious"

    def test_what_somebody_begins_anew_meanwhile_is_no_damage(self, tmp_path, monkeypatch):
        whole, read = sweep(Run(tmp_path)), pq.ParquetFile
        folder = the_run(tmp_path)

        def gone(path, **options):
            (folder / "result.json").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            return read(path, **options)

        with monkeypatch.context() as patched:
            patched.setattr(pq, "ParquetFile", gone)
            assert RunFolder(folder, Record.read(folder / "manifest.json")).result() is None
        pd.testing.assert_frame_equal(sweep(Run(tmp_path)).examples, whole.examples, check_exact=True)

    def test_what_a_killed_process_left_half_written_is_deleted(self, tmp_path):
        sweep(Run(tmp_path))
        folder = the_run(tmp_path)
        (folder / "result.json").unlink()
        left = folder / "parts" / "000007.partial"
        left.write_bytes(b"PAR1")
        sweep(Run(tmp_path))
        assert not left.exists()


def test_a_part_of_a_finished_run_that_is_missing_is_told(tmp_path):
    sweep(Run(tmp_path))
    (known,) = runs_in(tmp_path)
    assert known.damage() == []
    gone = min((known.folder / "parts").iterdir())
    gone.unlink()
    assert known.damage() == [f"parts/{gone.name} is missing"]
    known.opened().mend()
    sweep(Run(tmp_path))
    assert known.damage() == []
    assert gone.exists()


class TestLog:
    def test_when_it_was_begun_is_not_when_it_was_copied(self, tmp_path):
        sweep(Run(tmp_path))
        os.utime(the_run(tmp_path) / "manifest.json", (0, 0))
        (known,) = runs_in(tmp_path)
        assert abs(known.begun.timestamp() - time.time()) < 600

    @pytest.mark.parametrize(
        "said",
        [
            "",
            "[1]",
            '{"time": 3}',
            '{"time": "never"}',
            '{"time": "0001-01-01T00:00:00+23:59"}',
            "{" * 9999,
            "\0",
            '{"event": "planned"}',
        ],
    )
    def test_a_log_may_be_anybodys(self, tmp_path, said):
        sweep(Run(tmp_path))
        (the_run(tmp_path) / "log.jsonl").write_text(said)
        os.utime(the_run(tmp_path) / "manifest.json", (0, 0))
        (known,) = runs_in(tmp_path)
        assert known.begun.timestamp() == 0
        assert known.n_planned is None


@pytest.mark.parametrize(("depth", "read"), [(9, True), (480, False)])
def test_nesting_that_is_deeper_than_what_can_be_written_again_is_damage(tmp_path, depth, read):
    content = {"format": Result.format, "version": Result.version, "key": "0" * 64}
    facts = {"answers": [], "deep": json.loads("[" * depth + "]" * depth)}
    (tmp_path / "result.json").write_text(signed({**content, "facts": facts, "tables": {}, "parts": []}))
    assert (Result.intact(tmp_path / "result.json") is not None) == read
