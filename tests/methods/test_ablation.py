import numpy as np
import pytest
from hand_model import BOS, BY, KEY, NEAR, THERE, HandModel, encode, pair, prompts, task_of, varied_task

from interp.errors import InputError
from interp.methods.ablation import _require_pairs, ablate
from interp.tasks.task import Unit


@pytest.mark.parametrize("kind", ["zero", "mean", "positional_mean"])
def test_ablating_the_copying_head_removes_what_it_copies(kind):
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [pair([BOS, KEY, BY, THERE])])
    summary = ablate(HandModel(), task, kind=kind).summary().set_index("head")
    # Balanced means hold both answers equally: what is left of .75 is nothing.
    assert summary.loc[0, "effect"] == pytest.approx(-0.75)
    assert summary.loc[1, "effect"] == 0


def test_a_mean_of_one_number_only_would_leak_and_shows_as_such():
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [Unit(encode([BOS, KEY, BY, THERE]), None, "r")])
    frame = ablate(HandModel(), task, heads=[(0, 0)]).frame
    leak = (0 + 1 / 2 + 1 / 3 + 3 / 4) / 4
    np.testing.assert_allclose(frame["effect"], [leak - 0.75, -leak - 0.75], rtol=1e-6)


def test_resample_by_hand():
    units = [Unit(encode([BOS, KEY, NEAR, THERE]), None, "c")]
    plural = Unit(pair([BOS, KEY, BY, THERE]).counterfactual, None, "r")
    frame = ablate(HandModel(), task_of(units, [plural]), kind="resample", heads=[(0, 0)]).frame
    assert frame["effect"].item() == pytest.approx(-1.5)
    assert frame["fired"].item() == 4


def test_provenance_names_the_replacement_and_its_source():
    said = ablate(HandModel(), varied_task(), kind="mean", seed=5).provenance
    assert (said["replacement"], said["seed"], said["draws"]) == ("mean", 5, 1)
    assert len(said["reference_hash"]) == 64
    assert ablate(HandModel(), varied_task(), kind="zero").provenance["reference_hash"] is None


@pytest.mark.parametrize("head", [(1, 0), (0, 2), (99, 0), (-1, 0)])
def test_unknown_heads_are_refused(head):
    with pytest.raises(InputError, match=r"the model has 1 layers \(0 to 0\) of 2 heads \(0 to 1\)"):
        ablate(HandModel(), varied_task(), heads=[head])


@pytest.mark.parametrize("heads", [[], [(0, 0), (0, 0)]])
def test_heads_have_to_be_different_and_some(heads):
    with pytest.raises(InputError, match="expected different"):
        ablate(HandModel(), varied_task(), heads=heads)


def test_heads_are_pairs():
    with pytest.raises(InputError, match=r"heads: expected \(layer, head\) pairs, got \(0, 1\); give a list such as"):
        _require_pairs((0, 1))


def test_a_named_task_needs_a_tokenizer():
    with pytest.raises(InputError, match="'agreement' is a name, but the model has no tokenizer"):
        ablate(HandModel(), "agreement")


def test_unknown_kind_is_refused():
    # Past the type checker of the tests, as a caller without one gets there.
    from interp.interventions.replacement import make_replacement

    with pytest.raises(InputError, match="ablation 'meen' is unknown; did you mean 'mean'"):
        make_replacement.__wrapped__("meen", HandModel(), varied_task(), sites=[])


def test_layouts_that_do_not_align_are_refused_before_anything_runs():
    seen = []
    task = task_of([pair(prompts(0, 1))], [pair(prompts(1, 1))])
    with pytest.raises(InputError, match="positional mean"):
        ablate(HandModel(), task, kind="positional_mean", progress=lambda *step: seen.append(step))
    assert seen == []
