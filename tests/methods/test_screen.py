import json

import numpy as np
import pandas as pd
import pytest
from as_users_call import unchecked
from hand_model import HandModel, varied_task
from random_tasks import random_task
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.sweep import SweepResult
from interp.methods.attribution import AttributionResult, attribute
from interp.methods.patching import patch
from interp.methods.screen import Choice, Recall, choose, recall

pytestmark = pytest.mark.filterwarnings("ignore:.*the intervention changed nothing:RuntimeWarning")
BY = ("layer", "head", "pos")


def planted(estimates):
    """Estimates of so many cells on one unit of two examples; the balanced mean is as given."""
    values = np.asarray(estimates, dtype=float)
    cells = pd.DataFrame({"layer": np.arange(len(values)) // 10, "head": np.arange(len(values)) % 10, "at": values})
    examples = pd.DataFrame({"unit": [0, 0], "example": [0, 1], "cluster": "c", "template": "t", "off": [-0.25, 0.25]})
    frame = cells.merge(examples, how="cross")
    return AttributionResult(frame.assign(estimate=frame["at"] + frame["off"]), {"method": "attribution"})


def exact(choice, effects):
    """A sweep that found `effects` in the chosen cells."""
    rows = choice.estimated.means()[["layer", "head"]].iloc[choice.measured]
    frame = rows.assign(
        effect=np.asarray(effects, dtype=float)[choice.measured], unit=0, example=0, cluster="c", template="t"
    )
    return SweepResult(frame, {"complete": True}, ("layer", "head"))


def true_recall(effects, top, n):
    """By definition, with all effects known."""
    return np.isin(np.argsort(-np.abs(effects), kind="stable")[:n], top).mean()


def population(seed, n_cells=300, noise=1.0):
    """Effects with a heavy tail, and estimates that are off by noise."""
    generator = np.random.default_rng(seed)
    effects = generator.standard_t(2, n_cells)
    return effects, effects + noise * generator.standard_t(2, n_cells)


def test_the_first_by_size_are_measured_and_some_of_the_others():
    found = choose(planted([0.1, -5.0, 0.2, 3.0, 0.0, 0.3, -0.4, 4.0, 0.5, 0.6]), top=3, audit=4, seed=1)
    assert found.top.tolist() == [1, 7, 3]
    assert len(set(found.audit)) == 4
    assert not set(found.audit) & set(found.top)
    assert found.measured == sorted({*found.top, *found.audit})


def test_the_audit_is_a_simple_random_sample_of_the_others():
    estimated = planted([9.0, 8.0, *np.linspace(0, 1, 8)])
    drawn = [choose(estimated, top=2, audit=2, seed=seed).audit for seed in range(800)]
    counts = np.bincount(np.concatenate(drawn), minlength=10)
    assert counts[:2].tolist() == [0, 0]
    np.testing.assert_allclose(counts[2:], 200, atol=60)
    again = choose(planted(np.arange(30)), top=2, audit=5, seed=3).audit
    np.testing.assert_array_equal(again, choose(planted(np.arange(30)), top=2, audit=5, seed=3).audit)


@pytest.mark.parametrize(
    ("top", "audit", "numbers"),
    [
        (0.1, 0.25, (4, 10)),
        (0.01, 0.01, (1, 1)),
        (5, 1.0, (5, 35)),
        (40, 3, (40, 0)),
        (1.0, 0.5, (40, 0)),
        (99, 99, (40, 0)),
    ],
)
def test_numbers_and_shares(top, audit, numbers):
    found = choose(planted(np.arange(40)), top=top, audit=audit)
    assert (len(found.top), len(found.audit)) == numbers


@pytest.mark.parametrize("asked", [0, -1, 0.0, 1.5, True])
def test_what_is_no_number_of_cells_is_refused(asked):
    with pytest.raises(InputError, match="top: expected a number of cells from 1, or a share"):
        choose(planted(np.arange(4)), top=asked)
    with pytest.raises(InputError, match="audit: expected a number of cells from 1, or a share"):
        choose(planted(np.arange(4)), audit=asked)


@pytest.mark.parametrize("asked", [".5", "3", None, float("nan"), np.float32(1.5), np.int64(0), np.bool_(True)])
def test_numbers_of_any_type_are_checked(asked):
    # Past the type checker of the tests, as a caller without one gets there.
    with pytest.raises(InputError, match="top: expected a number of cells from 1, or a share"):
        unchecked(choose)(planted(np.arange(4)), top=asked)


@pytest.mark.parametrize(
    ("top", "number"), [(np.float32(0.1), 4), (np.float64(0.5), 20), (np.int64(3), 3), (np.uint8(99), 40)]
)
def test_numbers_may_be_numpys(top, number):
    assert len(unchecked(choose)(planted(np.arange(40)), top=top).top) == number


def test_recall_by_hand():
    """Four of the others were audited for eight: one cell of 5 stands for two, so two of the largest 4 are missed."""
    found = recall(np.array([9.0, 6.0, 4.0, 1.0]), np.array([5.0, 0.0, 0.5, 0.2]), 8)
    assert found.estimate == 0.5
    # All 4 in the top: no, one of the others is above the smallest. None: no, 9 is above all that was audited but
    # there may be 4 above it among the 4 that were not: 1 way in 70.
    assert (found.sought, found.low, found.high) == (4, 0.25, 0.75)
    assert recall(np.array([9.0, 6.0, 4.0, 1.0]), np.array([5.0, 0.0, 0.5, 0.2]), 8, sought=2).estimate == 1.0


def test_a_strong_cell_that_the_estimates_miss_shows():
    effects = np.array([4.0, 3.0, 2.0, 1.0, 9.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    estimates = np.array([4.0, 3.0, 2.0, 1.0, *np.full(6, 0.01)])
    choice = choose(planted(estimates), top=4, audit=1.0)
    screen = choice.judge(exact(choice, effects))
    assert screen.recall() == Recall(4, 0.75, 0.75, 0.75)
    assert screen.recall(1) == Recall(1, 0.0, 0.0, 0.0)
    unaudited = Choice(choice.estimated, choice.top, choice.audit[choice.audit != 4][:3])
    assert unaudited.judge(exact(unaudited, effects)).recall().estimate == 1.0
    assert unaudited.judge(exact(unaudited, effects)).recall().low < 0.75


@pytest.mark.parametrize("seed", range(20))
def test_an_audit_of_all_others_gives_the_recall_itself(seed):
    effects, estimates = population(seed, 60, noise=2.0)
    choice = choose(planted(estimates), top=12, audit=1.0, seed=seed)
    screen = choice.judge(exact(choice, effects))
    for n in (12, 7, 1):
        truth = pytest.approx(true_recall(effects, choice.top, n))
        found = screen.recall(n)
        assert (found.low, found.estimate, found.high) == (truth, truth, truth)


@pytest.mark.parametrize("n_draws", [40, pytest.param(150, marks=pytest.mark.slow)])
def test_the_interval_covers_and_the_estimate_is_right_on_average(n_draws):
    covered, errors, truths, widths = [], [], [], []
    for number in range(8):
        effects, estimates = population(number, noise=[0.05, 0.5, 1.0, 3.0][number % 4])
        estimated = planted(estimates)
        for seed in range(n_draws):
            choice = choose(estimated, top=40, audit=60, seed=seed)
            size = np.abs(effects)
            found = recall(size[choice.top], size[choice.audit], 260)
            truth = true_recall(effects, choice.top, 40)
            covered.append(found.low - 1e-9 <= truth <= found.high + 1e-9)
            assert found.low <= found.estimate <= found.high
            errors.append(found.estimate - truth)
            truths.append(truth)
            widths.append(found.high - found.low)
    assert min(truths) < 0.5 < 0.9 < max(truths)
    assert np.mean(covered) >= 0.95
    assert abs(np.mean(errors)) < 0.03
    assert np.mean(widths) < 0.5


def test_a_larger_audit_narrows_the_interval():
    effects, estimates = population(2)
    size = np.abs(effects)
    widths = []
    for audit in (10, 60, 260):
        choice = choose(planted(estimates), top=40, audit=audit)
        found = recall(size[choice.top], size[choice.audit], 260)
        widths.append(found.high - found.low)
    assert widths[0] > widths[1] > widths[2] == 0


def test_recall_of_more_than_the_top_is_refused():
    with pytest.raises(InputError, match="sought: expected 1 to 2, which is how many cells the top has, got 3"):
        recall(np.ones(2), np.ones(1), 5, sought=3)


def test_nothing_audited_is_not_known():
    found = recall(np.array([2.0, 1.0]), np.array([]), 3)
    assert np.isnan(found.estimate)
    assert (found.low, found.high) == (0.0, 1.0)


@pytest.fixture(scope="module")
def task():
    return random_task(lengths=(6,) * 6)


def test_a_screen_measures_what_patch_measures(task):
    model = random_model()
    whole = patch(model, task, by=BY)
    found = patch(model, task, by=BY, screen=True, top=0.2, audit=10, seed=5)
    assert type(found) is type(whole)
    both = found.examples.merge(whole.examples, on=[*BY, "example"], suffixes=("", "_whole"), validate="1:1")
    assert len(both) == len(found.examples) == (8 + 10) * len(task.examples)
    for name in ("effect", "value", "base", "source", "change_norm"):
        np.testing.assert_allclose(both[name], both[f"{name}_whole"], rtol=1e-9, atol=1e-12)
    assert both["status"].equals(both["status_whole"])
    assert found.provenance["audit"]["largest_difference"] < 1e-9
    assert (whole.screen, whole.provenance.get("screen")) == (None, None)


def test_a_screen_tells_what_it_estimated_chose_and_found(task):
    model = random_model()
    found = patch(model, task, by=BY, screen=True, top=8, audit=10, seed=5)
    screen = found.screen.cells
    estimated = attribute(model, task, by=BY).summary()
    assert screen[list(BY)].equals(estimated[list(BY)])
    np.testing.assert_allclose(screen["estimate"], estimated["estimate"], rtol=1e-12)
    first = estimated["estimate"].abs().nlargest(8).index
    assert set(screen.index[screen["chosen"] == "top"]) == set(first)
    assert screen["chosen"].value_counts().to_dict() == {"not measured": 18, "audit": 10, "top": 8}
    assert (screen["effect"].isna() == (screen["chosen"] == "not measured")).all()
    with pytest.warns(RuntimeWarning, match="nothing to recover"):
        summary = found.summary()
    both = summary.merge(screen, on=list(BY), suffixes=("", "_screen"))
    assert len(both) == 18
    np.testing.assert_allclose(both["effect"], both["effect_screen"], rtol=1e-12)
    said = json.loads(json.dumps(found.provenance["screen"]))
    assert (said["method"], said["cells"], said["top"], said["audit"]) == ("attribution", 36, 8, 10)
    assert said["recall_low"] <= said["recall"] <= said["recall_high"]
    audit = screen[screen["chosen"] == "audit"]
    assert said["correlation"] == pytest.approx(audit["estimate"].corr(audit["effect"]))


@pytest.mark.filterwarnings("ignore:normalised effects:RuntimeWarning")
def test_cells_chosen_on_the_same_units_have_no_family():
    task = random_task(lengths=(6,) * 48)
    whole, found = (patch(random_model(), task, screen=screen, top=2, audit=2).summary() for screen in (False, True))
    assert whole["p_adjusted"].notna().all()
    assert found["p_adjusted"].isna().all()
    assert found["p"].notna().all()


def test_integrated_gradients_can_screen_a_kl_divergence(task):
    found = patch(random_model(), task, metric="kl_divergence", screen="integrated_gradients", top=2, audit=2)
    said = found.provenance["screen"]
    assert said["method"] == "integrated_gradients"
    assert said["completeness"]["largest_gap"] < 0.05 * said["completeness"]["largest_change"]
    with pytest.raises(InputError, match=r"kl_divergence is smallest .* screen='integrated_gradients' \(patch\)"):
        patch(random_model(), task, metric="kl_divergence", screen=True)
    with pytest.raises(InputError, match="accuracy is a step and has no gradient"):
        patch(random_model(), task, metric="accuracy", screen=True)


def test_a_screen_of_names_of_positions_on_another_model():
    """Linear, so the estimates are the effects and nothing can be missed."""
    whole = patch(HandModel(), varied_task(), by=("head", "pos"))
    found = patch(HandModel(), varied_task(), by=("head", "pos"), screen=True, top=1, audit=1.0)
    effects = whole.summary().set_index(["head", "pos"])["effect"].abs()
    chosen = found.screen.cells.set_index("chosen").loc["top"]
    assert (chosen["head"], chosen["pos"]) == effects.idxmax()
    assert found.screen.recall() == Recall(1, 1.0, 1.0, 1.0)
    measured = found.screen.cells
    np.testing.assert_allclose(measured["estimate"], measured["effect"], atol=1e-6)
