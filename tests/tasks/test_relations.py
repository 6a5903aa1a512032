import re
from collections import Counter

import pytest
from banks import document, sentence, word_level

from interp.errors import TaskError
from interp.tasks.alignment import Windows
from interp.tasks.relations import Direction, directions, found, occurring

# Mary saw two dogs and cats ; the verb is the root.
TREE = sentence(
    "Mary saw two dogs and cats",
    [1, -1, 3, 1, 5, 3],
    ["nsubj:pass", "root", "nummod", "obj", "cc", "conj"],
    upos=["PROPN", "VERB", "NUM", "NOUN", "CCONJ", "NOUN"],
)
WORDS = [*TREE.text.split(), "she", "ran", "it", "bit", "him", "a", "dog", "her"]


def pairs(relation, looks, text=None, *, whole=False, n_ctx=40):
    windows = Windows(word_level(WORDS), n_ctx, both_sides=False)
    text = text or document(TREE)
    (window,) = list((windows.documents if whole else windows.sentences)(text))
    return [(each.query, each.related) for each in found(Direction(relation, looks), window)]


def test_a_label_in_both_directions():
    assert pairs("obj", "dependent to head") == [(3, (1,))]
    assert pairs("obj", "head to dependent") == [(1, (3,))]


def test_a_label_has_its_subtypes_and_a_subtype_only_itself():
    assert pairs("nsubj", "dependent to head") == pairs("nsubj:pass", "dependent to head") == [(0, (1,))]
    assert pairs("nsubj:outer", "dependent to head") == []


def test_every_dependent_is_right():
    text = document(sentence("a dog bit him", [1, 2, -1, 2], ["det", "dep", "root", "dep"]))
    assert pairs("dep", "head to dependent", text) == [(2, (1, 3))]
    assert pairs("dep", "dependent to head", text) == [(1, (2,)), (3, (2,))]


def test_the_root_has_no_head():
    assert pairs("root", "dependent to head") == []
    assert Direction("root", "dependent to head") not in occurring(document(TREE))


def test_a_class_is_looked_at_by_every_other_word():
    assert pairs("pos:NOUN", "any word to it") == [
        (0, (3, 5)), (1, (3, 5)), (2, (3, 5)), (3, (5,)), (4, (3, 5)), (5, (3,)),
    ]  # fmt: skip
    mentioned = document(TREE, mentions=[("e", "animal", 0, (2, 3, 4, 5), 3)])
    assert pairs("entity:animal", "any word to it", mentioned)[:2] == [(0, (3,)), (1, (3,))]
    assert pairs("entity:person", "any word to it", mentioned) == []


def test_links():
    text = document(sentence("she ran it", links=[("subject", 1, 0), ("subject", 1, 2), ("other", 0, 1)]))
    assert pairs("subject", "query to related", text) == [(1, (0, 2))]
    assert pairs("subject", "related to query", text) == [(0, (1,)), (2, (1,))]


def coreferent():
    """Mary saw two dogs and cats / she ran / a dog bit her: Mary = she = her, dogs = dog."""
    return document(
        TREE,
        sentence("she ran", [1, -1], upos=["PRON", "VERB"]),
        sentence("a dog bit her", [1, 2, -1, 2], upos=["DET", "NOUN", "VERB", "PRON"]),
        mentions=[
            ("1", "person", 0, (0,), 0),
            ("2", "animal", 0, (2, 3), 3),
            ("1", "person", 1, (0,), 0),
            ("2", "animal", 2, (0, 1), 1),
            ("1", "person", 2, (3,), 3),
        ],
    )


def test_an_anaphor_looks_at_any_earlier_mention_or_the_nearest():
    to = "anaphor to antecedent"
    assert sorted(pairs("coref", to, coreferent(), whole=True)) == [(6, (0,)), (9, (3,)), (11, (0, 6))]
    assert sorted(pairs("coref:nearest", to, coreferent(), whole=True)) == [(6, (0,)), (9, (3,)), (11, (6,))]
    assert sorted(pairs("coref:pronoun", to, coreferent(), whole=True)) == [(6, (0,)), (11, (0, 6))]
    assert pairs("coref:nominal", to, coreferent(), whole=True) == [(9, (3,))]
    assert pairs("coref:proper", to, coreferent(), whole=True) == []


def test_an_antecedent_looks_at_later_mentions():
    back = "antecedent to anaphor"
    assert pairs("coref", back, coreferent(), whole=True) == [(0, (6, 11)), (3, (9,)), (6, (11,))]
    assert pairs("coref:nearest", back, coreferent(), whole=True) == [(0, (6,)), (3, (9,)), (6, (11,))]


def test_an_antecedent_outside_of_the_window_is_none():
    """The pair is there all the same, so that it can be counted."""
    windows = Windows(word_level(WORDS), 7, both_sides=False)
    cut = list(windows.documents(coreferent()))
    assert [[each.text for each in window.sentences] for window in cut][1:] == [["she ran", "a dog bit her"]]
    last = [(each.query, each.related) for each in found(Direction("coref", "anaphor to antecedent"), cut[-1])]
    assert sorted(last) == [(0, ()), (3, ()), (5, (0,))]


def test_an_anaphor_outside_of_the_window_is_none():
    """For a model that looks ahead: dogs = dog, whose mention comes in the next window."""
    windows = Windows(word_level(WORDS), 7, both_sides=False)
    first, last = windows.documents(coreferent())
    ahead = [(each.query, each.related) for each in found(Direction("coref", "antecedent to anaphor"), first)]
    assert sorted(ahead) == [(0, ()), (3, ())]
    kinds = [(each.query, each.related) for each in found(Direction("coref:nominal", "antecedent to anaphor"), first)]
    assert kinds == [(3, ())]
    back = [(each.query, each.related) for each in found(Direction("coref", "antecedent to anaphor"), last)]
    assert back == [(0, (5,))]


def test_the_same_head_is_no_antecedent_of_itself():
    """Two mentions of an entity, one within the other."""
    text = document(sentence("she ran it", [1, -1, 1]), mentions=[("1", "", 0, (0, 1), 1), ("1", "", 0, (1,), 1)])
    assert pairs("coref", "anaphor to antecedent", text, whole=True) == []
    mentions = [("1", "", 0, (0,), 0), ("1", "", 0, (1, 2), 2), ("1", "", 0, (2,), 2)]
    nested = document(sentence("she ran it", [1, -1, 1]), mentions=mentions)
    assert pairs("coref", "anaphor to antecedent", nested, whole=True) == [(2, (0,))], "once"


def test_what_occurs_is_counted():
    there = occurring(coreferent())
    assert there[Direction("nsubj", "dependent to head")] == there[Direction("nsubj:pass", "head to dependent")] == 1
    assert there[Direction("coref", "anaphor to antecedent")] == 3
    assert there[Direction("coref:pronoun", "antecedent to anaphor")] == 2
    assert there[Direction("pos:NOUN", "any word to it")] == 3
    assert there[Direction("entity:person", "any word to it")] == 3


def test_relations_are_asked_for_by_name():
    there = occurring(coreferent())
    assert directions(["coref", "pos:VERB"], there) == [
        Direction("coref", "anaphor to antecedent"),
        Direction("coref", "antecedent to anaphor"),
        Direction("pos:VERB", "any word to it"),
    ]
    assert {each.context for each in directions(["coref:nearest"], there)} == {"document"}
    assert {each.context for each in directions(["obj", "entity:person"], there)} == {"sentence"}
    with pytest.raises(
        TaskError, match=r"relation 'nsubjj' does not occur in the corpus; did you mean 'nsubj'.*\? There"
    ):
        directions(["nsubjj"], there)
    with pytest.raises(TaskError, match="did you mean 'pos:NOUN'"):
        directions(["pos:noun"], there)
    with pytest.raises(TaskError, match="There are: cc, conj, coref"):
        directions(["iobj"], there)
    for bad in ([], ["obj", "obj"]):
        with pytest.raises(TaskError, match="expected names of relations, each once"):
            directions(bad, there)


def test_a_treebank_without_mentions_is_said_to_have_none():
    there = Counter([Direction("cop", "dependent to head"), Direction("cop", "head to dependent")])
    for name in ("coref", "coref:pronoun", "entity:person"):
        with pytest.raises(
            TaskError, match=rf"'{name}' does not occur in the corpus, which has no mentions .*\. There are: cop$"
        ):
            directions([name], there)
    for there, near in (
        (Direction("coref", "anaphor to antecedent"), "; did you mean 'coref'?"),
        (Direction("entity:person", "any word to it"), "."),
    ):
        said = f"'coref:pronoun' does not occur in the corpus{near} There are: {there.relation}"
        with pytest.raises(TaskError, match=f"{re.escape(said)}$"):
            directions(["coref:pronoun"], Counter([there]))


def test_a_corpus_without_relations_is_said_to_have_none():
    for names in ([], ["nsubj"]):
        with pytest.raises(TaskError, match="expected words that depend on others, or mentions, got none"):
            directions(names, Counter())
