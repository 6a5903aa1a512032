"""The toy languages: what a sentence is, and that its gold alignment is the truth."""

import pytest

from forerunners.toy_french import (
    BEFORE_NOUN,
    BEHIND_NOUN,
    DETERMINERS,
    NOUNS,
    SPECIAL,
    VERBS,
    sentence_pairs,
    source_words,
    target_words,
)
from interp.errors import InputError

PAIRS = sentence_pairs(500, seed=0)
TRANSLATIONS = {
    *((english, french) for nouns in NOUNS for english, french in zip(*nouns[:2], strict=True)),
    *((english, form) for english, forms in (*BEFORE_NOUN, *BEHIND_NOUN) for form in forms),
    *((english, form) for both, forms in DETERMINERS for english in both for form in forms),
    *((english, form) for both, forms in VERBS for english in both for form in forms),
    *(("two", "deux"), ("three", "trois"), ("four", "quatre"), ("five", "cinq"), ("not", "ne"), ("not", "pas")),
    *(("today", "aujourd'hui"), ("tomorrow", "demain"), ("here", "ici"), ("now", "maintenant")),
}


def test_every_link_is_in_the_dictionary():
    for pair in PAIRS:
        assert len(pair.alignment) == len(pair.target)
        for word, at in zip(pair.target, pair.alignment, strict=True):
            assert (pair.source[at], word) in TRANSLATIONS


def test_all_words_but_do_and_does_are_translated_once_and_not_twice():
    for pair in PAIRS:
        for at, word in enumerate(pair.source):
            assert pair.alignment.count(at) == {"do": 0, "does": 0, "not": 2}.get(word, 1)


def test_adjectives_stand_on_their_side_of_the_noun():
    nouns = {form for _, forms, _ in NOUNS for form in forms}
    before, behind = ({form for _, forms in each for form in forms} for each in (BEFORE_NOUN, BEHIND_NOUN))
    seen = 0
    for pair in PAIRS:
        for word, following in zip(pair.target, pair.target[1:], strict=False):
            assert (following in behind) <= (word in nouns)
            assert (word in before) <= (following in nouns)
            seen += following in behind
    assert seen > 100


def test_number_and_gender_agree():
    phrases = {
        french[several]: {forms[2 * (gender == "f") + several] for _, forms in DETERMINERS}
        for _, french, gender in NOUNS
        for several in (False, True)
    }
    determiners = {form for _, forms in DETERMINERS for form in forms}
    singular = {french[0] for _, french in VERBS}
    for pair in PAIRS:
        nouns = [(at, word) for at, word in enumerate(pair.target) if word in phrases]
        assert len(nouns) == 2
        for at, noun in nouns:
            determiner = next(word for word in reversed(pair.target[:at]) if word in determiners)
            assert determiner in phrases[noun]
        subject_is_one = nouns[0][1] in {french[0] for _, french, _ in NOUNS}
        assert bool(singular & set(pair.target)) == subject_is_one


def test_an_adverb_begins_the_one_and_ends_the_other():
    with_adverb = [pair for pair in PAIRS if pair.source[0] in ("today", "tomorrow", "here", "now")]
    assert 150 < len(with_adverb) < 350
    assert all(pair.alignment[-1] == 0 for pair in with_adverb)


def test_the_same_seed_gives_the_same_different_sentences():
    assert sentence_pairs(500, seed=0) == PAIRS
    assert sentence_pairs(100, seed=0) == PAIRS[:100]
    assert sentence_pairs(500, seed=1) != PAIRS
    assert len(set(PAIRS)) == 500
    with pytest.raises(InputError, match="n: expected at least one sentence, got 0"):
        sentence_pairs(0, seed=0)


def test_the_vocabularies_hold_every_word_once():
    for words, sentences in ((source_words(), [p.source for p in PAIRS]), (target_words(), [p.target for p in PAIRS])):
        assert len(set(words)) == len(words)
        assert words[:3] == SPECIAL
        assert {word for sentence in sentences for word in sentence} <= set(words)
