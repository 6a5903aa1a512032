import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from gated_model import GatedModel
from hand_model import (
    ARE,
    BY,
    IS,
    KEY,
    KEYS,
    N_CLUSTERS,
    NEAR,
    HandModel,
    hand_task,
    hand_weights,
    pair,
    prompts,
    task_of,
    varied_task,
)

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.claims.rules import FEW_TASKS, NO_EXCHANGE, UNRELATED
from interp.errors import InputError
from interp.methods import ablation_looks, behaviour
from interp.methods.behaviour import require_able
from interp.methods.dossier import COLUMNS, heads
from interp.report import heads_frames
from interp.tasks.task import Unit


def verdicts(report, task="hand"):
    frame = report.summary()[report.summary()["task"] == task]
    return {(row.layer, row.head): row.verdict for row in frame.itertuples()}


@pytest.fixture(scope="module")
def report():
    return heads(HandModel(), [varied_task()], first_look=0)


@pytest.fixture(scope="module")
def ours():
    """Of the same model as one of ours, which shows its keys."""
    return heads(hand_weights(), [varied_task()], first_look=0)


def test_the_copying_head_is_found_and_the_idle_one_is_not(report):
    assert verdicts(report) == {(0, 0): "attends and causal", (0, 1): "none"}
    assert report.summary()["reason"].tolist() == [NO_EXCHANGE, ""]  # the model shows no keys


def test_columns_are_those_of_the_table(report):
    assert list(report.summary().columns) == list(COLUMNS)
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert COLUMNS[:4] == ("layer", "head", "task", "query")
    assert {*heads_frames.HEAD_COLUMNS, *heads_frames.FURTHER_HEAD_COLUMNS} <= set(COLUMNS)
    assert set(heads_frames.TASK_COLUMNS) <= set(report.tasks.columns)
    assert set(heads_frames.ATTENTION_COLUMNS) <= set(report.attention_maps.columns)
    assert set(report.summary()["verdict"]) <= set(heads_frames.VERDICTS)
    assert not report.summary().duplicated(["layer", "head", "task"]).any()
    assert set(report.summary()["task"]) == set(report.tasks["task"])


def test_a_head_whose_word_turns_the_answer_tracks(ours):
    """The task names no feature."""
    found = ours.summary().set_index("head")
    assert found["verdict"].to_dict() == {0: "tracks", 1: "none"}
    assert found["reason"].to_dict() == {0: FEW_TASKS, 1: ""}
    assert found["exchange_state"].to_dict() == {0: "drop", 1: "not testable"}
    first = found.loc[0]
    kinds = ("excess", "effect", "mean_effect", "exchange")
    assert first["tracks_p_adjusted"] == max(first[f"{kind}_p_adjusted"] for kind in kinds) < 0.01
    assert first["exchange"] < -first["min_exchange"] < 0
    assert first["n_exchange_units"] == first["n_units"]
    idle = found.loc[1]
    assert np.isnan([idle["exchange"], idle["tracks_p_adjusted"]]).all()
    assert idle["n_exchange_units"] == 0


def test_where_a_feature_is_named_it_has_to_be_carried():
    """What is held out are nouns, and the task has two: nothing can be probed for, and nothing tracks."""
    task = dataclasses.replace(hand_task(), feature="number")
    first = heads(hand_weights(), [task]).summary().iloc[0]
    assert (first["exchange_state"], first["effect_state"], first["attention_state"]) == ("drop", "drop", "shown")
    assert first["representation"] != "carried"
    assert first["verdict"] == "attends and causal"
    assert "probe" in first["reason"] or "can be read" in first["reason"]


def test_who_needs_the_word_and_reads_the_answer_elsewhere_goes_another_route():
    """Head 0 looks at the noun, and reads the preposition, which tells the answer as well."""
    model = hand_weights()
    with torch.no_grad():
        attention = model.blocks[0].attn
        attention.W_V[0] = attention.W_O[0] = 0
        attention.W_V[0, BY, KEY] = attention.W_V[0, NEAR, KEYS] = 8
        attention.W_O[0, KEY, IS] = attention.W_O[0, KEYS, ARE] = 1
    found = heads(model, [told(varied_task())]).summary().set_index("head").loc[0]
    assert (found["attention_state"], found["effect_state"]) == ("shown", "drop")
    assert found["exchange"] == pytest.approx(0, abs=1e-6)
    assert found["exchange_state"] == "none"
    assert (found["verdict"], found["reason"]) == ("causal, by another route", UNRELATED["none"])


def told(task):
    """Every word but noun and query is the one that goes with the answer; the noun alone is another in its twin."""

    def one(each, answer):
        word, noun = (BY, KEY) if answer == IS else (NEAR, KEYS)
        prompt = tuple(word if token in (BY, NEAR) else token for token in each.prompt)
        prompt = (prompt[0], word, *prompt[1:]) if word not in prompt else prompt
        place = next(place for place, token in enumerate(prompt) if token in (KEY, KEYS))
        twin = (*prompt[:place], KEYS if noun == KEY else KEY, *prompt[place + 1 :])
        placed = dataclasses.replace(each, prompt=prompt, query=len(prompt) - 1, related=(place,))
        other = dataclasses.replace(placed, prompt=twin, right=each.wrong, wrong=each.right)
        return dataclasses.replace(placed, word_counterfactual=other)

    def unit(each):
        return dataclasses.replace(
            each, item=one(each.item, each.item.right[0]), counterfactual=one(each.counterfactual, ARE)
        )

    references = tuple(tuple(map(unit, own)) for own in task.references)
    return dataclasses.replace(task, units=tuple(map(unit, task.units)), references=references)


def test_replacements_that_disagree_are_both_named():
    """Either head's answer is enough; the mean of the other does not reach the wrong one, another example's does."""
    found = heads(GatedModel("all or nothing"), [varied_task()], max_group=0).summary()
    copies = found[found["layer"] == 0]
    assert copies["resample_state"].tolist() == ["drop"] * 2
    assert copies["mean_state"].tolist() == ["none"] * 2
    assert copies["effect_state"].tolist() == ["disagree"] * 2
    for row in copies.to_dict("records"):
        both = f"{row['effect']:.2g} by resample and {row['mean_effect']:.2g} by positional mean"
        assert (row["verdict"], row["reason"]) == ("undecided", f"the replacements disagree: {both}")
        assert np.isnan(row["n_to_decide"])  # more units settle nothing


def test_numbers_agree_with_the_examples(report):
    row = report.summary().iloc[0]
    examples = report.examples.query("layer == 0 and head == 0")
    assert len(examples) == 8 * N_CLUSTERS
    assert row["effect"] == pytest.approx(examples["effect"].mean())
    assert row["mean_effect"] == pytest.approx(examples["mean_effect"].mean())
    assert abs(row["effect"] - row["mean_effect"]) > 1e-3
    assert row["attention"] == pytest.approx(examples["attention"].mean())
    assert row["excess"] == pytest.approx((examples["attention"] - examples["attention_baseline"]).mean())
    assert row["accuracy_base"] == pytest.approx(examples["base_correct"].mean())
    assert row["accuracy_ablated"] == pytest.approx(examples["value_correct"].mean())
    assert row["min_effect"] == pytest.approx(0.1 * examples["base"].mean())


def test_tasks_describe_the_base_run(report):
    (task,) = report.tasks.to_dict("records")
    assert (task["n_units"], task["n_examples"], task["n_clusters"]) == (4 * N_CLUSTERS, 8 * N_CLUSTERS, N_CLUSTERS)
    assert task["base"] == pytest.approx(report.examples["base"].mean())
    # Where the words stand decides it, and every layout was drawn as often.
    assert [task["base_low"], task["base_high"]] == pytest.approx([task["base"]] * 2)


def test_the_items_accuracy_is_theirs_alone():
    """A model that always says "is" gets every singular item right and every plural counterfactual wrong."""
    (task,) = heads(HandModel(bias=100.0), [varied_task()]).tasks.to_dict("records")
    assert (task["accuracy_items"], task["accuracy_base"]) == (1, 0.5)


def test_attention_maps_are_the_patterns_up_to_the_query(report):
    maps = report.attention_maps
    assert set(maps["rank"]) == {1, 2}
    assert maps.groupby(["rank", "example", "query_pos"])["weight"].sum().to_numpy() == pytest.approx(1)
    assert (maps["key_pos"] <= maps["query_pos"]).all()
    top = maps[maps["rank"] == 1]
    assert set(top["head"]) == {0}
    scored = top[top["query_pos"] == top.groupby("example")["query_pos"].transform("max")]
    assert scored[scored["is_related"]]["weight"].min() > 0.4
    assert scored.groupby("example")["is_query"].sum().tolist() == [1] * scored["example"].nunique()


def test_attention_maps_are_what_the_model_attends_to(report):
    maps = report.attention_maps
    task = varied_task()
    for (layer, head, example), rows in maps.groupby(["layer", "head", "example"]):
        _, cache = HandModel().run_with_cache(torch.tensor([task.examples[example].prompt]))
        pattern = cache[f"blocks.{layer}.attn.hook_pattern"][0, head].numpy()
        assert rows["weight"].to_numpy() == pytest.approx(pattern[rows["query_pos"], rows["key_pos"]], abs=1e-6)


def test_of_a_long_sentence_only_the_scored_row_is_kept(monkeypatch):
    monkeypatch.setattr("interp.methods.attention_maps.LONGEST_WHOLE", 2)
    maps = heads(HandModel(), [varied_task()]).attention_maps
    assert (maps.groupby(["rank", "example"])["query_pos"].nunique() == 1).all()
    assert set(maps["query_pos"]) == set(maps.loc[maps["is_query"], "key_pos"])


def test_a_head_that_helps_when_ablated_opposes():
    model = HandModel()
    with torch.no_grad():
        # Head 1 sees the noun as well, weakly, and votes for the wrong answer.
        attention = model.blocks[0].attn
        attention.W_O[1] = 0
        attention.W_O[1, 1, ARE] = attention.W_O[1, 2, IS] = 1
    assert verdicts(heads(model, [varied_task()])) == {(0, 0): "attends and causal", (0, 1): "opposes"}


def test_a_head_that_looks_but_writes_elsewhere_attends_only():
    model = HandModel()
    with torch.no_grad():
        attention = model.blocks[0].attn
        attention.W_Q[1], attention.W_K[1] = attention.W_Q[0], attention.W_K[0]
    assert verdicts(heads(model, [varied_task()])) == {(0, 0): "attends and causal", (0, 1): "attends, not causal"}


def test_without_relation_the_verdict_rests_on_the_effect():
    task = varied_task()
    untagged = [
        Unit(*(dataclasses.replace(each, query=None, related=()) for each in unit.examples), unit.cluster)
        for unit in task.units
    ]
    found = heads(HandModel(), [dataclasses.replace(task, units=tuple(untagged))])
    assert verdicts(found) == {(0, 0): "causal", (0, 1): "none"}
    missing = ["attention", "attention_baseline", "excess", "excess_p_adjusted", "exchange", "tracks_p_adjusted"]
    assert found.summary()[missing].isna().all(axis=None)
    assert found.summary()["reason"].iloc[0] == "attention is not testable"
    assert found.attention_maps.empty


def test_few_clusters_are_undecided():
    found = heads(HandModel(), [varied_task(n_clusters=FEWEST_CLUSTERS - 1)])
    assert set(verdicts(found).values()) == {"undecided"}
    (reason,) = set(found.summary()["reason"])
    assert reason.startswith(f"{FEWEST_CLUSTERS - 1} clusters; at least {FEWEST_CLUSTERS} are needed: draw more units")
    assert (found.summary()["n_to_decide"] >= 4 * FEWEST_CLUSTERS).all()


def test_few_clusters_are_warned_of_before_the_work(caplog):
    told = []
    tasks = [varied_task(), varied_task(n_clusters=4, name="small")]
    heads(HandModel(), tasks, progress=lambda *_: told.append(list(caplog.messages)))
    assert len(told[0]) == 1
    assert told[0][0].startswith("task 'small': every head will be undecided, with 4 clusters; at least 30 are needed")
    assert told[0][0].endswith("; about n=192 would do")  # 16 units are in 4 clusters
    assert caplog.messages == told[0]


def test_a_small_task_beside_another_changes_no_verdict(report):
    beside = heads(HandModel(), [varied_task(), varied_task(n_clusters=4, name="small")], first_look=0)
    assert verdicts(beside) == verdicts(report)
    assert set(verdicts(beside, "small").values()) == {"undecided"}
    for column in ("effect_p_adjusted", "mean_effect_p_adjusted", "excess_p_adjusted"):
        np.testing.assert_array_equal(beside.summary()[column][:2], report.summary()[column])
        assert beside.summary()[column][2:].isna().all()


def rare(unit):
    """The unit, of a template of its own."""
    examples = (
        dataclasses.replace(each, example=dataclasses.replace(each.example, template="rare")) for each in unit.examples
    )
    return Unit(*examples, unit.cluster)


def test_a_template_of_one_cluster_is_undecided_and_more_units_are_not_promised():
    task = varied_task(n_clusters=40)
    units = [dataclasses.replace(unit, cluster=f"u{number}") for number, unit in enumerate(task.units[:40])]
    units[0], *references = (rare(unit) for unit in (units[0], *task.references[0]))
    changed = dataclasses.replace(task, units=tuple(units), references=((*task.references[0], *references),))
    found = heads(HandModel(), [changed]).summary()
    assert set(found["verdict"]) == {"undecided"}
    assert set(found["reason"]) == {"a template has a single cluster, so no interval is known"}
    assert found["n_to_decide"].isna().all()


def turned(task, clusters):
    """The task with the answers of some of its clusters the wrong way round."""
    units = [
        Unit(*(dataclasses.replace(e, right=e.wrong, wrong=e.right) for e in unit.examples), unit.cluster)
        if unit.cluster in clusters
        else unit
        for unit in task.units
    ]
    return dataclasses.replace(task, units=tuple(units))


AT_CHANCE = {f"c{number}" for number in range(22)}
"""26 of 48 clusters are right: the base is above 0, but not surely."""


def test_a_model_at_chance_is_undecided():
    found = heads(HandModel(), [turned(varied_task(), AT_CHANCE)], anyway=True)
    assert found.tasks["base_low"].item() < 0 < found.tasks["base"].item()
    assert set(verdicts(found).values()) == {"undecided"}
    assert found.summary()["reason"].str.contains("not shown to be above chance").all()
    assert found.summary()["n_to_decide"].isna().all()


def test_a_task_that_the_model_cannot_do_ends_before_any_sweep(monkeypatch):
    monkeypatch.setattr(ablation_looks, "ablate", None)
    said = (
        r"above chance on this task: logit difference [\d.]+ .-[\d.]+ to [\d.]+., 53% right, on 64 of 192 units; give"
    )
    with pytest.raises(InputError, match=said):
        heads(HandModel(), [turned(varied_task(), AT_CHANCE)])


def test_beside_a_task_that_the_model_cannot_do_the_others_go_on_unchanged(report):
    unable = dataclasses.replace(turned(varied_task(), AT_CHANCE), name="unable")
    with pytest.warns(RuntimeWarning, match="^unable is left out: the unablated model is not shown to be above chance"):
        beside = heads(HandModel(), [varied_task(), unable])
    assert verdicts(beside) == verdicts(report)
    assert beside.tasks["task"].tolist() == report.tasks["task"].tolist()
    assert list(beside.provenance["left_out"]) == ["unable"]


class TestAble:
    @pytest.fixture
    def ran(self, monkeypatch):
        """How many rows were run, each time."""
        times, run = [], behaviour.run_plainly

        def counted(model, given, metric):
            times.append(sum(len(each.rows) for each in given))
            return run(model, given, metric)

        monkeypatch.setattr(behaviour, "run_plainly", counted)
        return times

    def test_all_units_are_run_once_and_their_answers_given(self, ran):
        task = varied_task()
        answers = require_able(HandModel(), task)
        assert ran == [len(task.examples) // 3, 2 * len(task.examples) // 3]  # every third unit first
        assert answers["example"].tolist() == list(range(len(task.examples)))

    def test_what_the_first_units_would_never_show_costs_no_others(self, ran):
        task = turned(varied_task(), AT_CHANCE)
        with pytest.raises(InputError, match="on 64 of 192 units"):
            require_able(HandModel(), task)
        assert ran == [len(task.examples) // 3]
        require_able(HandModel(), task, anyway=True)
        assert ran[1:] == [len(task.examples)]

    def test_it_refuses_what_would_be_undecided(self):
        """Whatever part is turned: the rule is that of the verdicts, on the same units."""
        refused = []
        for number in (10, 14, 18, 20, 22, 24):
            task = turned(varied_task(), {f"c{each}" for each in range(number)})
            found = heads(HandModel(), [task], probes=False, max_group=0, anyway=True)
            try:
                require_able(HandModel(), task, seed=0)
            except InputError:
                refused.append(number)
            assert (number in refused) == (found.tasks["base_low"].item() <= 0)
        assert 0 < len(refused) < 6


def test_looking_away_is_not_significant():
    model = HandModel()
    with torch.no_grad():
        # Head 1 avoids the noun from the query.
        attention = model.blocks[0].attn
        attention.W_Q[1], attention.W_K[1] = -attention.W_Q[0], attention.W_K[0]
    found = heads(model, [varied_task()]).summary().set_index("head")
    assert found.loc[1, "excess_high"] < 0
    assert found.loc[1, "excess_p"] > 0.9
    assert found.loc[1, "verdict"] == "none"


def test_undecided_says_how_many_units_would_decide():
    task = varied_task()
    model = HandModel()
    with torch.no_grad():
        # Head 1 helps about as much as the minimum, in some units more than in others.
        attention = model.blocks[0].attn
        attention.W_O[1] = 0
        attention.W_O[1, 1, IS] = attention.W_O[1, 2, ARE] = 0.37
    found = heads(model, [task], min_effect=0.125).summary().set_index("head").loc[1]
    assert found["verdict"] == "undecided"
    assert -found["min_effect"] < found["effect"] < 0
    assert found["n_to_decide"] > found["n_units"]


def test_more_tasks_are_one_family(report):
    together = heads(HandModel(), [varied_task(name=name) for name in ("hand", "b", "c", "d")], first_look=0)
    assert list(together.tasks["task"]) == ["hand", "b", "c", "d"]
    assert len(together.summary()) == 8
    np.testing.assert_allclose(together.summary()["effect"].iloc[:2], report.summary()["effect"])


def test_every_head_is_ablated_by_resampling_and_by_a_mean(ours):
    task = ours.provenance["tasks"][0]
    assert (task["replacement"], task["mean_replacement"]) == ("resample", "positional_mean")
    assert set(ours.summary()["mean_replacement"]) == set(ours.tasks["mean_replacement"]) == {"positional_mean"}
    for name in ("audit", "audit_mean"):
        assert task[name]["tolerance"] > 0


def test_where_positions_differ_the_mean_is_the_template_s():
    """No reference has the layout of any unit."""
    task = varied_task()

    def moved(each):
        example = dataclasses.replace(each.example, layout=f"elsewhere, {each.example.layout}")
        return dataclasses.replace(each, example=example)

    references = tuple(
        dataclasses.replace(unit, item=moved(unit.item), counterfactual=moved(unit.counterfactual))
        for unit in task.references[0]
    )
    found = heads(HandModel(), [dataclasses.replace(task, references=(references,))])
    assert set(found.summary()["mean_replacement"]) == {"template_mean"}
    assert verdicts(found) == {(0, 0): "attends and causal", (0, 1): "none"}


def test_units_without_a_donor_are_left_out_and_counted():
    task = varied_task()
    lonely = [pair(prompts(0, 0), f"x{number}", template="rare") for number in range(3)]
    found = heads(HandModel(), [dataclasses.replace(task, units=(*task.units, *lonely))])
    assert found.tasks["n_units"].item() == len(task.units)
    assert found.tasks["dropped"].item() == "no reference example of its template and length: 3"


def test_fdr_is_the_alternative():
    found = heads(HandModel(), [varied_task()], correction="fdr", first_look=0)
    assert verdicts(found) == {(0, 0): "attends and causal", (0, 1): "none"}
    assert found.summary()["effect_p_adjusted"].iloc[0] == pytest.approx(2 * found.summary()["effect_p"].iloc[0])


def test_same_seed_same_report(report):
    again = heads(HandModel(), [varied_task()], first_look=0)
    pd.testing.assert_frame_equal(report.summary(), again.summary())
    pd.testing.assert_frame_equal(report.examples, again.examples)


@pytest.mark.parametrize(
    ("tasks", "options", "message"),
    [
        ([varied_task(), varied_task()], {}, "expected different tasks"),
        ([], {}, "expected different tasks"),
        (None, {}, "tasks: expected tasks, or names of some, got"),
        (5, {}, "tasks: expected tasks, or names of some, got"),
        ([task_of([pair(prompts(6, 6))], [pair(prompts(5, 7))])], {}, r"has \d+ tokens, but the model's context is 12"),
        (None, {"alpha": None}, "alpha: expected a number from 0 to 1, got"),
        (None, {"min_attention": "0.1"}, "min_attention: expected a number from 0 to 1, got"),
        (None, {"min_probe": float("nan")}, "min_probe: expected a number from 0 to 1, got"),
        (None, {"min_effect": 2.0}, "min_effect: expected a number from 0 to 1, got 2"),
        (None, {"seed": -1}, r"seed: expected a whole number from 0 to .*, got -1"),
        (None, {"first_look": 10}, "first_look: expected 30 clusters or more, since fewer decide nothing, or 0"),
        (None, {"max_clusters": 29}, "max_clusters: expected 30 clusters or more, since .*, or leave it out; got 29"),
        (None, {"max_group": 1}, "max_group: expected 2 heads or more, or 0 to leave that out, got 1"),
        ([varied_task()], {"siblings": HandModel()}, r"siblings: expected a list of models, got .*; give \[model\]"),
        ([varied_task()], {"siblings": None}, r"siblings: expected a list of models, got .*; give \[model\]"),
        ([varied_task()], {"siblings": ["default"]}, "siblings: expected models, got 'default'; load them"),
        ([varied_task()], {"choose_on": ["agreement"]}, "choose_on: expected a list of tasks of other items, got"),
        ([varied_task()], {"choose_on": varied_task()}, "choose_on: expected a list of tasks of other items, got"),
    ],
)
def test_bad_requests_are_refused(tasks, options, message):
    with pytest.raises(InputError, match=message):
        heads(HandModel(), tasks, **options)


def test_saved_report_holds_the_table(report, tmp_path):
    folder = report.save(tmp_path / "out", command="interp heads")
    saved = pd.read_csv(folder / "heads.csv", keep_default_na=False, na_values=[""])
    assert set(saved.columns) == set(COLUMNS)
    assert list(saved["verdict"]) == list(report.summary()["verdict"])
    assert len(pd.read_parquet(folder / "examples.parquet")) == len(report.examples)
    assert (folder / "report.html").stat().st_size > 1000
