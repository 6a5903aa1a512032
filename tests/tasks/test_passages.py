"""Which words are read of a task and of a corpus, and what of them stands in the index."""

import dataclasses

import pytest
from banks import document, sentence, word_level

import interp
from interp.errors import TaskError
from interp.tasks.alignment import Windows
from interp.tasks.features import Label
from interp.tasks.passages import CorpusPassages, Passage, ReadWord, passage_index, task_passages


@pytest.fixture(scope="module")
def agreement():
    model = interp.load_model()
    return interp.load_task("agreement", n=12, seed=0, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)


def test_a_task_is_read_where_it_predicts(agreement):
    passages = list(task_passages(agreement))
    assert len(passages) == len(agreement.examples)
    for passage, encoded in zip(passages, agreement.examples, strict=True):
        (word,) = passage.words
        assert passage.ids == encoded.prompt
        assert word.tokens == (len(encoded.prompt) - 1,)
        assert word.form == encoded.example.prompt.split()[-1]
        assert word.labels["number"].value == encoded.example.features["number"]
        assert word.labels["number"].carrier == encoded.example.relation.related.of(encoded.example.text).lower()
        assert word.labels["number"].lemma == passage.document


def test_or_where_it_looks_back_from_inside_the_prompt(agreement):
    """As where attention is scored and features are erased."""
    queries = [each.related[0] for each in agreement.examples]  # any word of the prompt will do
    inside = [dataclasses.replace(each, query=query) for each, query in zip(agreement.examples, queries, strict=True)]
    units = [
        dataclasses.replace(unit, item=item, counterfactual=other)
        for unit, item, other in zip(agreement.units, inside[::2], inside[1::2], strict=True)
    ]
    passages = task_passages(dataclasses.replace(agreement, units=tuple(units)))
    assert [word.tokens for passage in passages for word in passage.words] == [(query,) for query in queries]


def test_or_at_the_word_that_carries_the_features(agreement):
    for passage, encoded in zip(task_passages(agreement, "related"), agreement.examples, strict=True):
        (word,) = passage.words
        assert word.tokens == encoded.related
        assert encoded.example.prompt.split()[word.word] == word.form


def corpus(only=False, **options):
    text = document(
        sentence("one two", upos=["NUM", "NUM"], name="first"), sentence("three , four", upos=["NUM", "", "NUM"])
    )
    windows = Windows(word_level(["one", "two", "three", ",", "four"]), 16, both_sides=False)
    return CorpusPassages([text], windows, ["upos"], only=only, **options)


def test_every_word_of_a_corpus_is_read_once():
    (passage,) = corpus()
    assert [word.form for word in passage.words] == ["one", "two", "three", ",", "four"]
    assert [(word.sentence, word.word) for word in passage.words[:3]] == [("first", 0), ("first", 1), ("s", 0)]
    assert [word.tokens for word in passage.words] == [(1,), (2,), (3,), (4,), (5,)]


def test_sentences_by_themselves_begin_anew():
    _, second = corpus(context="sentence")
    assert [word.tokens for word in second.words] == [(1,), (2,), (3,)]


def test_only_the_labelled_words_where_they_are_wanted():
    (passage,) = corpus(only=True)
    assert [word.form for word in passage.words] == ["one", "two", "three", "four"]


def test_words_without_tokens_of_their_own_are_counted():
    text = document(sentence("one two"))
    tokenizer = word_level(["one two"])
    tokenizer.backend_tokenizer.pre_tokenizer = None
    given = CorpusPassages([text], Windows(tokenizer, 16, both_sides=False), ["upos"])
    assert list(given) == []
    assert given.unaligned == {"no token of its own": 2}


def test_the_index_says_where_and_what():
    words = (
        ReadWord("s1", 0, "Keys", (1, 2), {"number": Label("plural", "keys", "key")}),
        ReadWord("s1", 1, "rust", (3,), {}),
    )
    index = passage_index([Passage("d", "simple", (0, 1, 2, 3), words)])
    assert index.to_dict("records") == [
        {
            **{"document": "d", "template": "simple", "sentence": "s1", "word": 0, "token": 1, "n_tokens": 2},
            **{"form": "Keys", "number": "plural", "number:carrier": "keys", "number:lemma": "key"},
        },
        {
            **{"document": "d", "template": "simple", "sentence": "s1", "word": 1, "token": 3, "n_tokens": 1},
            **{"form": "rust", "number": None, "number:carrier": None, "number:lemma": None},
        },
    ]
    with pytest.raises(TaskError, match="feature 'form': expected another name"):
        passage_index([Passage("d", "", (0, 1), (ReadWord("s", 0, "a", (1,), {"form": Label("a", "a", "")}),))])
