"""The example in which the related word alone is another: found, given, or drawn beside the items of a task."""

import hashlib
from dataclasses import replace

import pytest
from generated_items import GRAMMAR, examples
from test_encoding import LABELS, SENTENCE, WORDS, example, pair, span

from interp.errors import TaskError
from interp.tasks.catalogue import load_task
from interp.tasks.encoding import encode_task
from interp.tasks.example import Example, MinimalPair, Relation
from interp.tasks.grammar.lexicon import english
from recipes.tokenizer import build_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(WORDS)


def encoded(given, tokenizer, **options):
    (unit,) = encode_task([given], tokenizer=tokenizer, **LABELS | options).units
    return unit


def given(*words, right=" is", wrong=" are"):
    """A pair without a counterfactual, with these words in the place of ``keys``."""
    others = tuple(example(word, right=right, wrong=wrong) for word in words)
    return MinimalPair(replace(example(), word_counterfactuals=others), None, "key")


class TestFound:
    def test_a_counterfactual_that_differs_at_the_word_alone_is_one(self, tokenizer):
        for metric in ("logit_difference", SENTENCE):
            unit = encoded(pair(), tokenizer, metric=metric)
            assert unit.word_counterfactuals == (unit.counterfactual, unit.item)

    def test_one_that_differs_elsewhere_is_none(self, tokenizer):
        item, other = example("keys", "cabinet"), example("key", "cabinets", " is", " are")
        assert encoded(MinimalPair(item, other, "key"), tokenizer).word_counterfactuals == (None, None)

    def test_one_without_another_answer_is_none(self, tokenizer):
        item, other = example("keys"), example("table")
        assert encoded(MinimalPair(item, other, "key"), tokenizer).word_counterfactuals == (None, None)

    def test_one_of_another_length_is_none(self, tokenizer):
        unit = encoded(pair(("keys", "zebra")), tokenizer, unequal_lengths=True)
        assert unit.word_counterfactuals == (None, None)

    def test_one_without_a_tagged_word_is_none(self, tokenizer):
        item, other = (replace(each, relation=None) for each in pair().examples)
        assert encoded(MinimalPair(item, other, "key"), tokenizer).word_counterfactuals == (None, None)

    def test_without_a_counterfactual_there_is_none(self, tokenizer):
        assert encoded(MinimalPair(example(), None, "key"), tokenizer).word_counterfactuals == (None,)

    def test_of_a_word_of_several_tokens_some_may_differ(self, tokenizer):
        unit = encoded(pair(("zebras", "zebrad")), tokenizer)
        assert unit.word_counterfactuals == (unit.counterfactual, unit.item)
        different = [a != b for a, b in zip(unit.item.prompt, unit.counterfactual.prompt, strict=True)]
        assert 0 < sum(different) < len(unit.item.related)


class TestGiven:
    def test_it_is_encoded(self, tokenizer):
        (other,) = encoded(given("key"), tokenizer).word_counterfactuals
        assert tokenizer.decode(other.prompt[1:] + other.right) == "The key to the cabinet is"

    def test_it_goes_before_what_is_found(self, tokenizer):
        item = replace(example(), word_counterfactuals=(example("table", right=" was"),))
        unit = encoded(MinimalPair(item, example("key", right=" is", wrong=" are"), "key"), tokenizer)
        assert [each.example.right for each in unit.word_counterfactuals] == [" was", " are"]

    def test_of_several_the_first_is_taken_that_the_tokenizer_carries(self, tokenizer):
        (other,) = encoded(given("zebra", "table", "key"), tokenizer).word_counterfactuals
        assert other.example.prompt == "The table to the cabinet"

    @pytest.mark.parametrize("bad", [given("zebra"), given("key", right=" abound")])
    def test_what_the_tokenizer_does_not_carry_is_counted(self, tokenizer, bad):
        task = encode_task([bad, given("key"), bad], tokenizer=tokenizer, **LABELS)
        assert (len(task.units), task.dropped, task.n_words_not_carried) == (3, {}, 2)
        assert [unit.word_counterfactuals[0] is None for unit in task.units] == [True, False, True]

    def test_the_hash_knows_it(self, tokenizer):
        pairs = [given(), given("key"), given("table"), given("zebra", "key"), given("zebra")]
        hashes = [encode_task([each], tokenizer=tokenizer, **LABELS).hash for each in pairs]
        assert len(set(hashes)) == 3
        assert (hashes[1], hashes[0]) == (hashes[3], hashes[4])

    @pytest.mark.parametrize(
        "bad",
        [
            example("key", "cabinets", " is", " are"),
            example("keys", right=" is", wrong=" are"),
            example("key"),
            replace(example("key", right=" is", wrong=" are"), relation=None),
        ],
        ids=["another word, too", "the same word", "the same answer", "no word"],
    )
    def test_anything_else_is_refused(self, bad):
        with pytest.raises(TaskError, match="word_counterfactuals: expected the prompt 'The keys to the cabinet'"):
            replace(example(), word_counterfactuals=(bad,))

    def test_a_word_of_the_answer_is_refused(self):
        def late(word):
            text = f"The keys {word}"
            relation = Relation("verb", span(text, "keys"), span(text, word))
            return Example("The keys", f" {word}", " x", relation, "t", "t")

        with pytest.raises(TaskError, match="expected a relation whose related word stands in the prompt"):
            replace(late("are"), word_counterfactuals=(late("is"),))
        with pytest.raises(TaskError, match=r"expected a relation whose related word .*; got None for 'The keys to"):
            replace(example(), relation=None, word_counterfactuals=(example("key", right=" is", wrong=" are"),))

    def test_what_is_no_span_no_relation_and_no_examples_is_refused(self):
        with pytest.raises(TaskError, match=r"related: expected a Span of characters, such as .*, got \(0, 3\)"):
            Relation("subject", example().relation.query, (0, 3))
        with pytest.raises(TaskError, match=r"relation: expected a Relation or None, got \(4, 7\)"):
            replace(example(), relation=(4, 7))
        with pytest.raises(TaskError, match="word_counterfactuals: expected several examples, got Example"):
            replace(example(), word_counterfactuals=example("key", right=" is", wrong=" are"))


FIRST_ITEMS = {
    "agreement": "ca35274c5ed9567c",
    "coreference": "95b061f225a84e55",
    "reflexive": "fba91e25028a9f4c",
    "ioi": "5b964e12dafc2eb2",
    "induction": "3b06640dd5e201ef",
}
"""Of the texts of 60 pairs, before there were word counterfactuals."""


class TestGenerated:
    @pytest.mark.parametrize("name", GRAMMAR)
    def test_the_items_are_those_that_were_drawn_before(self, drawn, name):
        texts = [each.text + each.wrong for each in examples(drawn[name][:60])]
        assert hashlib.sha256("\n".join(texts).encode()).hexdigest().startswith(FIRST_ITEMS[name])

    @pytest.mark.parametrize(
        ("name", "share"), [("ioi", 1.0), ("induction", 1.0), ("coreference", 0.9), ("retrieval", 1.0)]
    )
    def test_a_word_of_its_own_goes_with_the_answer(self, drawn, name, share):
        found = [each.word_counterfactuals for each in examples(drawn[name])]
        needed = [
            others
            for others, each in zip(found, examples(drawn[name]), strict=True)
            if others or each.features.get("other person") != "alone"
        ]
        assert sum(map(bool, needed)) >= share * len(needed)
        for each in examples(drawn[name]):
            others = each.word_counterfactuals
            assert len({other.prompt for other in others}) == len(others)
            assert all(other.wrong == each.right != other.right for other in others)

    def test_a_third_person_receives(self, drawn):
        for each in examples(drawn["ioi"]):
            for other in each.word_counterfactuals:
                name = other.relation.related.of(other.text)
                assert other.right == f" {name}"
                assert name not in each.text.replace(",", "").split()
                names = (english().name_of(word) for word in (name, each.features["indirect object"]))
                assert len({person.gender for person in names}) == 1

    def test_a_new_word_comes_next(self, drawn):
        for each in examples(drawn["induction"]):
            for other in each.word_counterfactuals:
                word = other.relation.related.of(other.text)
                assert other.right == f" {word}"
                assert word not in each.text.split()

    def test_somebody_else_of_the_other_gender_is_meant(self, drawn):
        for each in examples(drawn["coreference"]):
            assert all(other.right == each.wrong for other in each.word_counterfactuals)

    @pytest.mark.parametrize("name", GRAMMAR)
    def test_tokens_differ_at_the_word_alone(self, name):
        words = build_tokenizer(english().words())
        task = load_task(name, n=36, tokenizer=words)
        n_found = 0
        for unit in task.units:
            for each, other in zip(unit.examples, unit.word_counterfactuals, strict=True):
                if other is not None:
                    pairs = zip(each.prompt, other.prompt, strict=True)
                    assert [place for place, (a, b) in enumerate(pairs) if a != b] == list(each.related)
                    n_found += 1
        assert n_found >= 0.9 * len(task.examples)
        references = (unit for units in task.references for unit in units)
        assert not any(each.example.word_counterfactuals for unit in references for each in unit.examples)
