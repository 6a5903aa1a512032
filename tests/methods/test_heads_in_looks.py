"""The dossier in looks: the same verdicts for less, the numbers are those of the units measured, and it goes on."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from noun_model import ARE, BY, IS, noun_model, noun_task

from interp.interventions.rows import example_labels
from interp.methods import ablation_looks, judging
from interp.methods.ablation import check_heads
from interp.methods.ablation_looks import begin, joined
from interp.methods.dossier import heads
from interp.options import HeadsOptions
from interp.report.heads_sentences import summarise
from interp.report.page_texts import explained_terms

pytestmark = [
    pytest.mark.unchecked,
    pytest.mark.filterwarnings("ignore:.*the intervention changed nothing on any example"),
]


def task(name="nouns"):
    """Of 192 units in 96 clusters: looks at 30, 60 and all of them."""
    whole = noun_task(name=name)
    units = tuple(replace(each, cluster=f"{each.cluster} {n % 2}") for n, each in enumerate(whole.units))
    return replace(whole, units=units)


@pytest.fixture(scope="module")
def at_once():
    return heads(noun_model(), [task()], probes=False, first_look=0)


@pytest.fixture(scope="module")
def in_looks():
    return heads(noun_model(), [task()], probes=False)


def test_verdicts_are_the_same_for_a_part_of_the_work(at_once, in_looks):
    columns = ["layer", "head", "verdict", "reason", "effect_state", "attention_state"]
    pd.testing.assert_frame_equal(in_looks.summary()[columns], at_once.summary()[columns])
    measured = [each.examples["effect"].notna().sum() for each in (in_looks, at_once)]
    assert measured[0] <= measured[1] / 3


def test_numbers_are_those_of_the_units_measured_and_what_is_predicted_of_the_others(in_looks):
    for row in in_looks.summary().to_dict("records"):
        own = in_looks.examples.query(f"layer == {row['layer']} and head == {row['head']}")
        effects = own[own["effect"].notna()]
        assert row["n_units"] == effects["unit"].nunique() < own["unit"].nunique()
        assert row["n_clusters"] == effects["cluster"].nunique()
        assert row["min_effect"] == pytest.approx(0.1 * own["base"].mean())
        assert row["attention"] == pytest.approx(own["attention"].mean())  # which every unit has
        for kind in ("effect", "mean_effect"):
            measured, predicted = effects[kind].mean(), effects[f"{kind}_predicted"].mean()
            apart = own[f"{kind}_predicted"].mean() - predicted
            share = 0.0 if abs(apart) < 1e-9 else (row[kind] - measured) / apart
            assert -1e-6 <= share <= 1 + 1e-6
            assert row[kind] == pytest.approx(measured + share * apart)


def test_every_example_has_the_labels_that_the_whole_task_gives_it():
    begun = begin(noun_model(), task(), HeadsOptions())
    stay = dict.fromkeys(ablation_looks.KINDS, check_heads(noun_model(), None))
    parts = [ablation_looks.ablated(noun_model(), begun, look, 3, stay, HeadsOptions())["effect"] for look in range(3)]
    names = ["unit", "cluster", "template", "layout"]
    found = joined(parts).examples.drop_duplicates("example").sort_values("example", ignore_index=True)
    whole = pd.DataFrame(example_labels(begun.task))
    assert whole["layout"].nunique() > 1
    pd.testing.assert_frame_equal(found[names], whole[names])


def test_units_keep_the_numbers_of_the_task(at_once, in_looks):
    """What does not depend on the draw of resamples is the same, example by example."""
    labels = ["layer", "head", "example"]
    one, other = (each.examples.set_index(labels).sort_index() for each in (in_looks, at_once))
    one = one[one["mean_effect"].notna()]
    other = other.loc[one.index]
    for name in ("mean_effect", "base"):
        np.testing.assert_allclose(one[name], other[name], atol=1e-5)
    assert one["cluster"].tolist() == other["cluster"].tolist()


def test_the_task_is_described_by_all_of_its_units(at_once, in_looks):
    pd.testing.assert_frame_equal(in_looks.tasks, at_once.tasks)


def test_looks_add_up_to_all_units_each_once():
    begun = begin(noun_model(), task(), HeadsOptions())
    parts = [begun.units(look, 4) for look in range(4)]
    assert [len(each) > 0 for each in parts] == [True, True, True, False]
    assert sorted(np.concatenate(parts)) == list(range(len(begun.task.units)))


def test_heads_are_ablated_on_at_most_so_many_clusters_and_looked_at_on_all(monkeypatch):
    """Alone and together: attention has all units."""
    together = []
    measure = judging.ablated_together
    monkeypatch.setattr(judging, "ablated_together", lambda *a, **k: together.append(measure(*a, **k)) or together[-1])
    found = heads(noun_model(), [task()], probes=False, first_look=0, max_clusters=40)
    ablated = found.examples[found.examples["effect"].notna()]
    assert ablated["cluster"].nunique() == 40
    assert (found.summary()["n_attention_clusters"] == 96).all()
    assert {each["cluster"].nunique() for each in together if len(each)} <= {40}
    assert found.provenance["max_clusters"] == 40


def test_killed_in_a_look_it_goes_on_to_the_same_table(tmp_path, monkeypatch):
    """Whichever sweep it dies in: what is complete is found again."""
    tasks, how = [task(), task("b")], {"probes": False, "max_group": 0}
    whole = heads(noun_model(), tasks, **how)
    measure, alive = ablation_looks.ablate, [1]

    def dying(*given, **asked):
        if not alive[0]:
            raise KeyboardInterrupt
        alive[0] -= 1
        return measure(*given, **asked)

    monkeypatch.setattr(ablation_looks, "ablate", dying)
    for _ in range(3):  # two sweeps of a look are never enough
        alive[0] = 2
        with pytest.raises(KeyboardInterrupt):
            heads(noun_model(), tasks, **how, run=tmp_path)
        alive[0] = 3
    alive[0] = 100
    found = heads(noun_model(), tasks, **how, run=tmp_path)
    pd.testing.assert_frame_equal(found.summary(), whole.summary())
    pd.testing.assert_frame_equal(found.examples, whole.examples)


def test_several_looks_have_one_audit():
    begun = begin(noun_model(), task(), HeadsOptions())
    stay = dict.fromkeys(ablation_looks.KINDS, check_heads(noun_model(), None))
    parts = [ablation_looks.ablated(noun_model(), begun, look, 3, stay, HeadsOptions())["effect"] for look in range(2)]
    audits = [each.provenance["audit"] for each in parts]
    audit = joined(parts).provenance["audit"]
    assert audit["rows"] == sum(each["rows"] for each in audits)
    assert audit["largest_difference"] == max(each["largest_difference"] for each in audits)


def test_every_model_has_its_own_family(monkeypatch):
    """Heads that leave on one model stay on another where they are open."""
    seen, measure, other = [], judging.ablated, noun_model()
    with torch.no_grad():  # head 1 writes an answer, too: ablating it costs about the minimum
        attention = other.blocks[0].attn
        attention.W_O[1, :, BY] = 0
        attention.W_O[1, IS, IS] = attention.W_O[1, ARE, ARE] = 0.4

    def noted(model, begun, look, n_looks, stay, *more):
        seen.append((look, {kind: len(own) for kind, own in stay.items()}))
        return measure(model, begun, look, n_looks, stay, *more)

    monkeypatch.setattr(judging, "ablated", noted)
    found = heads(noun_model(), [task()], probes=False, max_group=0, anyway=True, siblings=[other])
    (first, one), (_, two), *later = seen
    assert first == 0
    assert one == two == {"effect": 3, "mean_effect": 3}
    assert [look for look, _ in later] == [1, 2]  # of the other model alone
    assert [max(each.values()) for _, each in later] == [1, 1]
    assert set(found.replication["model"]) == {"untrained", "untrained (2)"}


def test_the_page_says_on_how_many_units_heads_were_ablated(at_once, in_looks):
    (one,), (other,) = (summarise(report) for report in (in_looks, at_once))
    n_units = int(in_looks.summary()["n_units"].iloc[0])
    assert one.headline.endswith(f" Heads were ablated on {n_units} of the units.")
    assert "ablated" not in other.headline


def test_the_page_says_that_gradients_predict_only_where_they_do(at_once, in_looks):
    known = {"min_effect": 0.1, "alpha": 0.05, "max_units": 40}
    with_, without = (dict(explained_terms("head", each.provenance, **known)) for each in (in_looks, at_once))
    assert "a regression estimate" in with_["Adjusted p"]
    assert "regression" not in without["Adjusted p"]
