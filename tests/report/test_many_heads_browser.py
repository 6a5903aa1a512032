"""Pages of as many heads as GPT-2 small and GPT-2 XL have, on five tasks."""

import pytest
from browser_scripts import BEYOND

from interp.report.heads import page_of
from interp.report.html import as_page

TASKS = ("agreement", "coreference", "reflexive", "ioi", "induction")
SIZES = {144: (12, 12), 1200: (48, 25)}


@pytest.fixture(scope="module", params=[144, pytest.param(1200, marks=pytest.mark.slow)])
def source(request, make_report):
    n_layers, n_heads = SIZES[request.param]
    source = as_page(page_of(make_report(n_layers=n_layers, n_heads=n_heads, tasks=TASKS)), "interp heads")
    assert request.param > 144 or len(source.encode()) < 3e6, "the page of GPT-2 small is small"
    return source


@pytest.mark.parametrize("width", [375, 1440])
def test_it_fits_opens_cards_filters_and_prints(open_html, source, width):
    page = open_html(source, width)
    assert page.evaluate(BEYOND) == []
    cells = page.locator("table.verdicts").first.locator("td.tracks")
    assert cells.count() > 0
    cells.last.click()
    assert "agreement: tracks" in page.locator("dialog[open]").inner_text()
    page.keyboard.press("Escape")
    page.locator("#tables ~ .tools").first.get_by_role("searchbox").fill("ioi tracks")
    assert page.evaluate(BEYOND) == []
    page.emulate_media(media="print")
    assert page.evaluate(BEYOND) == []
