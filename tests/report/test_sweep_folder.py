"""The folder of a sweep."""

import json

import pandas as pd
import pytest
from synthetic_sweeps import screened, sweep

from interp.report import folder as folder_module
from interp.report.folder import save

FILES = {"cells.csv", "cells.parquet", "examples.parquet", "report.html", "figures/strongest.png"}


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_result_come_back_as_they_went(tmp_path):
    result = sweep(direction="denoise")
    out = save(result, tmp_path / "deep" / "r", command="interp patch")
    pd.testing.assert_frame_equal(pd.read_parquet(out / "cells.parquet").drop(columns="status"), result.cells)
    assert set(pd.read_csv(out / "cells.csv")["status"]) <= {"changed", "identical input", "unreachable", "no-op"}
    pd.testing.assert_frame_equal(pd.read_parquet(out / "examples.parquet"), result.examples)
    assert list(pd.read_csv(out / "cells.csv")["pos"]) == list(result.cells["pos"])
    assert files_in(out) == FILES | {"figures/heatmap.png", "manifest.json"}
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["format"], manifest["command"]) == ("interp sweep report", "interp patch")
    assert set(manifest["files"]) == FILES | {"figures/heatmap.png"}
    assert manifest["provenance"]["audit"]["rows"] == 8


def test_a_screen_leaves_its_estimates_and_a_single_axis_has_bars_alone(tmp_path):
    assert "estimates.csv" in files_in(save(screened(), tmp_path / "screen"))
    assert files_in(save(sweep({"layer": range(3)}), tmp_path / "layers")) == FILES | {"manifest.json"}


def test_reports_of_either_kind_replace_each_other_whole(make_report, tmp_path):
    out = tmp_path / "r"
    save(sweep(), out)
    make_report(tasks=("agreement",)).save(out)
    assert not (out / "cells.csv").exists()
    save(sweep(), out)
    assert not (out / "heads.csv").exists()


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_a_failure_leaves_an_older_report_as_it_was(tmp_path, monkeypatch, error):
    out = save(sweep(), tmp_path / "r", command="older")

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(folder_module, "write_manifest", fail)
    with pytest.raises(type(error)):
        save(sweep(), out, command="newer")
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["command"] == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
