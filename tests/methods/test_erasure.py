"""Taking a feature away costs the behaviour where it is used, and only there."""

import dataclasses
import random
import warnings

import numpy as np
import pytest
import torch
from as_users_call import unchecked
from hand_model import IS, NEAR, WORDS, HandModel, hand_task, number, pair, prompts, relabelled, task_of, varied_task
from random_tasks import random_task
from tiny_models import random_model, word_tokenizer

import interp
from interp.errors import InputError
from interp.methods.erasing.place import SITES, choose_places, positions_at, task_positions
from interp.methods.erasing.steering import turns
from interp.methods.erasure import _check_methods, erase
from interp.model.config import TransformerConfig
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.stats.permutation import sign_flip_test
from interp.stats.units import UnitTable

pytestmark = pytest.mark.filterwarnings("ignore:.*the intervention changed nothing on any example")


def coins(seed):
    rng = random.Random(seed)
    return lambda encoded: {"coin": rng.choice(["heads", "tails"])}


def hand_weights():
    """The same model as one of ours, with a stream to erase in."""
    size = len(WORDS)
    shape = {"n_layers": 1, "n_heads": 2, "d_model": size, "d_head": size, "d_mlp": 0, "d_vocab": size, "n_ctx": 12}
    config = TransformerConfig(**shape, positions="none", normalization="none", scores="dot")
    model, attention = HookedTransformer(config), HandModel().blocks[0].attn
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.W_E.copy_(torch.eye(size))
        for name in ("W_Q", "W_K", "W_V", "W_O", "b_O"):
            getattr(model.blocks[0].attn, name).copy_(getattr(attention, name))
    return model


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
        return erase(HandModel(), hand_task(), "number", methods=methods, others=[hand_task("other", n_clusters=21)])


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
        frame = by_hand.frame.query("method == 'leace' and head == 0 and task == 'hand'").sort_values("example")
        right_is = np.array([each.right == (IS,) for each in hand_task().examples])
        np.testing.assert_allclose(frame["value"], np.where(right_is, 0.2, -0.2), atol=1e-5)
        assert (frame["status"] == "changed").all()
        assert found["q"] < 0.01

    def test_in_the_decoy_it_costs_nothing(self, by_hand):
        frame = by_hand.frame.query("method == 'leace' and head == 1")
        assert (frame["effect"].abs() < 1e-6).all()
        assert (frame["change_norm"] > 0.01).all()
        assert self.of(by_hand, "leace", 1)["q"] == 1
        probes = by_hand.probes.query("method == 'leace' and head == 1").set_index("data")
        assert (probes.loc["fitted", "before"], probes.loc["fitted", "after"]) == (1.0, 0.5)

    @pytest.mark.parametrize("head", [0, 1])
    def test_after_leace_a_probe_says_the_commonest(self, by_hand, head):
        probes = by_hand.probes.query("method == 'leace' and head == @head").set_index("data")
        assert probes.loc["fitted", "after"] == probes.loc["fitted", "majority"] == 0.5
        held_out = probes.loc["held out"]
        assert held_out["after_low"] <= held_out["majority"] <= held_out["after_high"]
        assert probes["rank"].tolist() == [1, 1, 1]
        assert probes["n"].tolist() == [32, 192, 192]

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
        assert found["excess_q"] < 0.01
        assert self.of(by_hand, "leace", 1)["excess"] == 0

    def test_steering_turns_the_answers_around(self, by_hand):
        """Noun against noun, the head holds its own share, and then that minus twice the average one."""
        frame = by_hand.frame.query("method == 'steer' and head == 0 and task == 'hand'").sort_values("example")
        np.testing.assert_allclose(frame["effect"], -2 * SHARE, rtol=1e-5)
        assert frame["value"].mean() < -0.5
        assert (frame["base_correct"].mean(), frame["value_correct"].mean()) == (1.0, 0.0)
        assert (by_hand.frame.query("method == 'steer' and head == 1")["effect"].abs() < 1e-6).all()

    def test_strength_is_how_far(self):
        result = erase(HandModel(), hand_task(n_clusters=4), "number", methods=("steer",), strength=0.5)
        np.testing.assert_allclose(result.frame.query("head == 0")["effect"], -SHARE, rtol=1e-5)
        assert result.probes.empty
        assert result.summary()["rank"].isna().all()

    def test_the_mean_is_that_of_ablation(self, by_hand):
        from interp.methods.ablation import ablate

        frame = by_hand.frame.query("method == 'mean' and head == 0 and task == 'hand'")
        by_position = ablate(HandModel(), hand_task(), by=("layer", "head", "pos"), kind="mean").frame
        last = by_position.query("head == 0 and pos == 'last'").set_index("example")["value"]
        np.testing.assert_allclose(frame.set_index("example")["value"], last.loc[frame["example"]], rtol=1e-5)

    def test_other_tasks_get_the_same_erasers(self, by_hand):
        """Of the same kind here: they lose as much."""
        assert set(by_hand.frame["task"]) == {"hand", "other"}
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
        assert (result.frame["effect"] == 0).all()
        assert (result.frame["status"] == "no-op").all()
        assert (result.probes["rank"] == 0).all()
        assert (result.probes["before"] == 0.5).all()

    def test_our_model_gives_the_same_as_any_other(self, by_hand):
        one = hand_task("other", n_clusters=21)
        result = erase(hand_weights(), hand_task(), "number", others=[one], methods=("leace", "random", "steer"))
        cell = ["task", "method", "head", "example"]
        both = result.frame.merge(by_hand.frame, on=cell, suffixes=("", "_plain"))
        assert len(both) == len(result.frame)
        np.testing.assert_allclose(both["value"], both["value_plain"], atol=1e-5)
        assert (result.provenance["engine"], by_hand.provenance["engine"]) == ("incremental", "plain")
        assert result.provenance["audit"]["largest_difference"] < 1e-5


def labelled_task(seed=0, folds=1, **options):
    """Random prompts, labelled by their second token's parity; with a position that is related."""

    def features(encoded):
        return {"parity": "even" if sum(encoded.prompt) % 2 == 0 else "odd"}

    task = relabelled(random_task(seed, folds=folds, n_references=12, **options), features)

    def related(each):
        return dataclasses.replace(each, related=(1, 2), query=len(each.prompt) - 2)

    units = [
        dataclasses.replace(unit, item=related(unit.item), counterfactual=related(unit.counterfactual))
        for unit in task.units
    ]
    sets = [
        tuple(dataclasses.replace(u, item=related(u.item), counterfactual=related(u.counterfactual)) for u in each)
        for each in task.references
    ]
    return dataclasses.replace(task, units=tuple(units), references=tuple(sets))


def formula(x, labels):
    """LEACE's map of a vector, from inverse square roots."""
    z = (labels[:, None] == np.unique(labels)).astype(float)
    mu, z = x.mean(0), z - z.mean(0)
    values, vectors = np.linalg.eigh((x - mu).T @ (x - mu) / len(x))
    w, back = (vectors * values**power @ vectors.T for power in (-0.5, 0.5))
    cross = w @ ((x - mu).T @ z / len(x))
    projection = back @ cross @ np.linalg.pinv(cross, rcond=1e-10) @ w
    return lambda y: y - (y - mu) @ projection.T


@pytest.mark.parametrize("at", ["query", "related", "all"])
@pytest.mark.parametrize(("site", "head"), [("z", 2), ("resid_mid", None), ("mlp_out", None)])
def test_a_cell_by_hand(site, head, at):
    """Fold by fold: activations of the reference prompts at these positions, the formula, a hook."""
    model, task, layer = random_model(n_layers=2), labelled_task(folds=2, lengths=(6, 5, 6, 4)), 0
    name = Site(site, layer).hook_name
    where = {"heads": [(layer, head)]} if head is not None else {"layers": [layer]}
    result = erase(model, task, "parity", site=site, at=at, methods=("leace",), **where)
    chosen = {"query": lambda p: [len(p) - 2], "related": lambda p: [1, 2], "all": lambda p: list(range(len(p)))}[at]
    maps = []
    for units in task.references:
        x, labels = [], []
        for each in (example for unit in units for example in unit.examples):
            _, cache = model.run_with_cache(torch.tensor([each.prompt]))
            there = cache[name][0, chosen(each.prompt)].detach()
            x.append((there if head is None else there[:, head]).numpy())
            labels += [each.example.features["parity"]] * len(there)
        maps.append(formula(np.concatenate(x), np.array(labels)))
    expected = []
    for unit in task.units:
        for each in unit.examples:
            places = chosen(each.prompt)

            def hook(value, *, hook, each=each, places=places, fold=unit.fold):
                value = value.clone()
                part = value[0, places] if head is None else value[0, places, head]
                part = torch.from_numpy(maps[fold](part.detach().numpy()))
                if head is None:
                    value[0, places] = part
                else:
                    value[0, places, head] = part
                return value

            logits = model.run_with_hooks(torch.tensor([each.prompt]), fwd_hooks=[(name, hook)])[0, -1].detach()
            expected.append(float(logits[each.right[0]] - logits[each.wrong[0]]))
    frame = result.frame.sort_values("example")
    np.testing.assert_allclose(frame["value"], expected, rtol=1e-6, atol=1e-9)
    assert (frame["effect"].abs() > 1e-6).all()


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
        assert leace.loc[2, "excess_q"] < 0.001
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


class TestEngine:
    METHODS = ("leace", "random", "inlp", "mean", "steer")

    @pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
    @pytest.mark.parametrize("site", SITES)
    def test_the_audit_holds_for_every_site_and_method(self, site, causal):
        at = ("query", "related", "all")[(SITES.index(site) + causal) % 3]
        task = labelled_task(lengths=(6, 5, 6, 4))
        result = erase(random_model(causal=causal), task, "parity", site=site, at=at, methods=self.METHODS, draws=2)
        assert result.provenance["audit"]["largest_difference"] < 1e-9
        assert set(result.frame["method"]) == set(self.METHODS)
        assert np.isfinite(result.frame["value"]).all()

    def test_sentences(self):
        """The erasers are fitted to prompts, and erase in both continuations."""
        task = labelled_task(lengths=(6, 5), metric="sentence_log_probability", answers=(2, 1))
        result = erase(random_model(), task, "parity", at="all", methods=self.METHODS, draws=2)
        assert result.provenance["audit"]["largest_difference"] < 1e-9
        assert (result.frame["fired"] > 0).all()


class TestResult:
    def test_the_summary_is_about_one_family_per_method(self, by_hand):
        summary = by_hand.summary()
        assert len(summary) == 5 * 2 * 2
        assert summary.set_index(["method", "task", "head"]).index.is_unique
        assert (summary["q"] >= summary["p"] - 0.02).all()
        assert summary.loc[summary["method"] != "leace", "excess"].isna().all()
        assert summary.loc[summary["method"] == "leace", "excess_q"].notna().all()

    def test_q_is_over_all_places_and_tasks(self, by_hand):
        """Of effects that are noise, so that it matters how many there are."""
        frame = by_hand.frame.assign(effect=np.random.default_rng(0).normal(0.1, 1, size=len(by_hand.frame)))
        summary = dataclasses.replace(by_hand, frame=frame).summary()
        for method in ("leace", "random"):
            mine = frame[frame["method"] == method]
            tables = [UnitTable.from_frame(mine[mine["task"] == task], "effect") for task in ("hand", "other")]
            tests = sign_flip_test(tables)
            found = summary[summary["method"] == method]
            assert (found["q"] > 1.2 * found["p"]).any()
            np.testing.assert_array_equal(found["p"], np.concatenate([each.p for each in tests]))
            np.testing.assert_array_equal(found["q"], np.concatenate([each.p_family for each in tests]))

    def test_excess_is_paired_example_by_example(self, by_hand):
        frame = by_hand.frame.query("task == 'hand' and head == 0").set_index(["method", "example"])["effect"]
        differences = frame["leace"] - frame["random"]
        summary = by_hand.summary().query("method == 'leace' and task == 'hand' and head == 0")
        assert summary["excess"].item() == pytest.approx(differences.mean())
        assert summary["excess_low"].item() < summary["excess"].item() < summary["excess_high"].item()

    def test_without_the_control_there_is_no_excess(self):
        result = erase(HandModel(), hand_task(n_clusters=4), "number", methods=("leace",))
        assert result.summary()["excess"].isna().all()

    def test_seeds(self):
        """They choose random subspaces alone, and a head's do not depend on which others are asked for."""
        model, task = random_model(), labelled_task()
        one, again, other = (erase(model, task, "parity", layers=[0], seed=seed).frame for seed in (0, 0, 1))
        assert one["value"].equals(again["value"])
        differs = one["value"] != other["value"]
        assert differs[one["method"] == "random"].all()
        assert not differs[one["method"] != "random"].any()
        alone = erase(model, task, "parity", heads=[(0, 2)]).frame
        np.testing.assert_allclose(alone["value"], one.query("head == 2")["value"], rtol=1e-9)

    def test_draws_are_averaged(self):
        """The first is the same, however many are drawn."""
        model, task = random_model(), labelled_task()
        one, three = (
            erase(model, task, "parity", methods=("random",), draws=draws, heads=[(0, 1)]) for draws in (1, 3)
        )
        assert (three.frame["fired"] == 3).all()
        assert (three.provenance["subspaces"], three.provenance["draws"]) == (3, 3)
        assert (one.frame["effect"] != three.frame["effect"]).all()
        assert one.probes["after"].equals(three.probes["after"])

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
        assert set(result.frame["task"]) == {"one"}
        assert len(result.summary()) == 4

    def test_units_without_the_feature_are_measured_and_not_probed(self):
        task = hand_task(n_clusters=4)
        bare = relabelled(task, lambda encoded: {})
        result = erase(HandModel(), dataclasses.replace(task, units=bare.units), "number", methods=("leace",))
        assert set(result.probes["data"]) == {"fitted"}
        assert len(result.frame) == 2 * 32

    def test_other_tasks_of_more_folds_are_served_by_the_first(self):
        """They are not scored together with what the erasers were fitted to, whichever set that is."""
        model, task = random_model(), labelled_task()
        other = dataclasses.replace(labelled_task(3), name="other")
        split = tuple(dataclasses.replace(unit, fold=number % 2) for number, unit in enumerate(other.units))
        of_two = dataclasses.replace(other, units=split, references=2 * other.references)
        asked = {"methods": ("leace", "mean", "steer"), "layers": [0]}
        one, same = (erase(model, task, "parity", others=[each], **asked).frame for each in (other, of_two))
        assert one["value"].equals(same["value"])


class TestPositions:
    def test_query_is_the_last_where_no_word_of_the_prompt_looks_back(self):
        each = hand_task().examples[0]
        assert positions_at("query", dataclasses.replace(each, query=2)) == (2,)
        for query in (None, len(each.prompt)):
            assert positions_at("query", dataclasses.replace(each, query=query)) == (len(each.prompt) - 1,)

    def test_related_leaves_out_what_is_not_in_the_prompt(self):
        each = hand_task().examples[0]
        n = len(each.prompt)
        assert positions_at("related", dataclasses.replace(each, related=(1, 2, n))) == (1, 2)
        assert positions_at("all", each) == tuple(range(n))

    def test_prompts_without_a_related_word_are_left_out(self):
        units = [pair(prompts(0, 1), tagged=False), pair(prompts(0, 2))]
        task = relabelled(task_of(units, [pair(prompts(*each)) for each in ((0, 1), (1, 1))]), number)
        result = erase(HandModel(), task, "number", at="related", methods=("leace",))
        assert set(result.frame["unit"]) == {1}
        nowhere = relabelled(task_of(units[:1], task.references[0]), number)
        with pytest.raises(
            InputError, match="at='related': none of the 2 prompts of task 'hand' holds a tagged related"
        ):
            erase(HandModel(), nowhere, "number", at="related")


class TestRefused:
    def test_an_unknown_feature(self):
        with pytest.raises(
            InputError,
            match="feature 'numbr': no reference example of task 'hand' has it; these have 'length', 'number'; did you "
            "mean 'number'",
        ):
            erase(HandModel(), hand_task(), "numbr")
        with pytest.raises(InputError, match=r"feature 'number': no reference example .* these have none; give them"):
            erase(HandModel(), varied_task(), "number")

    def test_one_value(self):
        alike = relabelled(varied_task(), lambda encoded: {"number": "dual"})
        with pytest.raises(
            InputError,
            match="feature 'number': expected at least two values among the reference examples of task 'hand', got "
            "'dual' in 32 of them; there is nothing to tell apart",
        ):
            erase(HandModel(), alike, "number")

    def test_a_value_of_one_example(self):
        def first(encoded):
            return {"number": "dual" if encoded is rare else number(encoded)["number"]}

        task = varied_task()
        rare = task.references[0][3].item
        with pytest.raises(InputError, match="'dual' has a single reference example in task 'hand', expected at least"):
            erase(HandModel(), relabelled(task, first), "number")

    def test_no_references(self):
        task = dataclasses.replace(hand_task(), references=())
        with pytest.raises(InputError, match="task 'hand' has no reference examples for its fold 0"):
            erase(HandModel(), task, "number")

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_activations_that_are_no_numbers(self, value):
        model = hand_weights()
        with torch.no_grad():
            model.W_E[NEAR] = value
        with pytest.raises(
            InputError,
            match=r"blocks\.0\.attn\.hook_z: the activation is NaN or infinite on '<bos> key .*near there', so that",
        ):
            erase(model, hand_task(), "number")

    def test_an_encoder(self):
        model = random_model(tokenizer=word_tokenizer(), causal=False)
        with pytest.raises(
            InputError, match="task 'random' asks for the next token, which an encoder does not predict"
        ):
            erase(model, labelled_task(d_vocab=12), "parity")

    @pytest.mark.parametrize("site", ["pattern", "mlp_post", "q", "embed", "zz"])
    def test_a_site(self, site):
        with pytest.raises(InputError, match=f"erase: no eraser is fitted at site '{site}'; "):
            erase(HandModel(), hand_task(), "number", site=site)

    def test_heads_and_layers(self):
        with pytest.raises(InputError, match=r"head 0\.2: the model has 1 layers \(0 to 0\) of 2 heads \(0 to 1\)"):
            erase(HandModel(), hand_task(), "number", heads=[(0, 2)])
        with pytest.raises(InputError, match=r"layers: the model has 1 \(0 to 0\), got \[1\]"):
            erase(HandModel(), hand_task(), "number", site="resid_pre", layers=[1])
        with pytest.raises(InputError, match=r"heads: site 'resid_pre' has none, got \[\(0, 0\)\]; leave them out"):
            choose_places(HandModel(), "resid_pre", heads=[(0, 0)])

    def test_methods(self):
        with pytest.raises(InputError, match="methods: no way to erase is called 'leaca'; did you mean 'leace'"):
            _check_methods(["leaca"])
        for methods in ((), ("leace", "leace")):
            with pytest.raises(InputError, match="methods: expected different ones, at least one, got"):
                erase(HandModel(), hand_task(), "number", methods=methods)

    def test_a_kind_of_position(self):
        # Past the type checker of the tests, as a caller without one gets there.
        with pytest.raises(InputError, match="at: no kind of position is called 'querry'; did you mean 'query'"):
            unchecked(task_positions)("querry", hand_task())

    def test_draws(self):
        with pytest.raises(InputError, match="draws: expected a whole number of at least 1, got 0"):
            erase(HandModel(), hand_task(), "number", draws=0)

    def test_tasks_of_one_name(self):
        with pytest.raises(InputError, match=r"others: expected tasks of different names, .* got \['hand', 'hand'\]"):
            erase(HandModel(), hand_task(), "number", others=[hand_task()])

    def test_nothing_to_steer_from_or_to(self):
        bare = relabelled(varied_task(name="bare"), lambda encoded: {})
        with pytest.raises(InputError, match=r"steer: '<bos> .*' of task 'bare' has the number None, expected one of"):
            erase(HandModel(), hand_task(), "number", methods=("steer",), others=[bare])
        task = relabelled(task_of([pair(prompts(0, 1))], []), number)
        assert turns(task, "length", ["4", "5"]) == [("4", "5")] * 2
        assert turns(task, "number", ["dual", "plural", "singular"]) == [("singular", "plural"), ("plural", "singular")]
        with pytest.raises(InputError, match=r"steer: .* has the length '4'; of 3 values, its .* to say .*, got '4'"):
            turns(task, "length", ["4", "5", "6"])
        alone = dataclasses.replace(task, units=(dataclasses.replace(task.units[0], counterfactual=None),))
        with pytest.raises(InputError, match=r"steer: .* got none; leave steer out"):
            turns(alone, "length", ["4", "5", "6"])
