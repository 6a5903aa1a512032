"""Tables as a reader works with them: filtered, shown whole, taken along as CSV."""

from dataclasses import replace

import pandas as pd
import pytest

from interp.report.heads import page_of
from interp.report.html import as_page
from interp.report.sections import page_of as page_of_any
from interp.report.words import decimal


@pytest.fixture(scope="module")
def report(make_report):
    return make_report(n_layers=9, n_heads=12)


@pytest.fixture(scope="module")
def source(report):
    return as_page(page_of(report))


@pytest.fixture
def page(open_html, source):
    return open_html(source)


def rows(page):
    return page.locator("table[data-rows]").locator("tbody tr").count()


def tools(page):
    return page.locator("#tables ~ .tools").first


def downloaded(page, button):
    with page.expect_download() as held:
        button.click()
    return held.value.suggested_filename, pd.read_csv(held.value.path())


def test_a_filter_keeps_the_rows_that_hold_every_word(page, report):
    tools(page).get_by_role("searchbox").fill("coreference opposes")
    wanted = report.cells.query("task == 'coreference' and verdict == 'opposes'")
    assert rows(page) == len(wanted) > 0
    assert tools(page).get_by_role("status").inner_text() == f"{len(wanted)} of {len(report.cells)} rows"
    tools(page).get_by_role("searchbox").fill("no such word")
    assert rows(page) == 0


def test_of_very_many_rows_the_first_are_shown_until_all_are_asked_for(page, report):
    assert rows(page) == 200 < len(report.cells)
    page.locator("table[data-rows]").locator("th", has_text="verdict").get_by_role("button").click()
    assert rows(page) == 200
    tools(page).get_by_role("button", name=f"Show all {len(report.cells)}").click()
    assert rows(page) == len(report.cells)


def test_sorting_sees_the_rows_that_are_not_shown(page, report):
    heading = page.locator("table[data-rows]").locator("th").filter(has_text="effect").first
    heading.get_by_role("button").click()
    column = heading.evaluate("each => each.cellIndex")
    first = page.locator("table[data-rows]").locator(f"tbody tr:first-child td:nth-child({column + 1})")
    assert first.inner_text() == decimal(report.cells["effect"].min())
    assert float(first.get_attribute("data-key")) == report.cells["effect"].min()


def test_the_script_rounds_as_the_page_does(open_html, make_report):
    report = make_report(tasks=("agreement",))
    numbers = {"accuracy_ablated": 0.625, "attention": 0.125, "effect": -0.00321, "effect_p_adjusted": 0.00031}
    numbers |= {"mean_effect": -0.001, "mean_effect_p_adjusted": 1e-5, "n_units": 12345, "n_to_decide": 1234.0}
    page = open_html(as_page(page_of(replace(report, cells=report.cells.assign(**numbers)))))
    written = page.locator("table[data-rows] tbody td").all_inner_texts()
    assert {"0.62", "0.12", "-0.0032", "0.0003", "-0.0010", "< 0.0001", "12,345"} <= set(written)
    tools(page).get_by_role("searchbox").fill(" ")  # which draws the rows again
    assert page.locator("table[data-rows] tbody td").all_inner_texts() == written


def test_the_csv_has_every_row_and_column_with_all_digits(page, report):
    name, table = downloaded(page, tools(page).get_by_role("button", name="Download CSV"))
    assert name == "every-head-and-task.csv"
    assert len(table) == len(report.cells)
    for column in ("effect", "effect_low", "attention", "probe"):
        pd.testing.assert_series_equal(table[column], report.cells[column].reset_index(drop=True), check_exact=True)
    assert table["verdict"].tolist() == report.cells["verdict"].tolist()


def test_the_csv_has_what_the_filter_leaves_in_the_order_of_the_table(page, report):
    tools(page).get_by_role("searchbox").fill("coreference opposes")
    heading = page.locator("table[data-rows]").locator("th").filter(has_text="effect").first
    heading.get_by_role("button").click()
    _, table = downloaded(page, tools(page).get_by_role("button", name="Download CSV"))
    wanted = report.cells.query("task == 'coreference' and verdict == 'opposes'")["effect"].sort_values()
    assert table["effect"].tolist() == wanted.tolist()


def test_a_table_that_stands_whole_in_the_page_is_taken_along_from_there(open_html):
    from synthetic_sweeps import sweep

    page = open_html(as_page(page_of_any(sweep())))
    _, table = downloaded(page, page.get_by_role("button", name="Download CSV").first)
    shown = page.locator("table.sortable").first
    assert len(table) == shown.locator("tbody tr").count() > 1
    keys = shown.locator("tbody tr td:nth-child(2)").evaluate_all("all => all.map(each => Number(each.dataset.key))")
    assert table.iloc[:, 1].tolist() == keys
