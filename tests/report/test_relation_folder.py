"""The folder of heads against relations."""

import json

import pandas as pd
import pytest
from synthetic_relations import TO_HEAD, maps_of, scoring

from interp.errors import OutputError

FILES = {
    *("relations.csv", "relations.parquet", "heads.csv", "heads.parquet", "examples.parquet", "report.html"),
    *("figures/relations.png", "figures/baselines.png"),
}

MAPS = {"attention_maps.csv", "attention_maps.parquet"}


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_frames_come_back_as_they_went(tmp_path):
    result = scoring(too_long={"d: s": 300})
    maps = maps_of(result)
    out = result.save(tmp_path / "deep" / "r", maps, command="interp attend")
    assert files_in(out) == FILES | MAPS | {"manifest.json"}
    pd.testing.assert_frame_equal(pd.read_parquet(out / "heads.parquet"), result.summary())
    pd.testing.assert_frame_equal(pd.read_csv(out / "relations.csv"), result.relations)
    pd.testing.assert_frame_equal(pd.read_parquet(out / "attention_maps.parquet"), maps)
    assert len(pd.read_csv(out / "heads.csv")) == len(result.summary())
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["format"], manifest["command"]) == ("interp relations report", "interp attend")
    assert set(manifest["files"]) == FILES | MAPS
    assert manifest["provenance"]["too_long"] == {"d: s": 300}
    assert all(path.stat().st_size > 5_000 for path in (out / "figures").iterdir())


def test_it_can_be_saved_without_examples_and_where_nothing_was_scored(tmp_path):
    out = scoring({("det", TO_HEAD): "not testable"}).save(tmp_path / "r")
    assert files_in(out) == FILES | {"manifest.json"}
    assert 'id="heatmap"' not in (out / "report.html").read_text(encoding="utf-8")


def test_it_replaces_an_older_report_of_another_kind_and_nothing_else(make_report, tmp_path):
    out = tmp_path / "r"
    make_report(tasks=("agreement",)).save(out)
    scoring().save(out)
    assert not (out / "groups.csv").exists()
    (out / "thesis.tex").write_text("")
    with pytest.raises(OutputError, match=r"got one with other files \(thesis.tex\)"):
        scoring().save(out)


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_a_failure_leaves_an_older_report_as_it_was(tmp_path, monkeypatch, error):
    out = scoring().save(tmp_path / "r", command="older")

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr("interp.report.folder.write_manifest", fail)
    with pytest.raises(type(error)):
        scoring().save(out, command="newer")
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["command"] == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
