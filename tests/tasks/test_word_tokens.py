"""Words and the tokens of tokenizers of every kind: byte-level, WordPiece, SentencePiece."""

import numpy as np
import pytest
from kinds_of_tokenizers import byte_level, sentencepiece, wordpiece

from interp.tasks.alignment import special_around, without_special
from interp.tasks.example import Span
from interp.tasks.word_tokens import NO_TOKEN, NONE, SHARED, align_words


def spans(text, *words):
    found, at = [], 0
    for word in words:
        start = text.index(word, at)
        found.append(Span(start, start + len(word)))
        at = start + len(word)
    return found


def aligned(tokenizer, text, found, around=((), ())):
    ((ids, offsets),) = without_special(tokenizer, [text])
    return align_words(text, found, ids, offsets, around)


def test_pieces_of_a_word_belong_to_it():
    tokenizer = wordpiece("un", "##know", "##able", "mary", ".")
    text = "Unknowable Mary."
    words = aligned(tokenizer, text, spans(text, "Unknowable", "Mary", "."), ((1,), (2,)))
    assert words.ids == (1, 3, 4, 5, 6, 7, 2)
    assert words.unit_of_token.tolist() == [NONE, 0, 0, 0, 1, 2, NONE]
    assert words.unit_of_word.tolist() == [0, 1, 2]
    assert words.word_of_unit.tolist() == [0, 1, 2]
    assert not words.unaligned


def test_spaces_of_byte_level_and_sentencepiece_tokens_do_not_count():
    text = "go by"
    bytewise = aligned(byte_level(("Ġ", "b"), ("Ġb", "y"), ("g", "o")), text, spans(text, "go", "by"))
    assert bytewise.unit_of_token.tolist() == [0, 1]
    pieces = aligned(sentencepiece("▁go", "▁", "b", "y"), text, spans(text, "go", "by"))
    assert pieces.unit_of_token.tolist() == [0, NONE, 1, 1], "a space by itself belongs to no word"


def test_bytes_of_one_character_belong_to_its_word():
    text = "é a"
    words = aligned(byte_level(), text, spans(text, "é", "a"))
    assert words.unit_of_token.tolist()[:2] == [0, 0]
    assert words.unit_of_token.tolist()[-1] == 1


def test_a_token_of_two_words_joins_them():
    text = "I don't"
    tokenizer = wordpiece("i", "don", "'", "t")
    words = aligned(tokenizer, text, spans(text, "I", "do", "n't"))
    assert words.unit_of_token.tolist() == [0, 1, 1, 1]
    assert words.unit_of_word.tolist() == [0, NONE, NONE]
    assert words.word_of_unit.tolist() == [0, NONE]
    assert words.unaligned == {SHARED: 2}


def test_words_that_share_their_characters_are_joined():
    """As those of a multiword token that do not spell it."""
    text = "I dunno it"
    whole = spans(text, "I", "dunno", "it")
    words = aligned(wordpiece("i", "dun", "##no", "it"), text, [whole[0], whole[1], whole[1], whole[2]])
    assert words.unit_of_token.tolist() == [0, 1, 1, 2]
    assert words.unit_of_word.tolist() == [0, NONE, NONE, 2]
    assert words.word_of_unit.tolist() == [0, NONE, 3]
    assert words.unaligned == {SHARED: 2}


def test_tokens_join_chains_of_words():
    text = "abc"
    words = aligned(wordpiece("ab", "##c"), text, spans(text, "a", "b", "c"))
    assert words.unit_of_word.tolist() == [NONE, NONE, 1]
    chained = aligned(wordpiece("abc"), text, spans(text, "a", "b", "c"))
    assert chained.word_of_unit.tolist() == [NONE]


def test_a_word_that_no_token_covers_is_counted():
    text = "a \u200d b"
    words = aligned(wordpiece("a", "b"), text, [Span(0, 1), Span(2, 3), Span(4, 5)])
    assert words.unit_of_word.tolist() == [0, NONE, 1]
    assert words.word_of_unit.tolist() == [0, 2]
    assert words.unaligned == {NO_TOKEN: 1}


def test_unknown_words_are_words():
    text = "zzz a"
    words = aligned(wordpiece("a"), text, spans(text, "zzz", "a"))
    assert words.ids == (0, 3)
    assert words.unit_of_token.tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_tokens_and_words_agree_on_random_text(seed):
    """Every token of a unit covers a character of its words, and no word's characters are covered from elsewhere."""
    generator = np.random.default_rng(seed)
    text = " ".join("".join(generator.choice(list("abc'"), size=generator.integers(1, 6))) for _ in range(12))
    cuts = [Span(at, at + 1) for at, each in enumerate(text) if each != " "]
    tokenizer = byte_level(("a", "b"), ("Ġ", "c"), ("'", "a"), ("ab", "c"))
    words = aligned(tokenizer, text, cuts)
    ((_, offsets),) = without_special(tokenizer, [text])
    owners = {}
    for unit, (start, stop) in zip(words.unit_of_token.tolist(), offsets, strict=True):
        for at in range(start, stop):
            if text[at] != " ":
                assert owners.setdefault(at, unit) == unit
    for word, span in enumerate(cuts):
        own = words.unit_of_word[word]
        assert own in (NONE, owners[span.start])


def test_special_tokens_as_each_tokenizer_has_them():
    assert special_around(wordpiece("a"), both_sides=True) == ((1,), (2,))
    assert special_around(wordpiece("a"), both_sides=False) == ((1,), ())
    assert special_around(sentencepiece("▁a"), both_sides=True) == ((1,), ()), "none of its own: BOS"
