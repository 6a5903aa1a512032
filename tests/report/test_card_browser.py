"""The page of a card as a browser shows it."""

import pytest
from browser_scripts import BEYOND, CONTRASTS
from made_up_card import made_up_card

from interp.report.html import as_page
from interp.report.sections import page_of


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("card") / "report.html"
    file.write_text(as_page(page_of(made_up_card()), f"interp head 2.1 --out {'x' * 200}"), encoding="utf-8")
    return file


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_page_never_scrolls_sideways_and_can_be_read(open_file, page_file, width, scheme):
    page = open_file(page_file, width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BEYOND) == []
    assert min(page.evaluate(CONTRASTS)) >= 4.5
