import unicodedata

import pytest
from hostile import HOSTILE, ISOLATES

from interp.report.words import isolated, legible

EMOJI = "\N{WOMAN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}"
HEBREW, PERSIAN = "\u05e9\u05b8\u05dc", "\u0645\u06cc\u200c\u062e"


@pytest.mark.parametrize(("text", "seen"), HOSTILE.items(), ids=lambda text: ascii(text[:20]))
def test_what_acts_is_seen(text, seen):
    assert legible(text) == seen
    assert isolated(text).translate(ISOLATES) == seen
    assert legible(seen) == seen


@pytest.mark.parametrize("text", ["Zoë\tund\nJosé", "naïve é", EMOJI, f"{HEBREW} {PERSIAN}", "日本語", "a\u00a0b"])
def test_what_people_write_stays(text):
    assert legible(text) == text


def test_no_control_character_and_no_half_of_a_pair_is_left():
    every = "".join(map(chr, range(0x110000)))
    left = {unicodedata.category(char) for char in legible(every)} & {"Cc", "Cs", "Zl", "Zp"}
    assert left == {"Cc"}
    assert {char for char in legible(every) if unicodedata.category(char) == "Cc"} == {"\t", "\n"}
    directional = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not {char for char in legible(every) if unicodedata.bidirectional(char) in directional}


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("abc 12", "abc 12"),
        (f"“{HEBREW}” 2.5", f"“[{HEBREW}]” 2.5"),
        (f"{HEBREW}, 3 {PERSIAN}: 4", f"[{HEBREW}, 3 {PERSIAN}]: 4"),
        (f"{HEBREW} or {HEBREW}", f"[{HEBREW}] or [{HEBREW}]"),
        (f"\u2069{HEBREW}", f"\\u2069[{HEBREW}]"),
    ],
)
def test_what_runs_to_the_left_is_by_itself(text, apart):
    assert isolated(text) == apart.replace("[", "\u2068").replace("]", "\u2069")


def test_every_letter_that_runs_to_the_left_is_isolated():
    leftward = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.bidirectional(chr(code)) in ("R", "AL") and not unicodedata.category(chr(code)).startswith("C")
    ]
    assert len(leftward) > 1000
    assert [char for char in leftward if isolated(char) != f"\u2068{char}\u2069"] == []
