"""The engine erases what the plain way erases: everywhere where erasing is a map of a vector."""

import itertools
import random

import numpy as np
import pytest
import torch
from hand_model import BOS, BY, KEY, KEYS, THERE, HandModel, pair, task_of
from random_tasks import WRITTEN, assert_equal, change, differences, every_replacement, random_task
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.engine.plan import Sizes
from interp.interventions.intervention import Intervention, heads_at
from interp.interventions.replacement import Erase, Eraser, Zero
from interp.interventions.rows import batches, task_rows
from interp.interventions.sweep import Cell, Sweep
from interp.model.devices import place_of
from interp.model.sites import SITES, Site
from interp.tasks.task import Unit

VECTORS = tuple(name for name in WRITTEN if name != "pattern")
FITTED = ("z", "resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
"""Where ``methods/erasure/erasers.py`` fits erasers."""


def eraser(rng, d, rank):
    """Of random directions, so that reading and writing are not alike."""
    numbers = torch.from_numpy(rng.normal(size=(1 + 2 * rank, d)))
    return Eraser(numbers[0], 0.5 * numbers[1 : 1 + rank], 0.5 * numbers[1 + rank :])


def erasers(model, sites, *, folds=(0,), draws=1, ranks=(2,), seed=0):
    """Random ones, of each of these ranks in turn."""
    rng, rank, found = np.random.default_rng(seed), itertools.cycle(ranks), {}
    sizes = {name: getattr(model.config, name) for name in ("d_model", "d_head", "d_mlp")}
    for fold, site in itertools.product(folds, sites):
        n, d = heads_at(site.name, model) if "head" in site.axes else 1, sizes[site.axes[-1]]
        found[fold, site] = [[eraser(rng, d, next(rank)) for _ in range(n)] for _ in range(draws)]
    return Erase.of(model, found)


def places(name, task):
    """Every kind of place that a site has."""
    lengths = [len(each.prompt) for each in task.examples]
    by_example = {number: tuple(range(1, length, 2))[: number % 3] for number, length in enumerate(lengths)}
    ways = [{}, {"positions": (2,)}, {"positions": (3, 1)}, {"positions": by_example}]
    if "head" in SITES[name][1]:
        ways += [{"heads": (1,)}, {"heads": (2, 0), "positions": by_example}, {"heads": (0,), "positions": (3,)}]
    return ways


class TestEngine:
    @pytest.mark.unchecked
    @pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
    @pytest.mark.parametrize("name", VECTORS)
    def test_every_kind_of_place(self, name, causal):
        model = random_model(n_layers=3, causal=causal)
        task = random_task(VECTORS.index(name), lengths=(6, 6, 4), folds=2)
        erase = erasers(model, [Site(name, layer) for layer in range(3)], folds=(0, 1), draws=2, ranks=(1, 3, 0))
        cells = [(change(name, layer, erase, **where),) for layer in range(3) for where in places(name, task)]
        assert_equal(differences(model, task, cells))

    @pytest.mark.parametrize("metric", ["sentence_log_probability", "kl_divergence"])
    def test_continuations(self, metric):
        model, own = random_model(n_layers=3), "sentence_log_probability"
        task = random_task(3, lengths=(6, 5, 6), metric=own, answers=(2, 1))
        erase = erasers(model, [Site(name, 1) for name in FITTED])
        cells = [(change(name, 1, erase, **where),) for name in FITTED for where in ({}, {"positions": (2, 3)})]
        assert_equal(differences(model, task, cells, metric=metric))

    @pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
    def test_several_in_a_cell(self, causal):
        """All layers' streams; several sites of a layer; the same place twice; and beside other replacements."""
        model, task = random_model(n_layers=3, causal=causal), random_task(2, lengths=(6, 6, 4))
        sites = [Site(name, layer) for name in (*FITTED, "result", "q_input") for layer in range(3)]
        erase, other = erasers(model, sites), erasers(model, sites, ranks=(1,), seed=1)
        made = every_replacement(model, task, sites, patched=True)
        cells = [tuple(change("resid_pre", layer, erase) for layer in range(3))]
        wheres = ((2, 3), (1, 3), (1,))
        cells += [tuple(change("resid_post", layer, erase, positions=at) for layer, at in enumerate(wheres))]
        cells += [tuple(change(name, 1, erase, positions=(1, 3)) for name in FITTED)]
        for name in ("result", "q_input"):
            cells += [(change(name, 1, erase, heads=(1,)), change(name, 1, other, heads=(1, 2), positions=(2,)))]
        for name in FITTED:
            for beside in (other, made["add"], made["mean"], made["patch"], Zero()):
                cells += [(change(name, 1, erase), change(name, 1, beside, positions=(2,)))]
                cells += [(change(name, 1, beside, positions=(1, 2)), change(name, 1, erase, positions=(2, 3)))]
        assert_equal(differences(model, task, cells, direction="denoise"))

    def test_any_cells(self):
        """Random sets of changes, among them heads of one layer that are erased by several replacements."""
        rng = random.Random(0)
        model, task = random_model(n_layers=3), random_task(4, lengths=(7, 7, 5, 7))
        sites = [Site(name, layer) for name in VECTORS for layer in range(3)]
        made = [
            erasers(model, sites, draws=draws, ranks=ranks, seed=draws) for draws, ranks in ((1, (1,)), (3, (0, 2)))
        ]
        cells = []
        for _ in range(12):
            chosen = [(rng.choice(sites), rng.choice(made)) for _ in range(rng.choice([2, 3, 6]))]
            where = [
                {"heads": tuple(rng.sample(range(3), rng.choice([1, 2])))} if "head" in site.axes else {}
                for site, _ in chosen
            ]
            places = [rng.choice([None, (1,), (2, 4), (4, 3)]) for _ in chosen]
            cells.append(
                tuple(
                    change(site.name, site.layer, erase, positions=at, **each)
                    for (site, erase), at, each in zip(chosen, places, where, strict=True)
                )
            )
        assert_equal(differences(model, task, cells))

    def test_models_of_one_head_and_of_shared_keys(self):
        for fields in ({"n_heads": 1}, {"n_heads": 4, "n_kv_heads": 2, "d_model": 12}):
            model, task = random_model(**fields), random_task(0)
            names = ("z", "k", "v", "result", "q_input")
            erase = erasers(model, [Site(name, 1) for name in names])
            cells = [(change(name, 1, erase, **where),) for name in names for where in ({}, {"heads": (0,)})]
            assert_equal(differences(model, task, cells))

    def test_float32(self):
        model, task = random_model(n_layers=3, dtype=torch.float32), random_task(0)
        erase = erasers(model, [Site("resid_pre", layer) for layer in range(3)])
        cells = [tuple(change("resid_pre", layer, erase) for layer in range(3))]
        assert_equal(differences(model, task, cells), "float32")

    def test_the_audit_of_a_sweep(self):
        model, task = random_model(n_layers=3), random_task(1, lengths=(6, 6, 5))
        erase = erasers(model, [Site("z", layer) for layer in range(3)], draws=2)
        cells = [Cell({"layer": layer}, (change("z", layer, erase, heads=(1,)),)) for layer in range(3)]
        swept = Sweep(cells).run(model, task)
        plain = Sweep(cells).run(model, task, plainly=True)
        assert (swept.provenance["replacement"], swept.provenance["draws"]) == ("erase", 2)
        assert 0 <= swept.provenance["audit"]["largest_difference"] < 1e-10
        np.testing.assert_allclose(swept.examples["value"], plain.examples["value"], rtol=1e-9, atol=1e-12)
        assert (swept.examples["status"] == "changed").all()

    def test_a_rank_costs_memory(self):
        model, task = random_model(), random_task(0)
        (row, *_) = task_rows("logit_difference", task.units)
        sizes = []
        for replacement in (Zero(), *(erasers(model, [Site("resid_pre", 0)], ranks=(rank,)) for rank in (1, 4))):
            changes = [change("resid_pre", 0, replacement)]
            sizes.append(Sizes(model.config, place_of(model), "logit_difference", changes, None).trajectory(row, 1))
        # mu, and a row of R and a column of L for each rank, of 12 numbers of 8 bytes.
        assert [sizes[1] - sizes[0], sizes[2] - sizes[1]] == [3 * 12 * 8, 6 * 12 * 8]


class TestValues:
    def test_the_formula(self):
        """What R reads beyond the mean is written back with L, and taken away."""
        mu, right, left = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 3.0]])
        each = Eraser(mu.double(), right.double(), left.double())
        assert each(torch.tensor([[5.0, 7.0]]).double()).tolist() == [[5 - 4 * 1, 7 - 4 * 3]]
        packed = Erase.of(HandModel(), {(0, Site("z", 0)): [[each, Eraser.nothing(2)]]})
        (batch,) = batches(HandModel(), task_rows("logit_difference", [pair([BOS, KEY, THERE])]))
        values = packed.values(Site("z", 0), batch, 0)
        old = torch.tensor([5.0, 7.0]).expand(2, 3, 2, 2)
        new = packed.new(old, values)
        assert new[1, 2].tolist() == [[1, -5], [5, 7]]
        assert old[0, 0, 0].tolist() == [5, 7]

    def test_by_hand(self):
        """Head 0 of the query word holds 3/4 of the noun; without what tells nouns apart, its mean of 3/8 each."""
        mu, difference = torch.zeros(8, dtype=torch.float64), torch.zeros(1, 8, dtype=torch.float64)
        mu[[KEY, KEYS]], difference[0, [KEY, KEYS]] = 3 / 8, torch.tensor([1.0, -1.0]).double() / 2**0.5
        model = HandModel()
        erase = Erase.of(model, {(0, Site("z", 0)): [[Eraser(mu, difference, difference), Eraser.nothing(8)]]})
        task = task_of([pair([BOS, KEY, BY, THERE])], [])
        cells = [Cell({"head": head}, (change("z", 0, erase, heads=(head,), positions=(3,)),)) for head in (0, 1)]
        with pytest.warns(RuntimeWarning, match="head 1: the intervention changed nothing on any example"):
            frame = Sweep(cells).run(model, task).examples.set_index("head")
        np.testing.assert_allclose(frame.loc[0, "base"], [3 / 4 + 0.2, 3 / 4 - 0.2], rtol=1e-6)
        np.testing.assert_allclose(frame.loc[0, "value"], [0.2, -0.2], atol=1e-6)
        np.testing.assert_allclose(frame.loc[0, "change_norm"], 3 / 4 / 2**0.5, rtol=1e-6)
        assert frame.loc[1, "effect"].tolist() == [0, 0]

    def test_each_fold_has_its_own(self):
        model, site = random_model(), Site("resid_pre", 1)
        erase = erasers(model, [site], folds=(0, 1))
        both = random_task(0, lengths=(6, 6), folds=2)
        (batch,) = batches(model, task_rows("logit_difference", both.units))
        assert [row.fold for row in batch.rows] == [0, 0, 1, 1]
        values = erase.values(site, batch, 0)
        assert values.shape == (4, 1, 5, 12)
        assert torch.equal(values[0], values[1])
        assert not torch.equal(values[1], values[2])
        assert erase.values(site, batch.take([2, 3]), 0).shape == (1, 1, 5, 12)
        assert torch.equal(erase.values(site, batch.take([2, 3]), 0)[0], values[2])

    def test_ranks_may_differ(self):
        """What is missing to the largest is filled up with zeros, which change nothing."""
        model, site = random_model(), Site("z", 0)
        rng = np.random.default_rng(0)
        low, high = eraser(rng, 5, 1), eraser(rng, 5, 3)
        erase = Erase.of(model, {(0, site): [[low, high, Eraser.nothing(5)]]})
        (batch,) = batches(model, task_rows("logit_difference", random_task(0, lengths=(4,)).units))
        x = torch.randn(2, 4, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        new = erase.new(x, erase.values(site, batch, 0))
        expected = torch.stack([low(x[:, :, 0]), high(x[:, :, 1]), x[:, :, 2]], dim=2)
        torch.testing.assert_close(new, expected)


class TestRefused:
    def test_a_pattern_is_no_vector(self):
        model = random_model()
        with pytest.raises(
            InputError, match="erase: 'pattern' is not a vector to read a feature out of; choose another"
        ):
            Erase.of(model, {(0, Site("pattern", 0)): [[Eraser.nothing(4)] * 3]})

    def test_some_neurons_are_no_vector(self):
        site = Site("mlp_post", 0)
        erase = erasers(random_model(), [site])
        Intervention(site, erase)
        with pytest.raises(InputError, match="units: an eraser reads all neurons of a layer together; leave them out"):
            Intervention(site, erase, units=(1,))

    def test_units_of_one_example(self):
        """No counterfactual is needed to erase."""
        model, task = random_model(), random_task(0, lengths=(5,))
        alone = [Unit(unit.item, None, unit.cluster, unit.fold) for unit in task.units]
        erase = erasers(model, [Site("z", 0)])
        frame = Sweep([Cell({"layer": 0}, (change("z", 0, erase),))]).run(model, task_of(alone, [])).examples
        assert len(frame) == 1
