"""The page of a card, as text."""

import dataclasses
import re

import numpy as np
import pytest
from html_page import Page
from made_up_card import TASK, made_up_card, table

from interp.report.card import render_card
from interp.report.card_frames import COLUMNS, at_a_glance, by_path, by_word, n_shown, shown, taken_out


@pytest.fixture(scope="module")
def source():
    return render_card(made_up_card(), command="interp head 2.1 --out <b>")


def test_every_element_is_closed_and_text_stays_text(source):
    page = Page(source)
    assert page.open == []
    assert len(page.scripts) == 1
    assert "&lt;script&gt;alert(1)" in source
    assert "<b>" not in source


def test_the_page_asks_for_nothing_and_its_links_arrive(source):
    page = Page(source)
    assert not re.search(r"url\(|@import|https?://", source)
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(names) == len(set(names))
    assert {link["href"].removeprefix("#") for link in page.all("a")} <= set(names)
    assert source.count("<caption>") == len(page.all("table"))


def test_all_tasks_come_first_then_each_then_what_was_asked_then_the_tables(source):
    found = re.findall(r'<h2 id="([^"]+)"', source)
    assert found == ["across", "task-1", "task-2", "asked", "reading", "tables", "method"]
    assert "40 units in 35 clusters" in source[source.index('id="asked"') :].split("</section>")[0]
    assert "interp head 2.1 --out &lt;b&gt;" in source


def test_every_table_is_there_with_its_rows(source):
    captions = re.findall(r'<table class="sortable">\n<caption>([^<]+)', source)
    assert len(captions) == 9
    assert "passes" in source
    assert re.search(r"<td >no</td>", source)


def test_at_a_glance_a_row_has_every_kind_of_evidence():
    glance = at_a_glance(shown(made_up_card()))
    assert glance.columns == (
        "verdict",
        "attention",
        "probe",
        "zero ablation",
        "mean ablation",
        "positional mean ablation",
    )
    (_, needed), (_, idle) = glance.rows
    assert [cell.text for cell in needed] == ["●", "0.70", "—", "-0.80", "-0.78", "-0.02"]
    assert [cell.text for cell in idle] == ["·", "—", "—", "0.00", "0.00", "—"]
    assert needed[3].title == "agreement, zero ablation: -0.80 [-0.88, -0.72]"
    assert [cell.measured for cell in idle] == [True, False, False, True, True, False]
    assert glance.hatched


def test_idle_words_are_hatched_and_others_coloured():
    found = by_word(shown(made_up_card()).of("agreement"))
    assert [(name, cell.text, cell.measured) for name, (cell,) in found.rows] == [
        ("BOS", "=", False),
        ("related word", "=", False),
        ("query", "0.90", True),
        ("all words together", "0.91", True),
    ]
    assert found.hatched


def test_what_is_taken_out_has_its_effect_in_colour_and_its_interval(source):
    card = shown(made_up_card())
    found = taken_out(card.of("agreement"))
    assert found.columns == ("effect (logits)", "95 % interval")
    assert [(name, *(cell.text for cell in cells)) for name, cells in found.rows] == [
        ("values at the related word", "-3.50", "[-3.80, -3.20]"),
        ("number, erased", "-2.50", "[-2.90, -2.10]"),
        ("random directions, erased", "-0.20", "[-0.30, 0.10]"),
    ]
    assert len({effect.style for _, (effect, _) in found.rows}) == 3
    assert {interval.style for _, (_, interval) in found.rows} == {taken_out(card.of("agreement")).rows[0][1][1].style}
    assert taken_out(card.of("blimp:<script>alert(1)")) is None
    assert source.count("<h3>Taken out where it reads</h3>") == 1


def test_an_interval_that_is_not_known_is_a_dash():
    unknown = made_up_card().feature.assign(low=np.nan, high=np.nan)
    found = taken_out(shown(made_up_card(feature=unknown)).of("agreement"))
    assert [interval.text for _, (_, interval) in found.rows] == ["—", "—", "—"]


def test_paths_that_read_as_nothing_are_left_out_beyond_the_first():
    large = [("t", "embed", f"{n}.0.v", "v", 0.5, 0.4, 0.6, 1.0, 40) for n in range(5)]
    small = [("t", "embed", f"{n}.1.v", "v", 0.001, 0.0, 0.002, 0.0, 40) for n in range(5)]
    assert n_shown(table("feeds", *large, *small)) == 5
    assert len(by_path(table("feeds", *large, *small)).rows) == 5
    assert len(by_path(table("feeds", *small)).rows) == 3
    assert by_path(table("feeds", *4 * large)).rows[0][0] == "embed → 0.0.v"
    assert len(by_path(table("feeds", *4 * large)).rows) == 12


def test_a_card_with_nothing_measured_beside_the_verdicts_has_a_page():
    empty = {name: table(name) for name in COLUMNS if name not in ("shares", "replacements")}
    card = made_up_card(**empty)
    page = render_card(made_up_card(**empty, shares=card.shares.assign(share=np.nan)))
    assert Page(page).open == []
    assert "Where the answer passes through it" not in page
    assert "<h3>Taken out" not in page


def test_a_task_that_was_not_measured_anew_is_compared_and_has_no_section():
    card = made_up_card()
    frames = {name: getattr(card, name) for name in COLUMNS if name != "shares"}
    few = {name: frame[frame["task"] == TASK] for name, frame in frames.items()}
    page = render_card(dataclasses.replace(card, **few))
    assert 'id="task-1"' in page
    assert 'id="task-2"' not in page
    assert "Head 2.1: ● attends and causal: agreement; · none:" in page  # all verdicts
    assert page.count("not measured for this card") == 1
