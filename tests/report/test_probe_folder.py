"""The folder of probes."""

import json

import pandas as pd
import pytest
from synthetic_probes import probing

from interp.errors import OutputError
from interp.report import folder as folder_module

FILES = {
    *("probes.csv", "probes.parquet", "words.csv", "words.parquet", "examples.parquet", "report.html"),
    *("figures/controls.png", "figures/score.png", "figures/selectivity.png"),
}


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("heads", [True, False])
def test_frames_come_back_as_they_went(tmp_path, heads):
    result = probing(heads=heads)
    out = result.save(tmp_path / "deep" / "r", command="interp probe")
    assert files_in(out) == FILES | {"manifest.json"}
    pd.testing.assert_frame_equal(pd.read_parquet(out / "probes.parquet"), result.cells)
    pd.testing.assert_frame_equal(pd.read_csv(out / "probes.csv"), result.cells)
    pd.testing.assert_frame_equal(pd.read_parquet(out / "words.parquet"), result.words)
    pd.testing.assert_frame_equal(pd.read_parquet(out / "examples.parquet"), result.examples)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["format"], manifest["command"]) == ("interp probes report", "interp probe")
    assert set(manifest["files"]) == FILES
    assert manifest["provenance"]["description_uniform"] == 240.0
    assert all(path.stat().st_size > 5_000 for path in (out / "figures").iterdir())


def test_a_result_saves_itself(tmp_path):
    out = probing().save(tmp_path / "r")
    assert files_in(out) == FILES | {"manifest.json"}
    assert "<h1>Probes: number in z</h1>" in (out / "report.html").read_text(encoding="utf-8")


def test_it_replaces_an_older_report_of_another_kind_and_nothing_else(make_report, tmp_path):
    out = tmp_path / "r"
    make_report(tasks=("agreement",)).save(out)
    probing().save(out)
    assert not (out / "heads.csv").exists()
    probing({(0, 0): "none"}, shape=(1, 1)).save(out)
    assert not (out / "figures" / "score.png").exists()
    (out / "thesis.tex").write_text("")
    with pytest.raises(OutputError, match=r"got one with other files \(thesis.tex\)"):
        probing().save(out)


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_a_failure_leaves_an_older_report_as_it_was(tmp_path, monkeypatch, error):
    out = probing().save(tmp_path / "r", command="older")

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(folder_module, "write_manifest", fail)
    with pytest.raises(type(error)):
        probing().save(tmp_path / "r", command="newer")
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["command"] == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
