"""What a head carries of a task's feature, and whether the task needs it there."""

import dataclasses
import warnings

import numpy as np
import pytest
from noun_model import noun_model, noun_task
from tiny_models import word_tokenizer

import interp
from interp.errors import InputError, TaskError
from interp.methods import representation as module
from interp.methods.dossier import heads
from interp.methods.evidence import gather
from interp.methods.probing import probe
from interp.methods.representation import COLUMNS, representation

pytestmark = pytest.mark.filterwarnings("ignore:.*the intervention changed nothing on any example")


@pytest.fixture(scope="module")
def report():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return heads(noun_model(), [noun_task(), noun_task(name="without a feature", feature=None)])


def test_each_head_gets_its_verdict(report):
    found = report.frame.query("task == 'nouns'").set_index("head")
    assert found["verdict"].tolist() == ["tracks", "encodes, unused", "none"]
    assert found["probe"].tolist()[:2] == [1.0, 1.0]
    assert (found["probe_q"].iloc[:2] < 0.01).all()
    assert (found["selectivity"].iloc[:2] > 0.3).all()
    assert found["probe_excess"].iloc[2] < 0.1  # it knows the nouns of the training set alone
    assert np.isnan(found["erasure_effect"].iloc[2])
    assert found["erasure_effect"].iloc[0] == pytest.approx(found["effect"].iloc[0], rel=0.05)
    assert found["erasure_effect"].iloc[0] < found["erasure_random"].iloc[0] - 0.1
    assert found["erasure_effect"].iloc[1] == pytest.approx(0, abs=1e-6)
    assert found["tracks_q"].iloc[0] < 0.05 < found["tracks_q"].iloc[1:].min()
    assert found["representation"].tolist() == ["used", "unused", "none"]


def test_a_task_without_a_feature_is_judged_as_before(report):
    found = report.frame.query("task != 'nouns'")
    assert found["verdict"].tolist() == ["attends and causal", "none", "none"]
    assert found[["probe", "selectivity", "probe_q", "erasure_effect", "tracks_q"]].isna().all(axis=None)
    assert found["feature"].isna().all()


def test_without_probes_the_other_kinds_decide(report):
    found = heads(noun_model(), [noun_task()], probes=False).frame
    assert found["verdict"].tolist() == ["attends and causal", "none", "none"]
    assert found["probe"].isna().all()
    there = report.frame.query("task == 'nouns'").reset_index()
    np.testing.assert_allclose(found["effect"], there["effect"])


def test_the_numbers_are_the_probes_own(report):
    alone = probe(noun_model(), noun_task(), "number").frame
    found = report.frame.query("task == 'nouns'").reset_index()
    for ours, theirs in {"probe": "score", "probe_control": "control", "probe_excess_low": "excess_low"}.items():
        np.testing.assert_array_equal(found[ours], alone[theirs])
    np.testing.assert_array_equal(found["selectivity"], alone["selectivity"])
    np.testing.assert_array_equal(found["probe_q"], alone["q"])  # one task is probed


def test_tasks_that_are_probed_are_corrected_for():
    found = heads(noun_model(), [noun_task(), noun_task(name="b")]).frame
    alone = probe(noun_model(), noun_task(), "number").frame
    np.testing.assert_allclose(found["probe_q"], np.minimum(1, 2 * np.tile(alone["q"], 2)))
    fdr = heads(noun_model(), [noun_task(), noun_task(name="b")], correction="fdr").frame
    assert (fdr["probe_q"] >= fdr["probe_p"]).all()
    assert (fdr["probe_q"] <= found["probe_q"]).all()


def test_where_nothing_can_be_read_nothing_is_erased(monkeypatch):
    """Of labels by coin there is nothing to read."""
    asked = []
    monkeypatch.setattr(module, "erase", lambda *args, **options: asked.append(options))
    task, generator = noun_task(), np.random.default_rng(0)
    units = tuple(_by_coin(unit, generator) for unit in task.units)
    found = representation(
        noun_model(), dataclasses.replace(task, units=units), minimum=0.1, minimum_effect=0.1, alpha=0.05, seed=0
    )
    assert (found["probe"] < 0.65).all()
    assert found["erasure_effect"].isna().all()
    assert asked == []


def _by_coin(unit, generator):
    def labelled(encoded):
        features = {"number": str(generator.choice(["singular", "plural"]))}
        return dataclasses.replace(encoded, example=dataclasses.replace(encoded.example, features=features))

    return dataclasses.replace(unit, item=labelled(unit.item), counterfactual=labelled(unit.counterfactual))


def test_without_reference_sets_no_eraser_is_fitted():
    task = dataclasses.replace(noun_task(), references=())
    found = heads(noun_model(), [task], ablation="zero").frame
    assert (found["representation"] == "not testable").all()
    assert found["verdict"].tolist() == ["causal", "none", "none"]


def test_few_clusters_are_not_probed():
    found = representation(noun_model(), noun_task(n_clusters=19), minimum=0.1, minimum_effect=0.1, alpha=0.05, seed=0)
    assert list(found.columns) == ["layer", "head", *COLUMNS]
    assert found[list(COLUMNS[1:])].isna().all(axis=None)
    assert set(found["feature"]) == {"number"}


def test_a_feature_with_one_value_is_not_tested(report):
    """Attention and effect are judged as they would be; nothing is lost."""
    task = noun_task()

    def singular(unit):
        plural = unit.counterfactual.example
        other = dataclasses.replace(plural, features={"number": "singular"})
        return dataclasses.replace(unit, counterfactual=dataclasses.replace(unit.counterfactual, example=other))

    one_value = tuple(map(singular, task.units))
    for changes in ({"units": one_value}, {"references": (tuple(map(singular, task.references[0])),)}):
        found = heads(noun_model(), [dataclasses.replace(task, **changes)]).frame
        assert found["verdict"].tolist() == ["attends and causal", "none", "none"]
        assert set(found["representation"]) == {"not testable"}


def test_directions_at_random_that_cost_more_are_no_use_of_the_feature(monkeypatch):
    def erase(*arguments, **options):
        found = module_erase(*arguments, **options)
        random = found.frame["method"] == "random"
        first = found.frame[found.frame["method"] == "leace"]["effect"].to_numpy()
        frame = found.frame.copy()
        frame.loc[random, "effect"] = 2 * first
        return dataclasses.replace(found, frame=frame)

    module_erase = module.erase
    monkeypatch.setattr(module, "erase", erase)
    found = heads(noun_model(), [noun_task()]).frame.iloc[0]
    assert found["erasure_effect"] < 0
    assert found["erasure_p"] == 1
    assert (found["verdict"], found["representation"]) == ("attends and causal", "carried")
    assert "erasing it is not shown to cost enough" in found["reason"]


def test_many_cells_leave_claims_possible():
    """The smallest p that flips can give, times all cells, is below alpha."""
    found = representation(
        noun_model(), noun_task(), minimum=0.1, minimum_effect=0.1, alpha=0.05, seed=0, flips=40_000
    ).iloc[0]
    assert found["probe_p"] == pytest.approx(1 / 40_001)
    assert found["erasure_p"] == pytest.approx(1 / 40_001)


def test_an_interrupted_erasure_is_no_evidence():
    def stop(done, total):
        if 3 * done > 2 * total:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        gather(noun_model(), noun_task(), kind="mean", draws=1, seed=0, progress=stop)


def test_progress_runs_evenly_to_the_end():
    seen = []
    heads(noun_model(), [noun_task(), noun_task(name="b", feature=None)], progress=lambda *step: seen.append(step))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    assert len({total for _, total in seen}) == 1


def test_a_minimum_is_a_share():
    with pytest.raises(InputError, match=r"minimum_probe: expected a share between 0 and 1, got 1.5"):
        heads(noun_model(), [noun_task()], minimum_probe=1.5)


def test_a_feature_that_examples_lack_is_refused():
    example = interp.Example("The key", " is", " are", None, "t", "l", {"number": "singular", "length": "2"})
    options = {"name": "t", "description": "D.", "metric": "sentence_log_probability", "tokenizer": word_tokenizer()}
    pair = interp.MinimalPair(example, None, cluster="key")
    lacking = dataclasses.replace(pair, item=dataclasses.replace(example, features={"length": "2"}))
    with pytest.raises(TaskError, match=r"t: feature 'number' is missing in 1 of 2 examples; all of them have: length"):
        interp.encode_task([pair, lacking], feature="number", **options)
    assert interp.encode_task([pair, pair], feature="number", **options).feature == "number"
