"""Every page, read with a keyboard or a screen reader: axe-core finds nothing."""

import pytest
from axe import violations
from hostile_pages import PAGES

from interp.report.heads import page_of
from interp.report.html import as_page

SIZES = [pytest.param(375, "dark", marks=pytest.mark.slow), (1440, "light")]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("kind", [kind for kind in PAGES if kind != "heads"])
def test_axe_finds_nothing_on_a_page(open_file, tmp_path, kind, width, scheme):
    file = tmp_path / "report.html"
    file.write_text(PAGES[kind](), encoding="utf-8")
    assert violations(open_file(file, width, scheme)) == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_axe_finds_nothing_on_a_card_and_with_everything_unfolded(open_file, make_report, tmp_path, width, scheme):
    file = tmp_path / "report.html"
    file.write_text(as_page(page_of(make_report(), {"1.3": "card"}), "interp heads"), encoding="utf-8")
    page = open_file(file, width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert violations(page) == []
    page.locator("td.tracks").first.click()
    assert violations(page) == []


def test_axe_would_find_something(open_file, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(PAGES["sweep"]().replace("<main>", "<main><p style='color: #ddd'>pale</p>"), encoding="utf-8")
    assert [each for each in violations(open_file(file)) if "color-contrast" in each]
