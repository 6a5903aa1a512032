"""The lexicon against itself, against the regular spelling rules, and against BLiMP's own contrasts."""

import json
import re
from pathlib import Path

import pytest

from interp.tasks.grammar.lexicon import VERB_FORMS, Lexicon, Name, Verb, english
from recipes.text import PARADIGMS

KINDS = {"person", "animal", "thing", "place"}
IRREGULAR_PLURALS = {
    "alumni", "analyses", "axes", "bases", "cacti", "children", "crises", "diagnoses", "ellipses", "feet", "fungi",
    "geese", "handymen", "hypotheses", "knives", "leaves", "lice", "media", "men", "mice", "nuclei", "oases",
    "octopi", "oxen", "paralyses", "parentheses", "people", "phenomena", "potatoes", "radii", "scarves", "shelves",
    "stimuli", "synopses", "syntheses", "teeth", "theses", "thieves", "tomatoes", "wives", "wolves", "women",
    "heroes",
}  # fmt: skip
SENTENCES = (
    "The keys to the cabinet are on the table",
    "The animal didn't cross the street because it was too tired",
    "When Mary and John went to the store John gave a drink to Mary",
    "Then Tom and James were working at the school James decided to give a ring to Tom",
    "The cat sat on the mat",
    "The man who climbed the ladder hurt himself",
    "The king loves the queen and her father and mother",
    "The lawyer bought the bags at the shops",
)


def all_verbs(lexicon: Lexicon) -> tuple[Verb, ...]:
    return lexicon.verbs + lexicon.dative_verbs + lexicon.control_verbs + lexicon.clause_verbs


def with_s(stem: str) -> str:
    if re.search(r"(s|sh|ch|x|z)$", stem):
        return stem + "es"
    return stem[:-1] + "ies" if re.search(r"[^aeiou]y$", stem) else stem + "s"


def blimp(data_dir: Path, paradigm: str) -> list[dict[str, str]]:
    lines = (data_dir / "blimp" / f"{paradigm}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def words_of(sentence: str) -> list[str]:
    return re.findall(r"[^\s.,]+", sentence.replace("'s ", " "))


def test_every_entry_is_spelled_out() -> None:
    lexicon = english()
    spelled = [form for noun in lexicon.nouns for form in (noun.singular, noun.plural)]
    spelled += [form for verb in all_verbs(lexicon) for form in verb.forms()]
    spelled += [name.text for name in lexicon.names]
    assert [form for form in spelled if not re.fullmatch(r"[A-Za-z]+( [a-z]+)?", form)] == []


def test_closed_choices_hold_in_every_row() -> None:
    lexicon = english()
    assert {noun.kind for noun in lexicon.nouns} == KINDS
    assert {noun.gender for noun in lexicon.nouns} == {"female", "male", ""}
    assert not any(noun.gender for noun in lexicon.nouns if noun.kind != "person")
    assert {name.gender for name in lexicon.names} == {"female", "male"}
    assert {determiner.number for determiner in lexicon.determiners} == {"singular", "plural", "any"}
    for verb in all_verbs(lexicon):
        assert verb.subjects, f"{verb.base} has no subject"
        assert verb.subjects | verb.objects <= KINDS, verb.base


def test_a_noun_form_belongs_to_one_noun_and_shows_its_number() -> None:
    lexicon = english()
    forms = [form for noun in lexicon.nouns for form in (noun.singular, noun.plural)]
    assert len(forms) == len(set(forms))
    for noun in lexicon.nouns:
        assert lexicon.noun_of(noun.singular) == (noun, "singular")
        assert lexicon.noun_of(noun.plural) == (noun, "plural")


def test_no_row_is_there_twice() -> None:
    lexicon = english()
    for table in (lexicon.verbs, lexicon.dative_verbs, lexicon.control_verbs, lexicon.clause_verbs):
        uses = [(verb.base, verb.particle, bool(verb.objects)) for verb in table]
        assert len(uses) == len(set(uses))
    names = [name.text for name in lexicon.names]
    assert len(names) == len(set(names))


def test_plurals_are_regular_but_for_the_known_ones() -> None:
    irregular = {noun.plural for noun in english().nouns if noun.plural != with_s(noun.singular)}
    assert irregular == IRREGULAR_PLURALS


def test_third_persons_and_gerunds_follow_the_spelling_rules() -> None:
    for verb in all_verbs(english()):
        assert verb.third in {with_s(verb.base), verb.base + "es"}, verb.base
        stems = {verb.base, verb.base + verb.base[-1], re.sub("ie$", "y", verb.base)}
        silent_e = re.search(r"[^eoy]e$", verb.base)
        stems = stems - {verb.base} | {verb.base[:-1]} if silent_e else stems
        assert verb.gerund in {stem + "ing" for stem in stems}, verb.base


def test_past_and_gerund_agree_on_a_doubled_consonant() -> None:
    for verb in all_verbs(english()):
        if verb.past.endswith("ed") and re.search(r"[^aeiou]$", verb.base) and not verb.base.endswith("y"):
            if verb.past not in {verb.base + "ed", verb.base + verb.base[-1] + "ed"}:
                continue  # fled, fed: irregular, though it ends like a regular one
            assert (verb.past == verb.base + "ed") == (verb.gerund == verb.base + "ing"), verb.base


def test_a_verb_form_belongs_to_one_paradigm() -> None:
    paradigms: dict[str, tuple[str, ...]] = {}
    for verb in all_verbs(english()):
        assert paradigms.setdefault(verb.base, verb.forms()) == verb.forms()


def test_verbs_are_found_by_each_form() -> None:
    lexicon = english()
    for verb in all_verbs(lexicon):
        for form in verb.forms():
            found, which = lexicon.verb_of(form) or pytest.fail(f"{form} is not found")
            assert getattr(found, which) == form
    take = ("take", "takes", "took", "taken", "taking")
    assert [lexicon.verb_of(form)[1] for form in take] == list(VERB_FORMS)


def test_a_capital_changes_what_a_word_can_be() -> None:
    lexicon = english()
    goose = lexicon.noun_of("geese")
    assert goose is not None
    assert lexicon.noun_of("Geese") == goose
    assert lexicon.noun_of("Goose") is None
    assert lexicon.noun_of("Guy") is None, "a sentence cannot begin with a bare singular: this is the name"
    assert lexicon.name_of("Guy") == Name("Guy", "male")
    assert lexicon.name_of("guy") is None


def test_the_vocabulary_is_modest_and_capitalises_what_begins_a_sentence() -> None:
    words = english().words()
    assert len(words) <= 4_000
    assert {"The", "These", "When", "She", "Geese", "Women", "Art", "Mary", "geese", "the"} <= words
    assert words.isdisjoint({"Goose", "Walked", "Himself", "Haven't", "mary", ""})
    assert not any(" " in word for word in words)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_ordinary_demonstration_sentences_are_covered(sentence: str) -> None:
    assert set(sentence.split()) <= english().words()


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_blimp_is_covered(data_dir: Path, paradigm: str) -> None:
    words = english().words()
    items = blimp(data_dir, paradigm)
    known = [set(words_of(f"{item['sentence_good']} {item['sentence_bad']}")) <= words for item in items]
    assert sum(known) / len(items) >= 0.95


def test_numbers_agree_with_blimps_determiners(data_dir: Path) -> None:
    lexicon = english()
    checked = 0
    for item in blimp(data_dir, "determiner_noun_agreement_1"):
        good, bad = (lexicon.noun_of(item[f"one_prefix_word_{which}"]) for which in ("good", "bad"))
        if good is None or bad is None:
            continue
        determiner = item["one_prefix_prefix"].split()[-1].lower()
        expected = {"this": "singular", "that": "singular", "these": "plural", "those": "plural"}[determiner]
        assert good[0] == bad[0], f"{item['sentence_good']} contrasts two nouns of the lexicon"
        assert good[1] == expected != bad[1], item["sentence_good"]
        checked += 1
    assert checked >= 950


def test_verbs_contrast_as_in_blimp(data_dir: Path) -> None:
    lexicon = english()
    checked = 0
    for item in blimp(data_dir, "regular_plural_subject_verb_agreement_1"):
        good, bad = (lexicon.verb_of(item[f"one_prefix_word_{which}"]) for which in ("good", "bad"))
        if good is None or bad is None:
            continue
        assert good[0].base == bad[0].base, item["sentence_good"]
        assert {good[1], bad[1]} == {"base", "third"}, item["sentence_good"]
        checked += 1
    assert checked >= 300
