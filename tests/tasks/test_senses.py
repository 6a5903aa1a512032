"""Sentences of ambiguous words: what is written is in balance, and the label stands at the right token."""

from collections import Counter
from importlib.resources import files

import pytest

import interp
from interp.errors import TaskError
from interp.tasks.alignment import Windows
from interp.tasks.corpus import Corpus
from interp.tasks.features import features_in
from interp.tasks.generated_corpus import LEMMAS, is_senses, senses
from interp.tasks.passages import CorpusPassages
from recipes.tokenizer import build_tokenizer

SENSES = {"bank": ("money", "river"), "run": ("move", "operate")}
LEAST = 40
lemmas = pytest.mark.parametrize("lemma", LEMMAS)


def drawn(lemma):
    """Of each document: its sense, the word's number in its sentence, and what stands before and from it on."""
    for document in senses(lemma):
        (sentence,) = document.sentences
        ((number, word),) = [(at, word) for at, word in enumerate(sentence.words) if word.sense]
        yield word.sense, number, sentence.text[: word.span.start].strip(), sentence.text[word.span.start :]


def clause(before):
    return before.partition(",")[0]


def test_every_lemma_has_its_file():
    found = {each.name for each in files("interp.tasks.word_senses").iterdir() if each.name.endswith(".toml")}
    assert found == {f"{lemma}.toml" for lemma in LEMMAS}
    assert tuple(SENSES) == LEMMAS


@lemmas
def test_every_sense_has_as_many_sentences_each_its_own_document(lemma):
    counts = Counter(sense for sense, *_ in drawn(lemma))
    assert tuple(counts) == SENSES[lemma]
    assert min(counts.values()) >= LEAST
    assert len(set(counts.values())) == 1
    names = [document.id for document in senses(lemma)]
    assert len(set(names)) == len(names)


@lemmas
def test_neither_place_nor_form_nor_frame_gives_the_sense_away(lemma):
    """In all of them the senses are equally frequent, also together."""
    looks = {each: Counter() for each in SENSES[lemma]}
    for sense, number, before, after in drawn(lemma):
        frame = before.removeprefix(clause(before))
        looks[sense][number, frame, after] += 1
        assert frame.startswith(", and ")
    one, other = looks.values()
    assert one == other
    assert len({frame for _, frame, _ in one}) == 8


@lemmas
def test_what_is_said_before_the_word_is_said_once_and_in_many_words(lemma):
    clauses = [clause(before) for _, _, before, _ in drawn(lemma)]
    assert len(set(clauses)) == len(clauses)
    words = Counter(word for each in clauses for word in set(each.lower().split()))
    assert lemma not in words
    assert len(words) > 4 * LEAST
    alone = sum(n == 1 for n in words.values())
    assert alone > len(words) / 2


@lemmas
def test_no_word_alone_tells_most_of_a_sense(lemma):
    for sense in SENSES[lemma]:
        own = [clause(before).lower().split() for each, _, before, _ in drawn(lemma) if each == sense]
        other = {
            word for each, _, before, _ in drawn(lemma) if each != sense for word in clause(before).lower().split()
        }
        counts = Counter(word for each in own for word in set(each) - other)
        assert max(counts.values()) <= len(own) / 6


@pytest.mark.parametrize("tokenizer", [None, build_tokenizer(["bank", "run", "the", "to"])], ids=["books", "small"])
@lemmas
def test_the_label_stands_at_the_word_s_token(lemma, tokenizer):
    tokenizer = tokenizer or interp.load_model("books").tokenizer
    given = CorpusPassages(senses(lemma), Windows(tokenizer, 256, both_sides=False), [f"sense:{lemma}"], only=True)
    passages = list(given)
    assert len(passages) == len(senses(lemma))
    for passage, (sense, number, before, _) in zip(passages, drawn(lemma), strict=True):
        (word,) = passage.words
        assert (word.form, word.word, word.labels[f"sense:{lemma}"].value) == (lemma, number, sense)
        assert tokenizer.decode([passage.ids[at] for at in word.tokens]).strip() == lemma
        assert tokenizer.decode(passage.ids[: word.tokens[0]]).strip().endswith(before)
    assert not given.unaligned


def test_they_are_a_corpus_by_name():
    assert is_senses("senses:bank")
    assert not is_senses("bank.conllu")
    corpus = Corpus.of(["senses:bank", "senses:run"])
    assert [each.id for each in corpus] == [each.id for lemma in ("bank", "run") for each in senses(lemma)]
    assert features_in(corpus) == ["sense:bank", "sense:run"]
    assert senses("senses:bank") == senses("bank")


@pytest.mark.parametrize(
    ("lemma", "says"), [("runn", "did you mean 'run'"), ("spring", "known are 'bank', 'run'"), ("", "known are 'bank'")]
)
def test_an_unknown_lemma_is_told_which_there_are(lemma, says):
    with pytest.raises(TaskError, match=f"senses of '{lemma}': expected a lemma that there are sentences of; {says}"):
        senses(lemma)
    with pytest.raises(TaskError, match=says):
        list(Corpus.of(f"senses:{lemma}"))
