import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from hand_model import ARE, IS, HandModel, pair, prompts, task_of, varied_task

from interp.errors import InputError
from interp.methods.conclusions import no_drop
from interp.methods.dossier import COLUMNS, heads
from interp.methods.evidence import NOT_MEASURED, gather
from interp.methods.judging import states
from interp.methods.judging import verdicts as judged
from interp.report.frames import check_frames
from interp.tasks.task import Unit


def verdicts(report, task="hand"):
    frame = report.frame[report.frame["task"] == task]
    return {(row.layer, row.head): row.verdict for row in frame.itertuples()}


@pytest.fixture(scope="module")
def report():
    return heads(HandModel(), [varied_task()])


def test_the_copying_head_is_found_and_the_idle_one_is_not(report):
    assert verdicts(report) == {(0, 0): "attends and causal", (0, 1): "none"}


def test_columns_are_those_of_the_table(report):
    assert list(report.frame.columns) == list(COLUMNS)
    assert COLUMNS[:4] == ("layer", "head", "task", "query")
    assert COLUMNS[4:7] == ("attention", "attention_baseline", "attention_q")
    assert COLUMNS[7:11] == ("effect", "effect_low", "effect_high", "effect_q")
    assert COLUMNS[11:13] == ("accuracy_base", "accuracy_ablated")
    assert COLUMNS[13:19] == ("probe", "probe_control", "selectivity", "probe_q", "erasure_effect", "verdict")
    check_frames(report)


def test_numbers_agree_with_the_examples(report):
    row = report.frame.iloc[0]
    examples = report.examples.query("layer == 0 and head == 0")
    assert len(examples) == 192
    assert row["effect"] == pytest.approx(examples["effect"].mean())
    assert row["attention"] == pytest.approx(examples["attention"].mean())
    assert row["excess"] == pytest.approx((examples["attention"] - examples["attention_baseline"]).mean())
    assert row["accuracy_base"] == pytest.approx(examples["base_correct"].mean())
    assert row["accuracy_ablated"] == pytest.approx(examples["value_correct"].mean())
    assert row["minimum_effect"] == pytest.approx(0.1 * examples["base"].mean())


def test_tasks_describe_the_base_run(report):
    (task,) = report.tasks.to_dict("records")
    assert (task["n_units"], task["n_examples"], task["n_clusters"]) == (96, 192, 24)
    assert task["base_low"] < task["base"] < task["base_high"]
    assert task["base"] == pytest.approx(report.examples["base"].mean())


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
    assert found.frame[["attention", "attention_baseline", "attention_q", "joint_q"]].isna().all(axis=None)
    assert found.frame["reason"].iloc[0] == "attention is not testable"
    assert found.attention_maps.empty


def test_few_clusters_are_undecided():
    found = heads(HandModel(), [varied_task(n_clusters=19)])
    assert set(verdicts(found).values()) == {"undecided"}
    assert set(found.frame["reason"]) == {"19 clusters; at least 20 are needed"}
    assert (found.frame["n_to_decide"] >= 80).all()


def test_a_small_task_beside_another_changes_no_verdict():
    alone = heads(HandModel(), [varied_task()])
    beside = heads(HandModel(), [varied_task(), varied_task(n_clusters=4, name="small")])
    assert verdicts(beside) == verdicts(alone)
    assert set(verdicts(beside, "small").values()) == {"undecided"}
    for column in ("effect_q", "attention_q", "joint_q"):
        np.testing.assert_array_equal(beside.frame[column][:2], alone.frame[column])
        assert beside.frame[column][2:].isna().all()


def test_a_template_of_one_cluster_is_undecided_and_more_units_are_not_promised():
    task = varied_task(n_clusters=40)
    units = [dataclasses.replace(unit, cluster=f"u{number}") for number, unit in enumerate(task.units[:40])]
    rare = (
        dataclasses.replace(each, example=dataclasses.replace(each.example, template="rare"))
        for each in units[0].examples
    )
    units[0] = Unit(*rare, units[0].cluster)
    found = heads(HandModel(), [dataclasses.replace(task, units=tuple(units))]).frame
    assert set(found["verdict"]) == {"undecided"}
    assert set(found["reason"]) == {"a template has a single cluster, so no interval is known"}
    assert found["n_to_decide"].isna().all()


def test_the_minimum_is_an_estimate_too():
    """An effect of .9 minima, the same in every unit, is below the minimum only as surely as the base is known."""
    found = gather(HandModel(), varied_task(), kind="mean", draws=1, seed=0)
    rng = np.random.default_rng(0)
    spread = pd.Series(rng.normal(size=24), index=[f"c{number}" for number in range(24)])

    def absent(effect, size):
        frame = found.ablation.frame
        base = 1 + size * (frame["cluster"].map(spread - spread.mean()))
        changed = dataclasses.replace(found.ablation, frame=frame.assign(effect=effect, base=base))
        return dataclasses.replace(found, ablation=changed).heads(0.1, 0.1)["effect_absent"].tolist()

    def spared(effect, size):
        frame = found.ablation.frame
        base = 1 + size * (frame["cluster"].map(spread - spread.mean()))
        return no_drop(frame.assign(effect=effect, base=base), "effect", ["layer", "head"], share=0.1, seed=0).tolist()

    assert spared(-0.09, 0.05) == spared(2.0, 0.05) == [True, True]
    assert spared(-0.09, 0.5) == spared(-0.11, 0.05) == [False, False]
    for effect in (-0.09, 0.09):
        assert absent(effect, 0.05) == [True, True]
        assert absent(effect, 0.5) == [False, False]
    for effect in (-0.11, 0.11):
        assert absent(effect, 0.05) == [False, False]


def row_of(**changes):
    """A row that is undecided, of 100 units in 50 clusters."""
    attention = {"excess": 0.3, "excess_low": 0.2, "excess_high": 0.4, "excess_se": 0.05, "attention_q": 0.01}
    effect = {"effect": -1.0, "effect_low": -2.0, "effect_high": 0.0, "effect_se": 0.5, "effect_q": 0.1}
    counts = {"n_units": 100, "n_clusters": 50, "n_attention_units": 100, "n_attention_clusters": 50}
    rest = {"effect_absent": False, "minimum_attention": 0.1, "minimum_effect": 0.9, "joint_q": 0.1}
    probe = dict.fromkeys(COLUMNS[COLUMNS.index("feature") : COLUMNS.index("representation")], np.nan)
    probe |= dict.fromkeys(("erasure_p", "minimum_probe", "n_probe_clusters", "tracks_q"), np.nan)
    probe |= {"probe": np.nan, "probe_q": np.nan, "erasure_effect": np.nan}
    probe |= {"probe_absent": False, "erasure_absent": False, "erasure_se": np.nan}
    related = dict.fromkeys(("related_effect", "related_se", "related_p", "related_minimum"), np.nan) | NOT_MEASURED
    return {**probe, **attention, **effect, **related, **counts, **rest, "above_chance": True, **changes}


def units_to_decide(row):
    frame = pd.DataFrame([{**row, "specificity": "specific", "partners": "", "caveat": "", "doubtful": ""}])
    sides = {"effect": 0.05, "attention": 0.1, "probe": 0.1}
    return judged(frame.join(states(frame, 0.05)), 0.05, sides)["n_to_decide"].item()


def test_the_units_that_would_decide_are_more_than_there_are():
    assert units_to_decide(row_of()) > 100
    for enough in ({"effect_se": 0.01}, {"effect_se": np.nan}):
        assert np.isnan(units_to_decide(row_of(**enough)))
    assert units_to_decide(row_of(n_clusters=10)) >= 200


def test_what_one_kind_would_need_does_not_decide_what_another_does_not_tell():
    """Attention asks for some units; of the effect, nobody knows what more of them would show."""
    attention = {"attention_q": 0.2, "excess": 0.09}
    alone = {**attention, "effect": -0.05, "effect_absent": True}
    assert units_to_decide(row_of(**alone)) > 100
    assert np.isnan(units_to_decide(row_of(**attention, effect_se=0.01)))


def test_units_without_attention_are_needed_in_proportion():
    undecided = {"attention_q": 0.2, "excess": 0.09, "effect_low": -0.1, "effect_absent": True, "effect": -0.05}
    whole = units_to_decide(row_of(**undecided))
    half = units_to_decide(row_of(**undecided, n_attention_units=50))
    assert whole > 100
    assert half == pytest.approx(whole, rel=0.02)  # the same spread of half the units: half as many would do


def test_a_model_at_chance_is_undecided():
    task = varied_task()
    wrong_way = {f"c{number}" for number in range(10)}
    units = [
        Unit(*(dataclasses.replace(e, right=e.wrong, wrong=e.right) for e in unit.examples), unit.cluster)
        if unit.cluster in wrong_way
        else unit
        for unit in task.units
    ]
    found = heads(HandModel(), [dataclasses.replace(task, units=tuple(units))])
    # 14 of 24 clusters right: above 0, but not surely.
    assert found.tasks["base_low"].item() < 0 < found.tasks["base"].item()
    assert set(verdicts(found).values()) == {"undecided"}
    assert found.frame["reason"].str.contains("not above chance").all()
    assert found.frame["n_to_decide"].isna().all()


def test_looking_away_is_not_significant():
    model = HandModel()
    with torch.no_grad():
        # Head 1 avoids the noun from the query.
        model.blocks[0].attn.W_Q[1], model.blocks[0].attn.W_K[1] = (
            -model.blocks[0].attn.W_Q[0],
            model.blocks[0].attn.W_K[0],
        )
    found = heads(model, [varied_task()]).frame.set_index("head")
    assert found.loc[1, "excess_high"] < 0
    assert found.loc[1, "attention_p"] > 0.9
    assert found.loc[1, "verdict"] == "none"


def test_undecided_says_how_many_units_would_decide():
    task = varied_task()
    model = HandModel()
    with torch.no_grad():
        # Head 1 helps about as much as the minimum, in some units more than in others.
        attention = model.blocks[0].attn
        attention.W_O[1] = 0
        attention.W_O[1, 1, IS] = attention.W_O[1, 2, ARE] = 0.5
    found = heads(model, [task], minimum_effect=0.125).frame.set_index("head").loc[1]
    assert found["verdict"] == "undecided"
    assert -found["minimum_effect"] < found["effect"] < 0
    assert found["n_to_decide"] > found["n_units"]


def test_more_tasks_are_one_family():
    alone = heads(HandModel(), [varied_task()])
    tasks = [varied_task(name=name) for name in ("hand", "b", "c", "d")]
    together = heads(HandModel(), tasks)
    assert list(together.tasks["task"]) == ["hand", "b", "c", "d"]
    assert len(together.frame) == 8
    assert together.frame["joint_q"].iloc[0] > alone.frame["joint_q"].iloc[0]
    np.testing.assert_allclose(together.frame["effect"].iloc[:2], alone.frame["effect"])


@pytest.mark.parametrize("ablation", ["zero", "positional_mean", "resample"])
def test_other_replacements_agree_on_the_verdict(ablation):
    found = heads(HandModel(), [varied_task()], ablation=ablation)
    assert verdicts(found) == {(0, 0): "attends and causal", (0, 1): "none"}
    assert found.provenance["tasks"][0]["replacement"] == ablation


def test_fdr_is_the_alternative():
    found = heads(HandModel(), [varied_task()], correction="fdr")
    assert verdicts(found) == {(0, 0): "attends and causal", (0, 1): "none"}
    assert found.frame["effect_q"].iloc[0] == pytest.approx(2 * found.frame["effect_p"].iloc[0])


def test_same_seed_same_report(report):
    again = heads(HandModel(), [varied_task()])
    pd.testing.assert_frame_equal(report.frame, again.frame)
    pd.testing.assert_frame_equal(report.examples, again.examples)


def test_progress_runs_to_the_end_without_steps_back():
    seen = []
    heads(HandModel(), [varied_task(), varied_task(name="b")], progress=lambda *step: seen.append(step))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    assert len({total for _, total in seen}) == 1


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="expected different tasks"):
        heads(HandModel(), [varied_task(), varied_task()])
    with pytest.raises(InputError, match="expected different tasks"):
        heads(HandModel(), [])
    with pytest.raises(InputError, match=r"minimum_effect: expected a share between 0 and 1, got 2"):
        heads(HandModel(), [varied_task()], minimum_effect=2.0)
    with pytest.raises(InputError, match=r"has \d+ tokens, but the model's context is 12"):
        heads(HandModel(), [task_of([pair(prompts(6, 6))], [pair(prompts(0, 1))])])


def test_saved_report_holds_the_table(report, tmp_path):
    folder = report.save(tmp_path / "out", command="interp heads")
    saved = pd.read_csv(folder / "heads.csv", keep_default_na=False, na_values=[""])
    assert list(saved.columns) == list(COLUMNS)
    assert list(saved["verdict"]) == list(report.frame["verdict"])
    assert len(pd.read_parquet(folder / "examples.parquet")) == len(report.examples)
    assert (folder / "report.html").stat().st_size > 1000
