"""The buttons of the page as a whole: light or dark, and what is copied."""

import pytest

from interp.report.heads import page_of
from interp.report.html import as_page
from interp.report.words import citation

COMMAND = "interp heads --task agreement --out report"


@pytest.fixture(params=[COMMAND, None])
def command(request):
    return request.param


def opened(open_html, make_report, command, scheme="light"):
    return open_html(as_page(page_of(make_report(n_layers=2, tasks=("agreement",))), command), scheme=scheme)


@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_button_switches_between_light_and_dark(open_html, make_report, system):
    page = opened(open_html, make_report, COMMAND, system)
    colours = {"rgb(255, 255, 255)": "light", "rgb(21, 24, 28)": "dark"}

    def now():
        return colours[page.evaluate("getComputedStyle(document.body).backgroundColor")]

    button, seen = page.locator("[data-scheme]"), []
    for _ in range(4):
        seen.append((button.inner_text(), now()))
        button.click()
    system_again = ("Colours: system", system)
    assert seen == [system_again, ("Colours: dark", "dark"), ("Colours: light", "light"), system_again]


def test_the_command_and_the_citation_are_copied(open_html, make_report, command):
    page = opened(open_html, make_report, command)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("[data-copies]").click()
    page.get_by_text("Copied.").wait_for()
    expected = f"{command}\n\n{citation()}\n" if command else f"{citation()}\n"
    assert page.evaluate("navigator.clipboard.readText()") == expected


def test_without_the_clipboard_it_is_copied_the_old_way_or_said(open_html, make_report):
    page = opened(open_html, make_report, COMMAND)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.evaluate("document.execCommand = () => false")
    page.locator("[data-copies]").click()
    page.get_by_text("select the text above").wait_for()
