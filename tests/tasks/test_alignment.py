import re

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast
from transformers.tokenization_python import PythonBackend

from interp.errors import InputError, TaskError
from interp.tasks.alignment import require_fast, tokenize
from interp.tasks.example import Span

SENTENCES = [
    "The keys to the cabinet aren't on the table.",
    "Zoë's naïve brothers have seen themselves, twice.",
    "",
]


def byte_level(*, add_prefix_space, trim_offsets):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<s>"])
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=80, special_tokens=["[UNK]", "[CLS]", "[SEP]"])
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", cls_token="[CLS]")


def sentence_piece():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", behavior="merged_with_next")
    trainer = trainers.BpeTrainer(vocab_size=90, special_tokens=["<unk>", "<s>"])
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", unk_token="<unk>")


def metaspace():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=60, special_tokens=["<unk>", "</s>"], unk_token="<unk>")
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>")


TOKENIZERS = {
    "byte-level, space in the offset": lambda: byte_level(add_prefix_space=False, trim_offsets=False),
    "byte-level, space out of the offset": lambda: byte_level(add_prefix_space=True, trim_offsets=True),
    "byte-level, space put before the text": lambda: byte_level(add_prefix_space=True, trim_offsets=False),
    "WordPiece": word_piece,
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
    (row,) = tokenize(byte_level(add_prefix_space=False, trim_offsets=True), ["ʘʘ keys"])
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
