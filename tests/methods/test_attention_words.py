"""What is a word that a head attends to? Split words, words that share tokens, special tokens, ties."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from banks import document, sentence, word_level
from kinds_of_tokenizers import wordpiece
from planted import Planted, even, onto
from planted_trees import FORMS, N_DOCUMENTS, TO_HEAD, row, trees

from interp.errors import InputError
from interp.methods.relations.attend import attend
from interp.tasks.example import Span


def test_split_words_are_summed_to_and_averaged_from():
    """``aXbX`` is one word of two tokens: see the numbers below."""
    tokenizer = wordpiece("go", "##ing", "home", "they")
    text = document(sentence("they going home", [1, -1, 1]))

    # [CLS] they go ##ing home [SEP]
    weights = torch.zeros(1, 1, 6, 6)
    weights[0, 0, 1] = torch.tensor([0.1, 0.1, 0.25, 0.15, 0.3, 0.1])  # they: 0.4 to going
    weights[0, 0, 2] = torch.tensor([0.0, 0.5, 0.2, 0.1, 0.1, 0.1])  # go: 0.5 to they, 0.1 to home
    weights[0, 0, 3] = torch.tensor([0.0, 0.1, 0.1, 0.1, 0.7, 0.0])  # ##ing: 0.1 to they, 0.7 to home
    weights[0, 0, 4] = torch.tensor([0.0, 0.6, 0.2, 0.2, 0.0, 0.0])  # home: 0.4 to going
    model = Planted(tokenizer, lambda ids: weights[0], n_heads=1)
    model.pattern = lambda ids: weights
    frame = attend(model, [text, document(*text.sentences, name="e")], ["dep"]).summary()
    assert row(frame)["attention"] == pytest.approx((0.4 + 0.4) / 2)
    assert row(frame)["accuracy"] == 0.5, "they -> going, though home has more than each of its tokens; home -> they"


def test_a_long_word_is_looked_at_most_by_who_looks_everywhere_alike():
    """Attention to a word is summed over its tokens: without the rule for it, even attention would track names."""
    tokenizer = wordpiece("ann", "##a", "##bel", "saw", "the", "dog", "and", "left")
    generator = np.random.default_rng(0)
    documents = []
    for number in range(N_DOCUMENTS):
        words = generator.permutation(["saw", "the", "dog", "and", "left", "Annabel"]).tolist()
        tags = ["PROPN" if word == "Annabel" else "X" for word in words]
        documents.append(document(sentence(" ".join(words), upos=tags), name=f"d{number}"))
    model = Planted(tokenizer, lambda ids: even(len(ids))[None, None], n_heads=1)
    found = row(attend(model, documents, ["pos:PROPN"]).summary(), "any word to it", relation="pos:PROPN")
    assert (found["accuracy"], found["baseline"], found["verdict"]) == (1.0, "most tokens", "undecided")


def test_special_tokens_and_the_word_itself_are_no_choice_unless_asked_for():
    tokenizer = word_level(["a", "b", "c"], both_sides=True)
    documents = [document(sentence("a b c", [1, -1, 1]), name=name) for name in "de"]
    weights = torch.zeros(1, 1, 5, 5)
    weights[0, 0, 1] = torch.tensor([0.5, 0.3, 0.2, 0.0, 0.0])  # a: [CLS], then itself, then its head b
    weights[0, 0, 3] = torch.tensor([0.0, 0.1, 0.3, 0.2, 0.4])  # c: [SEP], then b
    model = Planted(tokenizer, lambda ids: weights, n_heads=1)

    def accuracy(*exclude):
        result = attend(model, documents, ["dep"], exclude=exclude)
        assert result.provenance["exclude"] == list(exclude)
        return row(result.summary())["accuracy"]

    assert accuracy("special", "self") == 1.0
    assert accuracy("special") == 0.5
    assert accuracy("self") == 0.0
    assert accuracy() == 0.0


def test_words_that_share_a_token_are_counted_and_can_still_be_looked_at():
    tokenizer = wordpiece("i", "don", "'", "t", "go")
    (own,) = [sentence("I do n't go", [3, 3, 3, -1], ["nsubj", "aux", "advmod", "root"])]
    spans = [Span(0, 1), Span(2, 4), Span(4, 7), Span(8, 10)]
    words = tuple(replace(word, span=span) for word, span in zip(own.words, spans, strict=True))
    documents = [document(replace(own, text="I don't go", words=words), name=name) for name in "de"]
    weights = even(7)[None, None].repeat(1, 1, 1, 1)
    weights[0, 0, 1] = torch.tensor([0, 0, 0.2, 0.2, 0.2, 0.3, 0.1])  # I: 0.6 to don't, 0.3 to go
    result = attend(Planted(tokenizer, lambda ids: weights, n_heads=1), documents, ["nsubj", "aux"])
    assert row(result.summary(), relation="nsubj")["accuracy"] == 0.0
    assert row(result.summary(), relation="nsubj")["attention"] == pytest.approx(0.3)
    (aux,) = result.relations.query(f"relation == 'aux' and looks == '{TO_HEAD}'").to_dict("records")
    assert (aux["n_pairs"], aux["n"], aux["unaligned"]) == (2, 0, 2)
    untestable = row(result.summary(), relation="aux")
    assert untestable["verdict"] == "not testable"
    assert np.isnan(untestable["accuracy"])


def test_one_word_sentences_and_punctuation():
    """A sentence of one word has no pair; a full stop is a word like any other."""
    documents = [
        document(sentence("w1"), sentence("w2 w3", [1, -1], ["punct", "root"]), name=f"d{number}")
        for number in range(4)
    ]
    tokenizer = word_level(FORMS, both_sides=True)
    model = Planted(tokenizer, lambda ids: even(len(ids))[None, None], n_heads=1)
    with pytest.raises(InputError, match="no pair of the corpus can be scored"):
        attend(model, documents, ["punct"])


def test_words_that_are_attended_to_alike_are_chosen_in_part():
    documents = [document(sentence("w1 w2 w3 w4", [1, -1, 1, 1]), name=name) for name in "de"]
    tokenizer = word_level(FORMS, both_sides=True)
    model = Planted(tokenizer, lambda ids: even(len(ids))[None, None], n_heads=1)
    assert row(attend(model, documents, ["dep"]).summary())["accuracy"] == pytest.approx(1 / 3)


def test_rows_of_a_batch_may_have_different_words():
    """As many tokens, but one word of two: the columns of the special tokens must not mix with those of words."""
    tokenizer = wordpiece("go", "##ing", "home", "they", "now")
    one = sentence("they going home", [1, -1, 1])
    other = sentence("they home now they", [1, -1, 1, 1])
    documents = [document(one, other, name=name) for name in "de"]
    # [CLS] they go ##ing home [SEP] and [CLS] they home now they [SEP]: everyone looks at token 2.
    model = Planted(tokenizer, lambda ids: onto(6, dict.fromkeys(range(6), 2))[None, None], n_heads=1)
    for exclude in (("special", "self"), ("special",), ("self",), ()):
        frame = attend(model, documents, ["dep"], exclude=exclude).summary()
        assert row(frame)["accuracy"] == row(frame)["attention"] == 1.0
    first = Planted(tokenizer, lambda ids: onto(6, dict.fromkeys(range(6), 0))[None, None], n_heads=1)
    assert row(attend(first, documents, ["dep"], exclude=("self",)).summary())["accuracy"] == 0.0


def test_half_precision():
    """A batch's sum of attention is beyond what 16 bits can hold."""
    tokenizer = word_level(FORMS, both_sides=True)
    model = Planted(tokenizer, lambda ids: even(len(ids))[None].repeat(40, 1, 1)[None], n_heads=40)
    forward, documents = model.forward, list(trees(30, 8))
    hook = model.blocks[0].attn.hook_pattern
    model.forward = lambda tokens: (
        hook(torch.stack([model.pattern(each.tolist()) for each in tokens], dim=1)[0].half()),
        forward(tokens)[:0],
    )
    assert attend(model, documents, ["dep"]).summary()["accuracy"].notna().all()
