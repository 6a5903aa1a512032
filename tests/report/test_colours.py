import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.report.heatmap import FAINTEST_BOUND, contrast, ink, paint, reach


def test_contrast_of_black_and_white_is_21():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#123456", "#123456") == pytest.approx(1.0)


@given(st.integers(0, 0xFFFFFF))
def test_ink_can_always_be_read(colour):
    background = f"#{colour:06x}"
    assert contrast(ink(background), background) >= 4.5


@given(st.floats(-3, 3), st.sampled_from(["attention", "effect"]))
def test_every_cell_meets_wcag_aa_on_both_pages(value, palette):
    light, light_ink, dark, dark_ink = re.findall("#[0-9a-f]{6}", paint(value, palette, bound=2.0).style)
    assert contrast(light, light_ink) >= 4.5
    assert contrast(dark, dark_ink) >= 4.5


@pytest.mark.parametrize("palette", ["attention", "effect"])
def test_zero_fades_into_the_page(palette):
    zero = paint(0.0, palette)
    assert contrast(zero.light, "#ffffff") < 1.25
    assert contrast(zero.dark, "#15181c") < 1.25


def test_only_effects_tell_a_cost_from_a_gain():
    assert paint(0.5, "effect") != paint(-0.5, "effect")
    assert paint(-0.5, "attention") == paint(0.0, "attention")


def test_colours_reach_to_the_largest_magnitude_and_to_one_nat_at_least():
    assert reach([-3.0, 2.0, float("nan")]) == 3.0
    assert reach([0.001, float("nan")]) == FAINTEST_BOUND


def test_values_beyond_the_bound_get_the_end_of_the_palette():
    assert paint(7.0, "effect", bound=2.0) == paint(2.0, "effect", bound=2.0)
    assert paint(-0.1, "attention") == paint(0.0, "attention")
