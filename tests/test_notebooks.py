"""Notebooks: what somebody finds who reads them, and that a run from top to bottom gives it again.

``notebook_claims.toml`` lists what holds at a notebook's end. Solutions of exercises are run there, too.
``jupyter execute --inplace notebooks/NAME.ipynb`` stores a notebook anew.
"""

import json
import re
import tomllib
from html import unescape
from pathlib import Path

import nbformat
import pytest
from markdown_pages import FENCE, OUTPUT, agrees, anchors
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
CLAIMS = tomllib.loads((NOTEBOOKS.parent / "tests" / "notebook_claims.toml").read_text())
QUICK = {"01_the_residual_stream"}
"""The one that takes the least; the others run in the same way with the slow tests."""
LARGEST = 1_000_000  # bytes: figures are small, and nobody's page waits for them
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|Users|root|tmp|work|mnt|opt|usr|var)/|\b[A-Z]:\\")
LINK = re.compile(r"\]\(([^)\s]+)[^)]*\)")
PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]+")


@pytest.fixture(params=sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def notebook(request):
    return request.param, json.loads(request.param.read_text(encoding="utf-8"))


def cells(notebook, kind):
    return [cell for cell in notebook[1]["cells"] if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def outputs(notebook):
    return [output for cell in cells(notebook, "code") for output in cell["outputs"]]


def bundles(notebook):
    return [output["data"] for output in outputs(notebook) if "data" in output]


def texts(notebook):
    """All that outputs say, without their pictures."""
    streams = ["".join(output["text"]) for output in outputs(notebook) if output["output_type"] == "stream"]
    shown = ["".join(text) for data in bundles(notebook) for kind, text in data.items() if kind.startswith("text/")]
    return [PICTURE.sub("", text) for text in (*streams, *shown)]


def test_it_was_run_from_top_to_bottom_and_is_stored_so(notebook):
    counts = [cell["execution_count"] for cell in cells(notebook, "code")]
    assert counts == list(range(1, len(counts) + 1))
    assert outputs(notebook)


def test_nothing_failed_or_warned(notebook):
    assert [output["output_type"] for output in outputs(notebook)].count("error") == 0
    said = ["".join(output["text"]) for output in outputs(notebook) if output.get("name") == "stderr"]
    assert said == []


def test_it_opens_with_a_title_and_a_question(notebook):
    first = source(notebook[1]["cells"][0])
    assert notebook[1]["cells"][0]["cell_type"] == "markdown"
    assert first.startswith("# ")
    assert "?" in first


def test_it_shows_a_figure(notebook):
    pictures = [data for data in bundles(notebook) if "image/png" in data]
    inside = [data for data in bundles(notebook) if "data:image/png" in "".join(data.get("text/html", ""))]
    assert pictures or inside


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in CLAIMS])
def test_a_run_gives_what_is_stored_and_what_it_claims(name):
    stored = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    run = nbformat.from_dict(stored)
    asked = solutions(stored)
    run.cells += [new_code_cell(code) for code, _ in asked]
    run.cells += [new_code_cell(f"assert {claim}") for claim in CLAIMS[name]]
    NotebookClient(run, resources={"metadata": {"path": NOTEBOOKS}}).execute()
    for before, after in zip(stored.cells, run.cells, strict=False):
        if before.cell_type == "code" and "varies" not in before.metadata.get("tags", ()):
            assert said(before) == said(after) or agrees(said(before), said(after)), (
                f"{before.source}\n\nprints\n{said(after)}"
            )
    answers = run.cells[len(stored.cells) :]
    assert [each for (_, each), cell in zip(asked, answers, strict=False) if not agrees(each, said(cell))] == []


def solutions(notebook):
    """The code of an exercise's folded solution, and what it prints."""
    folded = [cell.source for cell in notebook.cells if "<details>" in cell.source]
    assert folded, "a notebook has an exercise with a solution"
    return [(code["code"], OUTPUT.match(text, code.end())["text"]) for text in folded for code in FENCE.finditer(text)
            if code["language"] == "python"]  # fmt: skip


def said(cell):
    """What a cell prints or shows in words."""
    shown = [each.get("text") or each.data.get("text/html") or each.data.get("text/plain", "") for each in cell.outputs]
    plain = re.sub(
        r"<style.*?</style>|<[^>]+>|<Figure.*?>|Made with model.*",
        " ",
        PICTURE.sub("", "\n".join(shown)),
        flags=re.DOTALL,
    )
    return " ".join(unescape(plain).split())


def test_it_is_read_and_not_asserted(notebook):
    assert not [each for cell in cells(notebook, "code") if re.search(r"^\s*assert ", each := source(cell), re.M)]


def test_its_links_lead_somewhere(notebook):
    links = [link for cell in cells(notebook, "markdown") for link in LINK.findall(source(cell))]
    inside = [link for link in links if not link.startswith(("http://", "https://"))]
    assert inside, "expected a last cell with links to what to read next"
    for page, _, anchor in (link.partition("#") for link in inside):
        assert (NOTEBOOKS / page).exists(), page
        assert not anchor or anchor in anchors((NOTEBOOKS / page).read_text()), anchor


def test_it_names_no_path_of_the_machine_that_ran_it(notebook):
    assert [found[0] for text in texts(notebook) if (found := MACHINE_PATH.search(text))] == []


def test_it_is_small_and_runs_anywhere(notebook):
    assert notebook[0].stat().st_size < LARGEST
    assert notebook[1]["metadata"]["kernelspec"]["name"] == "python3"
