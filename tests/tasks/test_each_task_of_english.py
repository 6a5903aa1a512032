"""The tasks of English words, each by itself: what its items say, and what language models' vocabularies carry."""

import re
from collections import Counter
from itertools import combinations

import pytest
from generated_items import ENGLISH, N, base_of, examples, tokens
from trained_tokenizers import tokenizer_like

from interp.methods.word_exchange import against_other_words
from interp.tasks import catalogue
from interp.tasks.catalogue import load_task
from interp.tasks.gendered_pronoun import professions
from interp.tasks.grammar.lexicon import english
from interp.tasks.readers.winobias import read_winobias

SPLITS = ("train", "select", "reference", "test")


DECISIVE = {
    "relative_clause": ("head", "inner"),
    "gendered_pronoun": ("person", "profession"),
    "successor": ("person", "asked"),
    "capitals": ("person", "asked"),
    "greater_than": ("event", "compared"),
    "retrieval": ("needle-name", "needle"),
}
"""Slots whose words together belong to one split."""


@pytest.mark.parametrize("name", ENGLISH)
def test_no_two_splits_share_a_row(name):
    """Nor the words that decide, without which a shared row would be rare."""
    found = {split: set() for split in SPLITS}
    for split in SPLITS:
        for each in examples(ENGLISH[name].pairs(100, seed=2, split=split)):
            words = dict(zip(each.layout.split(), tokens(each.prompt), strict=True))
            found[split].add(tuple(base_of(words[slot]) for slot in DECISIVE[name]))
    for one, two in combinations(SPLITS, 2):
        assert not found[one] & found[two], (one, two)


@pytest.mark.parametrize("kind", ["gpt2", "smollm2"])
@pytest.mark.parametrize("name", ENGLISH)
def test_a_language_model_s_vocabulary_carries_every_structure(name, kind, data_dir, monkeypatch):
    monkeypatch.setattr(catalogue, "REFERENCES", 8)
    task = load_task(name, tokenizer=tokenizer_like(kind, data_dir), n=36)
    assert len(task.units) == 36
    assert {each.example.template for each in task.examples} == set(ENGLISH[name].STRUCTURES)
    for each in task.examples:
        assert each.query == each.critical
    with_word = against_other_words(task).examples
    without = set(ENGLISH[name].STRUCTURES) - {each.example.template for each in with_word}
    assert without == ({"across subject relative"} if name == "relative_clause" else set())  # its clause agrees, too
    for each in with_word:
        places = enumerate(zip(each.prompt, each.word_counterfactual.prompt, strict=True))
        assert {place for place, (one, two) in places if one != two} <= set(each.related)


class TestRelativeClause:
    def test_the_verb_agrees_with_the_related_noun(self, drawn):
        for each in examples(drawn["relative_clause"]):
            noun, number = english().noun_of(each.relation.related.of(each.text))
            assert (noun.singular, number) == (each.features["subject"], each.features["number"])
            if each.right in (" is", " has", " does", " was"):
                assert number == "singular"
            elif found := english().verb_of(each.right[1:]):
                assert found[1] == ("third" if number == "singular" else "base")

    def test_the_verb_of_a_clause_agrees_with_its_own_subject(self, drawn):
        forms = Counter()
        for each in examples(drawn["relative_clause"]):
            slots = dict(zip(each.layout.split(), tokens(each.prompt), strict=True))
            if "clause-verb" in slots:
                does = "head" if "subject" in each.template else "inner"
                _, number = english().noun_of(slots[does])
                assert english().verb_of(slots["clause-verb"])[1] == ("third" if number == "singular" else "base")
                forms[number == each.features["number"]] += 1
        assert min(forms.values()) > 0.25 * forms.total()  # the word before the verb is wrong often

    def test_object_relatives_have_that_or_none(self, drawn):
        for each in examples(drawn["relative_clause"]):
            assert ("that" in tokens(each.prompt)) == ("reduced" not in each.template)

    def test_numbers_are_balanced(self, drawn):
        items = [pair.item for pair in drawn["relative_clause"]]
        assert abs(Counter(item.features["number"] for item in items)["plural"] - N / 2) <= 6
        congruent = Counter(each.features["congruent"] for each in examples(drawn["relative_clause"]))
        assert congruent["yes"] == congruent["no"]


class TestGenderedPronoun:
    def test_the_pronoun_has_the_stated_gender(self, drawn):
        female = {"mother", "sister", "daughter", "wife", "aunt", "niece", "grandmother", "granddaughter"}
        female |= {"girlfriend", "stepmother"}
        for each in examples(drawn["gendered_pronoun"]):
            word = each.relation.related.of(each.text)
            name = english().name_of(word)
            gender = name.gender if name else "female" if word in female else "male"
            assert (each.right, each.wrong) == ((" she", " he") if gender == "female" else (" he", " she"))
            assert (each.features["gender"], each.features["antecedent"]) == (gender, word)

    def test_each_profession_asks_for_the_right_pronoun_in_one_of_two(self, drawn):
        for pair in drawn["gendered_pronoun"]:
            assert {each.features["stereotype"] for each in pair.examples} == {"with", "against"}
            assert len({each.features["profession"] for each in pair.examples}) == 1
            assert pair.item.relation.distractors["profession"].of(pair.item.text) == pair.item.features["profession"]
        of_items = Counter(pair.item.features["stereotype"] for pair in drawn["gendered_pronoun"])
        assert min(of_items.values()) > 0.4 * N

    def test_stereotypes_are_those_of_winobias(self, data_dir):
        spoken = {}
        for file in ("pro_stereotyped_type1.txt.dev", "pro_stereotyped_type1.txt.test"):
            for item in read_winobias(data_dir / "winobias" / file):
                spoken[tokens(item.referent.of(item.text))[-1].lower()] = item.gender
        ours = {each.noun: {"female": "feminine", "male": "masculine"}[each.gender] for each in professions()}
        known = ours.keys() & spoken.keys()
        assert len(known) >= 0.9 * len(ours)
        assert {noun: ours[noun] for noun in known} == {noun: spoken[noun] for noun in known}


class TestAssociations:
    @pytest.mark.parametrize("name", ["successor", "capitals"])
    def test_no_answer_and_no_word_twice_in_a_prompt(self, drawn, name):
        for each in examples(drawn[name]):
            words = tokens(each.prompt)
            assert not {each.right[1:], each.wrong[1:]} & set(words)
            assert words.count(each.relation.related.of(each.text)) == 1

    def test_the_answer_comes_next(self, drawn):
        after = {
            **{"Sunday": "Monday", "December": "January", "May": "June", "Y": "Z", "nine": "ten", "twelve": "thirteen"},
            **{"Wednesday": "Thursday", "February": "March", "C": "D", "nineteen": "twenty"},
        }
        met = Counter()
        for each in examples(drawn["successor"]):
            if (asked := each.relation.related.of(each.text)) in after:
                assert each.right[1:] == after[asked]
                met[asked] += 1
        assert len(met) >= 8

    def test_the_answer_is_the_capital(self, drawn):
        capital = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Texas": "Austin", "Ontario": "Toronto"}
        met = Counter()
        for each in examples(drawn["capitals"]):
            if (asked := each.relation.related.of(each.text)) in capital:
                assert each.right[1:] == capital[asked]
                met[asked] += 1
            assert each.right != each.wrong
        assert len(met) >= 4

    def test_no_two_places_share_a_capital(self):
        places = [each for table in ENGLISH["capitals"].capitals().values() for each in table]
        words = [word for each in places for word in each]
        assert len(set(words)) == len(words) == 2 * len(places)


class TestGreaterThan:
    def test_the_answers_are_all_years_on_either_side(self, drawn):
        kinds = Counter()
        for each in examples(drawn["greater_than"]):
            year, begun = each.relation.related.of(each.prompt), tokens(each.prompt)[-1]
            later, earlier = (each.rights, each.wrongs)[:: 1 if each.features["order"] == "later" else -1]
            width = len(each.rights[0])
            kinds[len(begun), width] += 1
            assert year.startswith(begun)
            assert all(begun + end > year[: len(begun) + width] for end in later)
            assert all(begun + end < year[: len(begun) + width] for end in earlier)
            assert len(later) + len(earlier) == {(2, 2): 89, (2, 1): 8, (3, 1): 9}[len(begun), width]
        assert set(kinds) == {(2, 2), (2, 1), (3, 1)}

    def test_the_words_of_order_say_which(self, drawn):
        later = {"from and to": "from to", "begun and ended": "began ended", "told": "began ended"}
        later |= {"after": "after", "before": "before"}
        for each in examples(drawn["greater_than"]):
            order = [word for word in tokens(each.prompt) if word in {*" ".join(later.values()).split()}]
            assert (" ".join(order) == later[each.template]) == (each.features["order"] == "later")
            assert sorted(order) == sorted(later[each.template].split()) or each.template in ("after", "before")

    def test_after_another_year_other_answers_are_right(self, drawn):
        for each in examples(drawn["greater_than"]):
            assert each.word_counterfactuals
            for other in each.word_counterfactuals:
                assert set(other.rights) != set(each.rights)
                assert other.features["order"] == each.features["order"]


class TestRetrieval:
    def test_the_answer_is_what_was_said_of_the_name(self, drawn):
        for each in examples(drawn["retrieval"]):
            *before, _ = re.findall(r"[^.]+", each.prompt)
            said = dict(tuple(sentence.split())[::3] for sentence in before[1:])
            name, verb, the = tokens(each.prompt)[-3:]
            assert said[name] == each.right[1:]
            assert each.wrong[1:] in said.values()
            assert len(said) == len(before) - 1 == int(each.features["sentences"])
            assert f"{name} {verb} {the}{each.right}." in each.prompt

    def test_the_needle_is_at_its_depth(self, drawn):
        depths = {"first": 0.0, "early": 0.25, "middle": 0.5, "late": 0.75, "last": 1.0}
        for each in examples(drawn["retrieval"]):
            before = each.prompt[: each.relation.related.start].count(".") - 1  # less the sentence in front
            assert before == depths[each.features["depth"]] * (int(each.features["sentences"]) - 1)
