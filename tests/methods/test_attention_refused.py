"""What is refused, left out or passed over when heads are scored, and how it is said."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from as_users_call import unchecked
from banks import document, sentence
from planted_trees import knowing, tree, trees

from interp.errors import InputError, TaskError
from interp.methods.relations.attend import attend
from interp.tasks.corpus import Corpus


def test_bad_input(tmp_path):
    documents = list(trees(2))
    model = knowing(documents)
    with pytest.raises(TaskError, match="relation 'nsubj' does not occur in the corpus"):
        attend(model, documents, ["nsubj"])
    with pytest.raises(TaskError, match="which can be read twice"):
        attend(model, iter(documents), ["dep"])
    with pytest.raises(TaskError, match="expected a CoNLL-U file, got no such file"):
        attend(model, tmp_path / "none.conllu", ["dep"])
    with pytest.raises(InputError, match=r"exclude: 'bos' is unknown; known are 'special', 'self'$"):
        unchecked(attend)(model, documents, ["dep"], exclude=["bos"])
    with pytest.raises(InputError, match=r"exclude: expected a name or a list of names, got \(1,\)"):
        unchecked(attend)(model, documents, ["dep"], exclude=[1])
    with pytest.raises(InputError, match="correction: 'none' is unknown"):
        unchecked(attend)(model, documents, ["dep"], correction="none")
    model.tokenizer = None
    with pytest.raises(InputError, match="expected a model with a tokenizer"):
        attend(model, documents, ["dep"])


def test_options_that_make_no_sense():
    documents = list(trees(2))
    model = knowing(documents)
    for option, value in (("alpha", 5.0), ("alpha", 0.0), ("min_effect", float("nan")), ("max_window", 1)):
        with pytest.raises(InputError, match=f"{option}: expected "):
            attend(model, documents, ["dep"], **{option: value})


def test_what_chooses_is_not_what_is_scored():
    choosing, scored = list(trees(4, seed=1)), list(trees(4, seed=2))
    model = knowing([*choosing, *scored])
    apart = attend(model, scored, ["dep"], choose_on=choosing)
    with pytest.warns(RuntimeWarning, match=r"1 documents of choose_on are scored, and choose nothing: d0 \(5\)"):
        found = attend(model, scored, ["dep"], choose_on=[*choosing, replace(scored[0], id="d0")])
    assert found.provenance["not_chosen_on"] == ["d0 (5)"]
    passed_over = set(Corpus.of(choosing[:1]).contents.hashes)
    without = Corpus((*choosing, replace(scored[0], id="d0")), frozenset(passed_over))
    with pytest.warns(RuntimeWarning, match="choose nothing"):
        fewer = attend(model, scored, ["dep"], choose_on=without)
    assert fewer.provenance["chosen_on"] == Corpus.of(choosing[1:]).contents.hash
    assert found.summary().equals(apart.summary())
    with pytest.raises(InputError, match="choose_on holds nothing but what is scored"):
        attend(model, scored, ["dep"], choose_on=scored[:2])
    extra = document(sentence("w1 w2 w3", [1, -1, 1], ["rare", "root", "dep"]), name="extra")
    with pytest.raises(TaskError, match="relation 'rare' does not occur in the corpus that chooses"):
        attend(model, [*scored, extra], ["rare"], choose_on=choosing)
    model = knowing([*choosing, *scored, extra])
    found = attend(model, [*scored, extra], choose_on=choosing).summary()["relation"]
    assert set(found) == {"dep"}, "what nobody named and only one has is left out"


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
