"""The page of heads against relations as a browser shows it; no error, no network (``open_html`` sees to it)."""

from dataclasses import replace

import pytest
from synthetic_relations import HOSTILE, maps_of, scoring
from wide_pages import PAGES

from interp.report.html import as_page
from interp.report.sections import page_of


@pytest.fixture
def page(open_html):
    return open_html(PAGES["attend"]())


def test_the_heatmap_scrolls_in_its_own_box_with_its_headings_in_sight(open_html):
    page = open_html(as_page(page_of(scoring(shape=(40, 12)))), 360)
    box = page.locator(".scroll", has=page.locator(".heat")).first
    box.evaluate("each => { each.scrollLeft = 200; each.scrollTop = 300; }")
    assert box.evaluate("each => each.scrollLeft") == 200
    side = "(each, side) => each.querySelector('{}').getBoundingClientRect()[side] - each.getBoundingClientRect()[side]"
    assert abs(box.evaluate(side.format("tbody th"), "left")) < 1
    assert abs(box.evaluate(side.format("thead th"), "top")) < 1


def test_words_of_the_corpus_are_seen_as_text(page):
    assert page.locator(".token", has_text=HOSTILE).first.is_visible()
    assert page.locator("script:not([type])").count() == 1


def test_heads_sort_by_their_excess(page):
    table = page.locator("table.sortable").nth(2)
    heading = table.locator("thead th", has=page.get_by_text("excess, points", exact=True))
    heading.get_by_role("button").click()
    column = heading.evaluate("each => each.cellIndex")
    values = [
        float(each.split(" [")[0]) for each in table.locator(f"tbody td:nth-child({column + 1})").all_inner_texts()
    ]
    assert values == sorted(values)
    assert len(set(values)) > 5


@pytest.fixture
def figure(open_html):
    result = scoring(causal=True)
    words = ("The", *(f"word{number}" for number in range(40)), "barked")
    page = open_html(as_page(page_of(replace(result, maps=maps_of(result, tokens=words)))), 500)
    return page.locator("[data-attention]")


def test_arcs_go_from_the_word_that_looks_to_those_that_it_looks_at(figure):
    assert figure.locator("h4").inner_text() == "Head 0.1 attends"
    widths = figure.locator("path").evaluate_all("all => all.map(each => Number(each.getAttribute('stroke-width')))")
    assert len(widths) == 41
    assert widths[2] == 1 + 7 * 0.5 == max(widths)
    assert figure.locator("path title").nth(2).text_content() == "0.50"
    assert figure.locator("[aria-pressed=true] .token").inner_text() == "barked"
    assert figure.locator(".related").all_inner_texts() == ["word1"]


def test_of_a_long_sentence_the_word_that_looks_is_in_sight(figure):
    edge = figure.locator(".scroll").evaluate("each => each.getBoundingClientRect().right")
    word = figure.locator("[aria-pressed=true]").bounding_box()
    assert word["x"] > 0
    assert word["x"] + word["width"] <= edge


def test_the_other_sentence_can_be_chosen_and_says_whether_the_head_is_right(figure):
    note = figure.locator("p.note")
    assert note.inner_text() == "d0-1 — right here"
    figure.locator("select").select_option(index=1)
    assert note.inner_text() == "d1-1 — right here"
