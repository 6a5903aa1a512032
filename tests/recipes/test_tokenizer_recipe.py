"""One token for each known word, and every text comes back."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from interp.errors import InputError
from interp.tasks.grammar.lexicon import english
from recipes.tokenizer import build_tokenizer

TEXTS = (
    "The keys to the cabinet aren't on Mary's table.",
    "Unknown words: xylophones, naïveté, 日本語, 🙂👩‍👩‍👧, 3.14.",
    "def f(x):\n\treturn  x ** 2  # twice\n\n",
    "can't won't 'quoted' it's we're I'd o'clock",
    "  two spaces first",
)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer(english().words())


@pytest.fixture(scope="module", params=[AutoTokenizer, PreTrainedTokenizerFast])
def reloaded(
    tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> PreTrainedTokenizerFast:
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(folder)
    return request.param.from_pretrained(folder)


def test_every_word_is_one_token_alone_and_in_a_text(tokenizer: PreTrainedTokenizerFast) -> None:
    words = sorted(english().words())
    assert [word for word in words if tokenizer.tokenize(f" {word}") != [f"Ġ{word}"]] == []
    assert [word for word in words if tokenizer.tokenize(word) != [f"Ġ{word}"]] == []
    assert tokenizer.tokenize(" ".join(words)) == [f"Ġ{word}" for word in words]


def test_the_vocabulary_has_no_idle_entries(tokenizer: PreTrainedTokenizerFast) -> None:
    words = english().words()
    assert len(tokenizer) == len(words) + 258
    assert sorted(tokenizer.get_vocab().values()) == list(range(len(tokenizer)))


def test_special_tokens(tokenizer: PreTrainedTokenizerFast) -> None:
    assert tokenizer.bos_token_id == tokenizer.eos_token_id == 0
    assert tokenizer.unk_token_id is None
    assert tokenizer.encode("The keys") == tokenizer.convert_tokens_to_ids(["ĠThe", "Ġkeys"])
    assert tokenizer.tokenize("<|endoftext|>The keys") == ["<|endoftext|>", "ĠThe", "Ġkeys"]


def test_punctuation_and_possessives_stand_alone_but_contractions_do_not(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    assert tokenizer.tokenize("Mary's keys, they don't.") == [
        *("ĠMary", "'s", "Ġkeys", ",", "Ġthey", "Ġdon't", "."),
    ]


@given(st.text())
def test_every_text_comes_back(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    shown = text.removeprefix(" ")
    assert tokenizer.decode(tokenizer.encode(text)) == shown
    assert tokenizer.decode([0, *tokenizer.encode(text)], skip_special_tokens=True) == shown


@pytest.mark.parametrize("text", TEXTS)
def test_offsets_cover_the_text_without_gaps(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    encoded = tokenizer(text, return_offsets_mapping=True)
    seen = 0
    for start, stop in encoded["offset_mapping"]:
        assert start <= seen <= stop
        seen = max(seen, stop)
    assert seen == len(text)


@pytest.mark.parametrize("prefix", ["", "<|endoftext|>", "é 🙂. "])
def test_offsets_are_those_of_the_words_with_their_space(tokenizer: PreTrainedTokenizerFast, prefix: str) -> None:
    text = f"{prefix}The keys to Mary's cabinet aren't here."
    encoded = tokenizer(text, return_offsets_mapping=True)
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    shown = {token: text[start:stop] for token, (start, stop) in zip(tokens, encoded["offset_mapping"], strict=True)}
    for word in ("keys", "to", "Mary", "cabinet", "aren't", "here"):
        assert shown[f"Ġ{word}"] == f" {word}"
    assert shown["ĠThe"].strip() == "The"
    assert shown["'s"] == "'s"


def test_only_the_set_of_words_matters() -> None:
    one = build_tokenizer(["keys", "The", "aren't"])
    other = build_tokenizer(["aren't", "keys", "The", "keys"])
    assert one.get_vocab() == other.get_vocab()


@pytest.mark.parametrize("text", TEXTS)
def test_saving_changes_nothing(
    tokenizer: PreTrainedTokenizerFast, reloaded: PreTrainedTokenizerFast, text: str
) -> None:
    expected, got = (each(text, return_offsets_mapping=True) for each in (tokenizer, reloaded))
    assert dict(got) == dict(expected)
    assert reloaded.decode(got["input_ids"]) == tokenizer.decode(expected["input_ids"])
    assert reloaded.get_vocab() == tokenizer.get_vocab()
    assert reloaded.all_special_tokens == tokenizer.all_special_tokens


@pytest.mark.parametrize("word", ["", " ", "two words", "ex-wife", "o'clock", "b2b", "Mary's"])
def test_a_word_that_no_text_could_give_back_whole_is_refused(word: str) -> None:
    with pytest.raises(InputError, match=re.escape(repr(word))):
        build_tokenizer(["keys", word])


def test_blimp_takes_one_token_for_a_word(tokenizer: PreTrainedTokenizerFast, data_dir: Path) -> None:
    lines = (data_dir / "blimp" / "regular_plural_subject_verb_agreement_1.jsonl").read_text().splitlines()
    sentences = [json.loads(line)["sentence_good"] for line in lines]
    pieces = [re.findall(r"'s|[.,]|[\w']+?(?='s)|[\w']+", sentence) for sentence in sentences]
    whole = [len(tokenizer.encode(sentence)) == len(each) for sentence, each in zip(sentences, pieces, strict=True)]
    assert sum(whole) / len(whole) >= 0.95
