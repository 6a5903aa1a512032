"""Do numbers in sentences keep their digits where they are small, and lose the sign of 0?"""

import math

import pytest

from interp.report.words import change, decimal, estimate, or_dash, points, size


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((4.25, 3.9, 4.512), "4.25 logits [3.90, 4.51]"),
        ((0.5, 0.25, 1.126), "0.50 logits [0.25, 1.13]"),
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


def test_what_it_costs_has_the_digits_of_the_estimate():
    assert change(-0.0032, -0.0049, -0.0011, "logits") == "costs 0.0032 logits [0.0011, 0.0049]"


@pytest.mark.parametrize(
    ("number", "text"), [(12.3, "12.30"), (0.05, "0.05"), (0.0046, "0.0046"), (0.0, "0.00"), (math.nan, "nan")]
)
def test_a_size_that_is_not_0_does_not_read_as_0(number, text):
    assert size(number) == text


def test_0_has_no_minus():
    assert [decimal(-0.001), decimal(-0.0001, 3), points(-0.00001)] == ["0.00", "0.000", "0.0"]


def test_what_is_not_known_is_a_dash():
    assert [or_dash(None), or_dash(math.nan), or_dash(-0.0001, 3)] == ["—", "—", "0.000"]
