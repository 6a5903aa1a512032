"""Every page on a telephone and on a desk: nothing sticks out of it, and all of it can be read."""

import pytest
from browser_scripts import CONTRASTS, assert_fits, unfold
from wide_pages import PAGES

SIZES = [(kind, width) for kind in PAGES for width in (360, 1280)] + [("heads", 390)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("kind", "width"), SIZES)
def test_the_page_never_scrolls_sideways_and_can_be_read(open_html, kind, width, scheme):
    page = open_html(PAGES[kind](), width, scheme)
    assert_fits(page, width)
    unfold(page)
    assert_fits(page, width)
    assert min(page.evaluate(CONTRASTS)) >= 4.5
