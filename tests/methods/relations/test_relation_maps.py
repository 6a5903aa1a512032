"""Where planted heads look in the first sentences of a corpus."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from banks import document, sentence, word_level
from kinds_of_tokenizers import wordpiece
from planted import Planted, even, onto

from interp.errors import InputError, TaskError
from interp.methods.relations.attend import attend
from interp.methods.relations.examples import MAP_COLUMNS, MOST_HEADS, MOST_SHOWN, READABLE, relation_maps
from interp.report.relations_sentences import EXAMPLE
from interp.tasks.example import Span

FORMS = [f"w{number}" for number in range(200)]
TO_HEAD = "dependent to head"


def tree(length, head, *, start=0, name="s"):
    """A sentence whose second and last words depend on another, the others on nothing."""
    heads = [-1] * length
    heads[1], heads[-1] = 0, head
    labels = ["dep" if each >= 0 else "root" for each in heads]
    return sentence(" ".join(FORMS[start : start + length]), heads, labels, name=name)


def looking_at_the_first(*, causal=False, right=True, n_heads=2, **options):
    """Head 0 looks at the first word (the last, if it is to be wrong); the others everywhere alike."""
    tokenizer = word_level(FORMS, both_sides=not causal)

    def pattern(ids):
        first = 1 if right else len(ids) - 1 - (not causal)
        return torch.stack([onto(len(ids), dict.fromkeys(range(len(ids)), first)), *[even(len(ids))] * (n_heads - 1)])[
            None
        ]

    return Planted(tokenizer, pattern, causal=causal, n_heads=n_heads, **options)


def maps_of(model, documents, names=("dep",), n_sentences=2, **options):
    result = attend(model, documents, list(names), **options)
    return relation_maps(model, documents, result, n_sentences), result


def examples(maps, looks=TO_HEAD):
    return [rows for _, rows in maps[maps["looks"] == looks].groupby(list(EXAMPLE), sort=False)]


def test_a_sentence_of_its_words_with_the_attention_that_the_best_head_gives():
    documents = [document(tree(8, 0, name=f"{name}1"), name=name) for name in "ab"]
    maps, result = maps_of(looking_at_the_first(), documents)
    assert tuple(maps.columns) == MAP_COLUMNS
    first, second = examples(maps)
    assert first["token"].tolist() == FORMS[:8]
    assert (first["document"].iloc[0], first["sentence"].iloc[0], second["document"].iloc[0]) == ("a", "a1", "b")
    assert first["weight"].tolist() == [1.0, *[0.0] * 7]
    assert first.loc[first["is_query"], "word"].tolist() == [7] == first["query"].unique().tolist()
    assert first.loc[first["is_related"], "word"].tolist() == [0]
    assert first.loc[first["is_choice"], "word"].tolist() == [0]
    assert first["is_right"].all()
    best = result.best().set_index("looks").loc[TO_HEAD]
    assert (first["layer"].iloc[0], first["head"].iloc[0]) == (best["layer"], best["head"]) == (0, 0)


def test_the_first_readable_sentences_are_taken_whether_the_head_is_right_or_not():
    long, short, trivial = tree(30, 0, name="long"), tree(8, 0, name="short"), tree(3, 0, name="trivial")
    documents = [
        document(long, short, tree(9, 0, name="later"), name="a"),
        document(trivial, name="b"),
        document(tree(10, 3, name="other"), name="c"),
    ]
    maps, _ = maps_of(looking_at_the_first(), documents)
    found = examples(maps)
    assert [(rows["sentence"].iloc[0], bool(rows["is_right"].iloc[0])) for rows in found] == [
        ("short", True),
        ("other", False),
    ]
    assert all(len(rows) in READABLE for rows in found)


def test_where_too_few_documents_have_a_readable_sentence_another_is_taken_and_cut():
    documents = [document(tree(3, 0, name="trivial"), name="a"), document(tree(100, 98, name="long"), name="b")]
    maps, _ = maps_of(looking_at_the_first(n_ctx=128), documents)
    trivial, long = examples(maps)
    assert trivial["token"].tolist() == FORMS[:3]
    assert long["token"].tolist() == FORMS[100 - MOST_SHOWN : 100]
    assert long.loc[long["is_query"], "token"].tolist() == ["w99"]
    assert not long["is_choice"].any(), "the first word is not shown"
    assert not long["is_right"].any()


def test_a_causal_head_chooses_among_earlier_words():
    documents = [document(tree(8, 3), name=name) for name in "ab"]
    model = looking_at_the_first(causal=True, right=False)
    maps, _ = maps_of(model, documents)
    (first, _) = examples(maps)
    assert first["weight"].tolist() == [*[0.0] * 7, 1.0], "the word itself is no choice"
    assert first.loc[first["is_choice"], "word"].tolist() == [0], "of earlier words, which have nothing, the first"


@pytest.mark.parametrize(
    ("exclude", "choice"), [(("special", "self"), [0]), (("special",), [7]), (("self",), []), ((), [7])]
)
def test_a_choice_is_made_among_what_the_scoring_chose_among(exclude, choice):
    weights = torch.zeros(1, 1, 10, 10)
    weights[..., 1], weights[..., 9], weights[..., 8] = 0.2, 0.3, 0.1
    weights[0, 0, 8, 8] = 0.5
    model = Planted(word_level(FORMS, both_sides=True), lambda ids: weights, n_heads=1)
    documents = [document(tree(8, 0), name=name) for name in "ab"]
    maps, _ = maps_of(model, documents, exclude=exclude)
    (first, _) = examples(maps)
    assert first.loc[first["is_choice"], "word"].tolist() == choice
    assert first["is_right"].all() == (choice == [0])


def coreferent(name, distance):
    """A person who is mentioned in the first sentence and again `distance` sentences later."""
    sentences = [sentence(" ".join(FORMS[each * 10 : each * 10 + 10]), name=f"{name}{each}") for each in range(9)]
    return document(*sentences, name=name, mentions=[("1", "", 0, (2,), 2), ("1", "", distance, (0,), 0)])


def test_coreference_shows_the_sentences_from_the_antecedent_to_the_anaphor():
    documents = [coreferent("far", 8), coreferent("near", 2), coreferent("here", 1)]
    maps, _ = maps_of(looking_at_the_first(n_ctx=128), documents, ["coref"])
    found = examples(maps, "anaphor to antecedent")
    assert [rows["document"].iloc[0] for rows in found] == ["near", "here"], "the first that can be shown whole"
    near = found[0]
    assert near["token"].tolist() == FORMS[:30]
    assert near["sentence"].unique().tolist() == ["near2"]
    assert near.loc[near["is_query"], "token"].tolist() == ["w20"]
    assert near.loc[near["is_related"], "token"].tolist() == ["w2"]


def test_words_that_share_a_token_are_one_with_the_text_of_the_token():
    tokenizer = wordpiece("i", "don", "'", "t", "go", "so", "far", "now")
    own = sentence("I do n't go so far now", [3, 3, 3, -1, 3, 3, 3])
    ends = [(0, 1), (2, 4), (4, 7), (8, 10), (11, 13), (14, 17), (18, 21)]
    words = tuple(replace(word, span=Span(*span)) for word, span in zip(own.words, ends, strict=True))
    documents = [document(replace(own, text="I don't go so far now", words=words), name=name) for name in "de"]
    maps, _ = maps_of(Planted(tokenizer, lambda ids: even(len(ids))[None, None], n_heads=1), documents)
    (first, _) = examples(maps)
    assert first["token"].tolist() == ["I", "don't", "go", "so", "far", "now"]
    assert first["weight"].tolist() == pytest.approx(np.array([1, 3, 1, 1, 1, 1]) / 10)


def test_of_very_many_directions_the_first_are_drawn():
    labels = [f"r{number}" for number in range(9)]
    words = sentence(" ".join(FORMS[:10]), [*[9] * 9, -1], [*labels, "root"])
    maps, result = maps_of(looking_at_the_first(), [document(words, name=name) for name in "ab"], labels)
    assert len(result.best()) == 18
    assert sorted(maps["rank"].unique()) == list(range(MOST_HEADS))
    drawn = maps[["relation", "looks"]].drop_duplicates()
    assert len(drawn) == MOST_HEADS


def test_bad_input():
    documents = [document(tree(8, 0), name=name) for name in "ab"]
    maps, result = maps_of(looking_at_the_first(), documents, n_sentences=1)
    assert maps["document"].unique().tolist() == ["a"]
    with pytest.raises(InputError, match=r"of layers x heads \(1, 2\), and an example or more, got \(1, 3\)"):
        relation_maps(looking_at_the_first(n_heads=3), documents, result)
    with pytest.raises(InputError, match=r"got .* and 0 examples"):
        relation_maps(looking_at_the_first(), documents, result, n_sentences=0)
    model = looking_at_the_first()
    model.tokenizer = None
    with pytest.raises(TaskError, match="expected a transformers fast tokenizer"):
        relation_maps(model, documents, result)
