"""The page of probes as a browser shows it; no error, no network (``open_html`` sees to it)."""

import pytest
from synthetic_probes import HOSTILE
from wide_pages import PAGES


@pytest.fixture(params=["probe", "probe of layers"])
def source(request):
    return PAGES[request.param]()


def test_wide_heatmaps_scroll_in_their_own_box_with_their_headings_in_sight(open_html, source):
    page = open_html(source, 360)
    box = page.locator("section:has(#controls) .scroll")
    box.evaluate("each => { each.scrollLeft = 200; }")
    assert box.evaluate("each => each.scrollLeft") == 200
    side = "each => each.querySelector('tbody th').getBoundingClientRect().left - each.getBoundingClientRect().left"
    assert abs(box.evaluate(side)) < 1


def test_warnings_are_boxes_and_labels_are_seen_as_text(open_html, source):
    page = open_html(source)
    boxes = page.locator(".partial")
    assert boxes.count() == 2
    assert boxes.first.evaluate("each => getComputedStyle(each).borderLeftWidth") == "4px"
    assert page.locator("dd", has_text=HOSTILE).first.is_visible()
    assert page.locator("script").count() == 1


def test_cells_sort_by_their_score(open_html, source):
    page = open_html(source)
    table = page.locator("table.sortable").first
    heading = table.locator("thead th", has=page.get_by_text("score, %", exact=True))
    heading.get_by_role("button").click()
    column = heading.evaluate("each => each.cellIndex")
    keys = table.locator(f"tbody td:nth-child({column + 1})").evaluate_all("all => all.map(each => each.dataset.key)")
    values = list(map(float, keys))
    assert values == sorted(values)
    assert len(set(values)) > 5
