"""What is tested shares no document and no lemma with what is trained on, in every round and within it."""

import numpy as np
import pytest

from interp.errors import InputError
from interp.methods.probes.cross_fitting import make_folds


def drawn(n=300, n_groups=20, n_lemmas=40, seed=0):
    rng = np.random.default_rng(seed)
    return [f"d{each}" for each in rng.integers(n_groups, size=n)], [
        f"l{each}" for each in rng.integers(n_lemmas, size=n)
    ]


def rows(folds, atoms):
    return np.isin(folds.atom, atoms)


def shared(names, one, other):
    names = np.array(names)
    return set(names[one]) & set(names[other])


@pytest.mark.parametrize("with_lemmas", [False, True])
def test_nothing_is_shared_and_everything_is_tested_once(with_lemmas):
    groups, lemmas = drawn()
    folds = make_folds(groups, lemmas if with_lemmas else None, 5)
    times = np.zeros(len(groups), dtype=int)
    for each in folds.rounds:
        train, test = folds.trains_on[each.mask][folds.atom], rows(folds, each.test)
        times += test
        assert train.any()
        assert not shared(groups, train, test)
        assert not with_lemmas or not shared(lemmas, train, test)
        assert each.inner
        for inner in each.inner:
            fits, decides = folds.trains_on[inner.mask][folds.atom], rows(folds, inner.test)
            for one, other in ((fits, decides), (fits, test), (decides, test)):
                assert one.any()
                assert not shared(groups, one, other)
                assert not with_lemmas or not shared(lemmas, one, other)
    assert (times == 1).all()
    assert len(folds.rounds) == (25 if with_lemmas else 5)


def test_folds_are_as_equal_as_groups_allow():
    groups = ["large"] * 50 + [f"d{each % 25}" for each in range(150)]
    folds = make_folds(groups, None, 4, nested=False)
    assert sorted(np.bincount(folds.atom)) == [48, 48, 54, 50] or np.ptp(np.bincount(folds.atom)) <= 6


def test_lemmas_that_are_as_documents_are_held_out_once():
    groups, _ = drawn()
    assert make_folds(groups, [each.upper() for each in groups], 5).apart == ("groups",)
    assert len(make_folds(groups, [each.upper() for each in groups], 5).rounds) == 5


def test_one_template_alone_leaves_lemmas_to_hold_out():
    _, lemmas = drawn()
    assert make_folds(["simple"] * len(lemmas), lemmas, 5).apart == ("lemmas",)


def test_without_a_choice_of_penalties_nothing_is_nested():
    groups, lemmas = drawn()
    folds = make_folds(groups, lemmas, 5, nested=False)
    assert not any(each.inner for each in folds.rounds)
    assert len(folds.trains_on) == 25


def test_the_seed_decides_who_goes_where():
    groups, _ = drawn()
    one, same, other = (make_folds(groups, None, 5, seed=seed).atom for seed in (0, 0, 1))
    assert (one == same).all()
    assert (one != other).any()


def test_nothing_to_hold_out_is_refused():
    with pytest.raises(
        InputError, match="cv: expected several documents, templates or lemmas to hold out, got 'one' alone"
    ):
        make_folds(["one"] * 9, ["a"] * 9, 5)


def test_nothing_to_train_on_is_refused():
    with pytest.raises(InputError, match="share a document or a lemma with all others"):
        make_folds(["a", "a", "b"], ["x", "y", "x"], 5)
