"""What the engine says that a cell has done is what the plain way says."""

import dataclasses
import warnings

import numpy as np
import pytest
import torch
from random_tasks import WRITTEN, change, encoded, random_task, something_to_add
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.engine.layers import Wavefront
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Patch, Zero
from interp.interventions.sweep import Cell, Sweep
from interp.model.sites import Site
from interp.tasks.task import Unit

LAYERS, P, DIFFERS = 2, 6, 2


@pytest.fixture(scope="module")
def model():
    return random_model(n_layers=LAYERS)


@pytest.fixture(scope="module")
def task():
    """A unit whose prompts differ in the token at one position."""
    item = [0, 1, 2, 1, 0, 2]
    other = [*item[:DIFFERS], 7, *item[DIFFERS + 1 :]]
    unit = Unit(encoded(item, (3,), (4,)), encoded(other, (4,), (3,)), "c")
    return dataclasses.replace(random_task(0), units=(unit,))


def run(model, task, cells, **options):
    made = [Cell({"cell": number}, tuple(interventions)) for number, interventions in enumerate(cells)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Sweep(made).run(model, task, **options).examples


def statuses(frame):
    return frame.groupby("cell")["status"].agg(list).tolist()


@pytest.mark.parametrize("name", WRITTEN)
def test_patches_of_every_position(model, task, name):
    patch = Patch(model, tuple(Site(name, layer) for layer in range(LAYERS)))
    cells = [[change(name, layer, patch, positions=(pos,))] for layer in range(LAYERS) for pos in range(P)]
    found, plain = (run(model, task, cells, direction="denoise", plainly=plainly) for plainly in (False, True))
    assert statuses(found) == statuses(plain)
    by_place = dict(zip([(layer, pos) for layer in range(LAYERS) for pos in range(P)], statuses(found), strict=True))
    for layer in range(LAYERS):
        for pos in range(DIFFERS):
            assert set(by_place[layer, pos]) == {"identical input"}
    assert set(by_place[LAYERS - 1, P - 1]) == {"changed"}
    assert (found.loc[found["status"] != "changed", "effect"].abs() < 1e-12).all()
    before = found["cell"] % P < DIFFERS
    assert (found.loc[before, "effect"] == 0).all()
    assert (found.loc[before, "change_norm"] == 0).all()


@pytest.mark.parametrize("name", WRITTEN)
def test_zeros_of_every_position(model, task, name):
    cells = [[change(name, layer, Zero(), positions=(pos,))] for layer in range(LAYERS) for pos in range(P)]
    found, plain = (run(model, task, cells, plainly=plainly) for plainly in (False, True))
    assert statuses(found) == statuses(plain)
    read_later = name in ("resid_pre", "k", "v", "k_input", "v_input")
    for pos in range(P):
        last = set(statuses(found)[P * (LAYERS - 1) + pos])
        assert last == ({"changed"} if read_later or pos == P - 1 else {"unreachable"})
        assert set(statuses(found)[pos]) == {"changed"}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("local", [None, (0,), (1,)], ids=str)
def test_what_lies_before_all_windows_is_unreachable(task, name, local):
    """The last of 6 positions decides; each layer with a window of 3 sees 2 more."""
    model = random_model(n_layers=LAYERS, window=3, local_layers=local)
    cells = [[change(name, layer, Zero(), positions=(pos,))] for layer in range(LAYERS) for pos in range(P)]
    found, plain = (run(model, task, cells, plainly=plainly) for plainly in (False, True))
    assert statuses(found) == statuses(plain)
    effects = found.groupby("cell")["effect"].apply(lambda each: each.abs().max())
    carries = [2 if local is None or layer in local else P for layer in range(LAYERS)]
    for cell, status in enumerate(statuses(found)):
        layer, pos = divmod(cell, P)
        far = sum(carries[layer + (name not in ("resid_pre", "k", "v", "k_input", "v_input")) :])
        assert set(status) == ({"changed"} if pos >= P - 1 - far else {"unreachable"}), (layer, pos)
        if pos:  # the first query sees one key, whatever it asks
            assert (effects[cell] > 1e-12) == (pos >= P - 1 - far), (layer, pos)


@pytest.mark.parametrize("name", ["z", "mlp_post", "k"])
def test_several_in_one_cell(model, task, name):
    patch = Patch(model, tuple(Site(name, layer) for layer in range(LAYERS)))
    zero, add = Zero(), something_to_add(model)
    cells = [
        [change(name, 0, patch, positions=(0,)), change(name, 1, patch, positions=(1,))],
        [change(name, 0, zero, positions=(0,)), change(name, 1, patch, positions=(5,))],
        [change(name, 1, zero, positions=(0,)), change("mlp_out", 1, add, positions=(1,))],
        [change(name, 1, patch, positions=(0,)), change("mlp_out", 1, add, positions=(5,))],
    ]
    found, plain = (run(model, task, cells, direction="noise", plainly=plainly) for plainly in (False, True))
    assert statuses(found) == statuses(plain)
    assert set(statuses(found)[0]) == {"identical input"}
    assert set(statuses(found)[1]) == set(statuses(found)[3]) == {"changed"}
    np.testing.assert_array_equal(found["fired"], plain["fired"])
    assert (found["fired"] == 2).all()


def test_what_is_identical_costs_nothing(model, task, monkeypatch):
    sizes = []
    wavefront = Wavefront.run

    def counted(self):
        sizes.append(self._chunk.n)
        return wavefront(self)

    monkeypatch.setattr(Wavefront, "run", counted)
    patch = Patch(model, tuple(Site("resid_pre", layer) for layer in range(LAYERS)))
    at = {pos: [change("resid_pre", layer, patch, positions=(pos,)) for layer in (1,)] for pos in range(P)}
    run(model, task, list(at.values()), direction="denoise")
    n_rows = 2
    assert sum(sizes) == n_rows * (P - DIFFERS)


def test_a_sweep_of_identical_inputs_alone(model, task):
    """Also one that begins in a later layer: there is nothing to run at all."""
    patch = Patch(model, (Site("resid_pre", 1),))
    cells = [[change("resid_pre", 1, patch, positions=(pos,))] for pos in range(DIFFERS)]
    found = run(model, task, cells, direction="denoise")
    assert set(found["status"]) == {"identical input"}
    assert (found["effect"] == 0).all()
    assert (found["fired"] == 1).all()


class TestWithoutPosition:
    """Examples that lack the positions that a cell is about."""

    @pytest.fixture
    def frame(self, model):
        task = random_task(0, lengths=(6, 4))
        places = [{0: (1,), 1: (2,), 2: (), 3: (3,)}, {0: (5,), 1: (5,), 2: (3, 1), 3: ()}]
        return run(model, task, [[change("resid_pre", 1, Zero(), positions=each)] for each in places])

    def test_they_are_not_in_the_frame(self, frame):
        assert frame.groupby("cell")["example"].agg(list).to_dict() == {0: [0, 1, 3], 1: [0, 1, 2]}
        assert set(frame["status"]) == {"changed"}

    def test_the_others_are_measured(self, model, frame):
        task = random_task(0, lengths=(6, 4))
        one = run(model, task, [[change("resid_pre", 1, Zero(), positions=(2,))]], plainly=True)
        cell = frame[frame["cell"] == 0].set_index("example")
        assert cell.loc[1, "value"] == pytest.approx(one.set_index("example").loc[1, "value"], rel=1e-10)

    def test_a_cell_that_no_example_has_is_not_there(self, model):
        task = random_task(0, lengths=(6, 4))
        nowhere = change("resid_pre", 1, Zero(), positions=dict.fromkeys(range(4), ()))
        frame = run(model, task, [[nowhere], [change("resid_pre", 1, Zero())]])
        assert set(frame["cell"]) == {1}


class TestNoOps:
    """A silent one is the commonest wrong result in this field."""

    @staticmethod
    def ablated(model, task, kind="mean", **options):
        replacement = make_replacement(kind, model, task, sites=[Site("z", 0)], seed=0)
        cells = [Cell({"layer": 0, "head": head}, (change("z", 0, replacement, heads=(head,)),)) for head in (0, 1)]
        return Sweep(cells).run(model, task, **options).examples

    @pytest.mark.parametrize("plainly", [False, True], ids=["engine", "plain"])
    @pytest.mark.parametrize("constant", [0.0, 0.7], ids=["dead", "constant"])
    @pytest.mark.parametrize("kind", ["mean", "positional_mean"])
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["64", "32"])
    def test_a_head_that_is_its_own_mean(self, plainly, constant, kind, dtype):
        model, task = random_model(dtype=dtype), random_task(1)
        with torch.no_grad():
            model.blocks[0].attn.W_V[1] = 0
            model.blocks[0].attn.b_V[1] = constant
        with pytest.warns(
            RuntimeWarning, match=r"head 0\.1: the intervention changed nothing on any example"
        ) as warned:
            frame = self.ablated(model, task, kind, plainly=plainly)
        assert len(warned) == 1
        assert set(frame[frame["head"] == 1]["status"]) == {"no-op"}
        assert set(frame[frame["head"] == 0]["status"]) == {"changed"}
        np.testing.assert_allclose(frame[frame["head"] == 1]["effect"], 0, atol=1e-5)

    def test_an_addition_of_nothing(self, model, task):
        add = something_to_add(model)
        nothing = dataclasses.replace(add, added=lambda site, batch: 0 * add.added(site, batch))
        with pytest.warns(RuntimeWarning, match="cell 0: the intervention changed nothing on any example"):
            frame = Sweep([Cell({"cell": 0}, (change("mlp_out", 0, nothing),))]).run(model, task).examples
        assert set(frame["status"]) == {"no-op"}

    def test_resampling_a_dead_head_is_no_no_op_but_the_same_input(self, task):
        model = random_model()
        with torch.no_grad():
            model.blocks[0].attn.W_V[1] = model.blocks[0].attn.b_V[1] = 0
        task = random_task(1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = self.ablated(model, task, "resample")
        assert set(frame[frame["head"] == 1]["status"]) == {"identical input"}


@pytest.mark.parametrize("plainly", [False, True], ids=["engine", "plain"])
@pytest.mark.parametrize(
    ("name", "where"), [("z", {"heads": (9,)}), ("mlp_post", {"units": (99,)}), ("pattern", {"keys": (9,)})]
)
def test_what_the_site_does_not_have_is_refused(model, task, name, where, plainly):
    with pytest.raises(InputError, match=rf"{next(iter(where))}: .* has \d+( tokens)? \(0 to \d+\), got \(99?,\)"):
        run(model, task, [[change(name, 0, Zero(), **where)]], plainly=plainly)
