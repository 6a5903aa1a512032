"""The page as a browser shows it: Debian's chromium, driven by playwright, without a network."""

from functools import cache

import pytest
from browser_scripts import CONTRASTS
from wide_pages import PAGES


@pytest.fixture(scope="module")
def kept_page(keep_html):
    """For tests that change nothing that another one looks at."""
    return cache(lambda width=1280, scheme="light": keep_html(PAGES["heads"](), width, scheme))


@pytest.fixture
def open_page(open_html):
    return lambda width=1280, scheme="light": open_html(PAGES["heads"](), width, scheme)


def test_wide_tables_scroll_in_their_own_box(kept_page):
    page = kept_page(390)
    widths = page.evaluate(
        "() => { const box = document.querySelector('.sortable').parentElement;"
        "return [box.scrollWidth, box.clientWidth, getComputedStyle(box).overflowX]; }"
    )
    assert widths[0] > widths[1]
    assert widths[2] == "auto"


def test_a_table_says_that_it_scrolls_until_it_has_been(open_page):
    page = open_page(390)
    box = page.locator(".scroll", has=page.locator(".sortable")).first
    cue = "each => getComputedStyle(each.querySelector('caption'), '::after').content"
    faded = "each => getComputedStyle(each).maskImage !== 'none'"
    page.wait_for_selector(".scroll.wider .sortable")
    assert "Scroll sideways" in box.evaluate(cue)
    assert box.evaluate(faded)
    box.evaluate("each => { each.scrollLeft = each.scrollWidth; }")
    page.wait_for_selector(".scroll.end .sortable")
    assert "Scroll sideways" not in box.evaluate(cue)
    assert not box.evaluate(faded)
    wide = open_page(1280)
    assert wide.locator(".scroll", has=wide.locator(".verdicts")).first.evaluate(cue) == "none"


def test_the_head_stays_in_sight_when_a_table_scrolls(kept_page):
    page = kept_page(390)
    for table in (".sortable", ".heat"):
        box = page.locator(".scroll", has=page.locator(table)).first
        box.evaluate("each => { each.scrollLeft = 200; }")
        assert box.evaluate("each => each.scrollLeft") == 200
        left = "each => each.querySelector('tbody th').getBoundingClientRect().left - each.getBoundingClientRect().left"
        assert abs(box.evaluate(left)) < 1


def test_long_hashes_wrap(kept_page):
    page = kept_page(360)
    page.locator("summary", has_text="Provenance").click()
    cell = page.locator(".provenance td", has_text="0123456789abcdef").first
    assert cell.evaluate("each => each.getBoundingClientRect().right <= innerWidth")
    assert cell.evaluate("each => each.getBoundingClientRect().height > 30")


def test_what_is_folded_away_is_printed(open_page):
    page = open_page()
    assert page.locator("details[open]").count() == 0
    page.pdf()
    assert page.locator("details:not([open])").count() == 0


def test_a_token_that_is_markup_is_seen_as_text(kept_page):
    page = kept_page()
    assert page.locator(".token", has_text="<script>alert(1)</script>").first.is_visible()
    assert page.locator("script:not([type])").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_colour_scheme_and_can_be_read(kept_page, scheme):
    page = kept_page(scheme=scheme)
    ratios = page.evaluate(CONTRASTS)
    assert min(ratios) >= 4.5
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    assert dark == (scheme == "dark")


def test_a_click_sorts_and_a_second_click_turns_round(open_page):
    page = open_page()
    heading = page.locator("table[data-rows]").locator("th", has_text="attention, adjusted p")
    column = heading.evaluate("each => each.cellIndex")

    def values() -> list[str]:
        return page.locator("table[data-rows]").locator(f"tbody td:nth-child({column + 1})").all_inner_texts()

    def measured(texts: list[str]) -> list[float]:
        return [float(text) for text in texts if text != "—"]

    before = values()
    assert "—" in before
    assert measured(before) != sorted(measured(before))
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert measured(values()) == sorted(measured(before))
    assert values()[-1] == "—"
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert measured(values()) == sorted(measured(before), reverse=True)
    assert values()[-1] == "—"
    assert sorted(values()) == sorted(before)


def test_text_sorts_as_text(kept_page):
    table = kept_page().locator("table[data-rows]")
    table.locator("th", has_text="verdict").get_by_role("button").click()
    column = table.locator("th", has_text="verdict").evaluate("each => each.cellIndex")
    verdicts = table.locator(f"tbody td:nth-child({column + 1})").all_inner_texts()
    assert verdicts == sorted(verdicts)


def test_it_prints_light_and_unclipped(open_page):
    page = open_page(scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.tall')).maxHeight") == "none"
