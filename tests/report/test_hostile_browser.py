"""Hostile names and tokens in every page as a browser shows it: nothing runs, nothing is asked for, all is read."""

from dataclasses import replace

import pytest
from browser_scripts import assert_fits, unfold
from hostile import HOSTILE, ISOLATES, SAVED, TEXTS
from hostile_pages import PAGES, SEEN, card, patching
from synthetic_relations import maps_of, scoring

from interp.report.html import as_page
from interp.report.sections import page_of

HEBREW = "\u05e9\u05dc\u05d5\u05dd"
INTERACT = """() => {
  document.querySelectorAll('details').forEach(each => { each.open = true; });
  for (const each of document.querySelectorAll('body *'))
    for (const event of ['mouseover', 'focus', 'error', 'load']) each.dispatchEvent(new Event(event));
  document.querySelectorAll('th button').forEach(each => each.click());
}"""
PLACES = """([begin, end]) => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    const at = node.data.indexOf(begin), to = node.data.indexOf(end, at + begin.length);
    if (at < 0 || to < 0) continue;
    const place = (from, size) => {
      const range = document.createRange();
      range.setStart(node, from);
      range.setEnd(node, from + size);
      return range.getBoundingClientRect();
    };
    return [place(at, begin.length).right, place(to, end.length).left, place(to, end.length).right];
  }
}"""
"""Where the first text ends, and where the second, which follows it in the same line, begins and ends."""


@pytest.fixture(scope="module", params=list(PAGES))
def kept(request, keep_html):
    return keep_html(PAGES[request.param]())


@pytest.fixture
def page(kept):
    kept.set_viewport_size({"width": 1280, "height": 900})
    return kept


def as_read(page, script):
    return " ".join(page.evaluate(script).translate(ISOLATES).split())


def test_nothing_runs_and_nothing_is_asked_for(page):
    """``keep_html`` sees to the requests, dialogs and complaints."""
    page.evaluate(INTERACT)
    assert page.evaluate("window.ran") is None
    assert page.locator("script:not([type])").count() == page.locator("style").count() == 1
    assert (
        page.locator("main img:not([src^='data:']), svg:not(.arcs), iframe, base, form, body link, body meta").count()
        == 0
    )
    handlers = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on'))"
    assert page.evaluate(handlers) == []
    assert page.evaluate('document.querySelectorAll(\'a:not([href^="#"]):not([href^="cards/"])\').length') == 0


def test_every_text_is_read(page):
    shown = as_read(page, "document.body.textContent")
    assert [text for text in SEEN if " ".join(text.split()) not in shown] == []


@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_makes_the_page_wider(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    unfold(page)
    assert_fits(page, width)


def test_no_heading_of_a_table_hides_its_cells(page):
    """Headings stay in sight when a table is scrolled."""
    page.set_viewport_size({"width": 390, "height": 900})
    unfold(page)
    heights = page.evaluate("[...document.querySelectorAll('thead')].map(each => each.getBoundingClientRect().height)")
    assert heights
    assert max(heights) < 300
    wide = "[...document.querySelectorAll('.scroll tbody th')].filter(each => each.getBoundingClientRect().width > 350)"
    assert page.evaluate(f"{wide}.map(each => each.textContent.slice(0, 80))") == []
    columns = page.evaluate(
        "[...document.querySelectorAll('thead th')].map(each => each.getBoundingClientRect().width)"
    )
    assert max(columns) < 2500


def test_a_token_is_what_it_was(open_html):
    result = scoring()
    page = open_html(as_page(page_of(replace(result, maps=maps_of(result, tokens=SAVED)))))
    tokens = page.locator(".words").first.locator(".token").all_text_contents()
    assert [token.translate(ISOLATES) for token in tokens] == [HOSTILE[text] for text in SAVED]


def test_what_hovering_tells_holds_the_names(open_html):
    page = open_html(as_page(page_of(patching())))
    titles = page.evaluate("[...document.querySelectorAll('[title]')].map(each => each.title).join(' ')")
    assert [text for text in SAVED if HOSTILE[text] not in titles.translate(ISOLATES)] == []


@pytest.mark.parametrize("name", [HEBREW, f"{HEBREW} 12 {HEBREW}", f"\u202e{HEBREW}", "\u202eabc", "\u2067abc"])
def test_what_stands_beside_a_name_stays_where_it_is(open_html, name):
    """Digits behind letters that run to the left would go to their left."""
    page = open_html(as_page(page_of(card((name,)))))
    unfold(page)
    before, begins, ends = page.evaluate(PLACES, [name[-3:], "2.5"])
    assert before <= begins < ends


def test_what_slips_through_does_not_run(browser, tmp_path):
    """A page whose text was not escaped: its policy stops the script and the picture, and its own script still runs."""
    source = PAGES["probe"]()
    slipped = f"{TEXTS[0]}{TEXTS[5]}<img src='https://evil.example/a.png'>"
    file = tmp_path / "report.html"
    file.write_text(source.replace("<main>", f"<main>{slipped}"), encoding="utf-8")
    page = browser.new_page()
    sent, stopped = [], []
    page.on("request", lambda request: sent.append(request.url))
    page.on("requestfailed", lambda request: stopped.append((request.url, request.failure)))
    page.goto(file.as_uri())
    assert page.evaluate("window.ran") is None
    beyond = [url for url in sent if url != file.as_uri()]
    assert len(beyond) == 2
    assert stopped == [(url, "csp") for url in beyond]
    assert page.locator("table.sortable th button").count() > 5
    page.close()
