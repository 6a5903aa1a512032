"""The generator's parts: splits, dice, text and spans, vocabulary, phrases."""

import itertools
from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import TaskError
from interp.tasks import agreement, coreference, ioi
from interp.tasks import induction as strings
from interp.tasks import reflexive as reflexives
from interp.tasks.grammar import lexicon, phrases
from interp.tasks.grammar import phrases as splits
from interp.tasks.grammar.lexicon import GENDERS, KINDS, english, vocabulary
from interp.tasks.grammar.phrases import (
    PUNCTUATION,
    SHAPES,
    SHARES,
    Dice,
    Word,
    Writer,
    allowed,
    draw_within,
    fill,
    indefinite_article,
    layout,
    render,
    sentence,
    spans,
    split_of,
)

words_strategy = st.lists(st.sampled_from(["key", "the", "can't", ".", ","]), min_size=1, max_size=12).filter(
    lambda texts: texts[0] not in PUNCTUATION
)


class Pair(NamedTuple):
    """A construction with one pair."""

    first: str
    second: str

    @property
    def decisive(self):
        return [(self.first, self.second)]

    pairs = decisive


class TestSplits:
    def test_a_pair_has_no_direction(self):
        nouns = [noun.singular for noun in english().nouns][:40]
        for first, second in itertools.combinations(nouns, 2):
            assert split_of(first, second) == split_of(second, first)

    def test_shares_are_those_declared(self):
        names = [name.text for name in english().names]
        pairs = list(itertools.combinations(names, 2))
        counts = Counter(split_of(*pair) for pair in pairs)
        assert sum(SHARES.values()) == pytest.approx(1)
        for split, share in SHARES.items():
            assert counts[split] / len(pairs) == pytest.approx(share, abs=0.02)

    def test_a_lemma_is_no_partner_of_its_own(self):
        own = {split_of(noun.singular, noun.singular) for noun in english().nouns}
        assert "train" in own
        assert not any(allowed([(noun.singular, noun.singular)], "train") for noun in english().nouns)

    def test_draws_within_every_split(self):
        dice, nouns = Dice("test"), [noun.singular for noun in english().nouns]
        for split in SHARES:
            drawn = draw_within(split, lambda: Pair(dice.pick(nouns), dice.pick(nouns)))
            assert split_of(drawn.first, drawn.second) == split

    def test_an_impossible_split_says_so(self, monkeypatch):
        monkeypatch.setattr(splits, "ATTEMPTS", 50)
        assert split_of("key", "cabinet") != "select"
        with pytest.raises(TaskError, match=r"split 'select'.*50 draws"):
            draw_within("select", lambda: Pair("key", "cabinet"))


class TestDice:
    def test_the_key_decides(self):
        def rolls(*key):
            dice = Dice(*key)
            return [dice.between(0, 999) for _ in range(20)]

        assert rolls("a", 1) == rolls("a", 1)
        assert rolls("a", 1) != rolls("a", 2)

    def test_bounds_are_included_and_equally_likely(self):
        dice = Dice("bounds")
        counts = Counter(dice.between(3, 6) for _ in range(8000))
        assert set(counts) == {3, 4, 5, 6}
        assert all(abs(count - 2000) < 200 for count in counts.values())


class TestSentence:
    @given(words_strategy)
    def test_spans_cut_out_the_words(self, texts):
        words = [Word(text) for text in texts]
        text = render(words)
        assert [span.of(text) for span in spans(words)] == texts

    def test_text_is_ordinary_english(self):
        words = [Word(text) for text in ["when", "Ann", "left", ",", "she", "can't", "go"]]
        assert render(sentence(words)) == "When Ann left, she can't go."

    def test_a_template_is_filled_slot_by_slot(self):
        keys = [Word("the", "determiner"), Word("keys", "subject")]
        words = fill("subject adverb verb , and more", {"subject": keys, "adverb": "", "verb": "fell"})
        assert render(words) == "The keys fell, and more"
        assert layout(words) == "determiner subject verb , and more"

    def test_layout_names_every_word(self):
        words = [Word("the", "determiner"), Word("key", "subject")]
        assert layout(sentence(words)) == "determiner subject ."

    @pytest.mark.parametrize(
        ("noun", "article"),
        [("octopus", "an"), ("key", "a"), ("university", "a"), ("unicycle", "a"), ("hour", "an"), ("Eva", "an")],
    )
    def test_indefinite_article(self, noun, article):
        assert indefinite_article(noun) == article


class TestVocabulary:
    def test_every_kind_and_role_has_candidates(self):
        words = vocabulary()
        assert set(words.nouns) == set(words.verbs) == set(KINDS)
        assert all(words.names[gender] and words.gendered[gender] for gender in GENDERS)
        assert {roles[0] for roles in words.transitive} == {roles[1] for roles in words.transitive} == set(KINDS)

    def test_constants_are_words_of_the_lexicon(self):
        constants = {
            *phrases.PREVERBAL,
            *phrases.NEARNESS,
            *phrases.GENERAL_ADJECTIVES,
            *agreement.DETERMINERS,
            *coreference.CONNECTIVES,
            *coreference.LINKS,
            *ioi.SUBORDINATORS,
            *reflexives.REFLEXIVES.values(),
            *(form for forms in lexicon.AUXILIARIES.values() for pair in forms for form in pair),
            *(form for forms in lexicon.INVARIANT_AUXILIARIES.values() for form in forms),
        }
        assert constants <= english().words()

    @pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in ("somewhere", "somebody")])
    def test_most_fillers_have_no_noun_of_count_and_no_gender(self, shape):
        words = [word.text.lower() for word in Writer("filler", shape).filler(shape)]
        assert not any(english().noun_of(word) for word in words)
        assert not {"she", "he", "her", "his"} & set(words)
        assert not any(english().name_of(word.capitalize()) for word in words)


class TestPredicates:
    @pytest.mark.parametrize("kind", KINDS)
    def test_number_shows_in_one_word(self, kind):
        dice = Writer("predicate", kind)
        for _ in range(300):
            drawn = dice.predicate(kind)
            assert drawn.singular != drawn.plural
            assert {drawn.singular, drawn.plural} <= english().words()
            assert kind in drawn.verb.subjects

    @pytest.mark.parametrize("tense", lexicon.TENSES)
    def test_number_shows_only_where_it_should(self, tense):
        verb = next(verb for verb in english().verbs if verb.base == "break")
        seen = {
            number: {render(Writer(tense, roll).verb_phrase(verb, tense, number)) for roll in range(100)}
            for number in lexicon.NUMBERS
        }
        if tense in ("present", *lexicon.AUXILIARIES):
            assert not seen["singular"] & seen["plural"]
        else:
            assert seen["singular"] == seen["plural"]

    def test_determiners_fit_their_nouns(self):
        dice = Writer("determiner")
        drawn = {number: {dice.determiner(number) for _ in range(500)} for number in lexicon.NUMBERS}
        assert {"a", "this", "that", "every", "the"} <= drawn["singular"]
        assert {"these", "those", "many", "a lot of", "the"} <= drawn["plural"]
        assert not {"these", "those", "many"} & drawn["singular"]
        assert not {"a", "this", "that", "every"} & drawn["plural"]


class TestStrings:
    @given(st.integers(0, 10_000))
    def test_the_end_repeats_the_string(self, roll):
        texts = [word.text for word in strings.training_string(Writer("strings", roll))]
        repeated = [text for text, count in Counter(texts).items() if count > 1]
        assert len(repeated) >= 3
        assert set(repeated) <= set(texts[-len(repeated) - strings.LONGEST_GAP :])

    def test_exchange_is_its_own_inverse(self):
        drawn = strings.propose(Writer(1), length=7, gap=1, start=1, stop=3)
        assert drawn.exchanged != drawn
        assert drawn.exchanged.exchanged == drawn
