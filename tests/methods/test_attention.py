"""Heads that find their words by construction, against baselines that can be counted by hand."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from banks import document, sentence, word_level
from kinds_of_tokenizers import wordpiece
from planted import Planted, even, onto
from scipy.stats import false_discovery_control
from tiny_models import random_model

from interp.errors import InputError, TaskError
from interp.methods.attention import attend
from interp.tasks.example import Span

FORMS = [f"w{number}" for number in range(40)]
TO_HEAD, TO_DEPENDENT = "dependent to head", "head to dependent"


def trees(n_documents=24, n_sentences=3, *, seed=0, length=8):
    """Random trees over the same words: which word depends on which is in no position."""
    generator = np.random.default_rng(seed)
    for number in range(n_documents):
        yield document(*(tree(generator, length) for _ in range(n_sentences)), name=f"d{number}")


def tree(generator, length):
    """A sentence of different words, each of which but the first depends on an earlier one in some random order."""
    order, words = generator.permutation(length), generator.permutation(len(FORMS))[:length]
    heads = [-1] * length
    for rank in range(1, length):
        heads[order[rank]] = int(order[generator.integers(rank)])
    return sentence(" ".join(FORMS[each] for each in words), heads)


def by_text(documents, tokenizer):
    """Each sentence by its row of ids."""
    return {tuple(tokenizer(each.text)["input_ids"]): each for document in documents for each in document.sentences}


def knowing(documents, *, causal=False, share=1.0, seed=0):
    """Head 0 looks from each word to its head, in a share of the cases; head 1 looks everywhere alike."""
    tokenizer = word_level(FORMS, both_sides=not causal)
    known = by_text(documents, tokenizer)
    generator = np.random.default_rng(seed)

    def pattern(ids):
        found = known[tuple(ids[1:] if causal else ids)]
        targets = {
            at + 1: word.head + 1
            for at, word in enumerate(found.words)
            if word.head >= 0 and (word.head < at or not causal) and generator.random() < share
        }
        spread = even(len(ids))
        if causal:
            spread = torch.tril(torch.ones(len(ids), len(ids)))
            spread = spread / spread.sum(-1, keepdim=True)
        own = torch.where(onto(len(ids), targets) == even(len(ids)), spread, onto(len(ids), targets))
        return torch.stack([own, spread])[None]

    return Planted(tokenizer, pattern, causal=causal)


def row(frame, looks=TO_HEAD, head=0, relation="dep"):
    (found,) = frame.query("relation == @relation and looks == @looks and head == @head").to_dict("records")
    return found


def test_a_planted_head_is_always_right_and_is_said_to_track():
    documents = list(trees())
    result = attend(knowing(documents), documents, ["dep"])
    found = row(result.frame)
    assert found["accuracy"] == found["attention"] == 1.0
    assert found["n"] == 24 * 3 * 7
    assert found["n_documents"] == 24
    assert found["verdict"] == "tracks"
    assert found["p"] == found["q"] == pytest.approx(1 / 10_001)
    assert found["excess"] == 1 - found["accuracy_baseline"]
    assert found["low"] <= found["excess"] <= found["high"]
    other = row(result.frame, head=1)
    assert other["verdict"] == "none"
    assert other["attention"] == pytest.approx(1 / 10), "eight words and two special tokens"
    assert found["accuracy_random_head"] == pytest.approx(other["accuracy"])
    assert other["accuracy_random_head"] == 1.0
    assert row(result.frame, TO_DEPENDENT)["verdict"] == "none", "the other direction is another question"
    assert result.best().query("looks == @TO_HEAD")["head"].tolist() == [0]


def test_a_causal_model_is_scored_where_it_can_look():
    documents = list(trees())
    result = attend(knowing(documents, causal=True), documents, ["dep"])
    back = sum(0 <= word.head < at for each in documents for one in each.sentences for at, word in enumerate(one.words))
    second = sum(0 <= one.words[1].head < 1 for each in documents for one in each.sentences)
    (forward,) = result.relations.query("looks == @TO_HEAD").to_dict("records")
    assert forward["n_pairs"] == 24 * 3 * 7
    assert forward["ahead"] == 24 * 3 * 7 - back
    assert forward["no choice"] == second, "the second word has nothing but the first to look at"
    assert forward["n"] == back - second
    assert row(result.frame)["accuracy"] == 1.0
    assert result.provenance["attention_dir"] == "causal"
    assert result.provenance["special_tokens"] == "[CLS]"


def chains(n_documents=24, length=6):
    """Each word depends on the one before it."""
    generator = np.random.default_rng(0)
    for number in range(n_documents):
        words = generator.permutation(len(FORMS))[:length]
        text = " ".join(FORMS[each] for each in words)
        yield document(sentence(text, [-1, *range(length - 1)]), name=f"d{number}")


def test_what_an_offset_explains_is_no_claim():
    """A head that looks one back is always right about chains, and so is the offset."""
    documents = list(chains())
    result = attend(knowing(documents), documents, ["dep"])
    found = row(result.frame)
    assert (found["accuracy"], found["accuracy_baseline"], found["excess"]) == (1.0, 1.0, 0.0)
    assert found["baseline"] == "offset -1"
    assert found["verdict"] != "tracks"
    (relation,) = result.relations.query("looks == @TO_HEAD").to_dict("records")
    assert (relation["offset"], relation["accuracy_offset"]) == ("offset -1", 1.0)
    assert relation["chance"] == pytest.approx(1 / 5)
    assert relation["accuracy_nearest"] == 1.0, "all words are of one part of speech"


def test_the_baseline_of_a_half_is_chosen_on_the_other_half():
    """Half of the documents look back, half ahead: each half's rule is wrong for the other."""
    documents = list(chains(2))
    ahead = document(sentence(documents[1].sentences[0].text, [1, 2, 3, 4, 5, -1]), name="ahead")
    result = attend(knowing([documents[0], ahead]), [documents[0], ahead], ["dep"])
    found = row(result.frame)
    assert found["baseline"] in ("offset -1 / offset +1", "offset +1 / offset -1")
    # Beyond the edge a rule names the word at the edge: one word in five is right all the same.
    assert found["accuracy_baseline"] == pytest.approx(1 / 5)
    assert found["verdict"] == "undecided", "two documents"


def test_heads_are_chosen_on_one_corpus_and_tested_on_another():
    choosing, scored = list(trees(seed=1)), list(trees(seed=2))
    model = knowing([*choosing, *scored])
    result = attend(model, scored, ["dep"], choose_on=choosing)
    forward = result.frame.query("looks == @TO_HEAD")
    assert forward["chosen"].tolist() == [True, False]
    assert row(result.frame)["verdict"] == "tracks"
    assert np.isnan(row(result.frame, head=1)["q"])
    assert pd.isna(row(result.frame, head=1)["verdict"])
    assert row(result.frame, head=1)["accuracy"] > 0, "measured all the same"
    assert row(result.frame)["baseline"].count("/") == 0
    tested = result.frame[result.frame["chosen"]]
    assert len(tested) == 2, "one for each direction"


def test_corrections():
    documents = list(trees())
    model = knowing(documents, share=0.4)
    family, rate = (attend(model, documents, ["dep"], correction=each).frame for each in ("max-T", "fdr"))
    assert (family["q"] >= family["p"]).all()
    assert np.allclose(rate["q"], false_discovery_control(rate["p"]))


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
    frame = attend(model, [text, document(*text.sentences, name="e")], ["dep"]).frame
    assert row(frame)["attention"] == pytest.approx((0.4 + 0.4) / 2)
    assert row(frame)["accuracy"] == 0.5, "they -> going, though home has more than each of its tokens; home -> they"


def test_a_long_word_is_looked_at_most_by_who_looks_everywhere_alike():
    """Attention to a word is summed over its tokens: without the rule for it, even attention would track names."""
    tokenizer = wordpiece("ann", "##a", "##bel", "saw", "the", "dog", "and", "left")
    generator = np.random.default_rng(0)
    documents = []
    for number in range(24):
        words = generator.permutation(["saw", "the", "dog", "and", "left", "Annabel"]).tolist()
        tags = ["PROPN" if word == "Annabel" else "X" for word in words]
        documents.append(document(sentence(" ".join(words), upos=tags), name=f"d{number}"))
    model = Planted(tokenizer, lambda ids: even(len(ids))[None, None], n_heads=1)
    found = row(attend(model, documents, ["pos:PROPN"]).frame, "any word to it", relation="pos:PROPN")
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
        assert result.provenance["excluded"] == list(exclude)
        return row(result.frame)["accuracy"]

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
    assert row(result.frame, relation="nsubj")["accuracy"] == 0.0
    assert row(result.frame, relation="nsubj")["attention"] == pytest.approx(0.3)
    (aux,) = result.relations.query("relation == 'aux' and looks == @TO_HEAD").to_dict("records")
    assert (aux["n_pairs"], aux["n"], aux["unaligned"]) == (2, 0, 2)
    untestable = row(result.frame, relation="aux")
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


def coreferent(n=24):
    """Mentions of entity 1 in three sentences, one of them nested in a mention of entity 2."""
    generator = np.random.default_rng(0)
    for number in range(n):
        words = [FORMS[each] for each in generator.permutation(len(FORMS))[:12]]
        sentences = [
            sentence(" ".join(words[at : at + 4]), [1, -1, 1, 1], upos=["PRON", "VERB", "NOUN", "X"])
            for at in (0, 4, 8)
        ]
        mentions = [
            ("1", "person", 0, (0,), 0),
            ("2", "thing", 1, (2, 3), 2),
            ("1", "person", 1, (3,), 3),
            ("1", "person", 2, (0,), 0),
        ]
        yield document(*sentences, name=f"d{number}", mentions=mentions)


def test_coreference_is_read_across_sentences():
    documents = list(coreferent())
    tokenizer = word_level(FORMS, both_sides=True)

    def pattern(ids):
        """Head 0 finds the nearest mention, head 1 the first."""
        nearest, first = {8: 1, 9: 8}, {8: 1, 9: 1}
        return torch.stack([onto(len(ids), nearest), onto(len(ids), first)])[None]

    model = Planted(tokenizer, pattern)
    frame = attend(model, documents, ["coref", "coref:nearest"]).frame
    looks = "anaphor to antecedent"
    assert [row(frame, looks, head, "coref")["accuracy"] for head in (0, 1)] == [1.0, 1.0]
    assert [row(frame, looks, head, "coref:nearest")["accuracy"] for head in (0, 1)] == [1.0, 0.5]
    assert row(frame, looks, 0, "coref")["n"] == 48
    assert row(frame, looks, 0, "coref")["attention"] == 1.0


def test_an_untrained_model_is_silent():
    documents = list(trees(30, 6))
    for causal in (True, False):
        tokenizer = word_level(FORMS, both_sides=not causal)
        model = random_model(tokenizer=tokenizer, causal=causal, dtype=torch.float32)
        verdicts = attend(model, documents, ["dep"]).frame["verdict"]
        assert "tracks" not in set(verdicts)


def test_nothing_is_kept_of_the_attention_and_the_order_of_documents_does_not_matter():
    documents = list(trees())
    model = knowing(documents)
    one, other = (attend(model, each, ["dep"]) for each in (documents, documents[::-1]))
    columns = ["accuracy", "attention", "excess"]
    assert np.allclose(one.frame[columns], other.frame[columns], atol=1e-12)


def test_progress_reaches_its_end():
    documents, told = list(trees()), []
    attend(knowing(documents), documents, ["dep"], progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (24 * 3 * 8, 24 * 3 * 8)
    assert sorted(told) == told


def test_bad_input(tmp_path):
    documents = list(trees(2))
    model = knowing(documents)
    with pytest.raises(TaskError, match="relation 'nsubj' does not occur in the corpus"):
        attend(model, documents, ["nsubj"])
    with pytest.raises(TaskError, match="which can be read twice"):
        attend(model, iter(documents), ["dep"])
    with pytest.raises(TaskError, match="expected a CoNLL-U file, got no such file"):
        attend(model, tmp_path / "none.conllu", ["dep"])
    with pytest.raises(InputError, match="expected exclude of special, self"):
        attend.__wrapped__(model, documents, ["dep"], exclude=["bos"])
    with pytest.raises(InputError, match="expected correction of max-T, fdr"):
        attend.__wrapped__(model, documents, ["dep"], correction="none")
    model.tokenizer = None
    with pytest.raises(InputError, match="expected a model with a tokenizer"):
        attend(model, documents, ["dep"])


def test_options_that_make_no_sense():
    documents = list(trees(2))
    model = knowing(documents)
    for option, value in (("alpha", 5.0), ("alpha", 0.0), ("minimum", float("nan")), ("longest_window", 1)):
        with pytest.raises(InputError, match=f"expected {option} "):
            attend(model, documents, ["dep"], **{option: value})


def test_what_chooses_is_not_what_is_scored():
    choosing, scored = list(trees(4, seed=1)), list(trees(4, seed=2))
    model = knowing([*choosing, *scored])
    apart = attend(model, scored, ["dep"], choose_on=choosing)
    with pytest.warns(RuntimeWarning, match=r"1 documents of choose_on are scored, and choose nothing: d0 \(5\)"):
        found = attend(model, scored, ["dep"], choose_on=[*choosing, replace(scored[0], id="d0")])
    assert found.provenance["not_chosen_on"] == ["d0 (5)"]
    assert found.frame.equals(apart.frame)
    with pytest.raises(InputError, match="choose_on holds nothing but what is scored"):
        attend(model, scored, ["dep"], choose_on=scored[:2])
    extra = document(sentence("w1 w2 w3", [1, -1, 1], ["rare", "root", "dep"]), name="extra")
    with pytest.raises(TaskError, match="relation 'rare' does not occur in the corpus that chooses"):
        attend(model, [*scored, extra], ["rare"], choose_on=choosing)
    model = knowing([*choosing, *scored, extra])
    found = attend(model, [*scored, extra], choose_on=choosing).frame["relation"]
    assert set(found) == {"dep"}, "what nobody named and only one has is left out"


def test_words_that_are_attended_to_alike_are_chosen_in_part():
    documents = [document(sentence("w1 w2 w3 w4", [1, -1, 1, 1]), name=name) for name in "de"]
    tokenizer = word_level(FORMS, both_sides=True)
    model = Planted(tokenizer, lambda ids: even(len(ids))[None, None], n_heads=1)
    assert row(attend(model, documents, ["dep"]).frame)["accuracy"] == pytest.approx(1 / 3)


def test_rows_of_a_batch_may_have_different_words():
    """As many tokens, but one word of two: the columns of the special tokens must not mix with those of words."""
    tokenizer = wordpiece("go", "##ing", "home", "they", "now")
    one = sentence("they going home", [1, -1, 1])
    other = sentence("they home now they", [1, -1, 1, 1])
    documents = [document(one, other, name=name) for name in "de"]
    # [CLS] they go ##ing home [SEP] and [CLS] they home now they [SEP]: everyone looks at token 2.
    model = Planted(tokenizer, lambda ids: onto(6, dict.fromkeys(range(6), 2))[None, None], n_heads=1)
    for exclude in (("special", "self"), ("special",), ("self",), ()):
        frame = attend(model, documents, ["dep"], exclude=exclude).frame
        assert row(frame)["accuracy"] == row(frame)["attention"] == 1.0
    first = Planted(tokenizer, lambda ids: onto(6, dict.fromkeys(range(6), 0))[None, None], n_heads=1)
    assert row(attend(first, documents, ["dep"], exclude=("self",)).frame)["accuracy"] == 0.0


def test_a_baseline_that_leaves_nothing_decides_nothing():
    """A head that is always right is not said to be none because a rule is, too."""
    documents = list(chains())
    verdicts = attend(knowing(documents), documents, ["dep"]).frame.query("looks == @TO_HEAD")["verdict"]
    assert set(verdicts) == {"undecided"}


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
    assert attend(model, documents, ["dep"]).frame["accuracy"].notna().all()


def test_sentences_that_are_too_long_are_named():
    documents = list(trees(2))
    longer = [*documents, document(tree(np.random.default_rng(9), 12), name="long")]
    model = knowing(documents)
    model.cfg.n_ctx = 10
    assert attend(model, longer, ["dep"]).provenance["too_long"] == {"long: s": 12}
    with pytest.raises(InputError, match=re.escape("context of 10 tokens")):
        attend(model, longer[2:], ["dep"])


def test_attention_that_is_no_number():
    documents = list(trees(2))
    model = knowing(documents)
    model.pattern = lambda ids: torch.full((1, 2, len(ids), len(ids)), float("nan"))
    with pytest.raises(InputError, match="the attention pattern holds NaN"):
        attend(model, documents, ["dep"])
