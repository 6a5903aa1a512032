"""What does somebody find who reads a notebook without running it? That it runs is for nbmake to say."""

import json
import re
from pathlib import Path

import pytest
from markdown_pages import anchors

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
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


def test_what_it_claims_is_asserted(notebook):
    assert any(re.search(r"^\s*assert ", source(cell), re.MULTILINE) for cell in cells(notebook, "code"))


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
