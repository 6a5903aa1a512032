"""The training corpus: deterministic, in its proportions, of known words, without held-out pairs."""

import itertools
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache

import pytest

from interp.tasks.grammar.lexicon import AUXILIARIES, english
from interp.tasks.grammar.phrases import NEARNESS, indefinite_article, split_of
from interp.tasks.grammar.training_text import MIX, documents

COUNT = 12_000
AUXILIARY_LEMMAS = {form: lemma for lemma, pairs in AUXILIARIES.items() for pair in pairs for form in pair}
DETERMINERS = {determiner.text for determiner in english().determiners}


def from_another_process(count, hash_seed):
    """Documents of seed 0, by a process that hashes strings in its own way."""
    script = (
        "import itertools; from interp.tasks.grammar.training_text import documents; "
        f"print(*itertools.islice(documents(0), {count}), sep='\\n')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


@pytest.fixture(scope="module")
def corpus():
    return from_another_process(COUNT, "1")


@pytest.fixture(scope="module")
def sentences(corpus):
    """Every sentence as a list of words, the first one as inside a sentence unless it is a name."""
    found = []
    for document in corpus:
        for text in re.findall(r"[^.]+\.", document):
            words = re.findall(r"[\w'-]+|,", text)
            first = words[0]
            found.append([first if english().name_of(first) else first.lower(), *words[1:]])
    return found


def tokens(document):
    return re.findall(r"[\w'-]+|[.,]", document)


def kind_of(document):
    """The family of a document, as far as its text tells."""
    if not document.endswith("."):
        return "string"
    if re.search(r"\b([A-Z][a-z]+)\b.* to \1\.$", document):  # the receiver was introduced before
        return "ioi"
    return "other"


@cache
def finite_lemmas():
    """By form, the lemmas of the verbs that a subject can stand before in that form."""
    lexicon, lemmas = english(), defaultdict(set)
    for verb in (*lexicon.verbs, *lexicon.control_verbs, *lexicon.clause_verbs, *lexicon.dative_verbs):
        for form in (verb.third, verb.base, verb.past):
            lemmas[form].add(verb.base)
    return lemmas | {form: {lemma} for form, lemma in AUXILIARY_LEMMAS.items()}


def test_same_seed_same_documents():
    def first(seed):
        return list(itertools.islice(documents(seed), 100))

    assert first(3) == first(3)
    assert first(3) != first(4)


def test_documents_do_not_depend_on_the_process(corpus):
    assert list(itertools.islice(documents(0), 200)) == corpus[:200]
    assert from_another_process(200, "2") == corpus[:200]


def test_all_words_are_known(corpus):
    known = english().words() | {".", ","}
    assert {word for document in corpus for word in tokens(document)} <= known


def test_families_have_their_shares(corpus):
    counts = Counter()
    for document in corpus:
        counts[kind_of(document)] += len(tokens(document))
    total = sum(counts.values())
    assert sum(MIX.values()) == pytest.approx(1)
    assert counts["string"] / total == pytest.approx(MIX["string"], abs=0.02)
    assert counts["ioi"] / total == pytest.approx(MIX["ioi"], abs=0.02)


def test_documents_fit_a_context(corpus):
    assert max(len(tokens(document)) for document in corpus) < 100
    assert sum(len(tokens(document)) <= 60 for document in corpus) / len(corpus) > 0.99


def test_articles_fit_the_next_word(sentences):
    articles = [(one, two) for words in sentences for one, two in itertools.pairwise(words) if one in ("a", "an")]
    assert len(articles) > 500
    assert all(one == indefinite_article(two) for one, two in articles if two != "lot")


def test_subjects_never_stand_with_held_out_verbs(sentences):
    checked = 0
    for words in sentences:
        if len(words) < 3 or words[0] not in DETERMINERS or not (noun := english().noun_of(words[1])):
            continue
        lemmas = finite_lemmas().get(words[2])
        if not lemmas:
            continue
        checked += 1
        assert any(split_of(noun[0].singular, lemma) == "train" for lemma in lemmas), words
    assert checked > 1000


def test_subjects_never_stand_with_held_out_verbs_behind_an_auxiliary(sentences):
    after = defaultdict(set)
    for verb in english().verbs:
        for form in (verb.base, verb.participle, verb.gerund):
            after[form].add(verb.base)
    checked = 0
    for words in sentences:
        if len(words) < 4 or words[0] not in DETERMINERS or words[2] not in AUXILIARY_LEMMAS:
            continue
        noun = english().noun_of(words[1])
        if noun and words[3] in after and not english().noun_of(words[3]):
            checked += 1
            assert any(split_of(noun[0].singular, lemma) == "train" for lemma in after[words[3]]), words
    assert checked > 300


def test_subjects_never_stand_with_held_out_attractors(sentences):
    checked = 0
    for words in sentences:
        if len(words) < 5 or words[0] not in DETERMINERS or words[2] not in NEARNESS:
            continue
        subject = english().noun_of(words[1])
        other = words[3] if english().name_of(words[3]) else None
        if other is None and (noun := english().noun_of(words[4])):
            other = noun[0].singular
        if subject and other:
            checked += 1
            assert split_of(subject[0].singular, other) == "train", words
    assert checked > 300


def test_held_out_names_never_share_a_document(corpus):
    checked = 0
    for document in corpus:
        names = {word for word in tokens(document) if english().name_of(word)}
        for pair in itertools.combinations(sorted(names), 2):
            checked += 1
            assert split_of(*pair) == "train", document
    assert checked > 1500


def test_neighbours_in_strings_are_never_held_out(corpus):
    strings = [tokens(document) for document in corpus if kind_of(document) == "string"]
    checked = 0
    for words in strings:
        start = max((i + 1 for i, word in enumerate(words) if word in ".,"), default=0)  # after a filler sentence
        checked += len(words) - start
        assert all(split_of(*each) == "train" for each in itertools.pairwise(words[start:])), words
    assert checked > 10_000


def test_relative_clauses_do_not_follow_names(sentences):
    relatives = 0
    for words in sentences:
        for before, word in itertools.pairwise(words):
            relatives += word in ("who", "which")
            assert not (english().name_of(before) and word in ("who", "which")), words
    assert relatives > 300


def test_attractors_number_is_independent_of_the_subjects(sentences):
    """Measured where the determiners show nothing: ``The keys near the cabinet are``."""
    counts = Counter()
    for words in sentences:
        if len(words) > 5 and words[0] in ("the", "some") and words[2] in NEARNESS and words[3] in ("the", "some"):
            subject, attractor = english().noun_of(words[1]), english().noun_of(words[4])
            if subject and attractor and words[5] in AUXILIARY_LEMMAS:
                counts[subject[1], attractor[1]] += 1
    total = sum(counts.values())
    assert total > 100
    singular = counts["singular", "singular"], counts["plural", "plural"]
    assert sum(singular) / total == pytest.approx(0.5, abs=0.15)
