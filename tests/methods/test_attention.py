"""Heads that find their words by construction, against baselines that can be counted by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from banks import document, sentence, word_level
from planted import Planted, onto
from planted_trees import FORMS, N_DOCUMENTS, TO_DEPENDENT, TO_HEAD, knowing, row, trees
from scipy.stats import false_discovery_control
from tiny_models import random_model

from interp.methods.relations.attend import attend
from interp.options import AttendOptions


def test_a_planted_head_is_always_right_and_is_said_to_attend():
    documents = list(trees())
    result = attend(knowing(documents), documents, ["dep"])
    found = row(result.summary())
    assert found["accuracy"] == found["attention"] == 1.0
    assert found["n"] == N_DOCUMENTS * 3 * 7
    assert found["n_documents"] == N_DOCUMENTS
    assert found["verdict"] == "attends"
    assert found["p"] == found["p_adjusted"] == pytest.approx(1 / 10_001)
    assert found["excess"] == 1 - found["accuracy_baseline"]
    assert found["low"] <= found["excess"] <= found["high"]
    other = row(result.summary(), head=1)
    assert other["verdict"] == "none"
    assert other["attention"] == pytest.approx(1 / 10), "eight words and two special tokens"
    assert found["accuracy_random_head"] == pytest.approx(other["accuracy"])
    assert other["accuracy_random_head"] == 1.0
    assert row(result.summary(), TO_DEPENDENT)["verdict"] == "none", "the other direction is another question"
    assert result.best().query(f"looks == '{TO_HEAD}'")["head"].tolist() == [0]


def test_a_causal_model_is_scored_where_it_can_look():
    documents = list(trees())
    result = attend(knowing(documents, causal=True), documents, ["dep"])
    back = sum(0 <= word.head < at for each in documents for one in each.sentences for at, word in enumerate(one.words))
    second = sum(0 <= one.words[1].head < 1 for each in documents for one in each.sentences)
    (forward,) = result.relations.query(f"looks == '{TO_HEAD}'").to_dict("records")
    assert forward["n_pairs"] == N_DOCUMENTS * 3 * 7
    assert forward["ahead"] == N_DOCUMENTS * 3 * 7 - back
    assert forward["no choice"] == second, "the second word has nothing but the first to look at"
    assert forward["n"] == back - second
    assert row(result.summary())["accuracy"] == 1.0
    assert result.provenance["attention_dir"] == "causal"
    assert result.provenance["special_tokens"] == "[CLS] text"


def chains(n_documents=N_DOCUMENTS, length=6):
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
    found = row(result.summary())
    assert (found["accuracy"], found["accuracy_baseline"], found["excess"]) == (1.0, 1.0, 0.0)
    assert found["baseline"] == "offset -1"
    assert found["verdict"] != "attends"
    (relation,) = result.relations.query(f"looks == '{TO_HEAD}'").to_dict("records")
    assert (relation["offset"], relation["accuracy_offset"]) == ("offset -1", 1.0)
    assert relation["chance"] == pytest.approx(1 / 5)
    assert relation["accuracy_nearest"] == 1.0, "all words are of one part of speech"


def test_the_baseline_of_a_half_is_chosen_on_the_other_half():
    """Half of the documents look back, half ahead: each half's rule is wrong for the other."""
    documents = list(chains(2))
    ahead = document(sentence(documents[1].sentences[0].text, [1, 2, 3, 4, 5, -1]), name="ahead")
    result = attend(knowing([documents[0], ahead]), [documents[0], ahead], ["dep"])
    found = row(result.summary())
    assert found["baseline"] in ("offset -1 / offset +1", "offset +1 / offset -1")
    # Beyond the edge a rule names the word at the edge: one word in five is right all the same.
    assert found["accuracy_baseline"] == pytest.approx(1 / 5)
    assert found["verdict"] == "undecided", "two documents"


def test_heads_are_chosen_on_one_corpus_and_tested_on_another():
    choosing, scored = list(trees(seed=1)), list(trees(seed=2))
    model = knowing([*choosing, *scored])
    result = attend(model, scored, ["dep"], choose_on=choosing)
    forward = result.summary().query(f"looks == '{TO_HEAD}'")
    assert forward["chosen"].tolist() == [True, False]
    assert row(result.summary())["verdict"] == "attends"
    assert np.isnan(row(result.summary(), head=1)["p_adjusted"])
    assert pd.isna(row(result.summary(), head=1)["verdict"])
    assert row(result.summary(), head=1)["accuracy"] > 0, "measured all the same"
    assert row(result.summary())["baseline"].count("/") == 0
    tested = result.summary()[result.summary()["chosen"]]
    assert len(tested) == 2, "one for each direction"


def test_corrections():
    documents = list(trees())
    model = knowing(documents, share=0.4)
    family, rate = (attend(model, documents, ["dep"], correction=each).summary() for each in ("max-T", "fdr"))
    assert (family["p_adjusted"] >= family["p"]).all()
    assert np.allclose(rate["p_adjusted"], false_discovery_control(rate["p"]))


def coreferent(n=N_DOCUMENTS):
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
    frame = attend(model, documents, ["coref", "coref:nearest"]).summary()
    looks = "anaphor to antecedent"
    assert [row(frame, looks, head, "coref")["accuracy"] for head in (0, 1)] == [1.0, 1.0]
    assert [row(frame, looks, head, "coref:nearest")["accuracy"] for head in (0, 1)] == [1.0, 0.5]
    assert row(frame, looks, 0, "coref")["n"] == 2 * N_DOCUMENTS
    assert row(frame, looks, 0, "coref")["attention"] == 1.0


def test_examples_are_what_the_summary_counts():
    documents = list(trees())
    result = attend(knowing(documents, share=0.4), documents, ["dep"])
    cell = ["relation", "looks", "layer", "head"]
    sums = result.examples.groupby(cell, observed=True)[["pairs", "right", "right_baseline"]].sum().reset_index()
    both = result.summary().merge(sums, on=cell, validate="one_to_one")
    assert len(both) == len(result.summary()) == 4
    assert (both["pairs"] == both["n"]).all()
    assert np.allclose(both["right"] / both["n"], both["accuracy"])
    assert np.allclose((both["right"] - both["right_baseline"]) / both["n"], both["excess"])
    assert result.examples.groupby(cell, observed=True)["document"].nunique().tolist() == [N_DOCUMENTS] * 4


def test_options_are_an_object_or_its_fields():
    documents = list(trees(2))
    model = knowing(documents)
    one = attend(model, documents, ["dep"], AttendOptions(exclude="self", max_window=9))
    assert one == attend(model, documents, ["dep"], exclude=["self"], max_window=9)
    assert (one.provenance["exclude"], one.provenance["max_window"], one.provenance["min_effect"]) == (["self"], 9, 0.1)


def test_an_untrained_model_is_silent():
    documents = list(trees(30, 6))
    for causal in (True, False):
        tokenizer = word_level(FORMS, both_sides=not causal)
        model = random_model(tokenizer=tokenizer, causal=causal, dtype=torch.float32)
        verdicts = attend(model, documents, ["dep"]).summary()["verdict"]
        assert "attends" not in set(verdicts)


def test_nothing_is_kept_of_the_attention_and_the_order_of_documents_does_not_matter():
    documents = list(trees())
    model = knowing(documents)
    one, other = (attend(model, each, ["dep"]) for each in (documents, documents[::-1]))
    columns = ["accuracy", "attention", "excess"]
    assert np.allclose(one.summary()[columns], other.summary()[columns], atol=1e-12)


def test_progress_reaches_its_end():
    documents, told = list(trees()), []
    attend(knowing(documents), documents, ["dep"], progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (N_DOCUMENTS * 3 * 8, N_DOCUMENTS * 3 * 8)
    assert sorted(told) == told


def test_a_baseline_that_leaves_nothing_decides_nothing():
    """A head that is always right is not said to be none because a rule is, too."""
    documents = list(chains())
    verdicts = attend(knowing(documents), documents, ["dep"]).summary().query(f"looks == '{TO_HEAD}'")["verdict"]
    assert set(verdicts) == {"undecided"}
