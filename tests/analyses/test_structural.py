"""A tree that is in the vectors is found, to the edge; one that is not, is not; and nobody depends on their neighbours.

A word's steps are one axis for each word on its path to the root: squared distances are the tree's, squared norms its
depths (Hewitt & Manning 2019, after Reif et al. 2019). A random map hides them among features that vary far more.
"""

import numpy as np
import pytest
import torch
from banks import sentence
from planted_trees import tree
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from analyses.structural_probe.estimators import DepthProbe, DistanceProbe, padded
from analyses.structural_probe.probes import fit_structural, squared_distances, squared_norms
from analyses.structural_probe.trees import structural_scores, structural_summary, tree_depths, tree_distances
from interp.errors import InputError

LONGEST = 8
PROBES = {DistanceProbe: tree_distances, DepthProbe: tree_depths}
both = pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)


def trees(n, seed, shortest=2):
    generator = np.random.default_rng(seed)
    return [tree(generator, int(generator.integers(shortest, LONGEST + 1))) for _ in range(n)]


def steps(found):
    """Of each word, 1 on the axis of every word from itself up to the root's dependent."""
    axes = np.zeros((len(found.words), LONGEST))
    for word in range(len(found.words)):
        at = word
        while found.words[at].head >= 0:
            axes[word, at] = 1
            at = found.words[at].head
    return axes


def hidden(sentences, *, others=16, spread=5.0, seed=0, dtype=np.float64):
    """The steps, mixed by one random invertible map with other features of this spread."""
    n = LONGEST + others
    mixing, generator = np.random.default_rng(99).normal(size=(n, n)), np.random.default_rng(seed)
    drawn = ((each, spread * generator.normal(size=(len(each.words), others))) for each in sentences)
    return [(np.concatenate([steps(each), noise], axis=1) @ mixing).astype(dtype) for each, noise in drawn]


def clouds(sentences, n_features=12, seed=0):
    """Vectors that know nothing of a tree."""
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(len(each.words), n_features)) for each in sentences]


def scored(probe, X, sentences):
    """The summary of one probe."""
    name = "distances" if isinstance(probe, DistanceProbe) else "depths"
    predicted = {name: [each[None].astype(float) for each in probe.predict(X)]}
    return structural_summary(structural_scores(sentences, **predicted)).iloc[0]


def tensors(sentences, truth, *cells):
    """What ``fit_structural`` takes: every fifth sentence says when to stop."""
    vectors = torch.stack([torch.from_numpy(padded(each)) for each in cells])
    lengths = torch.tensor([len(each.words) for each in sentences])
    return (
        vectors,
        torch.from_numpy(padded([truth(each) for each in sentences])),
        lengths,
        torch.arange(len(lengths)) % 5 == 0,
    )


@pytest.mark.parametrize(
    ("probe", "rank"),
    [
        (DistanceProbe, None),
        (DepthProbe, LONGEST),
        pytest.param(DistanceProbe, LONGEST, marks=pytest.mark.slow),
        pytest.param(DepthProbe, None, marks=pytest.mark.slow),
    ],
)
def test_a_tree_that_is_hidden_in_the_vectors_is_recovered(probe, rank):
    """On other sentences, to the edge: rounded predictions are the tree's own numbers."""
    truth, train, test = PROBES[probe], trees(300, 0), trees(100, 1)
    X = hidden(test, seed=1)
    fitted = probe(rank).fit(hidden(train), [truth(each) for each in train])
    predicted = fitted.predict(X)
    assert fitted.dev_loss_ < 2e-3
    assert max(np.abs(found - truth(each)).max() for found, each in zip(predicted, test, strict=True)) < 0.1
    summary = scored(fitted, X, test)
    rounded = {"distances" if probe is DistanceProbe else "depths": [np.round(each)[None] for each in predicted]}
    exact = structural_summary(structural_scores(test, **rounded)).iloc[0]
    if probe is DistanceProbe:
        assert summary["uuas"] == 1
        assert exact["distance_spearman"] == pytest.approx(1)
    else:
        assert summary["root_accuracy"] == 1
        assert exact["depth_spearman"] == pytest.approx(1)


def test_it_was_hidden():
    """The vectors' own distances know little more than chance, which is 2 / n."""
    test = trees(200, 1, shortest=LONGEST)
    own = [squared_distances(torch.from_numpy(each)).numpy()[None] for each in hidden(test)]
    assert structural_summary(structural_scores(test, distances=own))["uuas"][0] < 0.3


@both
def test_one_dimension_cannot_hold_a_tree(probe):
    train = trees(150, 0)
    data = hidden(train), [PROBES[probe](each) for each in train]
    assert probe(1).fit(*data).dev_loss_ > 0.3


def test_what_varies_most_is_found_first():
    """60 sentences do, though 100 features that know nothing would be enough to learn them by heart."""
    train, test = trees(60, 0), trees(100, 1)
    X, held_out = (hidden(each, others=100, spread=0.01, seed=seed) for seed, each in enumerate((train, test)))
    probe = DistanceProbe().fit(X, [tree_distances(each) for each in train])
    assert scored(probe, held_out, test)["uuas"] > 0.95


@both
def test_vectors_that_know_nothing_are_worth_chance(probe):
    """Every pair is as likely to be in the spanning tree as another, 2 / n; every word as likely to be the root."""
    truth, train, test = PROBES[probe], trees(150, 0, shortest=LONGEST), trees(300, 1, shortest=LONGEST)
    fitted = probe().fit(clouds(train), [truth(each) for each in train])
    summary = scored(fitted, clouds(test, seed=1), test)
    if probe is DistanceProbe:
        assert summary["uuas"] == pytest.approx(2 / LONGEST, abs=0.04)
        assert abs(summary["distance_spearman"]) < 0.05
    else:
        assert summary["root_accuracy"] == pytest.approx(1 / LONGEST, abs=0.06)
        assert abs(summary["depth_spearman"]) < 0.07


@pytest.mark.parametrize("truth", [tree_distances, tree_depths])
@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
def test_no_probe_depends_on_the_others(truth, dtype):
    """They differ in what they read and in rank, and stop at different times."""
    sentences = trees(30, 0)
    cells = [hidden(sentences, spread=spread, seed=seed, dtype=dtype) for seed, spread in enumerate((0.1, 1, 5))]
    vectors, *rest = tensors(sentences, truth, *cells)
    together = fit_structural(vectors, *rest, ranks=[3, 24])
    assert together.cell.tolist() == [0, 1, 2] * 2
    assert together.rank.tolist() == [3] * 3 + [24] * 3
    assert len(set(together.n_epochs.tolist())) > 1
    for number, (cell, rank) in enumerate(zip(together.cell.tolist(), together.rank.tolist(), strict=True)):
        alone = fit_structural(vectors[cell : cell + 1], *rest, ranks=[rank])
        torch.testing.assert_close(together.projection[number, :rank], alone.projection[0], rtol=1e-4, atol=1e-4)
        assert not together.projection[number, rank:].any()
        assert together.dev_loss[number].item() == pytest.approx(alone.dev_loss[0].item(), abs=1e-4)
        assert together.n_epochs[number] == alone.n_epochs[0]


@pytest.mark.parametrize("truth", [tree_distances, tree_depths])
def test_the_dev_loss_is_the_mean_error_by_sentence_on_what_is_held_out(truth):
    sentences = trees(40, 0)
    X = hidden(sentences, spread=1.0)
    vectors, gold, lengths, dev = tensors(sentences, truth, X)
    found = fit_structural(vectors, gold, lengths, dev, max_epochs=3)
    errors = []
    for words, each in zip(X[::5], sentences[::5], strict=True):
        projected = words @ found.projection[0].numpy().T
        norms = (projected**2).sum(axis=1)
        distances = ((projected[:, None] - projected) ** 2).sum(axis=-1)
        errors.append(np.abs((norms if truth is tree_depths else distances) - truth(each)).mean())
    assert found.dev_loss[0].item() == pytest.approx(np.mean(errors))
    assert found.n_epochs.tolist() == [6]
    geometry = squared_norms if truth is tree_depths else squared_distances
    assert geometry(found.projected(vectors)).shape == (1, *gold.shape)


@pytest.mark.parametrize("truth", [tree_distances, tree_depths])
def test_the_weights_of_the_best_epoch_are_kept(truth):
    """Of vectors that know nothing, training only learns by heart; what is held out must not pay for it."""
    sentences = trees(40, 0)
    given = tensors(sentences, truth, clouds(sentences, 40))
    losses = [
        fit_structural(*given, max_epochs=epochs, patience=epochs, lr=0.01).dev_loss.item() for epochs in (1, 4, 16, 32)
    ]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("truth", [tree_distances, tree_depths])
def test_neither_padding_nor_the_vectors_unit_counts(truth):
    """Powers of 2, so that nothing is rounded otherwise."""
    sentences = [*trees(40, 0), sentence("w0")]
    vectors, gold, lengths, dev = tensors(sentences, truth, hidden(sentences, spread=1.0))
    expected = fit_structural(vectors, gold, lengths, dev, max_epochs=5)
    padding = torch.arange(LONGEST) >= lengths[:, None]
    noisy = torch.where(padding[..., None], 1000.0, vectors)
    loud = torch.where(padding if gold.ndim == 2 else padding[:, :, None] | padding[:, None], 1000.0, gold)
    for found in (
        fit_structural(noisy, loud, lengths, dev, max_epochs=5),
        fit_structural(vectors * 2**20, gold, lengths, dev, max_epochs=5),
    ):
        torch.testing.assert_close(found.dev_loss, expected.dev_loss)


def test_distances_of_words_far_from_0_do_not_cancel_out():
    words = torch.tensor([[0.0, 0], [3, 4], [0, 1]])
    expected = torch.tensor([[0.0, 25, 1], [25, 0, 18], [1, 18, 0]])
    assert torch.equal(squared_distances(words), expected)
    assert torch.equal(squared_distances(words + 4096), expected)
    assert squared_norms(words).tolist() == [0, 25, 1]


def test_a_head_that_writes_nothing_predicts_nothing():
    sentences = trees(20, 0)
    vectors, *rest = tensors(sentences, tree_distances, hidden(sentences))
    found = fit_structural(torch.cat([torch.zeros_like(vectors), vectors]), *rest, max_epochs=2)
    assert torch.isfinite(found.projection).all()
    assert not squared_distances(found.projected(torch.zeros(2, 1, 3, vectors.shape[-1])))[0].any()


def test_seeds_decide():
    sentences = trees(20, 0)
    given = tensors(sentences, tree_depths, hidden(sentences))
    first, again, other = (fit_structural(*given, max_epochs=2, seed=seed).projection for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


@both
def test_it_is_an_estimator(probe):
    sentences = trees(20, 0)
    X, y = hidden(sentences), [PROBES[probe](each) for each in sentences]
    unfitted = probe(4, max_epochs=2, random_state=3)
    assert unfitted.get_params() == {
        "rank": 4, "max_epochs": 2, "patience": 5, "lr": 1e-3, "batch_size": 20, "validation_fraction": 0.1,
        "random_state": 3,
    }  # fmt: skip
    with pytest.raises(NotFittedError):
        unfitted.predict(X)
    fitted = clone(unfitted)
    assert fitted.fit(X, y) is fitted
    assert not hasattr(unfitted, "projection_")
    assert fitted.projection_.shape == (4, X[0].shape[1])
    assert fitted.n_features_in_ == X[0].shape[1]
    assert fitted.n_iter_ == 4
    assert [each.shape for each in fitted.predict(X)] == [each.shape for each in y]
    before = fitted.projection_
    assert np.array_equal(fitted.fit(X, y).projection_, before)
    assert not np.array_equal(clone(fitted).set_params(random_state=4).fit(X, y).projection_, before)
    assert repr(clone(probe(rank=0)))  # refused by fit, not before


def test_bad_input():
    sentences = trees(6, 0)
    X, y = hidden(sentences), [tree_distances(each) for each in sentences]
    gaps = [*X[:2], np.where(np.arange(X[2].shape[1]) == 3, np.nan, X[2]), *X[3:]]
    with pytest.raises(InputError, match="X, sentence 2: expected finite vectors, got others"):
        DistanceProbe().fit(gaps, y)
    with pytest.raises(InputError, match="y: expected one array for each of 6 sentences, got 5"):
        DistanceProbe().fit(X, y[:5])
    with pytest.raises(InputError, match=r"y, sentence 0: expected the shape \(\d,\), got \(\d, \d\)"):
        DepthProbe().fit(X, y)
    with pytest.raises(InputError, match="y, sentence 5: expected finite numbers, got others"):
        DistanceProbe().fit(X, [*y[:5], np.full_like(y[5], np.inf)])
    with pytest.raises(
        InputError, match=r"X, sentence 1: expected one word or more of 24 features, got the shape \(0, 24\)"
    ):
        DistanceProbe().fit([X[0], X[1][:0]], y[:2])
    with pytest.raises(InputError, match=r"X, sentence 3: expected one word or more of 24 features, got the shape"):
        DistanceProbe().fit([*X[:3], X[3][:, :5]], y[:4])
    with pytest.raises(InputError, match="X: expected sentences, got none"):
        DistanceProbe().fit([], [])
    fitted = DistanceProbe(max_epochs=1).fit(X, y)
    with pytest.raises(InputError, match="X, sentence 0: expected one word or more of 24 features"):
        fitted.predict([X[0][:, :5]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rank": 0}, "rank: expected 1 to 24, the vectors' features, got 0"),
        ({"rank": 25}, "rank: expected 1 to 24, the vectors' features, got 25"),
        ({"patience": 0}, "patience: expected at least 1, got 0"),
        ({"max_epochs": 0}, "max_epochs: expected at least 1, got 0"),
        ({"batch_size": 0}, "batch_size: expected at least 1, got 0"),
        ({"lr": 0.0}, "lr: expected a number above 0, got 0.0"),
        ({"validation_fraction": 1.0}, "validation_fraction: expected a share between 0 and 1, got 1.0"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    sentences = trees(6, 0)
    with pytest.raises(InputError, match=message):
        DistanceProbe(**parameters).fit(hidden(sentences), [tree_distances(each) for each in sentences])


@both
def test_words_by_themselves_have_no_tree(probe):
    sentences = [sentence("w0")] * 5
    with pytest.raises(
        InputError, match="two words or more to train on and to stop by, got 0 and 0; give more sentences"
    ):
        probe().fit(hidden(sentences), [PROBES[probe](each) for each in sentences])


def test_bad_tensors():
    sentences = trees(10, 0)
    vectors, gold, lengths, dev = tensors(sentences, tree_distances, hidden(sentences))
    with pytest.raises(InputError, match="to train on and to stop by, got 10 and 0"):
        fit_structural(vectors, gold, lengths, torch.zeros_like(dev))
    with pytest.raises(InputError, match=f"lengths: expected 1 to {vectors.shape[2]}, got 0 to"):
        fit_structural(vectors, gold, lengths - lengths.min(), dev)
    vectors[0, 4, 0, 0] = torch.inf
    with pytest.raises(InputError, match="sentence 4: expected finite vectors and gold numbers, got others"):
        fit_structural(vectors, gold, lengths, dev)
