"""What a head carries of a task's feature."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from noun_model import noun_model, noun_task
from tiny_models import word_tokenizer

import interp
from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.errors import InputError, TaskError
from interp.methods import judging
from interp.methods.dossier import heads
from interp.methods.evidence import gather, in_one_look
from interp.methods.evidence import tested as with_tests
from interp.methods.probes import scores
from interp.methods.probes.probe import probe
from interp.methods.representation import PROBED, representation
from interp.options import HeadsOptions

pytestmark = [
    pytest.mark.unchecked,
    pytest.mark.filterwarnings("ignore:.*the intervention changed nothing on any example"),
]


@pytest.fixture(scope="module")
def report():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return heads(noun_model(), [noun_task(), noun_task(name="without a feature", feature=None)])


@pytest.fixture(scope="module")
def alone():
    return probe(noun_model(), noun_task(), "number").summary()


def test_each_head_gets_its_verdict(report):
    found = report.summary().query("task == 'nouns'").set_index("head")
    assert found["verdict"].tolist() == ["tracks", "encodes, unused", "none"]
    assert found["representation"].tolist() == ["carried", "carried", "none"]
    assert found["probe"].tolist()[:2] == [1.0, 1.0]
    assert (found["probe_excess_p_adjusted"].iloc[:2] < 0.01).all()
    assert (found["selectivity"].iloc[:2] > 0.3).all()
    assert found["probe_excess"].iloc[2] < 0.1  # it knows the nouns of the training set alone
    kinds = ("excess", "effect", "mean_effect", "exchange", "probe_excess")
    first = found.iloc[0]
    assert first["tracks_p_adjusted"] == max(first[f"{kind}_p_adjusted"] for kind in kinds) < 0.05
    assert found["tracks_p_adjusted"].iloc[1:].isna().all()  # for the others no word was exchanged


def test_killed_after_the_probes_it_fits_none_again(tmp_path, monkeypatch):
    whole = heads(noun_model(), [noun_task()])

    def raising(error):
        def die(*_given, **_asked):
            raise error

        return die

    with monkeypatch.context() as dying:
        dying.setattr(judging, "ablated_together", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            heads(noun_model(), [noun_task()], run=tmp_path)
    monkeypatch.setattr(scores, "cross_fit", raising(AssertionError("probes are fitted again")))
    found = heads(noun_model(), [noun_task()], run=tmp_path)
    pd.testing.assert_frame_equal(found.summary(), whole.summary())


def test_a_task_without_a_feature_asks_for_none(report):
    found = report.summary().query("task != 'nouns'")
    assert found["verdict"].tolist() == ["tracks", "none", "none"]
    assert found[["probe", "selectivity", "probe_excess_p_adjusted"]].isna().all(axis=None)
    assert found["feature"].isna().all()
    assert found["tracks_p_adjusted"].iloc[0] < 0.05


def test_without_probes_the_other_kinds_decide(report):
    found = heads(noun_model(), [noun_task()], probes=False).summary()
    assert found["verdict"].tolist() == ["attends and causal", "none", "none"]
    assert found["probe"].isna().all()
    there = report.summary().query("task == 'nouns'").reset_index()
    np.testing.assert_allclose(found["effect"], there["effect"])


def test_the_numbers_are_the_probes_own(report, alone):
    found = report.summary().query("task == 'nouns'").reset_index()
    for ours, theirs in {"probe": "score", "probe_control": "control", "probe_excess_low": "excess_low"}.items():
        np.testing.assert_array_equal(found[ours], alone[theirs])
    np.testing.assert_array_equal(found["selectivity"], alone["selectivity"])
    np.testing.assert_array_equal(found["probe_excess_p_adjusted"], alone["p_adjusted"])  # one task is probed


def test_tasks_that_are_probed_are_corrected_for(alone):
    one = gather(noun_model(), noun_task(), HeadsOptions())
    both = [one, dataclasses.replace(one, task=noun_task(name="b"))]
    found, fdr = (
        with_tests(both, in_one_look(both, each), None, each)
        for each in (HeadsOptions(correction=name) for name in ("max-T", "fdr"))
    )
    for name in ("p_adjusted", "p_absent"):
        np.testing.assert_allclose(found[f"probe_excess_{name}"], np.minimum(1, 2 * np.tile(alone[name], 2)))
    assert (fdr["probe_excess_p_adjusted"] >= fdr["probe_excess_p"]).all()
    assert (fdr["probe_excess_p_adjusted"] <= found["probe_excess_p_adjusted"]).all()


def test_where_nothing_can_be_read_that_is_said():
    """Of labels by coin there is nothing to read, and that is shown of a head at least."""
    task, generator = noun_task(), np.random.default_rng(0)
    units = tuple(_by_coin(unit, generator) for unit in task.units)
    found = representation(noun_model(), dataclasses.replace(task, units=units), HeadsOptions())
    assert (found["probe"] < 0.65).all()
    assert (found["probe_excess_p_adjusted"] > 0.5).all()
    assert found["probe_excess_p_absent"].min() < 0.05


def _by_coin(unit, generator):
    def labelled(encoded):
        features = {"number": str(generator.choice(["singular", "plural"]))}
        return dataclasses.replace(encoded, example=dataclasses.replace(encoded.example, features=features))

    return dataclasses.replace(unit, item=labelled(unit.item), counterfactual=labelled(unit.counterfactual))


def test_without_reference_sets_nothing_is_judged():
    with pytest.raises(InputError, match="has no reference examples for its fold 0"):
        heads(noun_model(), [dataclasses.replace(noun_task(), references=())])


def test_few_clusters_are_not_probed():
    few = noun_task(n_clusters=FEWEST_CLUSTERS - 1)
    found = representation(noun_model(), few, HeadsOptions())
    assert list(found.columns) == ["layer", "head", *PROBED]
    assert set(found["feature"]) == {"number"}
    assert set(found["probe_excess_n_clusters"]) == {0}
    assert found["probe"].isna().all()
    assert found["probe_excess"].isna().all()


def test_a_feature_with_one_value_is_not_tested(report):
    """Attention and effect are judged as they would be; nothing is lost."""
    task = noun_task()

    def singular(unit):
        plural = unit.counterfactual.example
        other = dataclasses.replace(plural, features={"number": "singular"})
        return dataclasses.replace(unit, counterfactual=dataclasses.replace(unit.counterfactual, example=other))

    one_value = tuple(map(singular, task.units))
    for changes in ({"units": one_value}, {"references": (tuple(map(singular, task.references[0])),)}):
        found = heads(noun_model(), [dataclasses.replace(task, **changes)]).summary()
        assert found["verdict"].tolist() == ["attends and causal", "none", "none"]
        assert set(found["representation"]) == {"not testable"}


def test_an_interrupted_probe_is_no_evidence():
    def stop(done, total):
        if 3 * done > 2 * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gather(noun_model(), noun_task(), HeadsOptions(), progress=stop)


def test_progress_runs_evenly_to_the_end():
    seen, few = [], {"n_clusters": FEWEST_CLUSTERS}
    tasks = [noun_task(**few), noun_task(name="b", feature=None, **few)]
    heads(noun_model(), tasks, progress=lambda *step: seen.append(step))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    assert len({total for _, total in seen}) == 1


def test_a_minimum_is_a_share():
    with pytest.raises(InputError, match=r"min_probe: expected a number from 0 to 1, got 1.5"):
        heads(noun_model(), [noun_task()], min_probe=1.5)


def test_a_feature_that_examples_lack_is_refused():
    example = interp.Example("The key", " is", " are", None, "t", "l", {"number": "singular", "length": "2"})
    options = {"name": "t", "description": "D.", "metric": "sentence_log_probability", "tokenizer": word_tokenizer()}
    pair = interp.MinimalPair(example, None, cluster="key")
    lacking = dataclasses.replace(pair, item=dataclasses.replace(example, features={"length": "2"}))
    with pytest.raises(TaskError, match=r"t: feature 'number' is missing in 1 of 2 examples; all of them have: length"):
        interp.encode_task([pair, lacking], feature="number", **options)
    assert interp.encode_task([pair, pair], feature="number", **options).feature == "number"
