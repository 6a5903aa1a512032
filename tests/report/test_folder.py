import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from interp.errors import InputError, OutputError
from interp.report import folder as folder_module
from interp.report.folder import check_new_folder, check_output
from interp.report.heads_frames import HEAD_COLUMNS


def everything_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def _no_figures(_draws, folder: Path) -> None:
    folder.mkdir()
    (folder / "overview.png").write_bytes(b"")


@pytest.fixture
def without_figures(monkeypatch):
    """Saves without drawing, for the tests that are about the folder alone."""
    monkeypatch.setattr(folder_module, "write_pictures", _no_figures)


@pytest.fixture(scope="module")
def saved(make_report, tmp_path_factory) -> Path:
    return make_report().save(tmp_path_factory.mktemp("saved") / "deep" / "report", command="interp heads")


def test_frames_come_back_as_they_went(saved, make_report):
    report = make_report()
    heads = pd.read_parquet(saved / "heads.parquet")
    assert tuple(heads.columns[: len(HEAD_COLUMNS)]) == HEAD_COLUMNS
    pd.testing.assert_frame_equal(heads[report.cells.columns], report.cells)
    pd.testing.assert_frame_equal(pd.read_parquet(saved / "examples.parquet"), report.examples)
    written = pd.read_csv(saved / "heads.csv", keep_default_na=True)
    pd.testing.assert_series_equal(written["effect"], report.cells["effect"])
    assert written["attention"].isna().equals(report.cells["attention"].isna())


def test_manifest_names_every_file_with_its_hash(saved, make_report):
    manifest = json.loads((saved / "manifest.json").read_text(encoding="utf-8"))
    files = {path.relative_to(saved).as_posix(): path for path in saved.rglob("*") if path.is_file()}
    assert manifest["format"] == "interp heads report"
    assert manifest["command"] == "interp heads"
    assert set(manifest["files"]) == set(files) - {"manifest.json"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256(files[name].read_bytes()).hexdigest() == digest
    assert manifest["provenance"]["tasks"] == make_report().provenance["tasks"]
    assert manifest["provenance"]["unknown"] is None


def test_every_task_has_its_figures(saved):
    figures = {path.name for path in (saved / "figures").iterdir()}
    names = ("agreement", "coreference", "na-ve_accord")
    of_all = {f"{kind}_{name}.png" for kind in ("attention", "effect") for name in names}
    assert figures == of_all | {"overview.png", "probe_agreement.png"}  # the one task that was probed
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (saved / "figures").iterdir())


def test_nothing_lies_beside_the_report(saved):
    assert [path.name for path in saved.parent.iterdir()] == ["report"]


def test_an_older_report_is_replaced_whole(make_report, tmp_path):
    out = tmp_path / "report"
    make_report(tasks=("agreement", "ioi")).save(out)
    make_report(tasks=("agreement",)).save(out)
    assert not list(out.glob("figures/*ioi*"))
    assert everything_in(tmp_path) == {"report", *(f"report/{name}" for name in everything_in(out))}


def test_the_same_report_gives_the_same_bytes(make_report, tmp_path):
    report = make_report(tasks=("agreement",))
    manifests = [report.save(tmp_path / name) / "manifest.json" for name in ("one", "two")]
    assert manifests[0].read_bytes() == manifests[1].read_bytes()


@pytest.mark.usefixtures("without_figures")
def test_an_empty_folder_is_taken(make_report, tmp_path):
    make_report(tasks=("agreement",)).save(tmp_path)
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("older", [True, False])
@pytest.mark.usefixtures("without_figures")
def test_a_failure_leaves_everything_as_it_was(make_report, tmp_path, monkeypatch, error, older):
    out = tmp_path / "new" / "parent" / "report"
    report = make_report(tasks=("agreement",))
    if older:
        report.save(out, command="older")
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in everything_in(tmp_path)}

    def fail(*_args: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(folder_module, "write_manifest", fail)
    with pytest.raises(OutputError if isinstance(error, OSError) else type(error)):
        report.save(out)
    after = {name: (tmp_path / name).stat().st_mtime_ns for name in everything_in(tmp_path)}
    # The parent's own time stamp moves when the draft comes and goes.
    before.pop("new/parent", None)
    after.pop("new/parent", None)
    assert after == before


@pytest.mark.usefixtures("without_figures")
def test_an_interrupted_exchange_brings_the_older_report_back(make_report, tmp_path, monkeypatch):
    report = make_report(tasks=("agreement",))
    out = report.save(tmp_path / "report", command="older")
    rename = folder_module.os.replace
    renamed = []

    def interrupt_the_second(source: Path, target: Path) -> None:
        renamed.append(target)
        if len(renamed) == 2:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(folder_module.os, "replace", interrupt_the_second)
    with pytest.raises(KeyboardInterrupt):
        report.save(out, command="newer")
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["command"] == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_frames_that_cannot_be_drawn_write_nothing(make_report, tmp_path):
    report = make_report()
    with pytest.raises(InputError):
        replace(report, cells=report.cells.drop(columns="verdict")).save(tmp_path / "report")
    assert everything_in(tmp_path) == set()


def test_a_foreign_folder_is_refused_and_untouched(make_report, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match=r"thesis\.tex.*name another"):
        make_report().save(tmp_path)
    assert everything_in(tmp_path) == {"thesis.tex"}


@pytest.mark.parametrize(
    "manifest",
    [
        '{"format": "something else"}',
        '{"format": "interp heads report", "files": 5}',
        '{"format": "interp heads report", "files": null}',
        "[]",
        "not json",
        "\udcff",
    ],
)
def test_a_foreign_manifest_does_not_make_a_folder_ours(tmp_path, manifest):
    (tmp_path / "manifest.json").write_bytes(manifest.encode("utf-8", "surrogateescape"))
    with pytest.raises(OutputError, match="got one with other files"):
        check_output(tmp_path)


@pytest.mark.usefixtures("without_figures")
def test_a_report_with_files_of_others_in_it_is_refused(make_report, tmp_path):
    out = make_report(tasks=("agreement",)).save(tmp_path / "report")
    (out / "figures" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"figures/notes\.txt"):
        check_output(out)


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="expected a folder, got a file"):
        check_output(tmp_path / "file")
    with pytest.raises(OutputError, match="expected a place that can be written"):
        check_output(tmp_path / "file" / "below")


def test_a_place_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(*_args: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.mkdir", refuse)
    with pytest.raises(OutputError, match="Permission denied"):
        check_output(tmp_path / "report")


@pytest.mark.usefixtures("without_figures")
def test_a_new_folder_is_not_even_an_older_report(make_report, tmp_path):
    assert check_new_folder(tmp_path) == tmp_path
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="expected a folder, got a file"):
        check_new_folder(tmp_path / "file")
    out = make_report(tasks=("agreement",)).save(tmp_path / "report")
    with pytest.raises(OutputError, match="expected a new or empty folder, got one with files"):
        check_new_folder(out)


def test_checking_leaves_no_trace(tmp_path):
    assert check_output(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert everything_in(tmp_path) == set()


@pytest.mark.parametrize("link", [True, False])
def test_links_and_empty_folders_are_somebodys_too(tmp_path, link):
    out = tmp_path / "out"
    out.mkdir()
    if link:
        (tmp_path / "precious").mkdir()
        (out / "data").symlink_to(tmp_path / "precious")
    else:
        (out / "data" / "raw").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"got one with other files \(data"):
        check_output(out)


@pytest.mark.usefixtures("without_figures")
def test_a_link_in_the_place_of_a_reports_file_is_refused(make_report, tmp_path):
    out = make_report(tasks=("agreement",)).save(tmp_path / "report")
    (out / "heads.csv").rename(tmp_path / "elsewhere.csv")
    (out / "heads.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(OutputError, match=r"heads\.csv"):
        check_output(out)


@pytest.mark.parametrize("out", [".", "", "../here"])
def test_the_current_folder_is_not_replaced(tmp_path, monkeypatch, out):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(OutputError, match=r"got the current folder; name one inside it, such as .*report$"):
        check_output(out)
    assert check_output("report") == tmp_path / "here" / "report"
    with pytest.raises(OutputError, match="got a folder around the current one; name one inside it"):
        check_output(tmp_path)
    assert check_new_folder(out) == tmp_path / "here"  # what is written into it does not replace it


def test_nor_is_a_mounted_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "is_mount", lambda _self: True)
    with pytest.raises(OutputError, match="got the root of a mounted disk; name one inside it"):
        check_output(tmp_path)


def test_a_folder_of_nobody(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_output("~nobody-of-this-name/r") == tmp_path / "~nobody-of-this-name" / "r"


@pytest.mark.parametrize("name", ["lat\udce4", "nul\0", "circle/a"])
def test_a_name_that_cannot_be_written_down_is_refused(tmp_path, name):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(OutputError, match="output folder: expected a place that can be named, got"):
        check_output(tmp_path / name)
