"""Every page, read with a keyboard or a screen reader: axe-core finds nothing."""

import pytest
from axe import violations
from browser_scripts import unfold
from hostile import SAVED
from hostile_pages import COMMAND, calibration, card, patching, probes, relations
from synthetic_sweeps import sweep

from interp.report.heads import page_of
from interp.report.html import as_page
from interp.report.sections import page_of as page_of_any

PAGES = {"head": card, "sweep": patching, "attend": relations, "probe": probes, "calibration": calibration}
SIZES = [pytest.param(375, "dark", marks=pytest.mark.slow), (1440, "light")]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("kind", PAGES)
def test_axe_finds_nothing_on_a_page(open_html, kind, width, scheme):
    source = as_page(page_of_any(PAGES[kind](SAVED[:8])), COMMAND)
    assert violations(open_html(source, width, scheme)) == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_axe_finds_nothing_on_a_card_and_with_everything_unfolded(open_html, make_report, width, scheme):
    page = open_html(
        as_page(page_of(make_report(tasks=("agreement", "coreference")), {"1.3": "card"}), "interp heads"),
        width,
        scheme,
    )
    unfold(page)
    assert violations(page) == []
    page.locator("td.tracks").first.click()
    assert violations(page) == []


def test_axe_would_find_something(open_html):
    pale = as_page(page_of_any(sweep())).replace("<main>", "<main><p style='color: #ddd'>pale</p>")
    assert [each for each in violations(open_html(pale)) if "color-contrast" in each]
