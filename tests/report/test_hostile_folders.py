"""Names that lead elsewhere, or that a picture cannot be made of: a report stays in its folder, and is whole."""

import json

import pytest
from hostile_pages import COMMAND, calibration, card, heads_report, patching, probes, relations

from interp.errors import InputError, OutputError
from interp.report.folder import MANIFEST

NAMES = ("../../../x", "$\\frac{1}{0$ \\x1b_^", "\x00\x1b[2J", "x" * 10_000, "/etc/x")


def save_heads(out):
    report = heads_report(NAMES)
    return report.save(out, command=COMMAND, cards={"0.1": "card"})


SAVERS = {
    "heads": save_heads,
    "head": lambda out: card(NAMES).save(out, command=COMMAND),
    "sweep": lambda out: patching(NAMES).save(out, command=COMMAND),
    "attend": lambda out: relations(NAMES).save(out, command=COMMAND),
    "probe": lambda out: probes(NAMES).save(out, command=COMMAND),
    "calibration": lambda out: calibration(NAMES).save(out, command=COMMAND),
}


@pytest.mark.filterwarnings("ignore:Glyph", "ignore:constrained_layout")
@pytest.mark.parametrize("kind", list(SAVERS))
def test_a_report_stays_in_its_folder_and_is_whole(tmp_path, kind):
    folder = SAVERS[kind](tmp_path / "a" / "b" / "report")
    assert [path for path in tmp_path.rglob("*") if path.is_file() and folder not in path.parents] == []
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    assert manifest["command"] == COMMAND
    assert NAMES[1] in manifest["provenance"].get("model", "") or kind != "attend"
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {*manifest["files"], MANIFEST}
    assert all(len(name) < 100 and name.isascii() and name.isprintable() for name in found)


@pytest.mark.parametrize("name", ["../x", "2.1/../../x", "/x", "2.1\n", "two", ""])
def test_a_card_that_is_no_heads_is_refused(make_report, tmp_path, name):
    with pytest.raises(InputError, match="expected the name of a head, such as"):
        make_report().save(tmp_path / "report", cards={name: "card"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("claimed", ["../thesis.tex", "figures/../../thesis.tex", "{tmp_path}/thesis.tex", "a\0b"])
def test_a_manifest_cannot_claim_what_lies_elsewhere(tmp_path, claimed):
    """What an older report's manifest claims is removed when a new one takes its place."""
    thesis, folder = tmp_path / "thesis.tex", tmp_path / "report"
    thesis.write_text("years of work")
    folder.mkdir()
    files = {claimed.format(tmp_path=tmp_path): "0"}
    (folder / MANIFEST).write_text(json.dumps({"format": "interp calibration report", "files": files}))
    with pytest.raises(OutputError, match=r"with other files \(manifest\.json\)"):
        calibration(NAMES).save(folder)
    assert thesis.read_text() == "years of work"


def test_a_link_in_a_calibration_is_not_written_through(tmp_path):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "report"
    elsewhere.mkdir()
    folder.mkdir()
    manifest = {"format": "interp calibration report", "files": {"figures": "0", "figures/a.png": "0"}}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    (folder / "figures").symlink_to(elsewhere)
    with pytest.raises(OutputError, match=r"with other files \(figures"):
        calibration(NAMES).save(folder)
    assert list(elsewhere.iterdir()) == []
