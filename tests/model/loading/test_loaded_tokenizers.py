"""The tokenizer of a loaded model: its family's files, one of another library, and what is refused."""

import base64
import json
import random
import sys
from io import BytesIO
from types import ModuleType

import pytest
import sentencepiece
import torch
from as_users_call import unchecked
from foreign_models import random_foreign
from kinds_of_tokenizers import byte_level
from refusals import refused
from tiny_models import random_gpt2, random_model, word_tokenizer
from transformers import (
    AutoTokenizer,
    BertTokenizer,
    GPT2Tokenizer,
    LlamaTokenizer,
    OpenAIGPTTokenizer,
    PreTrainedTokenizerFast,
    Qwen2Tokenizer,
    T5Tokenizer,
)
from transformers.integrations.tiktoken import convert_tiktoken_to_fast

from interp.errors import InputError, LoadError
from interp.model.loading import load_model, save_model

BYTE_LEVEL = ({"<|endoftext|>": 0, "k": 1, "e": 2, "ke": 3, "Ġ": 4, "Ġke": 5}, "k e\nĠ ke\n")
WORDS_OF_BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "key", "##s"]


def model_with(folder, family, *, vocab_size, files):
    random_foreign(family, vocab_size=vocab_size).save_pretrained(folder)
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def with_pairs(vocabulary, pairs):
    return {"vocab.json": vocabulary, "merges.txt": f"#version: 0.2\n{pairs}"}


@pytest.mark.parametrize(
    ("family", "kind", "bos", "eos"),
    [("neox", GPT2Tokenizer, "<|endoftext|>", "<|endoftext|>"), ("qwen2", Qwen2Tokenizer, None, "<|endoftext|>")],
)
def test_byte_level_pairs(tmp_path, family, kind, bos, eos):
    model_with(tmp_path, family, vocab_size=6, files=with_pairs(*BYTE_LEVEL))
    tokenizer = load_model(tmp_path).tokenizer
    assert type(tokenizer) is kind
    assert tokenizer.encode("ke ke") == [3, 5]
    assert (tokenizer.bos_token, tokenizer.eos_token) == (bos, eos)


def test_gpt1_has_words_that_end_and_lower_case(tmp_path):
    files = with_pairs({"<unk>": 0, "k": 1, "e</w>": 2, "ke</w>": 3}, "k e</w>\n")
    model_with(tmp_path, "gpt1", vocab_size=4, files=files)
    tokenizer = load_model(tmp_path).tokenizer
    assert type(tokenizer) is OpenAIGPTTokenizer
    assert tokenizer.encode("Ke ke") == [3, 3]
    assert tokenizer.bos_token is None


@pytest.mark.parametrize("lower", [True, False])
def test_bert_begins_with_cls_and_ends_with_sep(tmp_path, lower):
    files = {"vocab.txt": "\n".join(WORDS_OF_BERT) + "\n", "tokenizer_config.json": {"do_lower_case": lower}}
    model = load_model(model_with(tmp_path, "bert", vocab_size=8, files=files))
    assert type(model.tokenizer) is BertTokenizer
    assert (model.tokenizer.bos_token, model.tokenizer.eos_token) == ("[CLS]", "[SEP]")
    assert model.to_tokens("The keys").tolist() == [[2, 5 if lower else 1, 6, 7, 3]]


def test_bert_from_tokenizer_json_is_the_same(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    model_with(old, "bert", vocab_size=8, files={"vocab.txt": "\n".join(WORDS_OF_BERT) + "\n"})
    model_with(new, "bert", vocab_size=8, files={})
    BertTokenizer.from_pretrained(old).save_pretrained(new)
    assert not (new / "vocab.txt").exists()
    assert load_model(new).to_tokens("The keys").tolist() == load_model(old).to_tokens("The keys").tolist()


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize(
    ("family", "files", "option", "text"),
    [
        ("neox", with_pairs(*BYTE_LEVEL), "add_prefix_space", "ke"),
        ("bert", {"vocab.txt": "\n".join(WORDS_OF_BERT) + "\n"}, "do_lower_case", "The"),
    ],
)
def test_a_config_that_was_edited_counts_as_in_transformers(tmp_path, family, files, option, text, changed):
    """It may say otherwise than ``tokenizer.json``, which the family's own class then reads by what the config says."""
    size = len(WORDS_OF_BERT)
    load_model(model_with(tmp_path / "old", family, vocab_size=size, files=files)).tokenizer.save_pretrained(tmp_path)
    random_foreign(family, vocab_size=size).save_pretrained(tmp_path)
    assert (tmp_path / "tokenizer.json").is_file()
    before = load_model(tmp_path).to_tokens(text, prepend_bos=False).tolist()
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    if changed:
        path.write_text(json.dumps(config | {option: not config.get(option, family == "bert")}))
    found = load_model(tmp_path).to_tokens(text, prepend_bos=False).tolist()
    assert found == [AutoTokenizer.from_pretrained(tmp_path)(text, add_special_tokens=False)["input_ids"]]
    assert (found != before) == changed


def test_a_class_that_gives_no_offsets(tmp_path):
    """Its ids may be others; transformers would take it."""
    files = {"vocab.txt": "\n".join(WORDS_OF_BERT) + "\n"}
    before = load_model(model_with(tmp_path, "bert", vocab_size=8, files=files))
    before.tokenizer.save_pretrained(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tokenizer_class": "ByT5Tokenizer"}))
    with pytest.warns(RuntimeWarning, match=r"would read this tokenizer by ByT5Tokenizer, .* is read as it stands"):
        model = load_model(tmp_path)
    assert torch.equal(model.to_tokens("the keys"), before.to_tokens("the keys"))


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_llama_from_sentencepiece(tmp_path, family):
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdeé", k=rng.randint(1, 6))) for _ in range(200)]
    text = [" ".join(rng.choices(words, k=8)) for _ in range(300)]
    options = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity"}
    options |= {"remove_extra_whitespaces": False, "character_coverage": 1.0, "minloglevel": 2}
    prefix = str(tmp_path / "tokenizer")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_prefix=prefix, vocab_size=400, **options
    )
    model = load_model(model_with(tmp_path, family, vocab_size=400, files={}))
    theirs = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    assert (model.tokenizer.bos_token, model.tokenizer.eos_token) == ("<s>", "</s>")
    for _ in range(200):
        drawn = "a" + "".join(rng.choices("abcdeé ü\n", k=rng.randint(1, 30)))  # a first space transformers swallows
        assert model.tokenize(drawn)[0][0, 1:].tolist() == theirs.encode(drawn)


@pytest.mark.parametrize(
    ("family", "files"),
    [
        ("bert", {"vocab.txt": "\n".join(WORDS_OF_BERT) + "\n"}),
        *[(family, with_pairs(*BYTE_LEVEL)) for family in ("qwen2", "gpt1", "gpt2", "ours")],
        ("llama", {"tokenizer.model": "no model"}),
    ],
)
def test_one_that_would_run_code_is_refused_and_does_not(tmp_path, monkeypatch, family, files):
    """Whoever answers transformers' question, if it were asked, says yes."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder, target = tmp_path / "model", tmp_path / "it ran"
    folder.mkdir()
    if family == "ours":
        save_model(random_model(), folder)
    else:
        (random_gpt2() if family == "gpt2" else random_foreign(family, vocab_size=8)).save_pretrained(folder)
    fields = {"auto_map": {"AutoTokenizer": ["it.It", "it.It"]}, "tokenizer_class": "It"}
    code = f"from pathlib import Path\nPath({str(target)!r}).touch()\nclass It: pass\n"
    for name, content in {**files, "tokenizer_config.json": fields, "it.py": code}.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    refused(folder, r"tokenizer_config.json: the tokenizer needs code of its own \('auto_map'\), which is not run")
    assert load_model(folder, tokenizer=word_tokenizer()).tokenizer is not None  # as the message advises
    assert not target.exists()


def test_a_sentencepiece_file_that_is_damaged(tmp_path):
    model_with(tmp_path, "llama", vocab_size=8, files={"tokenizer.model": "no model"})
    refused(tmp_path, "the tokenizer's files cannot be read")


def test_files_of_another_family_are_no_tokenizer(tmp_path):
    model_with(tmp_path, "bert", vocab_size=6, files=with_pairs(*BYTE_LEVEL))
    assert load_model(tmp_path).tokenizer is None


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


@pytest.mark.parametrize("family", ["gpt2", "ours"])
def test_a_broken_tokenizer_is_refused_or_replaced(gpt2, family):
    if family == "ours":
        save_model(random_model(), gpt2)
    mine = word_tokenizer()
    mine.save_pretrained(gpt2)
    (gpt2 / "tokenizer.json").write_text("{oops")
    refused(gpt2, "the tokenizer's files cannot be read")
    assert load_model(gpt2, tokenizer=mine).tokenizer is mine
