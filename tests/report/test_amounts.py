"""Do numbers in sentences keep their digits where they are small, and lose the sign of 0?"""

import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from synthetic_heads import synthetic_report
from synthetic_probes import probing, with_cell
from synthetic_relations import scoring, with_row
from synthetic_sweeps import sweep

from interp.report import heads as of_heads
from interp.report import probes, relations
from interp.report import sweep as of_sweep
from interp.report.sections import Sentences, Table
from interp.report.tables import Column, rows_of
from interp.report.words import change, decimal, estimate, points, size


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((4.25, 3.9, 4.512), "4.25 logits [3.90, 4.51]"),
        ((0.5, 0.25, 1.126), "0.50 logits [0.25, 1.13]"),
        ((1.0, 1.0, 1.0), "1.00 logits [1.00, 1.00]"),
        ((0.0091, 0.001, 0.06), "0.01 logits [0.00, 0.06]"),
        ((0.002, -0.001, 0.012), "0.00 logits [0.00, 0.01]"),
        ((0.0032, 0.0011, 0.0049), "0.0032 logits [0.0011, 0.0049]"),
        ((-0.00031, -0.0005, -0.00012), "-0.00031 logits [-0.00050, -0.00012]"),
        ((-1e-7, -2e-6, 1e-6), "0.00 logits [0.00, 0.00]"),
        ((0.0, 0.0, 0.0), "0.00 logits [0.00, 0.00]"),
        ((0.0032, math.nan, math.nan), "0.0032 logits (no interval)"),
    ],
)
def test_an_estimate_that_is_not_0_does_not_read_as_0(numbers, text):
    assert estimate(*numbers, "logits") == text


@pytest.mark.parametrize(
    ("n_clusters", "why"),
    [
        (14, "(no interval: a template has a single cluster)"),
        (40, "(no interval: a template has a single cluster)"),
        (math.nan, "(no interval)"),
    ],
)
def test_where_there_is_no_interval_the_reason_stands_in_its_place(n_clusters, why):
    assert estimate(1.2, math.nan, math.nan, "logits", n_clusters=n_clusters) == f"1.20 logits {why}"
    frame = pd.DataFrame({"effect": [1.2], "low": math.nan, "high": math.nan, "n_clusters": n_clusters})
    assert rows_of(frame, [Column("effect", "", "low", "high")])[0][0].text == f"1.20 {why}"


def test_points_of_100_have_one_decimal():
    frame = pd.DataFrame({"points": [20.0], "low": 15.0, "high": 25.0})
    assert rows_of(frame, [Column("points", "", "low", "high", digits=1)])[0][0].text == "20.0 [15.0, 25.0]"


def test_what_it_costs_has_the_digits_of_the_estimate():
    assert change(-0.0032, -0.0049, -0.0011, "logits") == "costs 0.0032 logits [0.0011, 0.0049]"


@pytest.mark.parametrize(
    ("number", "text"), [(12.3, "12.30"), (0.05, "0.05"), (0.0046, "0.0046"), (0.0, "0.00"), (math.nan, "nan")]
)
def test_a_size_that_is_not_0_does_not_read_as_0(number, text):
    assert size(number) == text


PAGES = {
    "heads": lambda: of_heads.page_of(with_numbers(synthetic_report(tasks=("agreement",)))),
    "sweep": lambda: of_sweep.page_of(sweep(base=0.99951, accuracy_intervened=0.62512)),
    "probes": lambda: probes.page_of(with_cell(probing(), 5, score=0.92874, low=0.87411, high=0.98111)),
    "relations": lambda: relations.page_of(with_row(scoring(), accuracy=0.70222, low=0.15051, p_adjusted=0.00034)),
}
"""Pages of a head that speaks for all, with numbers of more digits than they show."""
NUMBER = re.compile(r"(?<![\d.])\d+\.\d+(?=[ ,;)%\]]|$)")
SUBJECT = re.compile(r"(?:Ablating h|H)ead (\d\.\d) ")


def with_numbers(report):
    strongest = ["effect", "effect_low", "effect_high", "accuracy_ablated", "attention", "attention_baseline"]
    cells, head = report.cells.copy(), (report.cells["layer"] == 1) & (report.cells["head"] == 3)
    cells.loc[head, strongest] = [-6.255, -6.751, -5.509, 0.625, 0.8149, 0.0032]
    return replace(report, cells=cells)


@pytest.mark.parametrize("kind", PAGES)
def test_a_number_reads_alike_in_sentence_and_table(kind):
    """Of the first head that a sentence names: every number of the sentence stands in one of its rows."""
    page = PAGES[kind]()
    said = next(
        text for each in page.sections if isinstance(each, Sentences) for text in each.texts if SUBJECT.match(text)
    )
    name = SUBJECT.match(said)[1]
    tables = [each for each in page.sections if isinstance(each, Table)]
    rows = [row for each in tables for row in each.rows() if {name, f"head {name}"} & {cell.text for cell in row[:3]}]
    written = {number for row in rows for cell in row for number in NUMBER.findall(cell.text)}
    assert rows
    assert len(NUMBER.findall(said)) > 3
    assert set(NUMBER.findall(said)) <= written


def test_0_has_no_minus():
    assert [decimal(-0.001), decimal(-0.0001, 3), points(-0.00001)] == ["0.00", "0.000", "0.0"]
