"""The page of a sweep as a browser shows it."""

import pytest
from browser_scripts import BEYOND, CONTRASTS
from synthetic_sweeps import sweep

from interp.report.html import as_page
from interp.report.sweep import page_of

TOKENS = [(pos, f"a rather long token number {pos}", 1.0) for pos in range(14)]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("sweep") / "report.html"
    axes = {"layer": range(4), "pos": range(14)}
    frames = sweep(axes, direction="denoise", tokens=TOKENS, complete=False, state={3: "unreachable", 4: "no-op"})
    file.write_text(as_page(page_of(frames), f"interp patch --out {'x' * 200}"), encoding="utf-8")
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_never_scrolls_sideways_and_can_be_read(open_file, page_file, width, scheme):
    page = open_file(page_file, width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BEYOND) == []
    assert min(page.evaluate(CONTRASTS)) >= 4.5


def test_cells_sort_by_their_numbers(open_file, page_file):
    page = open_file(page_file)
    heading = page.locator("table.sortable thead th", has_text="effect (logits)")
    heading.get_by_role("button").click()
    column = heading.evaluate("each => each.cellIndex")
    values = page.locator(f"table.sortable tbody td:nth-child({column + 1})").all_inner_texts()
    numbers = [float(value.split(" ")[0]) for value in values if value != "—"]
    assert len(numbers) == 4 * 14 - 2
    assert numbers == sorted(numbers)
