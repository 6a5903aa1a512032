"""The folders of what judges cells: of probes, of heads against relations, of a sweep."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from synthetic_probes import probing
from synthetic_relations import TO_HEAD, maps_of, scoring
from synthetic_sweeps import screened, sweep

from interp.errors import OutputError
from interp.report.folder import save

ALWAYS = {"examples.parquet", "report.html"}
PROBES = ALWAYS | {"probes.csv", "probes.parquet", "words.csv", "words.parquet", "figures/controls.png"}
PROBES |= {"figures/score.png", "figures/selectivity.png"}
RELATIONS = ALWAYS | {"relations.csv", "relations.parquet", "heads.csv", "heads.parquet", "figures/relations.png"}
RELATIONS |= {"figures/baselines.png"}
MAPS = {"attention_maps.csv", "attention_maps.parquet"}
SWEEP = ALWAYS | {"cells.csv", "cells.parquet", "figures/strongest.png"}


def mapped(**how):
    result = scoring(**how)
    return replace(result, maps=maps_of(result))


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("result", "files", "kind", "known"),
    [
        (probing(), PROBES, "probes", {"description_uniform": 240.0}),
        (probing(heads=False), PROBES, "probes", {"description_uniform": 240.0}),
        (mapped(too_long={"d: s": 300}), RELATIONS | MAPS, "relations", {"too_long": {"d: s": 300}}),
        (scoring({("det", TO_HEAD): "not testable"}), RELATIONS, "relations", {}),
        (sweep(direction="denoise"), SWEEP | {"figures/heatmap.png"}, "sweep", {"task": "agreement"}),
        (sweep({"layer": range(3)}), SWEEP, "sweep", {}),
        (screened(), SWEEP | {"estimates.csv", "estimates.parquet", "figures/heatmap.png"}, "sweep", {}),
    ],
)
def test_a_folder_has_these_files_and_a_manifest(tmp_path, result, files, kind, known):
    out = save(result, tmp_path / "deep" / "r", command=f"interp {kind}")
    assert files_in(out) == files | {"manifest.json"}
    manifest = manifest_of(out)
    assert (manifest["format"], manifest["command"]) == (f"interp {kind} report", f"interp {kind}")
    assert set(manifest["files"]) == files
    assert known.items() <= manifest["provenance"].items()
    assert all(path.stat().st_size > 5_000 for path in (out / "figures").iterdir())


@pytest.mark.parametrize("heads", [True, False])
def test_frames_of_probes_come_back_as_they_went(tmp_path, heads):
    result = probing(heads=heads)
    out = result.save(tmp_path / "r")
    pd.testing.assert_frame_equal(pd.read_parquet(out / "probes.parquet"), result.cells)
    pd.testing.assert_frame_equal(pd.read_csv(out / "probes.csv"), result.cells)
    pd.testing.assert_frame_equal(pd.read_parquet(out / "words.parquet"), result.words)
    pd.testing.assert_frame_equal(pd.read_parquet(out / "examples.parquet"), result.examples)
    assert f"<h1>Probes: number in {result.provenance['site']}</h1>" in (out / "report.html").read_text(
        encoding="utf-8"
    )


def test_frames_of_relations_come_back_as_they_went(tmp_path):
    result = scoring(too_long={"d: s": 300})
    maps = maps_of(result)
    out = result.save(tmp_path / "r", maps)
    pd.testing.assert_frame_equal(pd.read_parquet(out / "heads.parquet"), result.summary())
    pd.testing.assert_frame_equal(pd.read_csv(out / "relations.csv"), result.relations)
    pd.testing.assert_frame_equal(pd.read_parquet(out / "attention_maps.parquet"), maps)
    assert len(pd.read_csv(out / "heads.csv")) == len(result.summary())


def test_frames_of_a_sweep_come_back_as_they_went(tmp_path):
    result = sweep(direction="denoise")
    out = save(result, tmp_path / "r")
    pd.testing.assert_frame_equal(pd.read_parquet(out / "cells.parquet").drop(columns="status"), result.cells)
    assert set(pd.read_csv(out / "cells.csv")["status"]) <= {"changed", "identical input", "unreachable", "no-op"}
    pd.testing.assert_frame_equal(pd.read_parquet(out / "examples.parquet"), result.examples)
    assert list(pd.read_csv(out / "cells.csv")["pos"]) == list(result.cells["pos"])
    assert manifest_of(out)["provenance"]["audit"]["rows"] == 8


def test_where_nothing_was_scored_there_is_no_heatmap(tmp_path):
    out = scoring({("det", TO_HEAD): "not testable"}).save(tmp_path / "r")
    assert 'id="heatmap"' not in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("make", [probing, *(pytest.param(each, marks=pytest.mark.slow) for each in (scoring, sweep))])
def test_it_replaces_an_older_report_of_another_kind_and_nothing_else(make_report, tmp_path, make):
    out = tmp_path / "r"
    own = files_in(save(make(), tmp_path / "own"))
    dossier = files_in(make_report(tasks=("agreement",)).save(out))
    save(make(), out)
    assert files_in(out) == own
    make_report(tasks=("agreement",)).save(out)
    assert files_in(out) == dossier
    save(probing({(0, 0): "none"}, shape=(1, 1)), out)
    assert not (out / "figures" / "score.png").exists()
    (out / "thesis.tex").write_text("")
    with pytest.raises(OutputError, match=r"got one with other files \(thesis.tex\)"):
        save(make(), out)


@pytest.mark.parametrize("error", [RuntimeError("broken"), pytest.param(KeyboardInterrupt(), marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [probing, scoring, sweep])
def test_a_failure_leaves_an_older_report_as_it_was(tmp_path, monkeypatch, make, error):
    out = save(make(), tmp_path / "r", command="older")

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr("interp.report.folder.write_manifest", fail)
    with pytest.raises(type(error)):
        save(make(), out, command="newer")
    assert manifest_of(out)["command"] == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
