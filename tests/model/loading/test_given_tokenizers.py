"""Tokenizers of other libraries in the place of one of transformers: wrapped, or refused with advice that works."""

import base64
import sys
from io import BytesIO
from types import ModuleType

import pytest
import sentencepiece
from as_users_call import unchecked
from kinds_of_tokenizers import byte_level
from tiny_models import random_gpt2, random_model, word_tokenizer
from transformers import GPT2Tokenizer, LlamaTokenizer, PreTrainedTokenizerFast, T5Tokenizer
from transformers.integrations.tiktoken import convert_tiktoken_to_fast

from interp.errors import InputError, LoadError
from interp.model.loading import load_model


class SentencePieceProcessor:
    """As SentencePiece's is called; it takes no options of transformers."""

    __module__ = "sentencepiece"

    def encode(self, text):
        return [len(text)]

    def __len__(self):
        return 40


class Encoding:
    """As tiktoken's is made of ranks, a pattern and special tokens."""

    __module__ = "tiktoken.core"
    _pat_str = r" ?\w+|\s"
    _special_tokens = {"<|end|>": 256}  # noqa: RUF012

    def __init__(self):
        self._mergeable_ranks = {bytes([each]): each for each in range(256)}


def loaded(tokenizer):
    return unchecked(load_model)(random_gpt2(vocab_size=300), tokenizer=tokenizer)


def test_one_of_tokenizers_is_wrapped():
    own = word_tokenizer()
    model = loaded(own.backend_tokenizer)
    assert isinstance(model.tokenizer, PreTrainedTokenizerFast)
    assert model.to_tokens("the keys").tolist() == loaded(own).to_tokens("the keys", prepend_bos=False).tolist()
    model.tokenizer.bos_token = own.bos_token
    assert model.to_tokens("the keys").tolist() == loaded(own).to_tokens("the keys").tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (SentencePieceProcessor(), "got SentencePiece's SentencePieceProcessor; .*LlamaTokenizer.from_pretrained"),
        (Encoding(), r"got tiktoken's Encoding; call .*convert_tiktoken_to_fast\(encoding, FOLDER\)"),
        ("gpt2", r"got 'gpt2'; give what AutoTokenizer.from_pretrained\(FOLDER\) returns"),
        (GPT2Tokenizer, r"got <class '.*GPT2Tokenizer'>; give what AutoTokenizer"),
        (3, "got 3; give what AutoTokenizer"),
    ],
)
def test_what_is_none_of_transformers(given, message):
    for source in (random_gpt2(), None):
        with pytest.raises(ValueError, match=f"^tokenizer: expected one of transformers, {message}"):
            unchecked(load_model)(source, tokenizer=given)
    model = random_model()
    model.tokenizer = given
    with pytest.raises(InputError, match=f"tokenizer: expected one of transformers, {message}"):
        model.to_tokens("the keys", prepend_bos=False)


def test_one_of_tokenizers_that_was_set():
    model = random_model(d_vocab=300)
    model.tokenizer = byte_level().backend_tokenizer
    with pytest.raises(InputError, match=r"give PreTrainedTokenizerFast\(tokenizer_object=tokenizer\)"):
        model.to_string([1, 2])
    model.tokenizer = PreTrainedTokenizerFast(tokenizer_object=model.tokenizer)
    assert model.to_string(model.to_tokens("a", prepend_bos=False)) == ["a"]


def test_the_advice_about_tiktoken(tmp_path, monkeypatch):
    """With a stand-in for the two functions of its library that transformers calls."""
    tiktoken, load = ModuleType("tiktoken"), ModuleType("tiktoken.load")
    tiktoken.get_encoding = None

    def dump(ranks, path):
        with open(path, "wb") as file:
            file.writelines(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())

    def read(path):
        with open(path, "rb") as file:
            return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, file)}

    load.dump_tiktoken_bpe, load.load_tiktoken_bpe = dump, read
    monkeypatch.setitem(sys.modules, "tiktoken", tiktoken)
    monkeypatch.setitem(sys.modules, "tiktoken.load", load)
    with pytest.raises(LoadError, match="convert_tiktoken_to_fast"):
        loaded(Encoding())
    convert_tiktoken_to_fast(Encoding(), str(tmp_path / "made"))
    model = loaded(PreTrainedTokenizerFast.from_pretrained(tmp_path / "made"))
    assert model.to_tokens("ab", prepend_bos=False).tolist() == [[97, 98]]


@pytest.mark.parametrize(("kind", "reader"), [("bpe", LlamaTokenizer), ("unigram", T5Tokenizer)])
def test_the_advice_about_sentencepiece(tmp_path, kind, reader):
    texts = ["the key to the cabinets is on the table", "Mary gave a book to John", "he is a keeper of the books"]
    made = BytesIO()
    options = {"vocab_size": 45, "model_type": kind, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=made, **options)
    given = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    with pytest.raises(LoadError, match=f"serialized_model_proto.*{reader.__name__}.from_pretrained"):
        loaded(given)
    (tmp_path / "tokenizer.model").write_bytes(given.serialized_model_proto())
    model = loaded(reader.from_pretrained(tmp_path))
    for text in texts:
        assert model.to_tokens(text, prepend_bos=False)[0].tolist() == given.encode(text)
