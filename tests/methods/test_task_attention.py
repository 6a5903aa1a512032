import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from hand_model import (
    ARE,
    BOS,
    BY,
    IS,
    KEY,
    KEYS,
    NEAR,
    THERE,
    HandModel,
    encode,
    hand_task,
    pair,
    prompts,
    relabelled,
    task_of,
    varied_task,
)

import interp
from interp.interventions.reference_set import make_means, mean_of_positions, reference_rows
from interp.methods import task_attention as module
from interp.methods.attention_baselines import Baseline, Keys, candidates, toughest
from interp.methods.attention_maps import query_attention
from interp.methods.task_attention import ReferenceAttention, task_attention
from interp.model.config import TransformerConfig
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.tasks.task import Unit


def test_attention_to_the_related_word_by_hand():
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [pair([BOS, KEY, BY, BY, THERE])])
    frame = task_attention(HandModel(), task).examples
    # In the reference, position 1 is offset -3, and of equal baselines the first kind is taken; here offset -3 is BOS.
    head = frame[frame["head"] == 0]
    assert (head["baseline"] == "offset -3").all()
    np.testing.assert_allclose(head["attention_baseline"], 0)
    np.testing.assert_allclose(head["attention"], 0.75, rtol=1e-6)
    np.testing.assert_allclose(frame[frame["head"] == 1]["attention"], 0.25, rtol=1e-6)


def test_no_position_explains_a_head_that_follows_the_relation():
    result = task_attention(HandModel(), varied_task())
    summary = result.summary().set_index("head")
    assert summary.loc[0, "attention"] > 0.5
    assert summary.loc[0, "low"] > 0.1
    assert summary.loc[0, "p"] < 0.001
    assert summary.loc[1, "high"] < 0.1
    assert summary.loc[1, "p"] > 0.05
    np.testing.assert_allclose(summary["excess"], summary["attention"] - summary["attention_baseline"])


def test_a_head_with_a_fixed_offset_has_no_excess():
    units = [pair(prompts(number % 5, 2), f"c{number}") for number in range(30)]
    summary = task_attention(HandModel(), task_of(units, units[:5])).summary().set_index("head")
    assert summary.loc[0, "baseline"] == "offset -3"
    assert summary.loc[0, "excess"] == pytest.approx(0)
    assert summary.loc[0, "p"] == 1.0


def test_the_baseline_is_chosen_on_the_reference_set_alone():
    units = [pair(prompts(number % 5, 2), f"c{number}") for number in range(30)]
    references = [pair(prompts(2, number)) for number in range(5)]
    summary = task_attention(HandModel(), task_of(units, references)).summary().set_index("head")
    assert summary.loc[0, "baseline"] == "position 3"


MODEL = interp.load_model()


def test_references_that_were_seen_in_another_run_give_the_same_and_are_not_run_again(monkeypatch):
    """Some of them are not testable: their related word is the first token."""
    task, ran = interp.load_task("agreement", tokenizer=MODEL.tokenizer, n=40), []
    seen = ReferenceAttention(MODEL, task, reference_rows(task))
    name, sites = mean_of_positions(task), [Site("z", 1)]
    means = make_means([name], MODEL, task, sites=sites, readers=seen.readers)[name]
    expected = task_attention(MODEL, task)
    monkeypatch.setattr(
        module, "query_attention", lambda model, examples: ran.append(examples) or query_attention(model, examples)
    )
    found = task_attention(MODEL, task, references_seen=seen)
    assert [len(each) for each in ran] == [found.examples["example"].nunique()]
    pd.testing.assert_frame_equal(found.examples, expected.examples, atol=1e-6)
    alone = make_means([name], MODEL, task, sites=sites)[name]
    for key, mean in alone.means.items():
        torch.testing.assert_close(means.means[key], mean)


def test_references_that_are_scored_on_other_rows_are_run_for_attention():
    task = task_of(
        [pair([BOS, KEY, NEAR, THERE])], [pair([BOS, KEY, BY, BY, THERE])], metric="sentence_log_probability"
    )
    seen = ReferenceAttention(HandModel(), task, reference_rows(task))
    assert seen.readers == {}
    assert seen.of(0) is None


def test_bos_is_never_a_baseline():
    task = varied_task()
    references = [encoded for unit in task.references[0] for encoded in unit.examples]
    n_keys = max(len(each.prompt) for each in references)
    sink = np.zeros((len(references), 1, n_keys))
    sink[:, 0, 0] = 0.9
    sink[:, 0, 2] = 0.1
    assert toughest(sink, references, frozenset())[0] == Baseline("position", 2)
    for rule in candidates(references):
        assert Keys.of(references, n_keys, frozenset()).mask(rule)[:, 0].sum() == 0


def test_special_tokens_are_never_a_baseline():
    encoded = encode([BOS, BY, KEY, THERE])
    assert Keys.of([encoded], 4, frozenset()).mask(Baseline("position", 1))[0].tolist() == [0, 1, 0, 0]
    assert Keys.of([encoded], 4, frozenset({BY})).mask(Baseline("position", 1)).sum() == 0


def test_distractors_are_a_baseline():
    def tempted(prompt):
        unit = pair(prompt)
        there = prompt.index(NEAR)
        return Unit(
            *(dataclasses.replace(each, distractors={"stranger": (there,)}) for each in unit.examples), unit.cluster
        )

    shapes = [(before, after) for before in range(3) for after in range(1, 4)]
    references = [tempted(prompts(*shape)) for shape in shapes]
    model = HandModel()
    with torch.no_grad():
        model.blocks[0].attn.W_K[0] = 0
        model.blocks[0].attn.W_K[0, NEAR, 0] = 4.0
    references = [unit for unit in references if unit.item.prompt.count(NEAR) == 1] + references[:1]
    summary = task_attention(model, task_of(references, references)).summary().set_index("head")
    assert summary.loc[0, "baseline"] == "offset -1"
    moved = [
        tempted([BOS, *[BY] * before, KEY, *[BY] * between, NEAR, *[BY] * after, THERE])
        for before in range(3)
        for between in range(3)
        for after in range(3)
    ]
    summary = task_attention(model, task_of(moved, moved)).summary().set_index("head")
    assert summary.loc[0, "baseline"] == "stranger"
    assert summary.loc[0, "excess"] < -0.5


def test_examples_without_a_distractor_say_nothing_about_one():
    """A head that shares its attention among all nouns does not track the related one."""
    shapes = [(before, after) for before in range(3) for after in range(3)]

    def with_stranger(before, after):
        last = [BY] * ((before + after) % 3)
        unit = pair([BOS, *[BY] * before, KEY, *[BY] * after, NEAR, *last, THERE])
        there = {"stranger": (unit.item.prompt.index(NEAR),)}
        return Unit(*(dataclasses.replace(each, distractors=there) for each in unit.examples), f"c{before}{after}")

    def alone(before, after):
        return pair([BOS, *[BY] * before, KEY, *[BY] * (1 + after), THERE], f"c{before}{after}")

    units = [make(*shape) for shape in shapes for make in (with_stranger, alone)]
    model = HandModel()
    with torch.no_grad():
        model.blocks[0].attn.W_K[0, [KEY, KEYS, NEAR], 0] = 6.0
    result = task_attention(model, task_of(units, units))
    head = result.examples[result.examples["head"] == 0]
    assert set(head["baseline"]) == {"stranger"}
    assert head["excess"].isna().sum() == head["attention_baseline"].isna().sum() == len(head) / 2
    assert head["attention"].notna().all()
    summary = result.summary().set_index("head")
    assert summary.loc[0, "excess"] == pytest.approx(0, abs=1e-6)
    assert summary.loc[0, "attention"] == pytest.approx(summary.loc[0, "attention_baseline"], abs=1e-6)
    assert summary.loc[0, "attention"] < head["attention"].mean() - 0.1  # which is over the others, too
    assert summary.loc[0, "n"] == len(shapes)


def test_a_baseline_is_as_wide_as_the_related_word():
    wide = dataclasses.replace(encode([BOS, BY, KEY, NEAR, NEAR, THERE]), related=(2, 3, 4))
    keys = Keys.of([wide], 6, frozenset())
    assert keys.mask(Baseline("offset", -3))[0].tolist() == [0, 0, 1, 1, 1, 0]
    assert keys.mask(Baseline("position", 1))[0].tolist() == [0, 1, 1, 1, 0, 0]
    assert keys.mask(Baseline("offset", -1))[0].tolist() == [0, 0, 0, 0, 1, 0]  # the query itself is no candidate
    units = [Unit(wide, None, f"c{number}") for number in range(30)]
    summary = task_attention(HandModel(), task_of(units, units)).summary().set_index("head")
    assert summary.loc[1, "attention"] == pytest.approx(3 / 6)  # head 1 attends evenly
    assert summary.loc[1, "excess"] == pytest.approx(0, abs=1e-6)


def test_each_value_of_the_feature_is_scored_by_itself():
    """A head that looks for the singular noun only, and rests on the query itself where there is none."""
    model = HandModel()
    with torch.no_grad():
        model.blocks[0].attn.W_K[0, KEYS, 0] = 0
        model.blocks[0].attn.W_K[0, THERE, 0] = 4
        model.blocks[0].attn.W_K[0, KEY, 0] = 9
    task = dataclasses.replace(hand_task(), feature="number")
    result = task_attention(model, task)
    head = result.summary().query("head == 0").set_index("feature_value")
    assert head.index.tolist() == ["plural", "singular"]
    assert head.loc["singular", "excess"] > 0.6
    assert head.loc["singular", "p"] < 0.001
    assert head.loc["plural", "excess"] < 0.1
    assert head.loc["plural", "attention_self"] > 0.8
    assert result.strongest()["feature_value"].iloc[0] == "singular"
    example = result.examples.query("head == 0 and feature_value == 'plural'").iloc[0]
    tokens = task.examples[example["example"]].prompt
    assert example["attention_self"] == pytest.approx(np.exp(4) / (np.exp(4) + len(tokens) - 1), rel=1e-5)
    assert example["attention_first"] == pytest.approx(1 / (np.exp(4) + len(tokens) - 1), rel=1e-5)


@pytest.mark.parametrize(
    ("clusters_of", "expected"),
    [
        ({"often": 30, "rare": 15, "rarer": 15}, {"often": 30, "other": 30}),
        ({"often": 29, "rare": 14, "rarer": 15}, {"": 58}),
        ({"often": 40, "seldom": 30, "rare": 12}, {"often": 40, "other": 42}),  # 12 alone could never be judged
        ({"often": 40, "rare": 12}, {"": 52}),
    ],
)
def test_rare_values_are_taken_together_until_they_can_be_judged(clusters_of, expected):
    task, cases = varied_task(), [case for case, n in clusters_of.items() for _ in range(n)]
    units = []
    for place, (unit, case) in enumerate(zip(task.units, cases, strict=False)):
        own = dataclasses.replace(task, units=(dataclasses.replace(unit, cluster=f"c{place}"),))
        units += relabelled(own, lambda _, case=case: {"case": case}).units
    assert len(units) == len(cases)
    result = task_attention(HandModel(), dataclasses.replace(task, units=tuple(units), feature="case"))
    assert result.examples.groupby("feature_value")["cluster"].nunique().to_dict() == expected


def test_a_related_word_at_the_first_token_is_not_testable():
    first = dataclasses.replace(encode([KEY, BY, THERE]), related=(0,))
    result = task_attention(HandModel(), task_of([Unit(first, None, "c")], [pair([BOS, KEY, BY, THERE])]))
    assert not result.testable
    assert result.provenance["n_excluded"] == 1


def test_half_a_unit_is_not_scored():
    task = varied_task()
    item, own = encode([BOS, KEY, BY, THERE]), encode([BOS, BY, BY, KEY], right=ARE, wrong=IS)
    result = task_attention(HandModel(), dataclasses.replace(task, units=(*task.units, Unit(item, own, "half"))))
    assert result.provenance["n_excluded"] == 2
    assert "half" not in set(result.examples["cluster"])


def test_examples_whose_query_is_the_related_word_are_left_out_and_counted():
    own = encode([BOS, BY, KEY])
    task = varied_task()
    task = dataclasses.replace(task, units=(*task.units, Unit(own, None, "own")))
    result = task_attention(HandModel(), task)
    assert result.provenance["n_excluded"] == 1
    assert result.provenance["n_untagged"] == 0
    assert set(result.summary()["n_excluded"]) == {1}
    assert "own" not in set(result.examples["cluster"])


def test_nothing_left_is_not_testable():
    task = task_of([Unit(encode([BOS, BY, KEY]), None, "c")], [Unit(encode([BOS, BY, KEY]), None, "r")])
    result = task_attention(HandModel(), task)
    assert not result.testable
    summary = result.summary()
    assert summary[["layer", "head"]].to_numpy().tolist() == [[0, 0], [0, 1]]
    assert summary[["attention", "attention_baseline", "excess", "low", "high", "p"]].isna().all(axis=None)
    assert set(summary["n"]) == {0}


def test_untagged_examples_are_counted():
    tagged = varied_task()
    task = dataclasses.replace(tagged, units=(*tagged.units, pair(prompts(1, 1), "x", tagged=False)))
    result = task_attention(HandModel(), task)
    assert result.provenance["n_untagged"] == 2
    assert result.provenance["n_excluded"] == 0
    assert len(result.examples) == 2 * len(tagged.examples)


def test_units_without_references_are_not_scored():
    task = dataclasses.replace(varied_task(), references=())
    result = task_attention(HandModel(), task)
    assert not result.testable
    assert result.provenance["n_without_reference"] == len(task.examples)
    assert result.provenance["n_excluded"] == 0


def test_each_fold_is_scored_with_its_own_baseline():
    at_three = [pair(prompts(2, number % 5), f"a{number}") for number in range(5)]
    back_three = [pair(prompts(number % 5, 2), f"b{number}") for number in range(5)]
    units = [*at_three, *(dataclasses.replace(unit, fold=1) for unit in back_three)]
    task = dataclasses.replace(task_of(units, []), references=(tuple(at_three), tuple(back_three)))
    frame = task_attention(HandModel(), task).examples
    head = frame[frame["head"] == 0]
    assert set(head[head["cluster"].str.startswith("a")]["baseline"]) == {"position 3"}
    assert set(head[head["cluster"].str.startswith("b")]["baseline"]) == {"offset -3"}
    np.testing.assert_allclose(head["excess"], 0, atol=1e-7)


def test_query_in_the_continuation_and_words_of_several_tokens():
    config = TransformerConfig(n_layers=2, n_heads=3, d_model=12, d_head=4, d_mlp=8, d_vocab=8, n_ctx=12, init_std=0.5)
    model = HookedTransformer(config)
    later = dataclasses.replace(encode([BOS, BY, KEY, NEAR]), right=(THERE, BY), query=5, related=(1, 2))
    weights = query_attention(model, [later, encode([BOS, KEY, THERE])])
    _, cache = model.run_with_cache(torch.tensor([[BOS, BY, KEY, NEAR, THERE, BY]]))
    for layer in range(2):
        for head in range(3):
            expected = cache[f"blocks.{layer}.attn.hook_pattern"][0, head, 5]
            np.testing.assert_allclose(weights[0, layer * 3 + head], expected, atol=1e-6)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert (weights[1, :, 3:] == 0).all()
    frame = task_attention(model, task_of([Unit(later, None, "c")], [Unit(later, None, "r")])).examples
    np.testing.assert_allclose(frame["attention"], weights[0, :, 1:3].sum(axis=-1), atol=1e-6)


def test_a_position_is_held_against_the_examples_that_a_distractor_is_in(monkeypatch):
    """A head that looks at position 4, and a little at 6, follows no relation, though some nouns are at 4.

    The other examples are so short that it looks at BOS: there, position 4 has nothing, and there is no distractor.
    """

    def long(number):
        unit = pair([BOS, BY, BY, BY, KEY, *[NEAR] * (2 + number % 3), THERE], f"c{number}", template="long")
        there = {"stranger": (6,)}
        return Unit(*(dataclasses.replace(each, distractors=there) for each in unit.examples), unit.cluster)

    def short(number):
        return pair([BOS, *[BY] * (number % 2), KEY, THERE], f"c{number}", template="short")

    def positional(_model, examples):
        weights = np.zeros((len(examples), 2, 1 + max(each.query for each in examples)))
        for row, each in enumerate(examples):
            for position, share in ((4, 0.5), (6, 0.3)):
                weights[row, :, position if position <= each.query else 0] += share
        return weights

    units = [long(number) if number % 5 < 2 else short(number) for number in range(50)]
    monkeypatch.setattr("interp.methods.task_attention.query_attention", positional)
    summary = task_attention(HandModel(), task_of(units, units)).summary()
    assert set(summary["baseline"]) == {"position 4"}
    assert (summary["excess"] == 0).all()


def test_the_baseline_is_chosen_as_the_excess_is_averaged():
    """Over templates: here position 2 explains four fifths of the examples, and half of the templates."""
    many = [encode([BOS, KEY, BY, NEAR, THERE], template="many") for _ in range(8)]
    few = [encode([BOS, KEY, BY, NEAR, THERE], template="few") for _ in range(2)]
    weights = np.zeros((10, 1, 5))
    weights[:8, 0, [2, 3]] = 0.3, 0.2
    weights[8:, 0, [2, 3]] = 0.0, 0.4
    assert toughest(weights, many + few, frozenset()) == [Baseline("offset", -1)]
    assert toughest(weights[[*range(8)]], many, frozenset()) == [Baseline("offset", -2)]


def test_the_templates_in_which_a_head_attends_are_counted():
    """Here the distractor draws the head in one template; the mean over both is beyond the minimum all the same."""
    varied = varied_task().units
    drawn = [[BOS, *[BY] * before, KEY, NEAR, *[BY] * after, THERE] for before in range(3) for after in range(3)]
    tempted = []
    for number, prompt in enumerate(drawn * 3):
        unit = pair(prompt, f"d{number}", template="tempted")
        there = {"stranger": (prompt.index(NEAR),)}
        tempted.append(Unit(*(dataclasses.replace(e, distractors=there) for e in unit.examples), unit.cluster))
    model = HandModel()
    with torch.no_grad():
        model.blocks[0].attn.W_K[0, NEAR, 0] = model.blocks[0].attn.W_K[0, KEY, 0]
    result = task_attention(model, task_of([*tempted, *varied], [*tempted, *varied]))
    counts = result.templates(0.1).set_index("head")
    by_template = result.examples.query("head == 0").groupby("template")["excess"].mean()
    assert counts.loc[0, "n_templates"] == by_template.notna().sum()
    assert counts.loc[0, "n_templates_attended"] == (by_template >= 0.1).sum()
    assert counts.loc[0, "n_templates_attended"] < 2
    assert task_attention(HandModel(), task_of([*tempted, *varied], varied)).templates(0.1)["n_templates"].tolist() == [
        2,
        2,
    ]
