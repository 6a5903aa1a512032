import pytest

from interp.tasks.grammar.lexicon import english
from interp.tasks.tagging import all_known, leading_nominal, nominals_of, verb_number, words_of


def heads(sentence):
    words = words_of(sentence)
    return [words[nominal.words[1]].text for nominal in nominals_of(words)]


def test_words_stand_where_they_say():
    sentence = "Zoe's brothers can't see  the \"keys\", twice."
    words = words_of(sentence)
    assert [word.text for word in words] == ["Zoe", "brothers", "can't", "see", "the", "keys", "twice"]
    assert all(word.span.of(sentence) == word.text for word in words)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The niece of most senators hasn't met Susan.", ["niece", "senators", "Susan"]),
        ("A newspaper article about the Borgias bores Kayla.", ["article", "Borgias", "Kayla"]),
        ("Drawings of this grocery store bore those geese.", ["Drawings", "store", "geese"]),
        ("The river company bores Kayla.", ["company", "Kayla"]),
        # Forms that are verbs as well, in both uses.
        ("The sketch of a guest", ["sketch", "guest"]),
        ("Some guests that sketch Natalie", ["guests", "Natalie"]),
        ("Guests didn't sketch", ["Guests"]),
        # A first name that is also a noun.
        ("Guy saw the guy.", ["Guy", "guy"]),
        # A possessor is a determiner.
        ("Tina's brother can't help.", ["brother"]),
        ("Zorks bewibble.", []),
    ],
)
def test_finds_nouns_and_names(sentence, expected):
    assert heads(sentence) == expected


def test_every_entry_of_the_lexicon_is_found_with_its_number_and_gender():
    lexicon = english()
    for noun in lexicon.nouns:
        for form in (noun.singular, noun.plural):
            (nominal,) = nominals_of(words_of(f"the {form}"))
            entry, number = lexicon.noun_of(form)
            assert (nominal.lemma, nominal.number, nominal.gender) == (entry.singular, number, entry.gender)
            assert nominal.words == (1, len(form.split()))
    for name in lexicon.names:
        (nominal,) = nominals_of(words_of(name.text))
        assert (nominal.lemma, nominal.number, nominal.gender) == (name.text, "singular", name.gender)
    for proper in lexicon.proper_nouns:
        (nominal,) = nominals_of(words_of(f"{proper.article} {proper.text}"))
        assert (nominal.lemma, nominal.number) == (proper.text, proper.number)


@pytest.mark.parametrize(
    ("sentence", "head"),
    [
        ("The niece of most senators", "niece"),
        ("That boy who the girls like", "boy"),
        ("A lot of old teachers", "teachers"),
        ("Susan", "Susan"),
        ("Ladies that respect Kayla", "Ladies"),
        # What the lexicon cannot tell.
        ("The zork of the trucks", None),
        ("The newspaper zork about travel", None),
        ("Tomorrow the boy", None),
        ("Tina's brother", None),
        ("", None),
    ],
)
def test_finds_the_head_of_the_phrase_that_begins_the_sentence(sentence, head):
    words = words_of(sentence)
    nominal = leading_nominal(words)
    assert (nominal and words[nominal.words[1]].text) == head


@pytest.mark.parametrize(
    ("form", "number"),
    [
        *[("isn't", "singular"), ("were", "plural"), ("sees", "singular"), ("see", "plural")],
        *[("can", None), ("saw", None), ("seeing", None), ("bewibbles", None)],
    ],
)
def test_the_number_that_a_verb_asks_for(form, number):
    assert verb_number(form) == number


def test_known_words_are_those_of_every_sentence():
    assert all_known("The boy likes himself.", "Susan's boys aren't here.")
    assert not all_known("The boy likes himself.", "The zork likes himself.")
