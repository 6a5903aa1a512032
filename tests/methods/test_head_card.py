"""The card of one head: on models whose numbers can be worked out, and on the embedded one."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from hand_model import HandModel, hand_task
from noun_model import ARE, BY, IS, NOUNS, PLURAL, SINGULAR, THERE, noun_model, noun_task
from random_tasks import random_task
from tiny_models import random_model

import interp
from interp.claims.rules import FINDINGS
from interp.errors import InputError
from interp.interventions import reference_set
from interp.methods import card_patching
from interp.methods.card_parts import halves, shares
from interp.methods.card_patching import direct_paths, positions, some_units
from interp.methods.dossier import heads
from interp.methods.head_card import head_card, head_cards
from interp.options import CardOptions
from interp.residual.circuits import copying_score, copying_scores
from interp.runs.run import Run
from interp.tasks.task import Task, Unit

pytestmark = pytest.mark.unchecked


@pytest.fixture(scope="module")
def task():
    return noun_task()


@pytest.fixture(scope="module")
def report(task):
    return heads(noun_model(), [task], probes=False, first_look=0)


@pytest.fixture(scope="module")
def card(task, report):
    return head_card(noun_model(), "0.0", [task], report)


def with_layout(task, layout):
    def example(each):
        return dataclasses.replace(each, example=dataclasses.replace(each.example, layout=layout))

    def unit(each):
        return Unit(*map(example, each.examples), each.cluster, each.fold)

    references = tuple(tuple(map(unit, each)) for each in task.references)
    return dataclasses.replace(task, units=tuple(map(unit, task.units)), references=references)


def test_the_verdicts_are_the_dossiers(card, report):
    expected = report.summary().query("head == 0").reset_index(drop=True)
    pd.testing.assert_frame_equal(card.verdicts, expected, check_dtype=False)
    assert repr(card) == f"HeadCard(0.0: nouns: {expected['verdict'][0]})"
    assert (card.name, card.provenance["head"], card.provenance["seed"]) == ("0.0", "0.0", 0)
    assert card.left_out.empty


def test_without_a_report_the_dossier_is_made_on_the_way(card, task):
    told = []
    options = {"probes": False, "first_look": 0, "progress": lambda done, total: told.append((done, total))}
    alone = head_card(noun_model(), (0, 0), task, **options)
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    pd.testing.assert_frame_equal(alone.verdicts, card.verdicts)
    pd.testing.assert_frame_equal(alone.replacements, card.replacements)


def test_references_that_the_dossier_ran_are_not_run_again_for_cards(task, card, monkeypatch):
    ran, means = [], reference_set._means
    monkeypatch.setattr(reference_set, "_means", lambda *given: ran.append(given) or means(*given))
    run = Run(None)
    found = heads(noun_model(), [task], probes=False, first_look=0, run=run)
    assert len(ran) == 1
    pd.testing.assert_frame_equal(
        head_card(noun_model(), "0.0", [task], found, run=run).replacements, card.replacements
    )
    assert len(ran) == 1
    head_card(noun_model(), "0.0", [task], found)
    assert len(ran) == 2


def test_a_card_is_measured_within_the_budget(task, report):
    (both,) = head_cards(noun_model(), [task], report, memory_budget=1)
    for card in (both, head_card(noun_model(), "0.0", [task], report, memory_budget=1)):
        refused = card.left_out[card.left_out["reason"].str.contains("memory budget: one cell")]
        assert set(refused["part"]) == {"replacements", "positions", "feature", "feeds", "readers"}


def test_heads_that_earned_a_verdict_have_cards_with_all_tasks_and_what_is_measured_where_they_earned_it(task):
    """On the other task right and wrong are a coin's throw: nothing is earned there."""
    turned = [
        Unit(*(dataclasses.replace(e, right=e.wrong, wrong=e.right) for e in unit.examples), unit.cluster)
        if number % 2
        else unit
        for number, unit in enumerate(task.units)
    ]
    tasks = [task, dataclasses.replace(task, name="coin", units=tuple(turned))]
    both = heads(noun_model(), tasks, probes=False, anyway=True)
    told = []
    (card,) = head_cards(noun_model(), tasks, both, progress=lambda *each: told.append(each))
    assert card.name == "0.0"
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    assert card.verdicts["task"].tolist() == card.shares["task"].tolist() == ["nouns", "coin"]
    assert card.verdicts["verdict"].isin(FINDINGS).tolist() == [True, False]
    assert set(card.replacements["task"]) == set(card.halves["task"]) == set(card.positions["task"]) == {"nouns"}
    alone = head_card(noun_model(), "0.0", [task], both)
    pd.testing.assert_frame_equal(card.replacements, alone.replacements)
    pd.testing.assert_frame_equal(card.feeds, alone.feeds)


def test_whatever_replaces_it_the_whole_metric_is_lost(card, task):
    """Nothing else writes an answer; a balanced mean speaks for neither."""
    found = card.replacements.set_index("replacement")
    base = card.tasks["base"][0]
    assert list(found.index) == ["zero", "mean", "positional_mean", "template_mean", "resample"]
    assert found.loc[["zero", "mean", "positional_mean", "template_mean"], "share"].to_numpy() == pytest.approx(-1)
    assert set(found["state"]) == {"drop"}
    assert found["rank"].dropna().to_dict() == {"positional_mean": 1, "resample": 1}  # by which all were ablated
    assert (found["n_heads"] == 3).all()
    # Kinds are compared on some of the units.
    assert found["minimum"].to_numpy() == pytest.approx(0.1 * base, rel=0.01)
    assert found["share"].to_numpy() == pytest.approx(found["effect"].to_numpy() / base, rel=0.01)
    assert card.agreement["kendall"].to_numpy() == pytest.approx(1)
    assert card.agreement[["first", "second"]].values.tolist() == [["resample", "positional_mean"]]


def test_the_share_of_the_base_is_all_of_it(card):
    """Another example's answer is the right one as often as not, and turns the metric round where it is wrong."""
    (row,) = card.shares.to_dict("records")
    assert row["share"] == pytest.approx(card.verdicts["effect"].item() / card.tasks["base"].item())
    assert row["share_low"] < -1 < row["share_high"] < -0.9
    assert (row["minimum"], row["n_clusters"]) == (0.1, NOUNS)


def test_a_model_at_chance_has_no_share_to_lose(report):
    examples, row = report.examples.query("head == 0"), report.summary().iloc[0]
    noise = 0.01 + np.random.default_rng(0).standard_normal(len(examples))
    (found,) = shares(examples.assign(base=noise), row, minimum=0.1, seed=0).to_dict("records")
    assert np.isnan([found["share"], found["share_low"]]).all()
    assert found["effect"] == row["effect"]


def test_both_halves_have_their_own_clusters(card, report):
    found = card.halves.set_index(["evidence", "half"])
    assert found.groupby("evidence")["n_clusters"].sum().to_dict() == {"attention": NOUNS, "effect": NOUNS}
    assert found["passes"].all()
    whole = card.verdicts.iloc[0]
    for evidence, estimate in (("attention", whole["excess"]), ("effect", whole["effect"])):
        both = found.loc[evidence]
        assert np.average(both["estimate"], weights=both["n_units"]) == pytest.approx(estimate)
        assert (both["low"] < both["estimate"]).all()
    idle = halves(report.examples.query("head == 1"), report.summary().iloc[1], seed=0)
    assert not idle["passes"].any()


def test_only_the_query_brings_the_answer_back(card):
    found = card.positions.set_index("position")
    assert list(found.index) == ["BOS", "related", "rest", "query", "all"]
    assert found["normalised"].to_numpy() == pytest.approx([0, 0, 0, 1, 1])
    assert found["n_changed"].tolist() == [0, 0, 0, *2 * [2 * CardOptions.max_units]]


def test_another_heads_patch_brings_nothing_back(task):
    found = positions(noun_model(), [(0, 1)], task, seed=0)[0, 1]
    assert found["normalised"].to_numpy() == pytest.approx(0)
    assert found["n_changed"].iloc[-1] == 8 * NOUNS


def test_it_reads_the_noun_by_its_values_and_is_read_by_the_logits(card):
    """Singular and plural nouns have the same key, and the query word is the same."""
    feeds = card.feeds.set_index("receiver")
    assert feeds["normalised"].to_dict() == pytest.approx({"0.0.v": 1, "0.0.k": 0, "0.0.q": 0})
    assert set(feeds["sender"]) == {"embed"}
    assert feeds["reads"].tolist()[0] == "v"
    (reader,) = card.readers.to_dict("records")
    assert (reader["receiver"], reader["reads"]) == ("logits", "logits")
    assert reader["normalised"] == pytest.approx(1)
    assert reader["n_units"] == 40


def test_of_many_paths_those_with_the_largest_estimates_are_patched(card, task, monkeypatch):
    assert set(card.feeds["n_paths"]) == {3}
    monkeypatch.setattr(card_patching, "MANY_PATHS", 2)
    monkeypatch.setattr(card_patching, "MOST_PATHS", 1)
    found = direct_paths(noun_model(), [(0, 0)], task, max_units=40, seed=0)[0, 0]
    kept = card.feeds.query("receiver == '0.0.v'").reset_index(drop=True)
    pd.testing.assert_frame_equal(found["feeds"], kept.drop(columns="task"))
    assert len(found["readers"]) == found["readers"]["n_paths"].item() == 1


def test_its_circuits_are_the_weights(card):
    queries, related = (card.circuits.query("role == @role") for role in ("query", "related"))
    assert set(queries["word"]) == {f"#{THERE}"}
    assert (queries["token"] >= 6).all()  # nouns, all with the same score
    assert queries["score"].nunique() == 1
    for word, written in related.query("circuit == 'raises' and place == 0").groupby("word"):
        noun = int(word.removeprefix("#"))
        assert written["token"].item() == (IS if noun in SINGULAR else ARE)
        assert noun in (*SINGULAR, *PLURAL)
    assert set(related["circuit"]) == {"raises", "lowers"}
    assert np.isnan(card.copying)  # what it writes is nothing that it reads


def test_one_copying_score_is_that_of_all():
    model = noun_model()
    all_of_them = copying_scores(model).summary().set_index(["layer", "head"])["copying"]
    assert copying_score(model, 0, 2) == all_of_them[0, 2] == pytest.approx(1)  # it reads `by` and writes it
    assert model.W_E[BY, BY] == 1


def test_a_kind_that_the_task_cannot_provide_has_its_reason(task, report):
    card = head_card(noun_model(), "0.0", [with_layout(task, "")], report)
    found = card.replacements.set_index("replacement")
    assert np.isnan(found.loc["positional_mean", "effect"])
    assert "has no layout" in found.loc["positional_mean", "reason"]
    assert (found.loc[["zero", "mean", "template_mean", "resample"], "reason"] == "").all()
    assert card.agreement[["first", "second"]].values.tolist() == [["resample", "positional_mean"]]  # the report's


def test_what_a_foreign_model_cannot_show_is_left_out_with_the_reason():
    card = head_card(HandModel(), "0.0", [hand_task()], probes=False)
    assert set(card.left_out["part"]) == {"feeds", "readers", "circuits"}
    assert card.left_out["reason"].str.contains("expected one of our own models, got a HandModel").all()
    assert card.feeds.empty
    assert list(card.feeds.columns) == list(card.readers.columns) != []
    assert np.isnan(card.copying)
    assert card.positions.set_index("position").loc["query", "normalised"] == pytest.approx(1)


def test_without_counterfactuals_nothing_is_patched(task, report):
    units = tuple(dataclasses.replace(unit, counterfactual=None) for unit in task.units)
    card = head_card(noun_model(), "0.0", [dataclasses.replace(task, units=units)], report)
    assert set(card.left_out["part"]) == {"positions", "feeds", "readers"}
    assert card.left_out["reason"].str.contains(f"none of the (?:{CardOptions.max_units}|{4 * NOUNS}) units").all()
    assert len(card.replacements) == 5


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("0.3", r"head 0\.3: the model has 1 layers \(0 to 0\) of 3 heads \(0 to 2\)"),
        ((1, 0), r"head 1\.0: the model has 1 layers"),
        ("2-1", r"head '2-1': expected a layer and a head, both from 0, such as 2\.1"),
        ("1", r"head '1': expected a layer and a head"),
    ],
)
def test_an_unknown_head_is_refused_before_anything_is_run(head, said):
    with pytest.raises(InputError, match=said):
        head_card(noun_model(), head, ["no task"])


def test_a_report_of_something_else_is_refused(task, report):
    with pytest.raises(InputError, match="expected a dossier of the task 'other', got one of nouns"):
        head_card(noun_model(), "0.0", [noun_task(name="other")], report)
    with pytest.raises(InputError, match="another data_hash"):
        head_card(noun_model(), "0.0", [dataclasses.replace(task, hash="other")], report)
    model = noun_model()
    with torch.no_grad():
        model.W_E[0] += 1
    with pytest.raises(InputError, match="another model_hash"):
        head_card(model, "0.0", [task], report)
    with pytest.raises(InputError, match="tasks: expected different tasks"):
        head_card(noun_model(), "0.0", [task, task], report)


def test_an_interrupted_sweep_is_no_card(task, report):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        head_card(noun_model(), "0.0", [task], report, progress=interrupt)


def test_shared_keys_and_values_have_numbers_of_their_own():
    """Of four heads that share keys and values by two, the third reads by the second pair's."""
    model = random_model(n_heads=4, n_kv_heads=2)
    found = direct_paths(model, [(1, 2)], random_task(), max_units=4, seed=0)[1, 2]["feeds"]
    assert set(found["receiver"]) == {"1.2.q", "1.1.k", "1.1.v"}
    assert set(found["sender"]) == {"embed", "0.0", "0.1", "0.2", "0.3", "mlp.0"}
    assert found["effect"].abs().is_monotonic_decreasing


class TestSomeUnits:
    def test_are_drawn_from_the_templates_in_turn(self, task):
        def named(number, unit):
            example = dataclasses.replace(unit.item.example, template="rare" if number < 4 else "common")
            return dataclasses.replace(unit, item=dataclasses.replace(unit.item, example=example))

        units = tuple(named(*each) for each in enumerate(task.units))
        few = some_units(dataclasses.replace(task, units=units), 6, seed=1)
        assert sorted(unit.item.example.template for unit in few.units) == 3 * ["common"] + 3 * ["rare"]
        again = some_units(dataclasses.replace(task, units=units), 6, seed=1)
        assert isinstance(few, Task)
        assert few.units == again.units

    def test_are_all_where_there_are_no_more(self, task):
        assert some_units(task, 4 * NOUNS, seed=0) is task


@pytest.mark.slow
def test_the_embedded_models_head_writes_for_the_mlp_and_the_logits_behind_it():
    """Of the last layer: what it writes goes on by these two alone, and together they carry all that it carries."""
    model = interp.load_model()
    card = head_card(model, "2.2", ["agreement"], n=30, probes=False, draws=1, max_units=12)
    readers = card.readers.set_index("receiver")["normalised"]
    assert set(readers.index) == {"mlp.2", "logits"}
    whole = card.positions.set_index("position")["normalised"]
    assert whole["query"] == whole["all"] == pytest.approx(1, abs=0.1)
    assert readers.sum() == pytest.approx(1, abs=0.1)
    first = card.feeds.iloc[0]
    assert (first["sender"], first["receiver"]) == ("embed", "2.2.v")
    assert len(card.feeds) == 3 * (1 + 2 * 4 + 2)
    assert card.shares["share"].item() < -0.9
    assert set(card.circuits["role"]) == {"query", "related"}
