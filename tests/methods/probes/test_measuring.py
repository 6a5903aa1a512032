"""Planted activations: what abstracts, what memorises and what says nothing get the verdicts that they deserve."""

import threading

import numpy as np
import pandas as pd
import pytest
import torch

from interp.errors import InputError
from interp.methods.probes import scores
from interp.methods.probes.data import labelled
from interp.methods.probes.scores import Measuring
from interp.methods.probes.verdicts import tabulate
from interp.options import ProbeOptions

N, LEMMAS, DOCUMENTS = 600, 40, 40


def words(seed=0):
    """An index of words: 40 lemmas with a number of their own each, in 40 documents."""
    rng = np.random.default_rng(seed)
    lemma = rng.integers(LEMMAS, size=N)
    number = np.array(["plural", "singular"])[lemma % 2]
    return pd.DataFrame(
        {
            "document": [f"d{each}" for each in rng.integers(DOCUMENTS, size=N)],
            "template": "",
            "sentence": [f"s{each}" for each in range(N)],
            "word": 0,
            "token": rng.integers(1, 9, size=N),
            "n_tokens": 1,
            "form": [f"w{each}" for each in lemma],
            "number": number,
            "number:carrier": [f"w{each}" for each in lemma],
            "number:lemma": [f"w{each}" for each in lemma],
        }
    )


def heads(index, seed=0):
    """Three heads: one writes the number, one a direction of each word's own, one noise."""
    rng = np.random.default_rng(seed)
    noise = 0.3 * rng.normal(size=(3, N, 40))
    noise[0, :, 3] += (index["number"] == "plural") * 2.0 - 1
    own = rng.normal(size=(LEMMAS, 40))
    noise[1] += own[index["form"].str[1:].astype(int)]
    return torch.from_numpy(noise)


def judged(index, x, embedding=None, twin=None, feature="number", **options):
    asked = ProbeOptions(**{"penalties": (1.0, 1e-1, 1e-2, 1e-3), **options})
    measuring = Measuring(labelled(index, feature), asked, torch.device("cpu"))
    found = measuring.joined(list(measuring.cells(x, twin)), embedding)
    cells = pd.DataFrame({"site": "z", "layer": 0, "head": range(len(x))})
    return tabulate(cells, found, measuring.labelled, asked)


@pytest.fixture(scope="module")
def frame():
    index = words()
    return judged(index, heads(index))


def test_the_head_that_abstracts_encodes(frame):
    first = frame.iloc[0]
    assert first["score"] > 0.95
    assert first["verdict"] == "encodes"
    assert first["selectivity_low"] > 0.1
    assert first["compression"] > 2
    assert first["p_adjusted"] <= 0.001


def test_the_head_that_memorises_does_not(frame):
    """It knows its words, and any labels of theirs; of new ones it knows nothing."""
    second = frame.iloc[1]
    assert second["score_seen"] > 0.95
    assert second["control"] > 0.9
    assert second["score"] < 0.7
    assert abs(second["selectivity"]) < 0.05
    assert second["verdict"] != "encodes"


def test_the_luck_of_new_lemmas_is_no_evidence():
    """A head that knows words alone is right or wrong about a lemma as a whole, however many words of it there are."""
    for seed in range(4):
        index = words(seed)
        second = judged(index, heads(index, seed)[1:2]).iloc[0]
        assert second["high"] - second["low"] > 0.15
        assert second["p_adjusted"] > 0.01


def test_the_head_of_noise_is_at_its_controls(frame):
    third = frame.iloc[2]
    assert third["verdict"] != "encodes"
    assert third["excess"] < 0.1
    assert third["compression"] < 1.05
    for name in ("score", "control", "permuted", "majority", "position"):
        assert 0.3 < third[name] < 0.65


def test_the_toughest_control_is_the_baseline():
    index = words()
    x = heads(index)
    given_away = torch.nn.functional.one_hot(torch.from_numpy((index["number"] == "plural").to_numpy().astype(int)))
    frame = judged(index, x[:1], embedding=given_away.double())
    assert frame["baseline"].tolist() == ["embedding"]
    assert frame["score_baseline"].iloc[0] > 0.95
    assert frame["verdict"].iloc[0] != "encodes"
    frame = judged(index, x[:1], twin=x[:1])
    assert frame["baseline"].tolist() == ["untrained"]
    assert frame["excess"].iloc[0] == 0


def test_few_documents_decide_nothing():
    index = words()
    index["document"] = [f"d{int(each[1:]) % 12}" for each in index["document"]]
    frame = judged(index, heads(index)[:1])
    assert frame["verdict"].tolist() == ["undecided"]
    assert frame["n_documents"].tolist() == [12]


def test_numbers_have_r2_and_no_code():
    index = words()
    far = np.random.default_rng(1).integers(-5, 6, size=N)
    index["distance"], index["distance:carrier"], index["distance:lemma"] = (
        far.astype(str),
        index["form"],
        index["form"],
    )
    x = torch.from_numpy(np.random.default_rng(2).normal(size=(2, N, 8)))
    x[0, :, 0] += torch.from_numpy(far.astype(float))
    frame = judged(index, x, kind="ridge", feature="distance")
    assert frame["score"].iloc[0] == pytest.approx(1 - 1 / (1 + far.var()), abs=0.03)
    assert abs(frame["score"].iloc[1]) < 0.1
    assert frame["majority"].tolist() == pytest.approx([0.0, 0.0], abs=1e-9)
    assert frame["bits"].isna().all()
    assert frame["verdict"].tolist() == ["encodes", "none"]


def test_what_no_probe_can_be_judged_on_is_refused():
    index = words()
    with pytest.raises(InputError, match=r"feature 'case': the data have no labels of it\. There are: number"):
        labelled(index, "case")
    with pytest.raises(InputError, match=r"two classes at least, got 'plural' \(\d+ words\)"):
        labelled(index[index["number"] == "plural"], "number")
    index.loc[0, "number"] = "dual"
    with pytest.raises(
        InputError, match=r"at least 2 examples of each of its 3 classes, got 1 of 'dual'; .*_examples=2,"
    ):
        labelled(index, "number")
    assert labelled(index, "number", min_examples=2).classes == ("plural", "singular")


def test_templates_are_folds_unless_they_tell_the_label():
    index = words()
    index["template"] = np.where(np.arange(N) % 3, "simple", "relative")
    assert set(labelled(index, "number").groups) == {"simple", "relative"}
    index["template"] = index["number"]
    assert set(labelled(index, "number").groups) == set(index["document"])


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_heads_are_fitted_side_by_side_with_a_thread_and_half_the_budget_each(monkeypatch):
    index, fit, asked = words(), scores.cross_fit, set()
    both_here = threading.Barrier(2, timeout=60)

    def fitting(x, *args, memory_budget, **options):
        asked.add((torch.get_num_threads(), memory_budget))
        both_here.wait()
        return fit(x, *args, memory_budget=memory_budget, **options)

    def measured():
        own = Measuring(labelled(index, "number"), options, torch.device("cpu"))
        return own, list(own.cells(heads(index)[:2], None))

    options = ProbeOptions(penalties=(1.0, 1e-2), memory_budget=1 << 24)
    monkeypatch.setattr(scores, "cross_fit", fitting)
    measuring, found = measured()
    assert asked == {(1, 1 << 23)}
    assert torch.get_num_threads() == 2
    assert len(measuring._fits) == 8  # of each head: the probe, control, permuted labels, words that are known
    monkeypatch.setattr(scores, "cross_fit", fit)
    torch.set_num_threads(1)
    for part, other in zip(found, measured()[1], strict=True):
        assert part.keys() == other.keys()
        for name in part:
            np.testing.assert_array_equal(part[name], other[name])


@pytest.mark.usefixtures("two_threads")
def test_whoever_stops_in_the_middle_has_all_threads_again():
    index = words()
    going = Measuring(labelled(index, "number"), ProbeOptions(penalties=(1.0,)), torch.device("cpu")).cells(
        heads(index), None
    )
    next(going)
    going.close()
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("n_heads", "budget", "share"), [(1, 1 << 24, (2, 1 << 24)), (2, 1, (1, 1))])
def test_one_alone_has_all_threads_and_no_budget_is_divided_to_none(monkeypatch, n_heads, budget, share):
    index, fit, asked = words(), scores.cross_fit, set()

    def fitting(*args, memory_budget):
        asked.add((torch.get_num_threads(), memory_budget))
        return fit(*args)

    monkeypatch.setattr(scores, "cross_fit", fitting)
    options = ProbeOptions(penalties=(1.0,), memory_budget=budget, description_lengths=False)
    list(Measuring(labelled(index, "number"), options, torch.device("cpu")).cells(heads(index)[:n_heads], None))
    assert asked == {share}
