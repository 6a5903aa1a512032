"""The five generated tasks: what holds for all of them, and for each."""

import itertools
import re
from collections import Counter, defaultdict

import pytest

from interp.errors import TaskError
from interp.tasks import agreement, coreference, induction, ioi, reflexive
from interp.tasks.catalogue import REFERENCES
from interp.tasks.grammar.lexicon import english
from interp.tasks.grammar.splits import split_of

TASKS = {
    "agreement": agreement,
    "coreference": coreference,
    "reflexive": reflexive,
    "ioi": ioi,
    "induction": induction,
}
N = 200
EVALUATED = ("select", "reference", "test")
FLIPPED_SLOTS = {
    "agreement": {"subject"},
    "coreference": {"antecedent", "stranger"},
    "reflexive": {"antecedent"},
    "ioi": {"giver", "indirect-object", "subject"},
    "induction": {"next", "string"},
}
ROLES = {
    "agreement": {"first attractor", "second attractor", "noun of the sentence before"},
    "coreference": {"other person"},
    "reflexive": {"attractor", "person of the sentence before"},
    "ioi": {"giver's first mention", "giver's second mention"},
    "induction": {"previous occurrence"},
}


@pytest.fixture(scope="module")
def drawn():
    return {name: list(module.pairs(N, seed=0)) for name, module in TASKS.items()}


@pytest.fixture(params=TASKS)
def name(request):
    return request.param


def tokens(text):
    return re.findall(r"[\w'-]+|[.,]", text)


def index_of(span, text):
    """Which word of the text begins where the span does."""
    return [match.start() for match in re.finditer(r"[\w'-]+|[.,]", text)].index(span.start)


def examples(pairs):
    return [example for pair in pairs for example in pair.examples]


def attractors_of(example):
    """The distractors of the sentence that the query stands in."""
    spans = example.relation.distractors.values()
    return [
        span.of(example.text) for span in spans if "." not in example.text[span.start : example.relation.query.stop]
    ]


def base_of(word):
    """The lemma of a name or a noun's form."""
    found = english().noun_of(word)
    return word if english().name_of(word) or found is None else found[0].singular


class TestEveryTask:
    def test_query_is_the_last_word_and_spans_are_whole_words(self, drawn, name):
        for example in examples(drawn[name]):
            assert example.relation.query.stop == len(example.prompt)
            words = set(tokens(example.prompt))
            for span in (example.relation.query, example.relation.related, *example.relation.distractors.values()):
                assert span.of(example.text) in words
                assert span.of(example.prompt) == span.of(example.text)

    def test_distractors_are_known_by_their_roles(self, drawn, name):
        met = {role for example in examples(drawn[name]) for role in example.relation.distractors}
        assert met == ROLES[name]

    def test_related_word_and_distractors_are_different_places(self, drawn, name):
        for example in examples(drawn[name]):
            assert example.relation.related not in example.relation.distractors.values()
            assert example.relation.related.stop <= example.relation.query.stop

    def test_counterfactual_swaps_the_answers_and_has_as_many_words(self, drawn, name):
        for pair in drawn[name]:
            item, twin = pair.examples
            assert (item.right, item.wrong) == (twin.wrong, twin.right)
            assert item.right != item.wrong
            assert len(tokens(item.prompt)) == len(tokens(twin.prompt))
            assert item.template == twin.template

    def test_counterfactual_differs_only_in_the_feature(self, drawn, name):
        for pair in drawn[name]:
            item, twin = pair.examples
            slots = item.layout.split()
            words = tokens(item.prompt), tokens(twin.prompt)
            assert len(slots) == len(words[0])
            changed = {
                slot.split("-")[0] if name == "induction" else slot
                for slot, one, two in zip(slots, *words, strict=True)
                if one != two
            }
            assert changed
            assert changed <= FLIPPED_SLOTS[name]

    def test_answers_are_single_known_words(self, drawn, name):
        known = english().words()
        for example in examples(drawn[name]):
            for answer in (example.right, example.wrong):
                assert answer[0] == " "
                assert answer[1:] in known

    def test_prompts_are_known_words_and_short(self, drawn, name):
        known = english().words() | {".", ","}
        for example in examples(drawn[name]):
            assert set(tokens(example.prompt)) <= known
            assert len(tokens(example.prompt)) <= 60

    def test_no_offset_and_no_position_finds_most_related_words(self, drawn, name):
        offsets, positions = Counter(), Counter()
        for example in examples(drawn[name]):
            query = index_of(example.relation.query, example.text)
            related = index_of(example.relation.related, example.text)
            if query != related:
                offsets[query - related] += 1
                positions[related] += 1
        total = sum(offsets.values())
        assert max(offsets.values()) <= total / 2
        assert max(positions.values()) <= total / 2
        assert total >= 0.9 * 2 * N

    def test_structures_are_balanced(self, drawn, name):
        counts = Counter(pair.item.template for pair in drawn[name])
        assert set(counts) == set(TASKS[name].STRUCTURES)
        assert max(counts.values()) - min(counts.values()) <= 1

    def test_clusters_are_many_in_every_structure(self, drawn, name):
        clusters = defaultdict(set)
        for pair in drawn[name]:
            clusters[pair.item.template].add(pair.cluster)
        assert len(set.union(*clusters.values())) > 60
        assert min(map(len, clusters.values())) > 10

    def test_clusters_share_nobody(self, drawn, name):
        """The words that differ between item and counterfactual are the cluster's alone: clusters are independent."""
        if name not in ("coreference", "reflexive", "ioi"):
            return
        clusters = defaultdict(set)
        for pair in drawn[name]:
            deciding = {example.relation.related.of(example.text) for example in pair.examples}
            for word in deciding:
                clusters[word].add(pair.cluster)
            assert deciding == set(pair.cluster.split(" + "))
        assert max(map(len, clusters.values())) == 1
        assert max(Counter(pair.cluster for pair in drawn[name]).values()) > 1

    def test_what_decides_is_not_in_the_opening(self, drawn, name):
        if name not in ("agreement", "reflexive"):
            return
        opening = {"agreement": "noun of the sentence before", "reflexive": "person of the sentence before"}[name]
        nouns = {form: noun.singular for noun in english().nouns for form in (noun.singular, noun.plural)}
        for example in examples(TASKS[name].pairs(1200, seed=0)):
            relation = example.relation
            roles = {"related": relation.related, **relation.distractors}
            lemmas = {role: nouns.get(span.of(example.text), span.of(example.text)) for role, span in roles.items()}
            before = lemmas.pop(opening, None)
            assert before not in lemmas.values()

    def test_layouts_recur(self, name):
        """So that a mean over the reference examples of one layout has something to average over."""
        pairs = TASKS[name].pairs(REFERENCES, seed=0, split="reference")
        assert min(Counter(example.layout for example in examples(pairs)).values()) >= 20

    def test_layouts_are_shared_with_the_reference(self, name):
        layouts = [
            {example.layout for example in examples(TASKS[name].pairs(48, seed=0, split=split))}
            for split in ("test", "reference")
        ]
        assert layouts[0] == layouts[1]

    def test_features_are_text(self, drawn, name):
        for example in examples(drawn[name]):
            assert all(isinstance(value, str) and value for value in example.features.values())

    def test_seed_and_split_decide_and_n_does_not(self, name):
        def prompts(n, **options):
            return [pair.item.prompt for pair in TASKS[name].pairs(n, **options)]

        assert prompts(6, seed=3) == prompts(12, seed=3)[:6]
        assert prompts(6, seed=3) != prompts(6, seed=4)
        assert not set(prompts(6, seed=3)) & set(prompts(6, seed=3, split="reference"))

    @pytest.mark.parametrize("n", [0, -3])
    def test_no_items_is_an_error(self, name, n):
        with pytest.raises(TaskError, match=f"{name}: expected at least one item, got n={n}"):
            list(TASKS[name].pairs(n, seed=0))


@pytest.mark.parametrize("split", EVALUATED)
class TestSplitDiscipline:
    def test_agreement(self, split):
        for example in examples(agreement.pairs(18, seed=1, split=split)):
            attractors = [base_of(word) for word in attractors_of(example)]
            for other in attractors or [example.features["verb"]]:
                assert split_of(example.features["subject"], other) == split

    def test_reflexive(self, split):
        for example in examples(reflexive.pairs(18, seed=1, split=split)):
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
