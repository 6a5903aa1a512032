"""The generated tasks: what holds for all of them."""

import re
from collections import Counter, defaultdict

import pytest
from generated_items import GRAMMAR, TASKS, N, base_of, examples, index_of, tokens

from interp.errors import TaskError
from interp.tasks.catalogue import REFERENCES
from interp.tasks.generated_corpus import linked_documents
from interp.tasks.grammar.lexicon import english

FLIPPED_SLOTS = {
    "agreement": {"subject"},
    "coreference": {"antecedent", "stranger"},
    "reflexive": {"antecedent"},
    "ioi": {"giver", "indirect-object", "subject"},
    "induction": {"next", "string"},
    "relative_clause": {"head", "inner", "clause-verb"},
    "gendered_pronoun": {"person"},
    "successor": {"asked"},
    "capitals": {"asked"},
    "greater_than": {"order"},
    "retrieval": {"needle", "last", "other"},
}
ROLES = {
    "agreement": {"first attractor", "second attractor", "noun of the sentence before"},
    "coreference": {"other person"},
    "reflexive": {"attractor", "person of the sentence before"},
    "ioi": {"giver's first mention", "giver's second mention"},
    "induction": {"previous occurrence"},
    "relative_clause": {"head noun", "noun in the clause", "noun of the place"},
    "gendered_pronoun": {"profession"},
    "successor": {"another day", "another month", "another letter", "another number"},
    "capitals": {"another country", "another state"},
    "greater_than": {"another year"},
    "retrieval": {"first mention of the name", "last thing"},
}


@pytest.fixture(params=TASKS)
def name(request):
    return request.param


def test_every_task_is_tested():
    assert set(FLIPPED_SLOTS) == set(ROLES) == set(TASKS)


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
            changed = {re.sub(r"-\d+$", "", slot) for slot, one, two in zip(slots, *words, strict=True) if one != two}
            assert changed
            assert changed <= FLIPPED_SLOTS[name]

    @pytest.mark.parametrize("name", GRAMMAR)
    def test_answers_are_single_known_words(self, drawn, name):
        known = english().words()
        for example in examples(drawn[name]):
            for answer in (example.right, example.wrong):
                assert answer[0] == " "
                assert answer[1:] in known

    @pytest.mark.parametrize("name", GRAMMAR)
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

    @pytest.mark.parametrize("name", ["coreference", "reflexive", "ioi", "gendered_pronoun"])
    def test_clusters_share_nobody(self, drawn, name):
        """The words that differ between item and counterfactual are the cluster's alone: clusters are independent."""
        clusters = defaultdict(set)
        for pair in drawn[name]:
            deciding = {example.relation.related.of(example.text) for example in pair.examples}
            for word in deciding:
                clusters[word].add(pair.cluster)
            assert deciding == set(pair.cluster.split(" + "))
        assert max(map(len, clusters.values())) == 1
        assert max(Counter(pair.cluster for pair in drawn[name]).values()) > 1

    @pytest.mark.parametrize(
        ("name", "opening"),
        [("agreement", "noun of the sentence before"), ("reflexive", "person of the sentence before")],
    )
    def test_what_decides_is_not_in_the_opening(self, name, opening):
        for example in examples(TASKS[name].pairs(300, seed=0)):
            relation = example.relation
            roles = {"related": relation.related, **relation.distractors}
            lemmas = {role: base_of(span.of(example.text)) for role, span in roles.items()}
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


@pytest.mark.parametrize("name", TASKS)
def test_every_example_is_a_sentence_with_its_link(name, drawn):
    documents = list(linked_documents(drawn[name]))
    examples = {each.text: each for pair in drawn[name] for each in pair.examples}
    assert {document.id for document in documents} == {pair.cluster for pair in drawn[name]}
    assert sum(len(document.sentences) for document in documents) == sum(len(pair.examples) for pair in drawn[name])
    for sentence in (each for document in documents for each in document.sentences):
        example = examples[sentence.text]
        assert all(word.span.of(sentence.text) == word.form for word in sentence.words)
        (link,) = sentence.links
        query, related = sentence.words[link.query].form, sentence.words[link.related].form
        looks = example.relation.query.of(example.text)
        assert looks.endswith(query) or query.startswith(looks)  # a year that is begun is one word with its answer
        assert example.relation.related.of(example.text).endswith(related)
        assert link.name == example.relation.name
