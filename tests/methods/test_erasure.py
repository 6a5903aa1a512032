"""Taking a feature away costs the behaviour where it is used, and only there."""

import dataclasses
import random
import warnings

import numpy as np
import pytest
from hand_model import IS, N_CLUSTERS, HandModel, hand_task, hand_weights, number, pair, prompts, relabelled, task_of

import interp
from interp.claims.claim import Measured, claim
from interp.claims.units import UnitTable
from interp.methods.erasure.erase import erase

pytestmark = pytest.mark.filterwarnings("ignore:.*the intervention changed nothing on any example")


def coins(seed):
    rng = random.Random(seed)
    return lambda encoded: {"coin": rng.choice(["heads", "tails"])}


def noun_share(encoded):
    """What head 0 of the query word holds of the noun."""
    return 9 / (len(encoded.prompt) + 8)


SHARE = np.mean([9 / (4 + before + after - 1 + 8) for before in range(4) for after in range(4)])
"""Of the reference examples, on average."""


@pytest.fixture(scope="module")
def by_hand():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        methods = ("leace", "random", "inlp", "mean", "steer")
        return erase(HandModel(), hand_task(), "number", methods=methods, others=[hand_task("other", n_clusters=40)])


class TestPlanted:
    """Head 0 carries the number and uses it; head 1 carries it, too, and writes what no answer depends on."""

    def of(self, result, method, head, task="hand"):
        summary = result.summary().set_index(["method", "head", "task"])
        return summary.loc[method, head, task]

    def test_both_heads_carry_it(self, by_hand):
        before = by_hand.probes.set_index(["head", "data"])["before"]
        assert before.min() > 0.95

    def test_without_it_the_behaviour_is_gone(self, by_hand):
        found = self.of(by_hand, "leace", 0)
        assert found["effect"] == pytest.approx(-found["base"], abs=1e-5)
        frame = by_hand.examples.query("method == 'leace' and head == 0 and task == 'hand'").sort_values("example")
        right_is = np.array([each.right == (IS,) for each in hand_task().examples])
        np.testing.assert_allclose(frame["value"], np.where(right_is, 0.2, -0.2), atol=1e-5)
        assert (frame["status"] == "changed").all()
        assert found["p_adjusted"] < 0.01

    def test_in_the_decoy_it_costs_nothing(self, by_hand):
        frame = by_hand.examples.query("method == 'leace' and head == 1")
        assert (frame["effect"].abs() < 1e-6).all()
        assert (frame["change_norm"] > 0.01).all()
        assert self.of(by_hand, "leace", 1)["p_adjusted"] == 1
        probes = by_hand.probes.query("method == 'leace' and head == 1").set_index("data")
        assert (probes.loc["fitted", "before"], probes.loc["fitted", "after"]) == (1.0, 0.5)

    @pytest.mark.parametrize("head", [0, 1])
    def test_after_leace_a_probe_says_the_commonest(self, by_hand, head):
        probes = by_hand.probes.query("method == 'leace' and head == @head").set_index("data")
        assert probes.loc["fitted", "after"] == probes.loc["fitted", "majority"] == 0.5
        held_out = probes.loc["held out"]
        assert held_out["after_low"] <= held_out["majority"] <= held_out["after_high"]
        assert probes["rank"].tolist() == [1, 1, 1]
        assert probes["n"].tolist() == [32, 8 * N_CLUSTERS, 8 * N_CLUSTERS]

    def test_inlp_takes_it_away_as_well(self, by_hand):
        found, probes = self.of(by_hand, "inlp", 0), by_hand.probes.query("method == 'inlp' and head == 0")
        assert found["effect"] == pytest.approx(-found["base"], abs=0.05)
        assert probes["after"].max() < 0.6
        assert found["rank"] >= 1

    def test_a_random_subspace_does_not(self, by_hand):
        """Head 0 holds two numbers: one direction of these is half of all, and in most cases the noun is still told."""
        probes = by_hand.probes.query("method == 'random'").set_index(["head", "data"])
        assert probes.loc[1, "fitted"]["after"] > 0.95
        found = self.of(by_hand, "leace", 0)
        assert found["excess"] < -0.2
        assert found["excess_high"] < 0
        assert found["excess_p_adjusted"] < 0.01
        assert self.of(by_hand, "leace", 1)["excess"] == 0

    def test_steering_turns_the_answers_around(self, by_hand):
        """Noun against noun, the head holds its own share, and then that minus twice the average one."""
        frame = by_hand.examples.query("method == 'steer' and head == 0 and task == 'hand'").sort_values("example")
        np.testing.assert_allclose(frame["effect"], -2 * SHARE, rtol=1e-5)
        assert frame["value"].mean() < -0.5
        assert (frame["base_correct"].mean(), frame["value_correct"].mean()) == (1.0, 0.0)
        assert (by_hand.examples.query("method == 'steer' and head == 1")["effect"].abs() < 1e-6).all()

    def test_strength_is_how_far(self):
        result = erase(HandModel(), hand_task(n_clusters=4), "number", methods=("steer",), strength=0.5)
        np.testing.assert_allclose(result.examples.query("head == 0")["effect"], -SHARE, rtol=1e-5)
        assert result.probes.empty
        assert result.summary()["rank"].isna().all()

    def test_the_mean_is_that_of_ablation(self, by_hand):
        from interp.methods.ablation import ablate

        frame = by_hand.examples.query("method == 'mean' and head == 0 and task == 'hand'")
        by_position = ablate(HandModel(), hand_task(), by=("layer", "head", "pos"), replacement="mean").examples
        last = by_position.query("head == 0 and pos == 'last'").set_index("example")["value"]
        np.testing.assert_allclose(frame.set_index("example")["value"], last.loc[frame["example"]], rtol=1e-5)

    def test_other_tasks_get_the_same_erasers(self, by_hand):
        """Of the same kind here: they lose as much."""
        assert set(by_hand.examples["task"]) == {"hand", "other"}
        found = self.of(by_hand, "leace", 0, "other")
        assert found["effect"] == pytest.approx(-found["base"], abs=1e-5)
        assert [each["task"] for each in by_hand.provenance["others"]] == ["other"]


class TestStream:
    """The same model with a stream: the noun's own position carries the number, and the query's does not yet."""

    @pytest.mark.parametrize(
        ("site", "at", "share"),
        [
            ("resid_pre", "related", 1),
            ("resid_pre", "all", None),
            ("attn_out", "query", 1),
            ("resid_post", "query", 1),
        ],
    )
    def test_where_it_is_used_it_costs_all(self, site, at, share):
        result = erase(hand_weights(), hand_task(), "number", site=site, at=at, methods=("leace",))
        summary = result.summary().iloc[0]
        assert result.labels == ("layer",)
        assert summary["effect"] < -0.3 * summary["base"]
        if share is not None:
            assert summary["effect"] == pytest.approx(-share * summary["base"], abs=1e-5)
        probes = result.probes.set_index("data")
        assert probes.loc["fitted", "after"] == 0.5 < probes.loc["fitted", "before"]

    def test_what_is_not_there_is_not_taken_away(self):
        """All query words are alike: there is no direction to erase, whatever the method."""
        methods = ("leace", "random", "inlp", "steer")
        result = erase(hand_weights(), hand_task(), "number", site="resid_pre", methods=methods)
        assert (result.examples["effect"] == 0).all()
        assert (result.examples["status"] == "no-op").all()
        assert (result.probes["rank"] == 0).all()
        assert (result.probes["before"] == 0.5).all()

    def test_our_model_gives_the_same_as_any_other(self, by_hand):
        one = hand_task("other", n_clusters=40)
        result = erase(hand_weights(), hand_task(), "number", others=[one], methods=("leace", "random", "steer"))
        cell = ["task", "method", "head", "example"]
        both = result.examples.merge(by_hand.examples, on=cell, suffixes=("", "_plain"))
        assert len(both) == len(result.examples)
        np.testing.assert_allclose(both["value"], both["value_plain"], atol=1e-5)
        assert (result.provenance["engine"], by_hand.provenance["engine"]) == ("incremental", "plain")
        assert result.provenance["audit"]["largest_difference"] < 1e-5


@pytest.fixture(scope="module")
def embedded():
    model = interp.load_model()
    return model, interp.load_task("agreement", n=60, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)


class TestEmbeddedModel:
    """Number can be read in every head of the last layer, and the answers depend on one of them."""

    def test_number_is_read_in_all_heads_and_used_in_one(self, embedded):
        result = erase(*embedded, "number", layers=[2], methods=("leace", "random", "steer"))
        summary = result.summary().set_index(["method", "head"])
        base = summary["base"].iloc[0]
        probes = result.probes.query("method == 'leace'").set_index(["data", "head"])
        assert (probes.loc["held out", "before_low"] > 0.55).all()
        assert (probes.loc["fitted", "after"] == 0.5).all()
        for data in ("held out", "refitted"):
            there = probes.loc[data]
            assert ((there["after_low"] <= 0.5) & (there["after_high"] >= 0.49)).all()
        leace = summary.loc["leace"]
        assert leace.loc[2, "excess"] < -0.9 * base
        assert leace.loc[2, "excess_p_adjusted"] < 0.001
        assert (leace.drop(2)["effect"].abs() < 0.01 * base).all()
        assert summary.loc[("steer", 2), "effect"] < -1.8 * base
        kept = result.probes.query("method == 'random' and data == 'held out'")
        assert (kept["after"] - kept["before"]).abs().max() < 0.06

    def test_what_is_not_there_costs_no_more_than_chance(self, embedded):
        """A label that nothing in the prompts tells: erasing it is erasing one more random direction."""
        model, task = embedded
        for seed in range(2):
            labelled = relabelled(task, coins(seed))
            result = erase(model, labelled, "coin", layers=[2], methods=("leace", "random"), seed=seed)
            summary = result.summary().set_index("method")
            assert summary.loc["leace", "effect"].abs().max() < 0.02 * summary["base"].iloc[0]
            assert summary.loc["leace", "excess"].min() > -0.01 * summary["base"].iloc[0]
            held_out = result.probes.query("data == 'held out'")
            assert held_out["before"].between(0.3, 0.7).all()


class TestResult:
    def test_the_summary_is_about_one_family_per_method(self, by_hand):
        summary = by_hand.summary()
        assert len(summary) == 5 * 2 * 2
        assert summary.set_index(["method", "task", "head"]).index.is_unique
        assert (summary["p_adjusted"] >= summary["p"] - 0.02).all()
        assert summary.loc[summary["method"] != "leace", "excess"].isna().all()
        assert summary.loc[summary["method"] == "leace", "excess_p_adjusted"].notna().all()

    def test_q_is_over_all_places_and_tasks(self, by_hand):
        """Of effects that are noise, so that it matters how many there are."""
        frame = by_hand.examples.assign(effect=np.random.default_rng(0).normal(0.1, 1, size=len(by_hand.examples)))
        summary = dataclasses.replace(by_hand, examples=frame).summary()
        for method in ("leace", "random"):
            mine = frame[frame["method"] == method]
            tables = [UnitTable.from_frame(mine[mine["task"] == task], "effect") for task in ("hand", "other")]
            tests = claim([Measured(each) for each in tables], seed=by_hand.provenance["seed"])
            found = summary[summary["method"] == method]
            assert (found["p_adjusted"] > 1.2 * found["p"]).any()
            np.testing.assert_array_equal(found["p"], np.concatenate([each.p for each in tests]))
            np.testing.assert_array_equal(found["p_adjusted"], np.concatenate([each.p_adjusted for each in tests]))

    def test_excess_is_paired_example_by_example(self, by_hand):
        frame = by_hand.examples.query("task == 'hand' and head == 0").set_index(["method", "example"])["effect"]
        differences = frame["leace"] - frame["random"]
        summary = by_hand.summary().query("method == 'leace' and task == 'hand' and head == 0")
        assert summary["excess"].item() == pytest.approx(differences.mean())
        assert summary["excess_low"].item() <= summary["excess"].item() <= summary["excess_high"].item()

    def test_without_the_control_there_is_no_excess(self):
        result = erase(HandModel(), hand_task(n_clusters=4), "number", methods=("leace",))
        assert result.summary()["excess"].isna().all()

    def test_provenance(self, by_hand):
        said = by_hand.provenance
        assert (said["feature"], said["at"], said["site"], said["seed"]) == ("number", "query", "z", 0)
        assert said["methods"] == ["leace", "random", "inlp", "mean", "steer"]
        assert said["complete"]
        assert len(said["reference_hash"]) == 64

    def test_progress_is_over_all_tasks(self):
        seen = []
        erase(
            HandModel(),
            hand_task(n_clusters=4),
            "number",
            methods=("leace", "mean"),
            others=[hand_task("other", n_clusters=4)],
            progress=lambda *step: seen.append(step),
        )
        assert seen[-1] == (8, 8)
        assert seen == sorted(seen)

    @pytest.mark.parametrize("stop", [1, 5])
    def test_interrupted(self, stop):
        """Before anything of the first task is complete there is nothing; in the second, the first is kept."""

        def interrupt(done, total):
            if done == stop:
                raise KeyboardInterrupt

        one, other = (
            relabelled(task_of([pair(prompts(1, 1))], [pair(prompts(0, 1)), pair(prompts(1, 1))], name=name), number)
            for name in ("one", "other")
        )
        asked = {"methods": ("leace", "mean"), "others": [other], "progress": interrupt}
        if stop == 1:
            with pytest.raises(KeyboardInterrupt):
                erase(HandModel(), one, "number", **asked)
            return
        with pytest.warns(RuntimeWarning, match="interrupted: nothing of task 'other' was complete"):
            result = erase(HandModel(), one, "number", **asked)
        assert not result.provenance["complete"]
        assert set(result.examples["task"]) == {"one"}
        assert len(result.summary()) == 4

    def test_units_without_the_feature_are_measured_and_not_probed(self):
        task = hand_task(n_clusters=4)
        bare = relabelled(task, lambda encoded: {})
        result = erase(HandModel(), dataclasses.replace(task, units=bare.units), "number", methods=("leace",))
        assert set(result.probes["data"]) == {"fitted"}
        assert len(result.examples) == 2 * 32
