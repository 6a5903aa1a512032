"""What the tests of pages share: synthetic dossiers, and pages that ask nobody."""

from collections.abc import Callable

import pytest
from synthetic_heads import synthetic_report

from interp.methods.dossier import HeadsReport


@pytest.fixture(scope="session")
def make_report() -> Callable[..., HeadsReport]:
    """The seeded maker of synthetic dossiers."""
    return synthetic_report


def _opening(browser, folder):
    contexts, opened, requested, complaints = [], [], [], []

    def open_it(source, width: int = 1280, scheme: str = "light"):
        file = folder / f"{len(opened)}.html"
        file.write_text(source, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requested.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.goto(file.as_uri())
        opened.append(file.as_uri())
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert {url for url in requested if not url.startswith("data:")} == set(opened)
    assert complaints == []


@pytest.fixture
def open_html(browser, tmp_path):
    """Opens pages by their source; in the end, asserts that they asked for no other file and logged no error."""
    yield from _opening(browser, tmp_path)


@pytest.fixture(scope="module")
def keep_html(browser, tmp_path_factory):
    """As ``open_html``, for pages that several tests of a module look at, each as another has left it."""
    yield from _opening(browser, tmp_path_factory.mktemp("pages"))
