import numpy as np
import pytest
import torch
from as_users_call import unchecked
from random_tasks import random_task
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.rows import batches, task_rows
from interp.methods.patching import patch
from interp.methods.path_patching import path_estimates, path_patch
from interp.methods.paths import parse_path, paths_from, paths_to


@pytest.fixture(scope="module")
def model():
    return random_model(n_layers=3)


@pytest.fixture(scope="module")
def task():
    return random_task()


@pytest.mark.parametrize("direction", ["denoise", "noise"])
@pytest.mark.parametrize(
    ("sender", "site", "by", "cell"),
    [
        ("0.1", "z", ("layer", "head"), {"layer": 0, "head": 1}),
        ("1.2", "z", ("layer", "head"), {"layer": 1, "head": 2}),
        ("mlp.1", "mlp_out", ("layer",), {"layer": 1}),
        ("embed", "resid_pre", ("layer",), {"layer": 0}),
    ],
)
def test_all_paths_from_a_sender_together_are_its_activation_patch(model, task, direction, sender, site, by, cell):
    along = path_patch(model, task, paths_from(model, sender), mlps="frozen", together=True, direction=direction)
    along = along.examples
    whole = patch(model, task, site=site, by=by, direction=direction).examples
    whole = whole[np.all([whole[name] == value for name, value in cell.items()], axis=0)]
    np.testing.assert_allclose(along["value"], whole["value"], rtol=1e-10)
    assert (along["effect"].abs() > 1e-3).any()


def test_one_path_alone_is_not_the_patch(model, task):
    along = path_patch(model, task, [["0.1", "logits"]]).examples
    whole = patch(model, task, site="z", by=("layer", "head"), layers=[0]).examples.query("head == 1")
    assert not np.allclose(along["value"], whole["value"], rtol=1e-3)


def test_estimates_are_the_effects_of_small_changes(task):
    """Senders that write next to nothing: of what they change, the metric is a linear function."""
    model = random_model(n_layers=3, n_kv_heads=1)
    with torch.no_grad():
        for layer, head in ((0, 1), (1, 2)):
            model.blocks[layer].attn.W_O[head] *= 1e-6
    paths = [["0.1", each] for each in ("2.0.q", "1.0.k", "2.0.v", "mlp.1", "logits")] + [["1.2", "logits"]]
    exact = path_patch(model, task, paths, mlps="frozen").examples
    effects = exact.groupby(["sender", "receiver"], sort=False)["effect"].mean().to_numpy()
    assert (np.abs(effects) > 1e-10).all()
    np.testing.assert_allclose(path_estimates(model, task, paths), effects, rtol=1e-4)


def by_hooks(model, task, path, layer_site, change_of):
    """Values of one denoised path, by hooks on a model that runs all rows one by one."""
    found = np.zeros(len(task.examples))
    for batch in batches(model, task_rows(task.metric, task.units, "denoise")):
        _, run = model.run_with_cache(batch.tokens)
        _, source = model.run_with_cache(batch.source_tokens)
        change = change_of(model, batch, run, source)

        def add(old, *, hook, change=change):
            new = old.clone()
            if old.ndim == 4:
                new[:, :, path[-1]] += change
                return new
            return new + change

        logits = model.run_with_hooks(batch.tokens, fwd_hooks=[(layer_site, add)])[:, -1]
        for row, line in zip(batch.rows, logits, strict=True):
            found[row.example] = float(line[row.encoded.right[0]] - line[row.encoded.wrong[0]])
    return found


def head_change(layer, head):
    def change(model, batch, run, source):
        z = f"blocks.{layer}.attn.hook_z"
        return (source[z][:, :, head] - run[z][:, :, head]) @ model.blocks[layer].attn.W_O[head]

    return change


@torch.no_grad()
def test_a_direct_path_into_one_heads_keys_by_hooks(model, task):
    expected = by_hooks(model, task, (1,), "blocks.2.hook_k_input", head_change(0, 2))
    found = path_patch(model, task, [["0.2", "2.1.k"]], mlps="frozen").examples
    np.testing.assert_allclose(found["value"], expected, rtol=1e-9)


@torch.no_grad()
def test_a_path_over_an_mlp_by_hooks(model, task):
    def change(model, batch, run, source):
        block, stream = model.blocks[1], run["blocks.1.hook_resid_mid"]
        before = block.mlp(block.ln2(stream))
        return block.mlp(block.ln2(stream + head_change(0, 0)(model, batch, run, source))) - before

    expected = by_hooks(model, task, (None,), "blocks.2.hook_resid_post", change)
    found = path_patch(model, task, [["0.0", "mlp.1", "logits"]], mlps="frozen").examples
    np.testing.assert_allclose(found["value"], expected, rtol=1e-9)
    assert found[["sender", "via", "receiver"]].drop_duplicates().to_numpy().tolist() == [["0.0", "mlp.1", "logits"]]


@torch.no_grad()
@pytest.mark.parametrize("part", "qkv")
def test_a_path_through_a_heads_queries_keys_or_values_by_hooks(model, task, part):
    """The passing head is run with only its own input changed; the change of what it writes goes on to the logits."""

    def change(model, batch, run, source):
        sent = head_change(0, 1)(model, batch, run, source)

        def add(old, *, hook):
            new = old.clone()
            new[:, :, 2] += sent
            return new

        with model.hooks([(f"blocks.1.hook_{part}_input", add)]):
            _, changed = model.run_with_cache(batch.tokens)
        z = "blocks.1.attn.hook_z"
        return (changed[z][:, :, 2] - run[z][:, :, 2]) @ model.blocks[1].attn.W_O[2]

    expected = by_hooks(model, task, (None,), "blocks.2.hook_resid_post", change)
    found = path_patch(model, task, [["0.1", f"1.2.{part}", "logits"]], mlps="frozen").examples
    np.testing.assert_allclose(found["value"], expected, rtol=1e-9)


def test_a_node_has_one_name(model):
    written = ["00.0", "mlp.01", "02.01.q"]
    assert [node.name for node in parse_path(written, model)] == ["0.0", "mlp.1", "2.1.q"]


def test_direct_paths_lead_from_what_writes_before_to_what_reads_after(model):
    assert paths_to(model, "1.0.q") == [[name, "1.0.q"] for name in ("embed", "0.0", "0.1", "0.2", "mlp.0")]
    assert ["1.1", "mlp.1"] in paths_to(model, "mlp.1")
    assert ["mlp.1", "mlp.1"] not in paths_to(model, "mlp.1")
    assert [path[1] for path in paths_from(model, "mlp.1")][-2:] == ["mlp.2", "logits"]
    assert len(paths_from(model, "2.0")) == 2  # the MLP of its layer, and the logits
    into = {path[1]: paths_to(model, path[1]) for path in paths_from(model, "embed")}
    for sender in dict.fromkeys(path[0] for every in into.values() for path in every):
        assert paths_from(model, sender) == [path for every in into.values() for path in every if path[0] == sender]
    refused = dict.fromkeys(("2.0.q", "logits"), "a path begins with what writes")
    for what, why in {**refused, "9.0": "the model has layers"}.items():
        with pytest.raises(InputError, match=why):
            paths_from(model, what)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (["0.1"], "expected a sender and a receiver"),
        ("0.1", "expected a sender and a receiver"),
        (
            ["head one", "logits"],
            "'head one' is not a node of a path; expected, say, 2.1, 2.1.q, mlp.2",
        ),
        ([f"{5000 * '1'}.0", "logits"], "is not a node of a path"),
        (["\u0661.0", "logits"], "is not a node of a path"),
        (["9.0", "logits"], "9.0: the model has layers 0 to 2 of heads 0 to 2"),
        (["0.3", "logits"], "0.3: the model has layers 0 to 2 of heads 0 to 2"),
        (["mlp.3", "logits"], "mlp.3: the model has layers 0 to 2"),
        (["0.1.q", "logits"], "a path begins with what writes"),
        (["logits", "0.1.q"], "a path begins with what writes"),
        (["0.1", "1.2"], "say what of the head receives: 1.2.q, 1.2.k or .v"),
        (["1.1", "0.2.q"], "no path leads from 1.1 to 0.2.q: the one writes after the other reads"),
        (["1.1", "1.2.q"], "no path leads from 1.1 to 1.2.q"),
        (["mlp.1", "mlp.1"], "no path leads from mlp.1 to mlp.1"),
        (["0.1", "logits", "1.2.q"], "no path leads from logits to 1.2.q"),
        (["0.1", "embed"], "no path leads from 0.1 to embed"),
    ],
    ids=str,
)
def test_what_is_no_path_is_refused(model, path, message):
    with pytest.raises(InputError, match=message):
        parse_path(path, model)


def test_paths_that_are_the_same_or_none_are_refused(model, task):
    for paths in ([], [["0.1", "logits"], ["0.1", "logits"]]):
        with pytest.raises(InputError, match="paths: expected different paths, at least one"):
            path_patch(model, task, paths)
    with pytest.raises(InputError, match="direction: 'sideways' is unknown"):
        unchecked(path_patch)(model, task, [["0.1", "logits"]], direction="sideways")
    with pytest.raises(InputError, match="mlps: 'recompute' is unknown; did you mean 'recomputed'"):
        unchecked(path_patch)(model, task, [["0.1", "logits"]], mlps="recompute")
