"""The built pages: every link leads somewhere, and a browser that reads and searches them asks nobody else."""

import re

import pytest

import interp
from interp import plots

pytestmark = [pytest.mark.slow, pytest.mark.unchecked]

PAGES = ("index", "tutorial", "how-to/patch", "reference/methods", "reference/commands", "migration")
NARROW, WIDE = 375, 1440


def test_every_public_name_has_its_place(site):
    text = "".join(path.read_text() for path in (site / "reference").glob("*.html"))
    for name in interp.__all__:
        assert f'id="{getattr(interp, name).__module__}.{name}"' in text


def test_every_figure_has_its_place(site):
    text = (site / "reference" / "plots.html").read_text()
    for name in plots.__all__:
        assert f'id="interp.plots.{name}"' in text


def test_nothing_of_a_docstring_is_left_as_it_is_marked_up(site):
    for path in (site / "reference").glob("*.html"):
        shown = re.sub(r"<[^>]+>", "", path.read_text())
        assert not re.search(r"``|={5,}|::$|^\s*\|.*\|$", shown, re.MULTILINE), path.name


def test_every_command_is_there(site):
    text = (site / "reference" / "commands.html").read_text()
    for command in ("heads", "ablate", "runs resume", "model plan", "activations collect"):
        assert f"interp {command}</code>" in text
    assert "<!-- commands -->" not in text


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_read_from_the_disk_ask_nobody(site, browser, scheme, width):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    asked, failed = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    context.close()
    assert asked
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert not failed


def test_pages_on_the_disk_are_searched(site, browser):
    page = browser.new_page()
    page.goto((site / "index.html").as_uri())
    page.fill("input[name=query]", "positional mean")
    page.wait_for_selector(".md-search-result__link")
    assert page.locator(".md-search-result__link").count() > 1
