"""A head's card on the page: opened by mouse and key, read, and left again."""

import re
from dataclasses import replace

import pytest
from hostile_pages import PAGES

import interp
from interp.methods.attention_maps import SENTENCES, attention_maps
from interp.report.heads import page_of
from interp.report.html import as_page


@pytest.fixture(scope="module")
def report(make_report):
    return make_report(n_layers=4, n_heads=12)


@pytest.fixture(scope="module")
def source(report):
    return as_page(page_of(report, cards={"1.3": "card"}))


@pytest.fixture(scope="module")
def kept(keep_html, source):
    return keep_html(source)


@pytest.fixture
def fresh(open_html, source):
    return open_html(source)


@pytest.fixture
def page(kept):
    kept.evaluate("document.querySelector('dialog[open]')?.close()")
    return kept


def cell(page, layer, head, grid=0):
    return page.locator("table[data-task]").nth(grid).locator(f"tbody tr:nth-child({layer + 1}) td").nth(head)


def card(page):
    return page.locator("dialog[open]")


def test_a_click_opens_the_card_of_that_head(page):
    assert card(page).count() == 0
    cell(page, 1, 3).click()
    assert card(page).locator("h2").inner_text() == "Head 1.3"


def test_after_a_click_escape_leads_back_to_the_head_and_tab_still_leaves_the_grid(fresh):
    cell(fresh, 2, 5).click()
    fresh.keyboard.press("Escape")
    assert fresh.evaluate("document.activeElement.cellIndex") == 6
    fresh.keyboard.press("Tab")
    assert fresh.evaluate("document.activeElement.closest('[data-task]')") is None


@pytest.mark.parametrize("key", ["Enter", " "])
def test_a_key_opens_it_and_escape_leads_back_to_the_head(fresh, key):
    cell(fresh, 0, 0).focus()
    for arrow in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        fresh.keyboard.press(arrow)
    fresh.keyboard.press(key)
    assert card(fresh).locator("h2").inner_text() == "Head 1.3"
    fresh.keyboard.press("Escape")
    assert card(fresh).count() == 0
    assert fresh.evaluate("document.activeElement.parentElement.sectionRowIndex") == 1
    assert fresh.evaluate("document.activeElement.cellIndex") == 4


def test_one_tab_enters_a_grid_and_one_leaves_it(page):
    focusable = "each => [...each.querySelectorAll('td')].filter(td => td.tabIndex === 0).length"
    grid = page.locator("table[data-task]").first
    assert grid.evaluate(focusable) == 1
    cell(page, 0, 0).focus()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.cellIndex") == 12
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.cellIndex") == 12
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.cellIndex") == 1
    assert grid.evaluate(focusable) == 1


def test_it_says_what_was_measured_with_intervals(page, report):
    cell(page, 1, 3).click()
    (row,) = report.cells.query("layer == 1 and head == 3 and task == 'agreement'").to_dict("records")
    section = card(page).locator("section").first.inner_text()
    assert f"agreement: {row['verdict']}" in section
    effect = f"{row['effect']:.2f} [{row['effect_low']:.2f}, {row['effect_high']:.2f}] logits"
    assert effect in section
    assert f"{row['probe']:.2f} [{row['probe_low']:.2f}, {row['probe_high']:.2f}] right" in section
    mean = f"{row['mean_effect']:.2f} [{row['mean_effect_low']:.2f}, {row['mean_effect_high']:.2f}]"
    assert f"{effect} when resampled" in section
    assert f"{mean} with its positional mean\n" in section
    exchange = f"{row['exchange']:.2f} [{row['exchange_low']:.2f}, {row['exchange_high']:.2f}] logits"
    assert f"{exchange}, for this head alone" in section
    assert f"beyond offset -3: {row['attention']:.2f} to the subject, 0.12 there" in section


def test_a_place_is_explained_where_the_card_names_it(open_html, report):
    cells = report.cells.assign(
        baseline=report.cells["baseline"].mask(report.cells["task"] == "agreement", "position 9")
    )
    page = open_html(as_page(page_of(replace(report, cells=cells))))
    cell(page, 1, 3).click()
    explained = "“position 9” is a place in the prompt, counted from 0"
    first, second, *_ = card(page).locator("section").all_inner_texts()
    assert "beyond position 9" in first
    assert explained in first
    assert explained not in second


def test_the_card_of_an_induction_head_has_arcs_to_the_words_that_it_copies(open_html, make_report):
    """On every example sentence the widest arc leads from the scored word to what follows its earlier copy."""
    model, report = interp.load_model(), make_report(tasks=("induction",))
    task = interp.load_task("induction", n=12, tokenizer=model.tokenizer)
    verdicts = report.cells.assign(verdict="none")
    verdicts.loc[(verdicts["layer"] == 2) & (verdicts["head"] == 1), "verdict"] = "tracks"
    page = open_html(as_page(page_of(replace(report, attention_maps=attention_maps(model, [task], verdicts)))))
    cell(page, 2, 1).click()
    choice = card(page).locator("select")
    assert choice.locator("option").count() == SENTENCES
    for number in range(SENTENCES):
        choice.select_option(index=number)
        middles = card(page).locator(".related").evaluate_all(MIDDLES)
        arcs = card(page).locator(".arcs path").evaluate_all(ARCS)
        _, end = max(arcs)
        assert end in [pytest.approx(each, abs=0.5) for each in middles]


MIDDLES = "all => all.map(({ parentElement: word }) => word.offsetLeft + word.offsetWidth / 2)"
ARCS = """all => all.map(
  each => [Number(each.getAttribute("stroke-width")), Number(each.getAttribute("d").split(" ").at(-2))])"""


def test_an_interval_is_drawn_where_it_lies(page, report):
    cell(page, 1, 3).click()
    (row,) = report.cells.query("layer == 1 and head == 3 and task == 'agreement'").to_dict("records")
    ends = report.cells.query("task == 'agreement'")
    reach = ends[["effect_low", "effect_high", "exchange_low", "exchange_high"]].abs().max().max()
    bar = card(page).locator("dt", has_text="Ablation").first.locator("xpath=following-sibling::dd[1]")
    drawn = bar.evaluate(
        "each => { const place = name => { const box = each.querySelector(name).getBoundingClientRect();"
        "return [box.left, box.right]; }; return [place('.track'), place('.interval')]; }"
    )
    (left, right), (low, high) = drawn
    measured = [(2 * (end - left) / (right - left) - 1) * reach for end in (low, high)]
    assert measured == pytest.approx([row["effect_low"], row["effect_high"]], abs=reach / 50)


def test_next_and_previous_go_round_all_heads(page):
    cell(page, 3, 11).click()
    card(page).get_by_role("button", name="Next").click()
    assert card(page).locator("h2").inner_text() == "Head 0.0"
    card(page).get_by_role("button", name="Previous").click()
    assert card(page).locator("h2").inner_text() == "Head 3.11"


def test_a_head_with_a_page_of_its_own_leads_there(page):
    cell(page, 1, 3).click()
    assert card(page).locator("a").get_attribute("href") == "cards/1.3.html"
    card(page).get_by_role("button", name="Close").click()
    cell(page, 0, 0).click()
    assert card(page).locator("a").count() == 0


def test_a_card_has_an_address(fresh):
    address = fresh.url
    cell(fresh, 2, 10).click()
    assert fresh.evaluate("location.hash") == "#head-2.10"
    fresh.goto("about:blank")
    fresh.goto(f"{address}#head-2.10")
    assert card(fresh).locator("h2").inner_text() == "Head 2.10"
    fresh.keyboard.press("Escape")
    fresh.wait_for_function("location.hash === ''")  # which follows a moment after the card is closed


def test_an_address_that_changes_shows_another_card(page):
    page.evaluate("location.hash = '#head-2.10'")
    card(page).locator("h2", has_text="Head 2.10").wait_for()
    page.evaluate("location.hash = '#head-0.1'")
    card(page).locator("h2", has_text="Head 0.1").wait_for()


def test_an_address_given_just_as_a_card_is_closed_shows_its_card(fresh):
    cell(fresh, 1, 3).click()
    fresh.evaluate("document.querySelector('dialog[open]').close(); location.hash = '#head-2.10'")
    card(fresh).locator("h2", has_text="Head 2.10").wait_for()
    assert fresh.evaluate("location.hash") == "#head-2.10"


def test_an_address_of_no_head_opens_nothing(fresh):
    address = fresh.url
    fresh.goto("about:blank")
    fresh.goto(f"{address}#head-9.9")
    assert fresh.locator("td").first.is_visible()
    assert card(fresh).count() == 0


def test_hovering_tells_the_numbers(page, report):
    (row,) = report.cells.query("layer == 0 and head == 1 and task == 'coreference'").to_dict("records")
    cell(page, 0, 1, grid=1).hover()
    title = cell(page, 0, 1, grid=1).get_attribute("title")
    assert title.startswith(f"Head 0.1, coreference: {row['verdict']}")
    assert f"resampled {row['effect']:.2f} [{row['effect_low']:.2f}, {row['effect_high']:.2f}] logits" in title
    assert not re.search("null|NaN|undefined", title)


def test_what_was_not_measured_is_said(open_html, make_report):
    report = make_report()
    gone = (report.cells["task"] == "agreement") & (report.cells["layer"] == 0) & (report.cells["head"] == 0)
    page = open_html(as_page(page_of(type(report)(**{**vars(report), "cells": report.cells[~gone]}))))
    cell(page, 0, 0).hover()
    assert cell(page, 0, 0).get_attribute("title") == "Head 0.0, agreement: not measured"
    cell(page, 0, 0).click()
    assert "agreement: not measured" in card(page).inner_text()
    assert not re.search("null|NaN|undefined", card(page).inner_text())


def test_hostile_text_is_read_in_a_card_and_does_not_run(open_html):
    page = open_html(PAGES["heads"]())
    cell(page, 0, 1).click()
    assert "<script>" in card(page).inner_text()
    assert card(page).locator("script, img, style, iframe").count() == 0


@pytest.mark.parametrize("width", [375, 1440])
def test_a_card_fits_the_window(open_html, source, width):
    page = open_html(source, width)
    cell(page, 1, 3).click()
    box = card(page).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert card(page).evaluate("each => each.scrollWidth <= each.clientWidth")
