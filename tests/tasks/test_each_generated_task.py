"""The tasks of the grammar, each by itself: what its splits hold out, and what its items say."""

import itertools
from collections import Counter

import pytest
from generated_items import N, base_of, examples, index_of, tokens

from interp.tasks import agreement, coreference, induction, ioi, reflexive
from interp.tasks.grammar.lexicon import english
from interp.tasks.grammar.phrases import split_of

EVALUATED = ("select", "reference", "test")


def attractors_of(example):
    """The distractors of the sentence that the query stands in."""
    spans = example.relation.distractors.values()
    return [
        span.of(example.text) for span in spans if "." not in example.text[span.start : example.relation.query.stop]
    ]


@pytest.mark.parametrize("split", EVALUATED)
class TestSplitDiscipline:
    @pytest.mark.parametrize("task", [agreement, reflexive])
    def test_agreement_and_reflexive(self, split, task):
        for example in examples(task.pairs(18, seed=1, split=split)):
            attractors = [base_of(word) for word in attractors_of(example)]
            for other in attractors or [example.features["verb"]]:
                assert split_of(example.features["subject"], other) == split

    def test_coreference(self, split):
        counts = Counter()
        for example in examples(coreference.pairs(36, seed=1, split=split)):
            others = [base_of(span.of(example.text)) for span in example.relation.distractors.values()]
            counts["two" if others else "alone"] += 1
            (other,) = others or [example.features["verb"]]
            assert split_of(example.features["antecedent"], other) == split
        assert min(counts["alone"], counts["two"]) > 10

    def test_ioi(self, split):
        for pair in ioi.pairs(18, seed=1, split=split):
            assert split_of(pair.item.right[1:], pair.item.wrong[1:]) == split

    def test_induction(self, split):
        for example in examples(induction.pairs(18, seed=1, split=split)):
            for answer in (example.right, example.wrong):
                assert split_of(example.features["query"], answer[1:]) == split


class TestAgreement:
    def test_verb_agrees_with_the_related_noun(self, drawn):
        for example in examples(drawn["agreement"]):
            noun, number = english().noun_of(example.relation.related.of(example.text))
            assert noun.singular == example.features["subject"]
            assert number == example.features["number"]
            if example.right[1:] in ("is", "has", "does", "was"):
                assert number == "singular"

    def test_directions_and_attractors_are_balanced(self, drawn):
        items = [pair.item for pair in drawn["agreement"]]
        assert abs(Counter(item.features["number"] for item in items)["plural"] - N / 2) <= 6
        counts = Counter(example.features["congruent"] for example in examples(drawn["agreement"]))
        assert counts["yes"] == counts["no"] > N / 2

    def test_congruence_is_that_of_the_attractors(self, drawn):
        for example in examples(drawn["agreement"]):
            numbers = {english().noun_of(word)[1] for word in attractors_of(example)}
            expected = "yes" if numbers == {example.features["number"]} else "no"
            assert example.features["congruent"] == (expected if numbers else "no attractor")

    def test_another_noun_often_comes_before_the_subject(self, drawn):
        before = [
            any(span.stop < each.relation.related.start for span in each.relation.distractors.values())
            for each in examples(drawn["agreement"])
        ]
        assert 0.3 < sum(before) / len(before) < 0.4

    def test_few_queries_are_the_subject_itself(self, drawn):
        own = sum(each.relation.query == each.relation.related for each in examples(drawn["agreement"]))
        assert 0 < own <= 0.1 * 2 * N


class TestPeople:
    @pytest.mark.parametrize("task", ["coreference", "reflexive"])
    def test_answer_has_the_gender_of_the_related_person(self, drawn, task):
        answers = {"she": "female", "her": "female", "herself": "female"}
        for example in examples(drawn[task]):
            word = example.relation.related.of(example.text)
            person = english().name_of(word) or english().noun_of(word)[0]
            assert person.gender == example.features["gender"] == answers.get(example.right[1:], "male")

    def test_the_other_person_has_the_other_gender(self, drawn):
        for example in examples(drawn["coreference"]):
            for span in example.relation.distractors.values():
                person = english().name_of(span.of(example.text)) or english().noun_of(span.of(example.text))[0]
                assert person.gender in {"female", "male"} - {example.features["gender"]}

    @pytest.mark.parametrize("task", ["coreference", "reflexive"])
    def test_genders_are_balanced(self, drawn, task):
        genders = Counter(pair.item.features["gender"] for pair in drawn[task])
        assert abs(genders["female"] - N / 2) <= 6

    def test_the_two_people_exchange_places(self, drawn):
        for pair in drawn["coreference"]:
            if pair.item.relation.distractors:
                (item,), (twin,) = (each.relation.distractors.values() for each in pair.examples)
                assert item.of(pair.item.text) == pair.counterfactual.relation.related.of(pair.counterfactual.text)
                assert twin.of(pair.counterfactual.text) == pair.item.relation.related.of(pair.item.text)


class TestIoi:
    def test_receiver_is_named_once_and_giver_twice(self, drawn):
        for example in examples(drawn["ioi"]):
            words = tokens(example.prompt)
            assert words.count(example.right[1:]) == 1
            assert words.count(example.wrong[1:]) == 2
            assert example.relation.related.of(example.text) == example.right[1:]
            assert {span.of(example.text) for span in example.relation.distractors.values()} == {example.wrong[1:]}
            first, second = example.relation.distractors.values()
            assert first.stop < second.start
            assert list(example.relation.distractors) == ["giver's first mention", "giver's second mention"]

    def test_introduction_is_shared(self, drawn):
        for pair in drawn["ioi"]:
            item, twin = (tokens(example.prompt) for example in pair.examples)
            changed = [index for index, (one, two) in enumerate(zip(item, twin, strict=True)) if one != two]
            giver, receiver = pair.item.wrong[1:], pair.item.right[1:]
            late = pair.item.features["order"] == "late"
            assert [item[index] for index in changed] == ([giver, giver, receiver] if late else [giver])

    def test_orders_and_genders_vary(self, drawn):
        orders = Counter(pair.item.features["order"] for pair in drawn["ioi"])
        assert orders["late"] == N / 4
        assert abs(orders["ABBA"] - orders["BABA"]) <= 6
        genders = Counter(pair.item.features["genders"] for pair in drawn["ioi"])
        assert min(genders["same"], genders["different"]) > N / 4


class TestInduction:
    def test_right_answer_followed_the_previous_occurrence(self, drawn):
        for example in examples(drawn["induction"]):
            words = tokens(example.prompt)
            previous = index_of(example.relation.distractors["previous occurrence"], example.text)
            assert words[previous] == words[-1]
            assert words[previous + 1] == example.right[1:] == example.relation.related.of(example.text)
            assert words.count(words[-1]) == 2

    def test_answers_are_met_once(self, drawn):
        for example in examples(drawn["induction"]):
            words = tokens(example.prompt)
            for answer in (example.right, example.wrong):
                assert words.count(answer[1:]) == 1

    def test_string_is_the_same_but_for_the_exchange(self, drawn):
        for pair in drawn["induction"]:
            item, twin = (tokens(example.prompt) for example in pair.examples)
            assert sorted(item) == sorted(twin)
            assert sum(one != two for one, two in itertools.zip_longest(item, twin)) == 2
