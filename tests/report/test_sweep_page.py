"""The page of a sweep, as text."""

import re

import pytest
from html_page import sound
from synthetic_sweeps import screened, sweep

from interp.report.html import as_page
from interp.report.sweep import page_of

HOSTILE = [(0, "BOS", 1.0), (1, "<script>alert(1)</script>", 1.0), (2, '"><img src=x onerror=alert(1)>', 0.5)]


@pytest.fixture(scope="module")
def source() -> str:
    frames = sweep({"layer": range(2), "pos": range(3)}, direction="denoise", tokens=HOSTILE, state={0: "unreachable"})
    return as_page(page_of(frames), "interp patch --out r")


def test_the_page_is_sound_and_text_stays_text(source):
    assert sound(source).all("img") == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in source
    assert "<b>" not in source


def test_the_heatmap_comes_first_then_what_was_found_and_what_was_asked(source):
    order = ["heatmap", "findings", "cells", "what-was-asked", "how-to-read-this", "checks", "method"]
    assert re.findall(r'<h2 id="([^"]+)"', source) == order
    asked = source[source.index('id="what-was-asked"') :].split("</section>")[0]
    for text in ("clean run&#39;s z patched into the corrupted run", "Does the verb agree?", "(hash 0123456789ab)"):
        assert text in asked
    assert "Left out" not in asked
    assert "interp patch --out r" in source


def test_a_cell_tells_its_interval_and_what_is_hatched_its_reason(source):
    assert 'title="layer 0, position 0 (BOS): unreachable"' in source
    assert "Hatched: unreachable: what is changed there cannot reach the answer." in source
    assert re.search(r'title="layer 1, position 0 \(BOS\): -0.01 \[-0.03, 0.01\], adjusted p = 0.500"', source)


def test_findings_are_marked_and_explained():
    source = as_page(page_of(sweep()))
    assert (
        'title="head 0.0: -4.00 [-4.20, -3.80], adjusted p = 0.0001">-4.00<span class="mark" aria-hidden="true">●'
        in source
    )
    assert "● significant after correction." in source
    assert re.search(r"<dt>●</dt><dd>significant after correction \(adjusted p ≤ 0.05\), and at least 0.1 of", source)


def test_of_very_many_cells_the_strongest_are_in_the_table():
    source = as_page(page_of(sweep({"layer": range(2), "neuron": range(150)})))
    table = source[source.index('id="cells"') :].split("</table>")[0]
    assert table.count("<tr>") == 201
    assert "The 200 strongest of 300 cells; all of them are in cells.csv" in table
    assert 'id="heatmap"' not in source


def test_of_very_many_rows_the_page_says_how_many_are_shown():
    source = as_page(page_of(sweep({"layer": range(12), "head": range(12), "pos": range(2)}, direction="noise")))
    assert "The 24 rows with the strongest cells, of 144." in source


def test_a_partial_sweep_says_so_at_the_top():
    source = as_page(page_of(sweep(complete=False)))
    assert '<p class="partial" role="note">Partial: the sweep was interrupted.' in source
    assert source.index('class="partial"') < source.index('id="heatmap"')
    assert 'role="note"' not in as_page(page_of(sweep()))


def test_a_screen_shows_its_estimates_and_no_tests():
    source = as_page(page_of(screened()))
    assert '<th scope="col">estimate</th>' in source
    assert source.count('class="unmeasured"') == 6
    reading = source[source.index('id="how-to-read-this"') :]
    assert "max-T" not in reading
    assert "what gradients say" in reading


def test_a_file_is_named_by_its_stem():
    frames = sweep()
    frames.provenance["task"] = "blimp:/home/me/accord.jsonl"
    shown, method = as_page(page_of(frames)).split('<h2 id="method">')
    assert "blimp:accord" in shown
    assert "/home" not in shown
    assert "/home" in method
