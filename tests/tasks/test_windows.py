from banks import document, sentence, word_level
from tokenizers import Regex, pre_tokenizers

from interp.tasks.alignment import Windows

LETTERS = [f"{letter}{number}" for letter in "abcdefgh" for number in range(12)]


def numbered(letter, length):
    return sentence(" ".join(f"{letter}{number}" for number in range(length)), name=letter)


def cut(n_ctx, *lengths, both_sides=False, mentions=()):
    sentences = [numbered(letter, length) for letter, length in zip("abcdefgh", lengths, strict=False)]
    windows = Windows(word_level(LETTERS, both_sides=both_sides), n_ctx, both_sides=both_sides)
    return windows, document(*sentences, mentions=mentions)


def shape(window):
    return "".join(each.id for each in window.sentences), window.n_before


def test_sentences_stand_by_themselves():
    windows, text = cut(8, 3, 2, both_sides=True)
    first, second = windows.sentences(text)
    assert first.tokens.ids[0] == 0
    assert first.tokens.ids[-1] == 1
    assert len(first.tokens.ids) == 5
    assert [word.form for word in second.words] == ["b0", "b1"]
    assert (second.starts, second.first_query, second.document) == ((0,), 0, "d")


def test_a_short_document_is_one_window():
    windows, text = cut(20, 3, 2, 4)
    (window,) = windows.documents(text)
    assert shape(window) == ("abc", 0)
    assert window.starts == (0, 3, 5)
    assert [word.form for word in window.words][2:4] == ["a2", "b0"]
    assert window.tokens.unit_of_word.tolist() == list(range(9))
    assert window.start_of(4) == 3
    assert window.start_of(5) == 5


def test_windows_overlap_by_half_at_most_and_every_word_looks_once():
    windows, text = cut(9, 2, 2, 2, 2, 2, 2, 2)
    found = list(windows.documents(text))
    assert [shape(each) for each in found] == [("abcd", 0), ("cdef", 2), ("efg", 2)]
    looking = [word.form for each in found for word in each.words[each.first_query :]]
    assert looking == [word.form for each in text.sentences for word in each.words]
    assert all(len(each.tokens.ids) <= 9 for each in found)


def test_a_long_sentence_leaves_less_before_it():
    windows, text = cut(9, 2, 2, 7, 2)
    assert [shape(each) for each in windows.documents(text)] == [("ab", 0), ("c", 0), ("d", 0)]


def test_a_sentence_longer_than_the_context_is_named_and_no_window_reaches_across_it():
    windows, text = cut(9, 2, 9, 2, 2)
    assert [shape(each) for each in windows.documents(text)] == [("a", 0), ("cd", 0)]
    assert windows.too_long == {"d: b": 9}
    assert [each.sentences[0].id for each in windows.sentences(text)] == ["a", "c", "d"]
    assert windows.too_long == {"d: b": 9}, "named once"


def test_mentions_are_numbered_as_in_the_window():
    mentions = [("e", "person", 0, (0,), 0), ("f", "", 3, (0, 1), 1), ("e", "person", 4, (1,), 1)]
    windows, text = cut(9, 2, 2, 2, 2, 2, 2, 2, mentions=mentions)
    first, second, _ = windows.documents(text)
    assert [each.entity for each in first.mentions] == ["e", "f"]
    assert [(each.entity, each.sentence, second.head_of(each)) for each in second.mentions] == [
        ("f", 1, 3),
        ("e", 2, 5),
    ]
    assert first.spoken_of == frozenset()
    assert second.spoken_of == {"e"}
    fourth = list(windows.sentences(text))[3]
    assert [(each.entity, each.sentence) for each in fourth.mentions] == [("f", 0)]


def test_joining_may_cost_tokens():
    """A tokenizer that needs a token for every space: what fits by itself may not fit together."""
    windows, text = cut(10, 2, 2, 2)
    tokenizer = windows.tokenizer
    assert [shape(each) for each in windows.documents(text)] == [("abc", 0)]
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s"), "isolated")
    found = list(Windows(tokenizer, 10, both_sides=False).documents(text))
    assert all(len(each.tokens.ids) <= 10 for each in found)
    assert [shape(each) for each in found] == [("ab", 0), ("bc", 1)]
