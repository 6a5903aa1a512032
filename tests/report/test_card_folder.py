"""The folder of a card, and its figures."""

import json

import pandas as pd
import pytest
from made_up_card import made_up_card, table

from interp.errors import OutputError
from interp.plots import card, card_paths
from interp.report import folder as folders

FRAMES = {"verdicts", "tasks", "shares", "halves", "replacements", "agreement", "positions", "feeds"}
FRAMES |= {"readers", "feature", "circuits", "groups", "left_out"}
FILES = {f"{name}.{kind}" for name in FRAMES for kind in ("csv", "parquet")} | {"examples.parquet", "report.html"}
FILES |= {"figures/shares.png", "figures/paths_agreement.png"}


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_frames_come_back_as_they_went(tmp_path):
    result = made_up_card()
    out = result.save(tmp_path / "deep" / "c", command="interp head 2.1")
    assert files_in(out) == FILES | {"manifest.json"}
    for name in ("replacements", "feeds", "shares"):
        expected = getattr(result, name)
        there = pd.read_csv(out / f"{name}.csv").astype(object).fillna("")
        pd.testing.assert_frame_equal(there, expected.astype(object).fillna(""), check_dtype=False)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["format"], manifest["command"]) == ("interp head card", "interp head 2.1")
    assert set(manifest["files"]) == FILES
    assert manifest["provenance"]["copying"] == 0.63


def test_in_a_folder_of_its_own_a_card_has_no_way_back(tmp_path):
    out = made_up_card(back="../report.html").save(tmp_path / "c")
    assert "../report.html" not in (out / "report.html").read_text(encoding="utf-8")


def test_a_report_of_another_kind_takes_its_place_whole(make_report, tmp_path):
    out = made_up_card().save(tmp_path / "c")
    make_report(tasks=("agreement",)).save(out)
    assert not (out / "feeds.csv").exists()
    made_up_card().save(out)
    assert files_in(out) == FILES | {"manifest.json"}


def test_foreign_files_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        made_up_card().save(tmp_path)


def test_a_failure_leaves_an_older_card_as_it_was(tmp_path, monkeypatch):
    out = made_up_card().save(tmp_path / "c", command="older")

    def fail(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(folders, "write_manifest", fail)
    with pytest.raises(KeyboardInterrupt):
        made_up_card().save(out, command="newer")
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["command"] == "older"


def test_shares_have_a_dot_a_kind_and_their_intervals():
    (ax,) = card(made_up_card()).axes
    dots = {line.get_label(): list(line.get_xdata()) for line in ax.get_lines()}
    assert dots["zero"] == [-0.8, 0.002]
    assert dots["positional mean"][0] == -0.02
    assert [label.get_text() for label in ax.get_yticklabels()] == ["agreement", "blimp:<script>alert(1)"]


def test_paths_stand_side_by_side_on_one_scale():
    left, right = card_paths(made_up_card(), "agreement").axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["embed → 2.1.v", "mlp.0 → 2.1.k", "1.0 → 2.1.q"]
    assert [label.get_text() for label in right.get_yticklabels()] == ["2.1 → logits"]
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim()


def test_paths_of_one_side_alone_are_drawn():
    assert len(card_paths(made_up_card(readers=table("readers")), "agreement").axes) == 2
