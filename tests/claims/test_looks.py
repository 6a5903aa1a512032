"""Looks: what is settled leaves, error rates hold at all looks together, and who stays is judged by all who began."""

import numpy as np
import pandas as pd
import pytest

from interp.claims.claim import Measured, claim
from interp.claims.looks import Looks, order_of, sizes_of
from interp.claims.units import UnitTable

ALPHA = 0.05
CELL = {"cell": int}


def skewed(rng, *, cells, clusters, mean):
    """One unit a cluster, with contributions that are skewed as real ones are, correlated over cells."""
    common, own = rng.gamma(2, size=(clusters, 1)), rng.gamma(2, size=(clusters, cells))
    return mean - (common + own - 4) / 2


def table(values):
    """Its cells are numbered; two templates take turns."""
    n, cells = values.shape
    names = [str(each) for each in range(n)]
    return UnitTable(values, names, [str(each % 2) for each in range(n)], pd.RangeIndex(cells, name="cell"))


def in_looks(values, sizes, *, minimum=1.0, **how):
    """Every look of one task, of which cells are measured on as many units as they stayed for."""
    looks = Looks("effect", CELL, len(sizes), ALPHA, {"resamples": 400, **how})
    seen, found = np.full_like(values, np.nan), []
    for before, size in zip([0, *sizes], sizes, strict=False):
        stay = np.ones(values.shape[1], dtype=bool) if looks.open is None else looks.open
        seen[before:size, stay] = values[before:size, stay]
        looks = looks.look({"task": Measured(table(seen), minimum)})
        found.append(looks)
    return found


def falsely(values, sizes, *, seed):
    """Whether something is shown, or absent, of cells whose means are the minimum."""
    last = in_looks(values, sizes, seed=seed)[-1].frame
    return last["effect_p_adjusted"].min() <= ALPHA, last["effect_p_absent"].min() <= ALPHA


def test_a_single_look_is_the_test_of_all_units():
    """To the bit: a share of alpha that is alpha, and p times one."""
    values = skewed(np.random.default_rng(0), cells=6, clusters=60, mean=np.linspace(-3, 0, 6))
    (one,) = in_looks(values, [60], seed=3)
    (plain,) = claim([Measured(table(values), 1.0)], resamples=400, seed=3)
    assert one.frame["effect_p_adjusted"].tolist() == plain.p_adjusted.tolist()
    assert one.frame["effect_p_absent"].tolist() == plain.p_absent.tolist()
    assert 0 < one.open.sum() < 6


def test_clear_cells_leave_at_the_first_look_and_keep_what_was_found_then():
    values = skewed(np.random.default_rng(1), cells=3, clusters=200, mean=np.array([-6.0, 0.0, -1.0]))
    first, second, last = in_looks(values, [40, 80, 200], seed=0)
    assert first.open.tolist() == [False, False, True]
    assert last.frame["effect_n_units"].tolist() == [40, 40, 200]
    for column in first.frame:
        assert last.frame[column].tolist()[:2] == first.frame[column].tolist()[:2], column
    assert last.frame["effect_p_adjusted"][2] <= second.frame["effect_p_adjusted"][2]


def test_who_stays_is_judged_by_all_who_began():
    """Of 60 cells 59 are absent at once; the last one's critical value is that of 60, not of one."""
    means = np.zeros(60)
    means[0] = -1.3
    values = skewed(np.random.default_rng(2), cells=60, clusters=160, mean=means)
    first, last = in_looks(values, [80, 160], seed=0)
    assert first.open.tolist() == [True] + [False] * 59
    (alone,) = claim([Measured(table(values[:, :1]), 1.0)], alpha=ALPHA / 2, resamples=400)
    assert last.frame["effect_critical"][0] > alone.critical[0] + 0.5
    assert last.frame["effect_p_adjusted"][0] > 2 * alone.p_adjusted[0]


def test_what_was_shown_leaves_the_family_of_those_that_stay():
    """Stepping down goes over looks: without 29 that are shown, the thirtieth is compared with itself."""
    means = np.full(30, -8.0)
    means[0] = -1.2
    values = skewed(np.random.default_rng(3), cells=30, clusters=120, mean=means)
    first, last = in_looks(values, [60, 120], seed=0)
    assert first.open.tolist() == [True] + [False] * 29
    (alone,) = claim([Measured(table(values[:, :1]), 1.0)], resamples=400)
    assert last.frame["effect_p_adjusted"][0] == pytest.approx(2 * alone.p_adjusted[0], abs=0.02)
    assert last.frame["effect_p_adjusted"][0] < 0.5 < first.frame["effect_p_adjusted"][0]


def test_cells_that_can_be_neither_leave_and_undecidable_ones_stay():
    values = skewed(np.random.default_rng(4), cells=3, clusters=60, mean=-1.0)
    looks = Looks("effect", CELL, 2, ALPHA, {"resamples": 400})
    masks = {"hypotheses": [np.array([True, False, False])], "absences": [np.array([True, True, False])]}
    assert looks.look({"task": Measured(table(values), 1.0)}, **masks).open.tolist() == [True, True, False]
    few = looks.look({"task": Measured(table(values[:20]), 1.0)})
    assert few.open.tolist() == [True, True, True]
    assert few.frame["effect_p_adjusted"].isna().all()


def test_a_look_without_tasks_has_no_rows():
    assert Looks("effect", CELL, 1, ALPHA, {}).look({}).frame.empty


def test_an_order_gives_every_beginning_its_share_of_every_stratum():
    strata = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    order = order_of(strata, seed=0)
    assert sorted(order) == list(range(100))
    for n in (10, 37, 64):
        counts = {each: sum(strata[at] == each for at in order[:n]) for each in "abc"}
        assert all(abs(counts[each] - n * share) <= 1.5 for each, share in zip("abc", (0.6, 0.3, 0.1), strict=True))
    assert order.tolist() == order_of(strata, seed=0).tolist()
    assert order.tolist() != order_of(strata, seed=1).tolist()
    assert order[:10].tolist() != sorted(order[:10])


def test_sizes_are_the_units_that_bring_so_many_clusters():
    clusters = [name for n in range(100) for name in (str(n), str(n))]
    assert sizes_of(clusters, 30) == [59, 119, 200]
    assert sizes_of(clusters, 0) == [200]
    assert sizes_of(clusters, 80) == [200]  # three quarters and more are as good as all


def test_the_last_look_has_at_most_so_many_clusters():
    clusters = [name for n in range(100) for name in (str(n), str(n))]
    assert sizes_of(clusters, 30, 60) == [59, 120]
    assert sizes_of(clusters, 30, 30) == [60]
    assert sizes_of(clusters, 0, 50) == [100]
    assert sizes_of(clusters, 30, 1_000) == [59, 119, 200]


@pytest.mark.slow
@pytest.mark.parametrize("cells", [12, 144])
def test_error_rates_hold_over_all_looks(cells):
    """All means at the minimum: something false is shown, or absent, in at most 5 % of 2,000 runs, and not never."""
    rng = np.random.default_rng(cells)
    runs = [
        falsely(skewed(rng, cells=cells, clusters=200, mean=-1.0), [30, 60, 120, 200], seed=seed)
        for seed in range(2000)
    ]
    shown, absent = np.mean(runs, axis=0)
    assert shown <= 0.06  # 98 % of binomial(2000, .05) lie below
    assert absent <= 0.06
    assert shown + absent >= 0.01
