"""What an eraser takes away, on numbers whose classes are known."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from interp.interventions.replacement import Eraser
from interp.methods.erasure.erasers import Standard, Whitening, fit_probe, inlp, leace, majority, random_subspace

SHAPES = {
    "two classes": {},
    "three classes, of different sizes": {"sizes": (200, 60, 40)},
    "fewer dimensions than numbers": {"rank": 4},
    "more numbers than readings": {"sizes": (9, 11), "d": 40},
    "more classes than dimensions": {"sizes": (30,) * 8, "d": 4},
    "an outlier among the numbers": {"outlier": 1e9},
    "a number that never moves": {"constant": True},
    "tiny": {"scale": 1e-6},
}


def drawn(seed=0, *, sizes=(150, 150), d=12, rank=None, outlier=1.0, constant=False, scale=1.0, apart=2.0):
    """Activations of classes whose means lie apart, with covariances of no special form."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([f"class {number}" for number in range(len(sizes))], sizes)
    n, inner = len(labels), rank or d
    means = apart * rng.normal(size=(len(sizes), inner)) / np.sqrt(inner)
    noise = rng.normal(size=(n, inner)) @ rng.normal(size=(inner, inner))
    x = (noise + np.repeat(means, sizes, axis=0) @ rng.normal(size=(inner, inner))) @ rng.normal(size=(inner, d))
    x[:, 0] *= outlier
    x = scale * (x + 3)
    if constant:
        x[:, 1] = 5.0
    return torch.from_numpy(x), labels


def class_means(x, labels):
    return torch.stack([x[torch.from_numpy(labels == each)].mean(0) for each in np.unique(labels)])


def spread(x):
    return float((x - x.mean(0)).square().sum(1).mean().sqrt())


def trained_accuracy(x, labels, before):
    """Of a probe on the data that it was trained on, in the units of the activations before."""
    units = Standard.of(before)
    return (fit_probe(units, x, labels).predict(units(x)) == labels).mean()


class TestLeace:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_all_classes_get_one_mean(self, shape):
        x, labels = drawn(**SHAPES[shape])
        eraser = leace(x, labels)
        before, after = class_means(x, labels), class_means(eraser(x), labels)
        assert float(((before - before[0]) / Standard.of(x).scale).abs().max()) > 0.2
        units = Standard.of(x).scale
        torch.testing.assert_close(after / units, (x.mean(0) / units).expand_as(after), rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_a_probe_that_read_the_classes_says_the_commonest(self, shape):
        x, labels = drawn(**SHAPES[shape])
        assert trained_accuracy(x, labels, x) > majority(labels) + 0.15
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing to converge to
            assert trained_accuracy(leace(x, labels)(x), labels, x) == pytest.approx(majority(labels))

    def test_so_does_one_that_is_not_regularised(self):
        x, labels = drawn()
        seen = Standard.of(x)(leace(x, labels)(x))
        free = LogisticRegression(C=np.inf, max_iter=10_000, tol=1e-8).fit(seen, labels)
        assert np.abs(free.coef_).max() < 1e-8

    @pytest.mark.parametrize(
        ("shape", "rank"),
        [("two classes", 1), ("three classes, of different sizes", 2), ("more classes than dimensions", 4)],
    )
    def test_no_more_directions_than_needed(self, shape, rank):
        x, labels = drawn(**SHAPES[shape])
        assert leace(x, labels).rank == rank

    def test_erased_twice_is_erased_once(self):
        x, labels = drawn(sizes=(200, 60, 40))
        eraser = leace(x, labels)
        torch.testing.assert_close(eraser(eraser(x)), eraser(x), rtol=1e-9, atol=1e-9 * spread(x))

    def test_it_changes_no_more_than_the_formula_says(self):
        """Equation 1 of Belrose et al., from inverse square roots: ``x - W^+ (W S_xz)(W S_xz)^+ W (x - mu)``."""
        x, labels = drawn(sizes=(200, 60, 40))
        z = (labels[:, None] == np.unique(labels)).astype(float)
        centred, z = x.numpy() - x.numpy().mean(0), z - z.mean(0)
        values, vectors = np.linalg.eigh(centred.T @ centred / len(x))
        w, back = (vectors * values**power @ vectors.T for power in (-0.5, 0.5))
        cross = w @ (centred.T @ z / len(x))
        projection = back @ cross @ np.linalg.pinv(cross, rcond=1e-10) @ w
        np.testing.assert_allclose(leace(x, labels)(x), x.numpy() - centred @ projection.T, rtol=1e-8)

    def test_it_changes_less_than_taking_away_the_difference_of_means(self):
        """That gives the classes one mean, too."""
        x, labels = drawn()
        one, other = class_means(x, labels)
        along = ((one - other) / (one - other).norm())[None]
        plain = Eraser(x.mean(0), along, along)
        torch.testing.assert_close(*class_means(plain(x), labels))
        moved = [float((each(x) - x).square().sum(1).mean()) for each in (leace(x, labels), plain)]
        assert moved[0] < 0.9 * moved[1]

    def test_classes_that_are_alike_are_left_alone(self):
        x, labels = drawn(apart=0.0)
        x -= torch.from_numpy(np.repeat(class_means(x, labels).numpy(), 150, axis=0))
        eraser = leace(x, labels)
        assert eraser.rank == 0
        assert torch.equal(eraser(x), x)

    def test_activations_that_never_move_are_left_alone(self):
        x = torch.full((20, 3), 7.0)
        eraser = leace(x, np.repeat(["a", "b"], 10))
        assert eraser.rank == 0
        assert torch.equal(eraser(x.double()), x.double())

    @pytest.mark.parametrize("spread", [0, 0.4])
    def test_rounding_is_nothing_to_read_nor_is_little_more_than_it(self, spread):
        """In 32 bits a copy of another number is one but for rounding: a map that reads that writes noise."""
        x, labels = drawn()
        x[:, 1] = 1000 * x[:, 0] + 1 / 3 + spread * torch.randn(len(x), generator=torch.Generator().manual_seed(0))
        x = x.float()
        for each in (leace(x, labels), random_subspace(Whitening.of(x), 1, np.random.default_rng(0))):
            assert float((each.right * x.double().std(0)).norm()) < 10
            assert float((each.left / x.double().std(0)).norm()) < 10

    def test_nor_is_the_rounding_of_a_number_that_does_not_move(self):
        x, labels = drawn()
        x = x.float()
        x[:, 1] = 1000 + 1e-4 * torch.rand(len(x), generator=torch.Generator().manual_seed(0))
        assert len(x[:, 1].unique()) > 1
        for each in (leace(x, labels), random_subspace(Whitening.of(x), 1, np.random.default_rng(0))):
            assert float(each.right[:, 1].abs().max()) < 1e-9


class TestRandomSubspace:
    def test_it_takes_away_as_much_of_whitened_activations_as_leace_and_is_a_projection(self):
        x, labels = drawn(sizes=(200, 60, 40))
        white = Whitening.of(x)
        for eraser in (leace(x, labels), random_subspace(Whitening.of(x), 2, np.random.default_rng(0))):
            gone = white(x) - white(eraser(x))
            assert float(gone.square().sum(1).mean()) == pytest.approx(2 * (len(x) - 1) / len(x))
            torch.testing.assert_close(eraser.right @ eraser.left.T, torch.eye(2).double())
            torch.testing.assert_close(eraser(x).mean(0), x.mean(0))

    def test_it_does_not_take_away_the_classes(self):
        x, labels = drawn(d=40, sizes=(400, 400), apart=6.0)
        before = trained_accuracy(x, labels, x)
        assert before > 0.9
        for seed in range(3):
            eraser = random_subspace(Whitening.of(x), 1, np.random.default_rng(seed))
            assert trained_accuracy(eraser(x), labels, x) > before - 0.05

    def test_draws_differ(self):
        x, _ = drawn()
        rng = np.random.default_rng(0)
        one, other = (random_subspace(Whitening.of(x), 1, rng) for _ in range(2))
        assert float((one(x) - other(x)).abs().max()) > 0.1


class TestInlp:
    def test_a_probe_of_new_data_reads_little(self):
        clusters = np.arange(800)
        x, labels = drawn(sizes=(400, 400), apart=6.0)
        new, new_labels = drawn(sizes=(400, 400), apart=6.0)
        half = np.arange(800) % 2 == 0
        eraser = inlp(x[half], labels[half], clusters[half])
        standard = Standard.of(x)
        probe, blind = (fit_probe(standard, each[~half], labels[~half]) for each in (x, eraser(x)))
        before = (probe.predict(standard(new[half])) == new_labels[half]).mean()
        after = blind.predict(standard(eraser(new)[half])) == new_labels[half]
        assert before > 0.9
        assert after.mean() < 0.6
        assert 1 <= eraser.rank < 12

    def test_it_is_an_orthogonal_projection_around_the_mean(self):
        x, labels = drawn(sizes=(200, 60, 40), apart=6.0)
        eraser = inlp(x, labels, np.arange(300))
        assert eraser.rank >= 2
        torch.testing.assert_close(eraser.right @ eraser.right.T, torch.eye(eraser.rank).double())
        assert torch.equal(eraser.left, eraser.right)
        torch.testing.assert_close(eraser(x).mean(0), x.mean(0))

    def test_what_cannot_be_read_is_left_alone(self):
        x, _ = drawn(d=4)
        labels = np.random.default_rng(1).permutation(np.repeat(["a", "b"], 150))
        assert inlp(x, labels, np.arange(300)).rank <= 2

    def test_words_that_probes_have_seen_do_not_judge(self):
        """Every word has a direction of its own, and each its class: read of words that were seen, and of no others."""
        words, readings = np.repeat(np.arange(40), 4), np.arange(160)
        noise = 0.01 * np.random.default_rng(0).normal(size=(160, 40))
        x, labels = torch.from_numpy(np.eye(40)[words] + noise), np.where(words % 2 == 0, "even", "odd")
        assert trained_accuracy(x, labels, x) == 1
        by_words, by_readings = ([inlp(x, labels, each, seed=s).rank for s in range(6)] for each in (words, readings))
        assert by_words.count(0) >= 3  # at chance, the first probe is now and then above it
        assert min(by_readings) >= 1

    def test_a_class_of_one_word_is_fitted_all_the_same(self):
        x, labels = drawn(sizes=(20, 60), d=3, apart=20.0)
        assert inlp(x, labels, np.where(labels == "class 0", "w", np.arange(80).astype(str))).rank >= 1
        assert inlp(x, labels, np.full(80, "w")).rank >= 1


class TestProbe:
    def test_what_is_left_by_rounding_is_not_read(self):
        """The numbers that were erased are constant but for the last bits, which may tell the classes."""
        x = torch.tensor([[1.0, 0.3], [-1.0, 0.3], [1.0, -0.3], [-1.0, -0.3]]).double().repeat(5, 1)
        labels = np.where(x[:, 0] > 0, "a", "b")
        left = x.clone()
        left[:, 0] = 1e-17 * x[:, 0]
        assert trained_accuracy(left, labels, x) == 0.5
        assert trained_accuracy(left, labels, left) == 1.0  # in units of what is left, it would be

    def test_majority(self):
        assert majority(np.array(["a", "b", "a"])) == pytest.approx(2 / 3)
