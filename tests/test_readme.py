"""README keeps its word: what its code prints, its commands, its links, and its figures."""

import re
from pathlib import Path

import pytest
from markdown_pages import anchors, blocks, commands, parse_command, prints

from interp.report.heads_frames import VERDICTS

pytestmark = pytest.mark.unchecked

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TEXT = README.read_text()
PYTHON = list(blocks(README, "python"))
SLOW = (0, 2)
"""Blocks that take long; pages of the documentation ask for the same with less beside it."""
BENCHMARKED = re.compile(r"^\|.*\| `(?P<script>\w+\.py)(?P<options>[^`]*)` \|$", re.MULTILINE)


def results(mode, case):
    """The rows of a section of the benchmarks' results, as lists of cells."""
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    section = text.partition(f"## {mode}: {case}\n")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]


@pytest.mark.parametrize(
    "block", [pytest.param(each, id=f"{at}", marks=[pytest.mark.slow] * (at in SLOW)) for at, each in enumerate(PYTHON)]
)
def test_a_block_by_itself_prints_what_stands_under_it(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert block.prints
    prints(block, README, {"__name__": "__main__"})


def test_commands_are_those_of_the_command_line():
    given = [arguments for block in blocks(README, "sh") for arguments in commands(block)]
    assert len(given) >= 10
    for arguments in given:
        parse_command(arguments)


def test_what_it_links_to_is_there():
    links = re.findall(r"\]\((?!http)([^)]+)\)", TEXT)
    assert len(links) > 40
    assert not [link for link in links if not link.startswith("#") and not (ROOT / link).exists()]
    assert {link[1:] for link in links if link.startswith("#")} <= anchors(TEXT)


def test_scripts_that_it_names_are_there():
    scripts = re.findall(r"python (\S+\.py)", TEXT)
    scripts += [f"benchmarks/{row['script']}" for row in BENCHMARKED.finditer(TEXT)]
    assert len(scripts) > 5
    assert not [script for script in scripts if not (ROOT / script).is_file()]


def test_speeds_are_those_that_were_measured():
    rows = list(BENCHMARKED.finditer(TEXT))
    assert len(rows) > 5
    for row in rows:
        name, size, *times = [cell.strip() for cell in row[0].split("|")[1:-2]]
        mode = "Full, without oneDNN" if "--without-onednn" in row["options"] else "Full"
        case = re.search(r"--case (\w+)", row["options"])[1]
        shared = "0.5" if "half the tokens shared" in name else "0"
        measured = [each for each in results(mode, case) if each[1:4] == [*size.split(" x "), shared]]
        peers = {each[4]: each[6].split()[0] for each in measured}
        (ours,) = {each[7].split()[0] for each in measured}
        assert times == [peers["transformer_lens"], peers["transformers"], peers["nnsight"], ours], row[0]


def test_its_command_counts_what_it_says_of_a_peer(capsys):
    (program,) = re.findall(r'`python -c "([^"]+)"`', TEXT)
    exec(program, {})
    assert f"**{capsys.readouterr().out.strip()} architectures**" in TEXT


def test_every_verdict_is_in_its_table():
    table = TEXT.partition("## What a verdict means")[2].partition("\n\nAbsence is")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`([^`]+)`", " ".join(first))) == set(VERDICTS)
