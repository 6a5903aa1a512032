"""Every read and write point exists, has the shape that is stated, fires, and matters."""

import pytest
import torch
from tiny_models import random_model, random_tokens, relative_error

from interp.errors import InputError
from interp.model.hooks import EXPENSIVE
from interp.model.sites import SITES, Site


@pytest.mark.parametrize(
    ("name", "layer", "message"),
    [
        ("zz", 0, "no site is called 'zz'; did you mean 'z'"),
        ("z", None, "site 'z': expected a layer, got None"),
        ("embed", 1, "site 'embed': expected no layer, got 1"),
        ("z", -1, "layers count from 0"),
    ],
)
def test_what_is_no_site_is_refused(name, layer, message):
    with pytest.raises(InputError, match=message):
        Site(name, layer)


B, P, M, H, E, N = 3, 9, 12, 3, 5, 20  # batch, pos, d_model, head, d_head, d_mlp

STREAM, SPLIT, VECTORS, SQUARE = (B, P, M), (B, P, H, M), (B, P, H, E), (B, H, P, P)
LAYER = {
    "hook_resid_pre": STREAM,
    "hook_resid_mid": STREAM,
    "hook_resid_post": STREAM,
    "hook_attn_in": SPLIT,
    "hook_q_input": SPLIT,
    "hook_k_input": SPLIT,
    "hook_v_input": SPLIT,
    "hook_mlp_in": STREAM,
    "attn.hook_q": VECTORS,
    "attn.hook_k": VECTORS,
    "attn.hook_v": VECTORS,
    "attn.hook_z": VECTORS,
    "attn.hook_result": SPLIT,
    "attn.hook_attn_scores": SQUARE,
    "attn.hook_pattern": SQUARE,
    "hook_attn_out": STREAM,
    "mlp.hook_pre": (B, P, N),
    "mlp.hook_post": (B, P, N),
    "hook_mlp_out": STREAM,
    "ln1.hook_scale": (B, P, 1),
    "ln1.hook_normalized": STREAM,
    "ln2.hook_scale": (B, P, 1),
    "ln2.hook_normalized": STREAM,
}
POINTS = {
    "hook_embed": STREAM,
    "hook_pos_embed": STREAM,
    **{f"blocks.{layer}.{name}": shape for layer in range(2) for name, shape in LAYER.items()},
    "ln_final.hook_scale": (B, P, 1),
    "ln_final.hook_normalized": STREAM,
}
DEFAULT = {name for name in POINTS if not name.endswith(EXPENSIVE)}


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture(scope="module")
def tokens(model):
    return random_tokens(model, B, P)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def test_these_are_all_points(model):
    assert set(model.hook_dict) == set(POINTS)


@pytest.mark.parametrize("name", POINTS)
def test_a_point_that_is_listened_to_fires_once_with_its_shape(model, tokens, name):
    seen = []
    logits = model.run_with_hooks(tokens, fwd_hooks=[(name, lambda x, *, hook: seen.append((hook.name, x.shape)))])
    assert seen == [(name, POINTS[name])]
    assert relative_error(logits, model(tokens)) < 1e-12


@pytest.mark.parametrize("name", POINTS)
def test_no_point_is_dead(model, tokens, name):
    def nudge(x, *, hook):
        generator = torch.Generator().manual_seed(0)
        return x + torch.randn(x.shape, generator=generator, dtype=x.dtype)

    edited = model.run_with_hooks(tokens, fwd_hooks=[(name, nudge)])
    assert not torch.allclose(edited, model(tokens), atol=1e-3)


@pytest.mark.parametrize("name", POINTS)
def test_a_hook_that_returns_what_it_got_changes_nothing(model, tokens, name):
    same = model.run_with_hooks(tokens, fwd_hooks=[(name, lambda x, *, hook: x.clone())])
    assert relative_error(same, model(tokens)) < 1e-12


@pytest.mark.parametrize("name", POINTS)
def test_backward_hooks_fire(model, tokens, name):
    gradients = []
    with torch.enable_grad(), model.hooks(bwd_hooks=[(name, lambda g, *, hook: gradients.append(g))]):
        model(tokens, return_type="loss").backward()
    model.zero_grad()
    assert [tuple(g.shape) for g in gradients] == [POINTS[name]]
    assert gradients[0].abs().max() > 0


@pytest.mark.parametrize("register", ["register_forward_pre_hook", "register_full_backward_pre_hook"])
@pytest.mark.parametrize("name", ["blocks.0.attn.hook_result", "blocks.0.attn.hook_pattern", "blocks.0.hook_q_input"])
def test_hooks_attached_through_torch_fire_too(model, tokens, name, register):
    fired = []
    handle = getattr(model.hook_dict[name], register)(lambda *_: fired.append(name))
    with torch.enable_grad():
        model(tokens, return_type="loss").backward()
    handle.remove()
    model.zero_grad()
    assert fired == [name]


def test_the_default_cache_keeps_transformer_lens_default_points(model, tokens):
    _, cache = model.run_with_cache(tokens)
    assert set(cache.keys()) == DEFAULT
    assert {name: tuple(value.shape) for name, value in cache.items()} == {name: POINTS[name] for name in DEFAULT}
    left_out = {name.rpartition(".")[2] for name in set(POINTS) - DEFAULT}
    assert left_out == set(EXPENSIVE)


def test_expensive_points_are_kept_when_named(model, tokens):
    for name in sorted(set(POINTS) - DEFAULT):
        _, cache = model.run_with_cache(tokens, names_filter=name)
        assert {key: tuple(value.shape) for key, value in cache.items()} == {name: POINTS[name]}


def test_while_inputs_are_split_the_first_layer_norm_runs_for_queries_keys_and_values(model, tokens):
    shapes = []
    keep = lambda x, *, hook: shapes.append(tuple(x.shape))  # noqa: E731
    nothing = lambda x, *, hook: None  # noqa: E731
    hooks = [("blocks.0.hook_q_input", nothing), ("blocks.0.ln1.hook_normalized", keep)]
    model.run_with_hooks(tokens, fwd_hooks=hooks)
    assert shapes == [SPLIT] * 3


class TestComputedOnDemand:
    """What is computed only where listened to gives the same numbers."""

    def test_nothing_is_computed_for_nobody(self, model, tokens, monkeypatch):
        explicit = []
        attention = type(model.blocks[0].attn)
        original = attention._explicit
        monkeypatch.setattr(attention, "_explicit", lambda *args: explicit.append(1) or original(*args))
        model(tokens)
        model.run_with_cache(tokens, names_filter=lambda name: name.endswith("hook_z"))
        assert explicit == []
        model.run_with_cache(tokens, names_filter="blocks.1.attn.hook_pattern")
        assert explicit == [1]


@pytest.mark.parametrize("in_place", [False, True])
class TestInputsSplitByHead:
    """An edit of one head's input to queries, keys or values reaches that and nothing else."""

    @pytest.mark.parametrize("letter", "qkv")
    def test_only_the_addressed_head_and_letter_change(self, model, tokens, letter, in_place):
        edited = self.vectors(model, tokens, f"blocks.1.hook_{letter}_input", in_place)
        plain = self.vectors(model, tokens, None, in_place)
        for other in "qkv":
            for head in range(H):
                same = torch.allclose(edited[other][:, :, head], plain[other][:, :, head], atol=1e-12)
                assert same == ((other, head) != (letter, 1))

    def test_attention_input_reaches_all_three_of_one_head(self, model, tokens, in_place):
        edited = self.vectors(model, tokens, "blocks.1.hook_attn_in", in_place)
        plain = self.vectors(model, tokens, None, in_place)
        for letter in "qkv":
            for head in range(H):
                same = torch.allclose(edited[letter][:, :, head], plain[letter][:, :, head], atol=1e-12)
                assert same == (head != 1)

    @pytest.mark.parametrize("point", ["hook_q_input", "hook_k_input", "hook_v_input", "hook_attn_in", "hook_mlp_in"])
    def test_the_stream_itself_stays(self, model, tokens, point, in_place):
        stream = []
        hooks = [
            (f"blocks.1.{point}", self.edit(in_place)),
            ("blocks.1.hook_attn_out", lambda x, *, hook: torch.zeros_like(x)),
            ("blocks.1.hook_mlp_out", lambda x, *, hook: torch.zeros_like(x)),
            ("blocks.1.hook_resid_post", lambda x, *, hook: stream.append(x)),
        ]
        model.run_with_hooks(tokens, fwd_hooks=hooks)
        _, cache = model.run_with_cache(tokens, names_filter="blocks.1.hook_resid_pre")
        assert torch.equal(stream[0], cache["resid_pre", 1])

    @staticmethod
    def edit(in_place):
        def edit(x, *, hook):
            x = x if in_place else x.clone()
            x[..., 1, :] += torch.arange(M, dtype=x.dtype)
            return x

        return edit

    def vectors(self, model, tokens, point, in_place):
        names = [f"blocks.1.attn.hook_{letter}" for letter in "qkv"]
        with model.hooks(fwd_hooks=[(point, self.edit(in_place))] if point else []):
            _, cache = model.run_with_cache(tokens, names_filter=names)
        return {name[-1]: value for name, value in cache.items()}


def test_an_edit_in_place_leaves_what_the_block_before_wrote(model, tokens):
    names = ["blocks.0.hook_resid_post", "blocks.1.hook_resid_pre"]
    with model.hooks(fwd_hooks=[("blocks.1.hook_resid_pre", lambda x, *, hook: x.zero_())]):
        _, edited = model.run_with_cache(tokens, names_filter=names)
    _, plain = model.run_with_cache(tokens, names_filter=names)
    assert torch.equal(edited["resid_post", 0], plain["resid_post", 0])
    assert edited["resid_pre", 1].abs().max() == 0


class TestSites:
    @pytest.mark.parametrize("name", SITES)
    def test_a_site_names_a_point_and_its_axes(self, model, name):
        site = Site(name, 1 if "{layer}" in SITES[name][0] else None)
        sizes = {"batch": B, "pos": P, "d_model": M, "head": H, "d_head": E, "d_mlp": N, "query_pos": P, "key_pos": P}
        assert tuple(sizes[axis] for axis in site.axes) == POINTS[site.hook_name]
