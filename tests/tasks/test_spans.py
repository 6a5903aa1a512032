"""Does a span found by its word cover the word that was meant?"""

import pytest

from interp.errors import TaskError
from interp.tasks.example import Span

TEXT = "The cat saw the other cats near the catalogue"


def test_a_word_is_found_whole():
    assert Span.find("cat", TEXT).of(TEXT) == "cat"
    assert Span.find("cats", TEXT) == Span(22, 26)
    for absent in ("cata", "dog", ""):
        with pytest.raises(TaskError, match="words are matched whole"):
            Span.find(absent, TEXT)


def test_which_of_several_has_to_be_said():
    with pytest.raises(TaskError, match=r"'the' stands 2 times in .*which=0 for the first, -1 for the last"):
        Span.find("the", TEXT)
    assert Span.find("the", TEXT, 0) == Span.find("the", TEXT, which=-2) == Span(12, 15)
    assert Span.find("the", TEXT, which=-1) == Span.find("the", TEXT, which=1) == Span(32, 35)
    for beyond in (2, -3):
        with pytest.raises(TaskError, match=f"expected one of the 2 places of 'the' in .* got {beyond}"):
            Span.find("the", TEXT, which=beyond)
