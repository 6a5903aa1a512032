import numpy as np
import pytest
from gated_model import GatedModel
from hand_model import N_CLUSTERS, HandModel, varied_task

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.errors import InputError
from interp.methods.head_sets import pairwise


def attention_to_the_noun(frame, task):
    """9 / (n + 8) among n positions, for every row."""
    return np.array([9 / (len(task.examples[each].prompt) + 8) for each in frame["example"]])


@pytest.mark.parametrize(
    ("gate", "first", "both", "interaction"),
    [
        ("sum", lambda a: -a, lambda a: -2 * a, lambda a: 0 * a),
        ("either", lambda a: 0 * a, lambda a: 0 * a - 0.5, lambda a: 0 * a - 0.5),
        ("both", lambda a: 0.9 - 2 * a, lambda a: 0.9 - 2 * a, lambda a: 2 * a - 0.9),
    ],
)
def test_interactions_by_hand(gate, first, both, interaction):
    task = varied_task()
    frame = pairwise(GatedModel(gate), task, heads=[(0, 0), (0, 1)], replacement="zero").examples
    a = attention_to_the_noun(frame, task)
    assert len(frame) == len(task.examples)
    for column, expected in {
        "effect_first": first(a),
        "effect_second": first(a),
        "effect": both(a),
        "interaction": interaction(a),
    }.items():
        np.testing.assert_allclose(frame[column], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("gate", "relation"), [("sum", "additive"), ("either", "redundant"), ("both", "in series"), ("nearly either", None)]
)
def test_the_pair_is_found_among_others(gate, relation):
    summary = pairwise(GatedModel(gate), varied_task(), replacement="mean").summary().set_index(["first", "second"])
    assert list(summary.index) == [
        ("0.0", "0.1"),
        ("0.0", "1.0"),
        ("0.0", "1.1"),
        ("0.1", "1.0"),
        ("0.1", "1.1"),
        ("1.0", "1.1"),
    ]
    assert summary.loc[("0.0", "0.1"), "relation"] == (relation or "redundant")
    assert set(summary["relation"].iloc[1:]) == {"additive"}
    pair = summary.loc[("0.0", "0.1")]
    assert pair["low"] <= pair["interaction"] <= pair["high"]
    assert pair["interaction"] == pytest.approx(pair["effect"] - pair["effect_first"] - pair["effect_second"])
    assert (pair["p_adjusted"] < 0.01) == (gate != "sum")
    assert (pair["n_units"], pair["n_clusters"]) == (4 * N_CLUSTERS, N_CLUSTERS)


def test_an_interaction_below_the_minimum_is_no_claim():
    """Sure as it is, it is a tenth of the minimum."""
    asked = {"heads": [(0, 0), (0, 1)], "replacement": "zero"}
    strict = pairwise(GatedModel("either"), varied_task(), min_effect=0.99, **asked).summary()
    assert strict["relation"].item() == "redundant"  # all of the logit difference
    summary = pairwise(GatedModel("nearly either"), varied_task(), min_effect=0.99, **asked).summary()
    assert summary["high"].item() < 0
    assert summary["p_adjusted"].item() > 0.05  # which is of the minimum
    assert summary["relation"].item() == "additive"


def test_a_few_clusters_decide_nothing():
    summary = pairwise(GatedModel("either"), varied_task(FEWEST_CLUSTERS - 1), replacement="zero").summary()
    assert set(summary["relation"]) == {"undecided"}


def test_accuracy_is_above_chance_from_one_half_on():
    """The gate that needs both leaves right and wrong answers equal: accuracy falls from 1 to 0."""
    result = pairwise(GatedModel("both"), varied_task(), heads=[(0, 0), (0, 1)], replacement="zero", metric="accuracy")
    assert result.summary()["relation"].item() == "in series"
    guess = result.examples.assign(base=0.4, base_correct=0.4)
    assert set(type(result)(guess, result.provenance).summary()["relation"]) == {"undecided"}


def test_a_probability_is_above_chance_where_most_answers_are_right():
    """Every probability is above 0: it is the share of right answers that says whether the model can do the task."""
    task = varied_task()
    result = pairwise(GatedModel("either"), task, heads=[(0, 0), (0, 1)], replacement="zero", metric="probability")
    frame, right = result.examples, result.examples["base_correct"]
    assert (right == 1).all()
    assert result.summary()["relation"].item() == "redundant"
    for correct in (frame["example"] % 2, right * np.nan):  # half of them, and nobody knows
        guess = type(result)(frame.assign(base_correct=correct), result.provenance).summary()
        assert guess["base"].item() == pytest.approx(result.summary()["base"].item())
        assert guess["relation"].item() == "undecided"


def test_pairs_are_refused_where_there_are_none():
    with pytest.raises(InputError, match=r"heads: a pair needs two, got 0\.1; give more, or ablate"):
        pairwise(HandModel(), varied_task(), heads=[(0, 1)])


@pytest.mark.parametrize("asked", [{"min_effect": 0.0}, {"alpha": 1.0}])
def test_shares_out_of_range_are_refused(asked):
    with pytest.raises(InputError, match=f"{next(iter(asked))}: expected a share between 0 and 1"):
        pairwise(HandModel(), varied_task(), **asked)


def test_a_divergence_has_no_share_to_be_judged_by():
    with pytest.raises(InputError, match="kl_divergence: effects are judged as shares of the base run's metric"):
        pairwise(HandModel(), varied_task(), metric="kl_divergence")


def test_interrupted_it_holds_what_is_complete():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted"):
        part = pairwise(GatedModel("either"), varied_task(), heads=[(0, 0), (0, 1)], replacement="zero", progress=stop)
    assert not part.provenance["complete"]
    assert 0 < len(part.examples) < len(varied_task().examples)
    np.testing.assert_allclose(part.examples["interaction"], -0.5, atol=1e-6)
