import random
import re
from string import ascii_lowercase

import numpy as np
import pytest
from kinds_of_tokenizers import byte_level, sentencepiece, wordpiece
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast
from transformers.tokenization_python import PythonBackend

from interp.errors import InputError, TaskError
from interp.tasks.alignment import (
    NO_TOKEN,
    NONE,
    SHARED,
    align_words,
    corresponding,
    require_fast,
    spans,
    special_around,
    tokenize,
    without_special,
)
from interp.tasks.example import Example, Span
from interp.tasks.task import EncodedExample

SENTENCES = ["The keys to the cabinet aren't on the table.", "Zoë's naïve brothers have seen themselves, twice.", ""]


def bytewise(*, add_prefix_space, trim_offsets):
    tokenizer = byte_level(("Ġ", "c"), ("a", "b"), ("k", "e"), ("ke", "y"), ("t", "h"))
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.backend_tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    return tokenizer


def sentence_piece():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", behavior="merged_with_next")
    trainer = trainers.BpeTrainer(vocab_size=90, special_tokens=["<unk>", "<s>"])
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", unk_token="<unk>")


def metaspace():
    tokenizer = sentencepiece(*{*"".join(SENTENCES)} - {" "}, "▁", "▁the", "ke", "rs")
    tokenizer.bos_token = None
    return tokenizer


TOKENIZERS = {
    "byte-level, space in the offset": lambda: bytewise(add_prefix_space=False, trim_offsets=False),
    "byte-level, space out of the offset": lambda: bytewise(add_prefix_space=True, trim_offsets=True),
    "byte-level, space put before the text": lambda: bytewise(add_prefix_space=True, trim_offsets=False),
    "WordPiece": lambda: wordpiece(*ascii_lowercase, *(f"##{each}" for each in ascii_lowercase), *"',.", "key", "##s"),
    "SentencePiece, space as a character": sentence_piece,
    "SentencePiece, Metaspace": metaspace,
}


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]()


def words(sentence):
    return [Span(match.start(), match.end()) for match in re.finditer(r"[^\s.,]+", sentence)]


@pytest.mark.parametrize("sentence", SENTENCES[:2])
def test_the_tokens_of_a_word_spell_it(tokenizer, sentence):
    (row,) = tokenize(tokenizer, [sentence])
    for span in words(sentence):
        positions = row.positions(span)
        characters = {i for pos in positions for i in range(*row.offsets[pos])}
        assert set(range(span.start, span.stop)) <= characters
        assert positions == tuple(range(positions[0], positions[-1] + 1))
        # Nothing but white space and the punctuation that may share a token comes with it.
        assert not re.search(r"\w", "".join(sentence[i] for i in characters - {*range(span.start, span.stop)}))


@pytest.mark.parametrize("sentence", SENTENCES[:2])
def test_different_words_have_different_tokens(tokenizer, sentence):
    (row,) = tokenize(tokenizer, [sentence])
    positions = [row.positions(span) for span in words(sentence)]
    flat = [pos for each in positions for pos in each]
    assert flat == sorted(set(flat))
    assert min(flat) >= row.n_before


def test_every_text_begins_with_the_same_token_and_has_no_other_special_ones(tokenizer):
    rows = tokenize(tokenizer, SENTENCES)
    named = tokenizer.cls_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    first = () if named is None else (named,)
    for row in rows:
        assert row.ids[: row.n_before] == first
        assert not set(row.ids[row.n_before :]) & set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        assert len(row.ids) == len(row.offsets)
    assert rows[2].ids == first


def test_a_word_of_several_bytes_a_character_is_found_whole():
    (row,) = tokenize(bytewise(add_prefix_space=False, trim_offsets=True), ["ʘʘ keys"])
    assert len(row.positions(Span(0, 2))) == len("ʘʘ".encode())
    assert row.positions(Span(0, 1)) != row.positions(Span(1, 2))


@pytest.mark.parametrize("span", [Span(3, 4), Span(44, 50), Span(2, 2)])
def test_a_span_that_no_token_covers_is_an_error(tokenizer, span):
    (row,) = tokenize(tokenizer, [SENTENCES[0]])
    with pytest.raises(InputError, match="no token covers characters"):
        row.positions(span)


def test_without_a_bos_token_the_first_word_is_the_first_token():
    tokenizer = sentence_piece()
    tokenizer.bos_token = None
    (row,) = tokenize(tokenizer, ["The keys"])
    assert (row.n_before, row.ids) == (0, tuple(tokenizer.encode("The keys", add_special_tokens=False)))
    assert row.positions(Span(0, 3))[0] == 0


class Slow(PythonBackend):
    vocab_size = 0

    def get_vocab(self):
        return {}


def test_a_tokenizer_without_offsets_is_an_error():
    with pytest.raises(TaskError, match="Slow is a slow tokenizer"):
        tokenize(Slow(), ["The keys"])
    with pytest.raises(TaskError, match="expected a transformers fast tokenizer, got NoneType"):
        require_fast(None)


def spans_of(text, *words):
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
    words = aligned(tokenizer, text, spans_of(text, "Unknowable", "Mary", "."), ((1,), (2,)))
    assert words.ids == (1, 3, 4, 5, 6, 7, 2)
    assert words.unit_of_token.tolist() == [NONE, 0, 0, 0, 1, 2, NONE]
    assert words.unit_of_word.tolist() == [0, 1, 2]
    assert words.word_of_unit.tolist() == [0, 1, 2]
    assert not words.unaligned


def test_spaces_of_byte_level_and_sentencepiece_tokens_do_not_count():
    text = "go by"
    bytewise = aligned(byte_level(("Ġ", "b"), ("Ġb", "y"), ("g", "o")), text, spans_of(text, "go", "by"))
    assert bytewise.unit_of_token.tolist() == [0, 1]
    pieces = aligned(sentencepiece("▁go", "▁", "b", "y"), text, spans_of(text, "go", "by"))
    assert pieces.unit_of_token.tolist() == [0, NONE, 1, 1], "a space by itself belongs to no word"


def test_bytes_of_one_character_belong_to_its_word():
    text = "é a"
    words = aligned(byte_level(), text, spans_of(text, "é", "a"))
    assert words.unit_of_token.tolist()[:2] == [0, 0]
    assert words.unit_of_token.tolist()[-1] == 1


def test_a_token_of_two_words_joins_them():
    text = "I don't"
    tokenizer = wordpiece("i", "don", "'", "t")
    words = aligned(tokenizer, text, spans_of(text, "I", "do", "n't"))
    assert words.unit_of_token.tolist() == [0, 1, 1, 1]
    assert words.unit_of_word.tolist() == [0, NONE, NONE]
    assert words.word_of_unit.tolist() == [0, NONE]
    assert words.unaligned == {SHARED: 2}


def test_words_that_share_their_characters_are_joined():
    """As those of a multiword token that do not spell it."""
    text = "I dunno it"
    whole = spans_of(text, "I", "dunno", "it")
    words = aligned(wordpiece("i", "dun", "##no", "it"), text, [whole[0], whole[1], whole[1], whole[2]])
    assert words.unit_of_token.tolist() == [0, 1, 1, 2]
    assert words.unit_of_word.tolist() == [0, NONE, NONE, 2]
    assert words.word_of_unit.tolist() == [0, NONE, 3]
    assert words.unaligned == {SHARED: 2}


def test_tokens_join_chains_of_words():
    text = "abc"
    words = aligned(wordpiece("ab", "##c"), text, spans_of(text, "a", "b", "c"))
    assert words.unit_of_word.tolist() == [NONE, NONE, 1]
    chained = aligned(wordpiece("abc"), text, spans_of(text, "a", "b", "c"))
    assert chained.word_of_unit.tolist() == [NONE]


def test_a_word_that_no_token_covers_is_counted():
    text = "a \u200d b"
    words = aligned(wordpiece("a", "b"), text, [Span(0, 1), Span(2, 3), Span(4, 5)])
    assert words.unit_of_word.tolist() == [0, NONE, 1]
    assert words.word_of_unit.tolist() == [0, 2]
    assert words.unaligned == {NO_TOKEN: 1}


def test_unknown_words_are_words():
    text = "zzz a"
    words = aligned(wordpiece("a"), text, spans_of(text, "zzz", "a"))
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


def encoded(n, related, *, query=None, **distractors):
    """A prompt of `n` tokens."""
    example = Example("text", " r", " w", None, "t", f"{n} tokens")
    return EncodedExample(example, tuple(range(n)), (1,), (2,), query, related, distractors)


@pytest.mark.parametrize(
    ("run", "source", "expected"),
    [
        (encoded(4, (1,)), encoded(4, (2,)), (0, 1, 2, 3)),  # equal lengths: position by position
        (encoded(5, (1,)), encoded(7, (1, 2, 3)), (0, 3, 4, 5, 6)),  # one token for three: the last of these
        (encoded(7, (1, 2, 3)), encoded(5, (1,)), (0, -1, -1, 1, 2, 3, 4)),
        (encoded(6, (1, 2)), encoded(7, (1, 2)), (0, 1, 2, -1, -1, 6)),  # what is between is of another length
        (encoded(7, (2,), other=(4,)), encoded(8, (2, 3), other=(5,)), (0, 1, 3, 4, 5, 6, 7)),
        (encoded(7, (2,), other=(4,)), encoded(8, (4,), other=(2, 3)), (0, -1, 4, -1, 3, -1, 7)),  # another order
        (encoded(6, (1,), query=3), encoded(7, (1, 2), query=4), (0, 2, 3, 4, 5, 6)),
        (encoded(6, (3,), other=(4,)), encoded(8, (3,), other=(1,)), (0, -1, -1, 3, 1, 7)),  # a third between two
        (encoded(8, (3,), other=(1,)), encoded(6, (3,), other=(4,)), (0, 4, -1, 3, -1, -1, -1, 5)),
        (encoded(6, (3,)), encoded(8, (3,), other=(1,)), (0, -1, -1, 3, -1, 7)),  # named in one prompt only
        (encoded(6, (3,), other=(1,)), encoded(8, (3,)), (0, -1, -1, 3, -1, 7)),
        (encoded(8, (3,), phrase=(2, 3, 4)), encoded(9, (4,), phrase=(3, 4, 5)), (0, -1, 3, 4, 5, 6, 7, 8)),  # nested
    ],
)
def test_positions_that_mean_the_same(run, source, expected):
    assert corresponding(run, source) == expected


def test_fillers_correspond_to_fillers_and_both_ways():
    rng = random.Random(0)
    n_found = 0
    for _ in range(300):
        run, source = (spaced(rng, n) for n in (9, 11))
        names = [{position for each in spans(one).values() for position in each} for one in (run, source)]
        there, back = corresponding(run, source), corresponding(source, run)
        fillers = {position: other for position, other in enumerate(there) if position not in names[0] and other >= 0}
        assert not set(fillers.values()) & names[1]
        assert all(back[other] == position for position, other in fillers.items())
        n_found += len(fillers)
    assert n_found > 50


def spaced(rng, n):
    """A prompt with a related word and one or two others anywhere."""
    first, second, related = ((position,) for position in rng.sample(range(1, n - 1), 3))
    return encoded(n, related, first=first, **({"second": second} if rng.random() < 0.7 else {}))
