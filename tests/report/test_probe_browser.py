"""The page of probes as a browser shows it; no error, no network (``open_file`` sees to it)."""

import numpy as np
import pytest
from browser_scripts import BEYOND, CONTRASTS
from synthetic_probes import HOSTILE, probing, with_cell

from interp.report.html import as_page
from interp.report.probes import page_of


@pytest.fixture(scope="module", params=["heads", "layers"])
def page_file(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("probes") / "report.html"
    heads = request.param == "heads"
    verdicts = {(layer, 3): "encodes" for layer in range(4)} | {(layer, 5): "undecided" for layer in range(4)}
    result = probing(verdicts if heads else None, shape=(6, 14), heads=heads, feature=f"feats:{'x' * 60}")
    # Every box, a gap, and the strongest colours.
    result = with_cell(with_cell(result, None, embedding=0.96, selectivity_low=-0.1), None, permuted=np.nan)
    result = with_cell(result, 3, score=1.0, selectivity=0.5)
    file.write_text(as_page(page_of(result), f"interp probe --out {'x' * 200}"), encoding="utf-8")
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_never_scrolls_sideways_and_can_be_read(open_file, page_file, width, scheme):
    page = open_file(page_file, width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BEYOND) == []
    assert min(page.evaluate(CONTRASTS)) >= 4.5


def test_wide_heatmaps_scroll_in_their_own_box_with_their_headings_in_sight(open_file, page_file):
    page = open_file(page_file, 360)
    box = page.locator("section:has(#controls) .scroll")
    box.evaluate("each => { each.scrollLeft = 200; }")
    assert box.evaluate("each => each.scrollLeft") == 200
    side = "each => each.querySelector('tbody th').getBoundingClientRect().left - each.getBoundingClientRect().left"
    assert abs(box.evaluate(side)) < 1


def test_warnings_are_boxes_and_labels_are_seen_as_text(open_file, page_file):
    page = open_file(page_file)
    boxes = page.locator(".partial")
    assert boxes.count() == 2
    assert boxes.first.evaluate("each => getComputedStyle(each).borderLeftWidth") == "4px"
    assert page.locator("dd", has_text=HOSTILE).first.is_visible()
    assert page.locator("script").count() == 1


def test_cells_sort_by_their_score(open_file, page_file):
    page = open_file(page_file)
    table = page.locator("table.sortable").first
    heading = table.locator("thead th", has=page.get_by_text("score", exact=True))
    heading.get_by_role("button").click()
    column = heading.evaluate("each => each.cellIndex")
    keys = table.locator(f"tbody td:nth-child({column + 1})").evaluate_all("all => all.map(each => each.dataset.key)")
    values = list(map(float, keys))
    assert values == sorted(values)
    assert len(set(values)) > 5
