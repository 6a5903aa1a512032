"""``interp.probe`` on the embedded model, on real text, and on data that no probe can be judged on."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from banks import document, sentence

import interp
from interp.errors import InputError, TaskError
from interp.tasks.task import Unit


@pytest.fixture(scope="module")
def model():
    return interp.load_model()


@pytest.fixture(scope="module")
def agreement(model):
    return interp.load_task("agreement", n=120, seed=0, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)


@pytest.fixture(scope="module")
def result(model, agreement):
    return interp.probe(model, agreement, site="z", feature="number", penalties=(1e-1, 1e-3), cv=4)


def test_the_head_that_attends_to_the_subject_carries_its_number(result):
    frame = result.cells.set_index(["layer", "head"])
    assert frame.loc[(2, 2), "score"] > 0.95
    assert frame.loc[(2, 2), "verdict"] == "encodes"
    assert frame.loc[(2, 2), "compression"] > 5
    assert frame.drop((2, 2))["score"].max() < 0.9
    assert result.best()[["layer", "head"]].values.tolist() == [[2, 2]]
    assert repr(result).startswith("ProbeResult(agreement; .examples: 2,880 rows; .words: 240 rows; .cells: 12 rows; ")


def test_every_score_stands_beside_its_controls(result, agreement):
    frame = result.cells
    for name in ("control", "majority", "embedding", "position", "untrained", "permuted"):
        assert frame[name].between(0.3, 0.7).all(), name
    assert frame["compression_control"].between(0.8, 1.1).all()
    assert (frame["low"] <= frame["score"]).all()
    assert (frame["score"] <= frame["high"]).all()
    assert result.provenance["held_out"] == ["templates", "lemmas"]
    assert len(result.words) == len(agreement.examples)
    assert result.words["value"].value_counts().to_dict() == {"singular": 120, "plural": 120}


def test_examples_have_each_word_s_score_at_each_cell(result):
    examples = result.examples
    assert list(examples) == ["site", "layer", "head", "example", "score"]
    assert len(examples) == len(result.cells) * len(result.words)
    words = examples.join(result.words["template"], on="example")
    by_template = words.groupby(["layer", "head", "template"])["score"].mean().groupby(["layer", "head"]).mean()
    np.testing.assert_allclose(by_template, result.cells["score"], rtol=1e-6)
    assert set(examples["score"]) == {0, 1}


def test_the_same_seed_gives_the_same_numbers(model, agreement, result):
    again = interp.probe(model, agreement, "number", heads=[(2, 2)], penalties=(1e-1, 1e-3), cv=4)
    columns = ["score", "low", "high", "control", "bits", "untrained"]
    row = result.cells.query("layer == 2 and head == 2")[columns].to_numpy()
    # One head's fits are rounded otherwise than in a batch of all heads', and each ends within a tolerance of 1e-6.
    np.testing.assert_allclose(again.cells[columns], row, rtol=1e-5)


def test_what_is_left_out_changes_nothing_else(model, agreement, result):
    options = {"penalties": (1e-1, 1e-3), "cv": 4, "description_lengths": False, "permuted_labels": False}
    found = interp.probe(model, agreement, "number", **options).cells
    left_out = ["permuted", "bits", "compression", "compression_prior", "compression_control"]
    assert found[left_out].isna().all(axis=None)
    assert result.cells[left_out].notna().all(axis=None)
    pd.testing.assert_frame_equal(found.drop(columns=left_out), result.cells.drop(columns=left_out))


def of_attractors(task, wanted):
    """Only the examples of one structure whose attractor has, or has not, the subject's number; each by itself."""
    units = [
        Unit(example, None, unit.cluster, unit.fold)
        for unit in task.units
        for example in unit.examples
        if example.example.template == "prepositional" and example.example.features["congruent"] in wanted
    ]
    return replace(task, units=tuple(units))


def test_unbalanced_attractors_give_the_feature_away(model):
    """A pitfall: where each attractor has the opposite number, the word before the verb says the subject's."""
    task = interp.load_task("agreement", n=400, seed=0, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)
    options = {"heads": [(2, 2)], "penalties": (1e-1, 1e-3), "cv": 4}
    opposite = interp.probe(model, of_attractors(task, ["no"]), "number", **options)
    assert opposite.cells["embedding"].iloc[0] > 0.7
    assert opposite.cells["baseline"].iloc[0] == "embedding"
    balanced = interp.probe(model, of_attractors(task, ["yes", "no"]), "number", **options)
    assert balanced.cells["embedding"].iloc[0] < 0.6
    assert balanced.cells["verdict"].tolist() == ["encodes"]


def test_a_stream_has_a_row_a_layer(model, agreement):
    found = interp.probe(model, agreement, "number", site="resid_post", penalties=(1e-2,), cv=3).cells
    assert "head" not in found
    assert found["layer"].tolist() == [0, 1, 2]
    assert found["score"].iloc[2] > 0.95 > 0.8 > found["score"].iloc[0]


def test_several_sites_are_one_family(model, agreement, tmp_path):
    options = {"heads": [(1, 3), (2, 2)], "penalties": (1e-2,), "cv": 3, "description_lengths": False}
    both = interp.probe(model, agreement, "number", site=("q", "z"), **options)
    assert both.cells[["site", "layer", "head"]].values.tolist() == [
        *(["q", 1, 3], ["q", 2, 2], ["z", 1, 3], ["z", 2, 2])
    ]
    alone = interp.probe(model, agreement, "number", site="z", **options)
    columns = ["score", "low", "high", "untrained", "control", "p"]
    found = both.at("z")
    np.testing.assert_allclose(found.cells[columns], alone.cells[columns], rtol=1e-6)
    assert (found.cells["p_adjusted"] >= alone.cells["p_adjusted"]).all()
    assert both.cells["bits"].isna().all()
    assert (found.provenance["site"], both.provenance["site"]) == ("z", ["q", "z"])
    page = (both.save(tmp_path / "both") / "report.html").read_text()
    assert page.index("q: ") < page.index("z: ")
    with pytest.raises(InputError, match="nothing was probed at 'k'; "):
        both.at("k")
    assert (found.save(tmp_path / "z") / "report.html").is_file()


def test_the_subject_itself_says_its_number(model, agreement):
    options = {"at": "related", "layers": [0], "site": "resid_pre", "penalties": (1e-2,), "cv": 4}
    with pytest.warns(RuntimeWarning, match="gives the feature away"):
        found = interp.probe(model, agreement, "number", **options).cells
    assert found["score"].iloc[0] > 0.8
    assert found["embedding"].iloc[0] > 0.8
    assert found["verdict"].tolist() != ["encodes"]


def documents(n=24, seed=0):
    """Sentences in which a word's part of speech is in its form's first letter, and nothing else."""
    rng = np.random.default_rng(seed)
    forms = ["key", "cabinet", "boy", "girl", "see", "take", "know", "walk"]
    tags = ["NOUN"] * 4 + ["VERB"] * 4
    for number in range(n):
        order = rng.permutation(8)
        text = sentence(" ".join(forms[each] for each in order), upos=[tags[each] for each in order], name=f"s{number}")
        yield document(text, name=f"d{number}")


def test_a_corpus_is_probed_word_by_word(model):
    found = interp.probe(model, list(documents()), "upos", site="resid_post", layers=[0], penalties=(1e-2,), cv=3)
    assert found.provenance["held_out"] == ["documents", "lemmas"]
    assert found.provenance["classes"] == ["NOUN", "VERB"]
    assert found.cells["n_documents"].tolist() == [24]
    assert found.cells["n_lemmas"].tolist() == [8]
    assert found.cells["verdict"].tolist() == ["undecided"]
    assert found.words["document"].nunique() == 24


def test_words_of_a_corpus_are_drawn_where_few_are_enough(model):
    options = {"site": "resid_post", "layers": [0], "penalties": (1e-2,), "cv": 3, "description_lengths": False}
    every = interp.probe(model, list(documents()), "upos", n=1000, **options)
    some, again, other = (
        interp.probe(model, list(documents()), "upos", n=100, seed=seed, **options) for seed in (0, 0, 1)
    )
    assert (every.cells["n"].item(), some.cells["n"].item()) == (192, 100)
    places = ["document", "word"]
    assert len(some.words.merge(every.words, on=[*places, "value"])) == 100
    assert some.words.equals(again.words)
    assert not some.words[places].equals(other.words[places])
    with pytest.raises(InputError, match="n: expected 1 word at least, got 0"):
        interp.probe(model, list(documents()), "upos", n=0, **options)


def test_labels_of_one_s_own(model, agreement):
    labels = [["here", "there"][len(each.prompt) % 2] for each in agreement.examples]
    found = interp.probe(
        model, agreement, "parity", labels=labels, site="pos_embed", penalties=(1e-2,), cv=3, min_examples=5
    )
    assert found.cells["score"].iloc[0] > 0.9
    assert found.cells["baseline"].iloc[0] in ("position", "untrained")
    with pytest.raises(InputError, match="labels: expected 240, one for each word that is read, got 3"):
        interp.probe(model, agreement, "parity", labels=["a", "b", "a"])


@pytest.mark.parametrize("kind", ["ridge", "lda", pytest.param("mlp", marks=pytest.mark.slow)])
def test_other_kinds_of_probe_read_it_too(model, agreement, kind):
    found = interp.probe(model, agreement, "number", heads=[(2, 2)], kind=kind, penalties=(1e-2,), cv=3).cells.iloc[0]
    assert found["score"] > 0.9
    assert np.isnan(found["bits"]) == (kind == "ridge")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"site": ("z", "resid_post")},
            "expected sites of heads, or sites of layers, got z, resid_post; probe them one",
        ),
        ({"site": ("z", "z")}, r"site: expected different ones, at least one, got \['z', 'z'\]"),
        ({"site": ()}, r"site: expected different ones, at least one, got \[\]"),
        (
            {"feature": "nummer"},
            r"feature 'nummer': the data have no labels of it; did you mean 'number'.* There are: ",
        ),
        ({"site": "zz"}, "no site is called 'zz'"),
        ({"site": "pattern"}, "a word has no activation of its own there"),
        ({"heads": [(7, 0)]}, r"head 7.0: there are 3 layers \(0 to 2\) of 4 heads"),
        ({"heads": [(0, 0)], "site": "resid_post"}, "a site that has heads, got site 'resid_post'"),
        ({"layers": [9]}, "layers"),
        ({"cv": 1}, "cv: expected 2 at least, got 1"),
        ({"min_effect": 2.0}, "min_effect: expected a share between 0 and 1, got 2.0"),
        ({"labels": ["a"] * 239 + ["b"]}, "expected at least 2 examples of each of its 2 classes, got 1 of 'b'"),
    ],
)
def test_what_cannot_be_asked_is_refused(model, agreement, options, message):
    with pytest.raises(InputError, match=message):
        interp.probe(model, agreement, **{"feature": "number", **options})


def test_one_class_is_refused(model, agreement):
    task = replace(agreement, units=tuple(Unit(each.item, None, each.cluster) for each in agreement.units))
    plural = replace(task, units=tuple(u for u in task.units if u.item.example.features["number"] == "plural"))
    with pytest.raises(InputError, match=r"two classes at least, got 'plural' \(\d+ words\)"):
        interp.probe(model, plural, "number")


def test_activations_that_are_no_numbers_are_named(agreement):
    broken = interp.load_model()
    with torch.no_grad():
        broken.blocks[1].attn.W_V[2, 0, 0] = torch.nan
    with pytest.raises(InputError, match=r"z of layer 1: .* document .* word \d+ \('"):
        interp.probe(broken, agreement, "number")


def test_a_feature_that_the_treebank_lacks_is_refused(model):
    with pytest.raises(InputError, match="feature 'number': no word of the corpus has it; there are: upos"):
        interp.probe(model, list(documents()), "number")
    with pytest.raises(TaskError, match="feature 'colour' is not a feature of a treebank"):
        interp.probe(model, list(documents()), "colour")


@pytest.mark.gpu
def test_a_gpu_finds_the_same(agreement, result):
    there = interp.load_model(device="cuda")
    found = interp.probe(there, agreement, "number", penalties=(1e-1, 1e-3), cv=4).cells
    np.testing.assert_allclose(found["score"], result.cells["score"], atol=0.01)
