"""Each paper's algorithm by hand, sharing no code with the implementation; and where the two are the same."""

import numpy as np
import pytest
import torch
from random_tasks import random_task
from tiny_models import random_model

from interp.errors import InputError
from interp.interventions.rows import batches, task_rows
from interp.methods.path_patching import path_patch

LAYERS = 3
WITH_MLPS = [
    [["0.1", "logits"]],
    [["0.1", "2.0.q"]],
    [["0.1", "2.0.k"]],
    [["0.1", "2.0.v"]],
    [["embed", "2.1.v"]],
    [["embed", "logits"]],
    [["mlp.0", "2.2.k"]],
    [["mlp.0", "logits"]],
    [["0.1", "mlp.2"]],
    [["0.1", "2.0.q"], ["mlp.0", "2.0.q"]],
    [["embed", "2.0.q"], ["1.1", "2.0.q"]],
    [["0.1", "1.0.q"], ["0.1", "2.2.k"], ["0.1", "2.1.v"], ["0.1", "mlp.2"]],
    [["0.1", "1.0.v"], ["0.1", "mlp.1"], ["0.1", "2.0.v"]],
]
OF_ATTENTION = [each for each in WITH_MLPS if "mlp" not in str(each)] + [
    [["0.1", "1.0.v"], ["0.1", "2.2.k"], ["0.1", "2.1.v"]]
]
CASES = [(20, paths) for paths in WITH_MLPS] + [(0, paths) for paths in OF_ATTENTION]


@pytest.fixture(scope="module")
def models():
    return {d_mlp: random_model(n_layers=LAYERS, d_mlp=d_mlp) for d_mlp in (0, 20)}


@pytest.fixture(scope="module")
def task():
    return random_task()


def measured(model, task, logits_of):
    """The metric of every example, by a function from tokens and source tokens to the last position's logits."""
    found = np.zeros(len(task.examples))
    for batch in batches(model, task_rows(task.metric, task.units, "denoise")):
        for row, line in zip(batch.rows, logits_of(batch.tokens, batch.source_tokens), strict=True):
            found[row.example] = float(line[row.encoded.right[0]] - line[row.encoded.wrong[0]])
    return found


def point_of(receiver):
    """Where a receiver's value is saved and set by hand, and of which head."""
    if receiver.startswith("mlp"):
        return f"blocks.{receiver.removeprefix('mlp.')}.mlp.hook_post", None
    layer, head, part = receiver.split(".")
    return f"blocks.{layer}.attn.hook_{part}", int(head)


def setting(value, head=None):
    def hook(old, *, hook):
        new = old.clone()
        new[(slice(None), slice(None), *(() if head is None else (head,)))] = value
        return new

    return hook


def wang_frozen_pass(model, tokens, run, source, senders):
    """Steps 2 to 4 of Wang et al. 2022: heads are frozen, senders are the source's, MLPs and norms are recomputed."""
    hooks = [(f"blocks.{layer}.attn.hook_z", setting(run[f"blocks.{layer}.attn.hook_z"])) for layer in range(LAYERS)]
    for sender in senders:
        if sender == "embed":
            hooks.append(("blocks.0.hook_resid_pre", setting(source["blocks.0.hook_resid_pre"])))
        elif sender.startswith("mlp"):
            point = f"blocks.{sender.removeprefix('mlp.')}.hook_mlp_out"
            hooks.append((point, setting(source[point])))
        else:
            layer, head = map(int, sender.split("."))
            point = f"blocks.{layer}.attn.hook_z"
            hooks.append((point, setting(source[point][:, :, head], head)))
    with model.hooks(hooks):
        return model.run_with_cache(tokens)


def by_wang(model, paths):
    """Wang et al. 2022, appendix B: the receivers' values of one frozen pass, set in one last pass."""

    def logits_of(tokens, source_tokens):
        _, run = model.run_with_cache(tokens)
        _, source = model.run_with_cache(source_tokens)
        hooks = []
        for receiver in {path[-1] for path in paths}:
            senders = [path[0] for path in paths if path[-1] == receiver]
            logits, saved = wang_frozen_pass(model, tokens, run, source, senders)
            if receiver == "logits":
                return logits[:, -1]
            point, head = point_of(receiver)
            value = saved[point] if head is None else saved[point][:, :, head]
            hooks.append((point, setting(value, head)))
        return model.run_with_hooks(tokens, fwd_hooks=hooks)[:, -1]

    return logits_of


class ByEdges:
    """Goldowsky-Dill et al. 2023: a forward pass, node by node, in which some edges carry the source's values."""

    def __init__(self, model, edges):
        self.model, self.edges = model, edges

    def __call__(self, tokens, source_tokens):
        self.run = self.written(tokens, {})
        self.source = self.written(source_tokens, {})
        return self.logits(self.written(tokens, self.edges_in(self.run, self.source)))

    def edges_in(self, run, source):
        found = {}
        for sender, receiver in self.edges:
            found[receiver] = found.get(receiver, 0) + source[sender] - run[sender]
        self.at_logits = found.get("logits", 0)
        return found

    def written(self, tokens, carried):
        """What every node writes; `carried` is added to what a receiver reads."""
        model = self.model
        written = {"embed": model.W_E[tokens] + model.W_pos[: tokens.shape[1]]}
        for layer, block in enumerate(model.blocks):
            stream = sum(written.values())
            read = lambda name, stream=stream, block=block: block.ln1(stream + carried.get(name, 0))  # noqa: E731
            heads = {f"{layer}.{head}": self.head(block.attn, f"{layer}.{head}", head, read) for head in range(3)}
            written |= heads | {f"bias.{layer}": block.attn.b_O}
            if model.config.d_mlp:
                name = f"mlp.{layer}"
                written[name] = block.mlp(block.ln2(sum(written.values()) + carried.get(name, 0)))
        return written

    @staticmethod
    def head(attention, name, head, read):
        q, k, v = (
            read(f"{name}.{part.lower()}") @ getattr(attention, f"W_{part}")[head]
            + getattr(attention, f"b_{part}")[head]
            for part in "QKV"
        )
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -torch.inf).softmax(-1) @ v @ attention.W_O[head]

    def logits(self, written):
        stream = sum(written.values()) + self.at_logits
        return (self.model.ln_final(stream) @ self.model.W_U + self.model.b_U)[:, -1]


@torch.no_grad()
@pytest.mark.parametrize(("d_mlp", "paths"), CASES, ids=str)
def test_recomputed_mlps_are_wang_et_al(models, task, d_mlp, paths):
    model = models[d_mlp]
    found = path_patch(model, task, paths, together=len(paths) > 1).examples
    np.testing.assert_allclose(found["value"], measured(model, task, by_wang(model, paths)), rtol=1e-9)
    assert (found["effect"].abs() > 1e-4).any()


@torch.no_grad()
@pytest.mark.parametrize(("d_mlp", "paths"), CASES, ids=str)
def test_frozen_mlps_are_edges_of_goldowsky_dill_et_al(models, task, d_mlp, paths):
    model = models[d_mlp]
    found = path_patch(model, task, paths, mlps="frozen", together=len(paths) > 1).examples
    np.testing.assert_allclose(found["value"], measured(model, task, ByEdges(model, paths)), rtol=1e-9)
    assert (found["effect"].abs() > 1e-4).any()


@torch.no_grad()
@pytest.mark.parametrize("part", "qkv")
def test_a_head_on_the_way_passes_on_through_recomputed_mlps(models, task, part):
    """The passing head alone is run with what it read in the first pass; a second one takes its output on."""
    model, point = models[20], f"blocks.1.attn.hook_{part}"

    def logits_of(tokens, source_tokens):
        _, run = model.run_with_cache(tokens)
        _, source = model.run_with_cache(source_tokens)
        _, first = wang_frozen_pass(model, tokens, run, source, ["0.1"])
        with model.hooks([(point, setting(first[point][:, :, 2], 2))]):
            _, passing = model.run_with_cache(tokens)
        logits, _ = wang_frozen_pass(model, tokens, run, passing, ["1.2"])
        return logits[:, -1]

    found = path_patch(model, task, [["0.1", f"1.2.{part}", "logits"]]).examples
    np.testing.assert_allclose(found["value"], measured(model, task, logits_of), rtol=1e-9)
    assert (found["effect"].abs() > 1e-5).any()


@torch.no_grad()
@pytest.mark.parametrize("mlps", ["recomputed", "frozen"])
def test_paths_that_share_a_node_on_the_way_meet_there(models, task, mlps):
    """The head reads both senders at once: what it makes of them is no sum."""
    model, shared = models[0], [["0.0", "1.2.q", "logits"], ["0.1", "1.2.q", "logits"]]

    def logits_of(tokens, source_tokens):
        _, run = model.run_with_cache(tokens)
        _, source = model.run_with_cache(source_tokens)
        _, first = wang_frozen_pass(model, tokens, run, source, ["0.0", "0.1"])
        point = "blocks.1.attn.hook_q"
        with model.hooks([(point, setting(first[point][:, :, 2], 2))]):
            _, passing = model.run_with_cache(tokens)
        return wang_frozen_pass(model, tokens, run, passing, ["1.2"])[0][:, -1]

    found = path_patch(model, task, shared, mlps=mlps, together=True).examples
    np.testing.assert_allclose(found["value"], measured(model, task, logits_of), rtol=1e-9)


@pytest.mark.parametrize(
    ("d_mlp", "path", "same"),
    [
        (20, ["0.1", "logits"], False),
        (20, ["0.1", "1.0.q"], False),
        (20, ["embed", "mlp.2"], False),
        (20, ["0.1", "mlp.0"], True),
        (20, ["mlp.1", "2.0.q"], True),
        (20, ["embed", "0.0.v"], True),
        (0, ["0.1", "logits"], True),
        (0, ["embed", "2.1.v"], True),
        (0, ["0.1", "1.0.k", "2.1.q"], True),
    ],
    ids=str,
)
def test_the_options_differ_where_an_mlp_stands_between(models, task, d_mlp, path, same):
    recomputed, frozen = (
        path_patch(models[d_mlp], task, [path], mlps=each).examples for each in ("recomputed", "frozen")
    )
    np.testing.assert_allclose(recomputed["base"], frozen["base"])
    assert np.allclose(recomputed["value"], frozen["value"], rtol=1e-9) == same


def test_a_parallel_mlp_does_not_hear_the_heads_beside_it(task):
    model = random_model(n_layers=2, parallel=True)
    for path, same in ((["0.1", "1.0.q"], True), (["embed", "1.0.q"], False)):
        recomputed, frozen = (path_patch(model, task, [path], mlps=each).examples for each in ("recomputed", "frozen"))
        assert np.allclose(recomputed["value"], frozen["value"], rtol=1e-9) == same


def test_runs_and_provenance_tell_the_options_apart(models, task, tmp_path):
    both = [
        path_patch(models[20], task, [["0.1", "logits"]], mlps=each, run=tmp_path) for each in ("recomputed", "frozen")
    ]
    again = path_patch(models[20], task, [["0.1", "logits"]], mlps="recomputed", run=tmp_path)
    assert [each.provenance["mlps"] for each in (*both, again)] == ["recomputed", "frozen", "recomputed"]
    assert not np.allclose(both[0].examples["value"], both[1].examples["value"])
    assert again.examples["value"].tolist() == both[0].examples["value"].tolist()
    assert len({each.provenance["run"] for each in both}) == 2


def test_logits_set_beside_other_receivers_are_refused(models, task):
    paths = [["0.1", "2.0.q"], ["0.1", "logits"]]
    with pytest.raises(InputError, match=r"expected the logits alone or not at all, got 2\.0\.q, logits; leave"):
        path_patch(models[20], task, paths, together=True)
    path_patch(models[20], task, paths[:1], together=True)
    path_patch(models[20], task, paths, mlps="frozen", together=True)
