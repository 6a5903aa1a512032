"""Every page on a telephone and on a desk: nothing sticks out of it, and all of it can be read."""

from functools import cache

import pytest
from browser_scripts import CONTRASTS, assert_fits, unfold
from wide_pages import PAGES

SIZES = [(kind, width) for kind in PAGES for width in (360, 1280)] + [("heads", 390)]


@pytest.fixture(scope="module")
def page_of_kind(keep_html):
    return cache(lambda kind: keep_html(PAGES[kind]()))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("kind", "width"), SIZES)
def test_the_page_never_scrolls_sideways_and_can_be_read(page_of_kind, kind, width, scheme):
    page = page_of_kind(kind)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    unfold(page, False)
    assert_fits(page, width)
    unfold(page)
    assert_fits(page, width)
    assert min(page.evaluate(CONTRASTS)) >= 4.5
