"""The page of a card, as text."""

import dataclasses
import re

import numpy as np
import pytest
from html_page import sound
from made_up_card import IDLE, TASK, made_up_card, table

from interp.report.card_evidence import COLUMNS, at_a_glance, by_path, maps_of, n_shown, named, of_task
from interp.report.html import as_page
from interp.report.sections import page_of

WORDS = "What it writes, by word: share restored"
TAKEN_OUT = "Removed from what the head reads or writes: the effect; a cost is negative"


def page_source(card, command=None):
    return as_page(page_of(card), command)


def maps(card, task="agreement"):
    return dict(maps_of(of_task(named(card), task)))


@pytest.fixture(scope="module")
def source():
    return page_source(made_up_card(), "interp head 2.1 --out <b>")


def test_the_page_is_sound_and_text_stays_text(source):
    sound(source)
    assert "&lt;script&gt;alert(1)" in source
    assert "<b>" not in source


def test_all_tasks_come_first_then_each_then_what_was_asked_then_the_tables(source):
    found = re.findall(r'<h2 id="([^"]+)"', source)
    tasks = ["agreement-attends-and-causal", "blimp-script-alert-1-none"]
    assert found == ["all-tasks", *tasks, "tables", "what-was-asked", "how-to-read-this", "method"]
    assert "40 units in 35 clusters" in source[source.index('id="what-was-asked"') :].split("</section>")[0]
    assert "interp head 2.1 --out &lt;b&gt;" in source


def test_every_table_is_there_with_its_rows(source):
    captions = re.findall(r'<table class="sortable">\n<caption>([^<]+)', source)
    assert len(captions) == 1 + 9  # the verdicts come first
    assert "passes" in source
    assert re.search(r"<td >no</td>", source)
    assert "-0.80 [-0.90, -0.70]" in source  # an estimate and its interval stand together


def test_at_a_glance_a_row_has_every_kind_of_evidence():
    glance = at_a_glance(named(made_up_card()))
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


def test_words_are_coloured_and_idle_ones_left_to_the_sentence():
    found = maps(made_up_card())[WORDS]
    assert [(name, cell.text) for name, (cell,) in found.rows] == [("query", "0.90"), ("all words together", "0.91")]
    assert not found.hatched
    idle = made_up_card(positions=made_up_card().positions.assign(n_changed=0))
    assert WORDS not in maps(idle)


def test_what_is_taken_out_has_its_effect_in_colour_and_its_interval(source):
    found = maps(made_up_card())[TAKEN_OUT]
    assert found.columns == ("effect (logits)", "95 % interval")
    assert [(name, *(cell.text for cell in cells)) for name, cells in found.rows] == [
        ("values at the related word", "-3.50", "[-3.80, -3.20]"),
        ("number, erased", "-2.50", "[-2.90, -2.10]"),
        ("random directions, erased", "-0.20", "[-0.30, 0.10]"),
    ]
    assert len({effect.style for _, (effect, _) in found.rows}) == 3
    assert {interval.style for _, (_, interval) in found.rows} == {found.rows[0][1][1].style}
    assert TAKEN_OUT not in maps(made_up_card(), "blimp:<script>alert(1)")
    assert source.count(f"<caption>{TAKEN_OUT}") == 1


def test_an_interval_that_is_not_known_is_a_dash():
    unknown = made_up_card().feature.assign(low=np.nan, high=np.nan)
    found = maps(made_up_card(feature=unknown))[TAKEN_OUT]
    assert [interval.text for _, (_, interval) in found.rows] == ["—", "—", "—"]


def test_paths_that_read_as_nothing_are_left_out_beyond_the_first():
    large = [("t", "embed", f"{n}.0.v", "v", 0.5, 0.4, 0.6, 1.0, 40, 10) for n in range(5)]
    small = [("t", "embed", f"{n}.1.v", "v", 0.001, 0.0, 0.002, 0.0, 40, 10) for n in range(5)]
    assert n_shown(table("feeds", *large, *small)) == 5
    assert len(by_path(table("feeds", *large, *small)).rows) == 5
    assert len(by_path(table("feeds", *small)).rows) == 3
    assert by_path(table("feeds", *4 * large)).rows[0][0] == "embed → 0.0.v"
    assert len(by_path(table("feeds", *4 * large)).rows) == 12


def test_a_card_with_nothing_measured_beside_the_verdicts_has_a_page():
    empty = {name: table(name) for name in COLUMNS if name not in ("shares", "replacements")}
    card = made_up_card(**empty)
    page = page_source(made_up_card(**empty, shares=card.shares.assign(share=np.nan)))
    sound(page)
    assert WORDS not in page
    assert TAKEN_OUT not in page


def test_a_task_that_was_not_measured_anew_is_compared_and_has_no_section():
    card = made_up_card()
    frames = {name: getattr(card, name) for name in COLUMNS if name != "shares"}
    few = {name: frame[frame["task"] == TASK] for name, frame in frames.items()}
    page = page_source(dataclasses.replace(card, **few))
    assert 'id="agreement-attends-and-causal"' in page
    assert 'id="blimp-script-alert-1-none"' not in page
    assert "Head 2.1: ● attends and causal: agreement; · none:" in page  # all verdicts
    assert page.count("not measured for this card") == 1


def test_a_card_by_itself_names_the_model_and_its_tasks_and_one_of_a_report_the_way_back():
    card = made_up_card(provenance={**made_up_card().provenance, "model": "tiny"})
    facts = ("Model tiny", "2 tasks: agreement and blimp:&lt;script&gt;alert(1)", "95 % intervals")
    assert " · ".join(f"<span>{fact}</span>" for fact in facts) in page_source(card)
    assert "All heads" not in page_source(card)
    assert '<a href="../report.html">← All heads</a>' in page_source(dataclasses.replace(card, back="../report.html"))


def test_names_that_make_the_same_address_or_none_lead_to_their_own_sections():
    names = dict(zip([TASK, IDLE], ["\u05e9!", "\u05d0?"], strict=True))
    card = made_up_card()
    renamed = {name: getattr(card, name).replace({"task": names}) for name in ("verdicts", "tasks", *COLUMNS)}
    same = renamed["verdicts"].assign(verdict="none")
    sound(page_source(made_up_card(**{**renamed, "verdicts": same})))


def test_a_baseline_that_is_a_place_is_explained_where_it_stands():
    verdicts = made_up_card().verdicts.assign(baseline="position 9")
    page = page_source(made_up_card(verdicts=verdicts))
    assert page.count("“position 9” is a place in the prompt, counted from 0") == 1
    assert "those that are shorter have nothing there" in page
