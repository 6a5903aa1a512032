"""No hook is silent: unknown names and wrong returns raise, and hooks go when they should, and only then."""

import pytest
import torch
from tiny_models import random_model, random_tokens

from interp.errors import HookError

Z = "blocks.0.attn.hook_z"


def nothing(x, *, hook):
    return None


def ablate(x, *, hook):
    return torch.zeros_like(x)


@pytest.fixture
def model():
    return random_model()


@pytest.fixture
def tokens(model):
    return random_tokens(model)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def attached(model):
    return {name: len(point.fwd_hooks) + len(point.bwd_hooks) for name, point in model.hook_dict.items()}


class TestNames:
    """The four doors through which a hook or a filter comes in."""

    WRONG = "blocks.0.attn.hook_zz"
    SUGGESTION = r"no hook point is called 'blocks.0.attn.hook_zz'; did you mean 'blocks.0.attn.hook_z'"
    NONE = "the filter matches none of the model's 50 hook points"

    @pytest.mark.parametrize(("name", "message"), [(WRONG, SUGGESTION), (lambda name: False, NONE)])
    def test_hooks(self, model, tokens, name, message):
        with pytest.raises(HookError, match=message):
            model.run_with_hooks(tokens, fwd_hooks=[(Z, nothing), (name, nothing)])
        with pytest.raises(HookError, match=message):
            model.run_with_hooks(tokens, bwd_hooks=[(name, nothing)], reset_hooks_end=False)
        with pytest.raises(HookError, match=message), model.hooks(fwd_hooks=[(name, nothing)]):
            pass
        with pytest.raises(HookError, match=message):
            model.add_hook(name, nothing)
        with pytest.raises(HookError, match=message):
            model.add_perma_hook(name, nothing)
        assert not any(attached(model).values())

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (WRONG, SUGGESTION),
            ([Z, WRONG], SUGGESTION),
            ((WRONG,), SUGGESTION),
            (lambda name: "hook_zz" in name, NONE),
            ([], "an empty list of hook points"),
            ("blocks.0.attn", "no hook point is called 'blocks.0.attn'; did you mean"),
            ("blocks.2.attn.hook_z", "no hook point is called 'blocks.2.attn.hook_z'; did you mean"),
        ],
    )
    def test_caches(self, model, tokens, names, message):
        with pytest.raises(HookError, match=message):
            model.run_with_cache(tokens, names_filter=names)
        with pytest.raises(HookError, match=message):
            model.get_caching_hooks(names)
        with pytest.raises(HookError, match=message):
            model.add_caching_hooks(names)
        assert not any(attached(model).values())

    @pytest.mark.parametrize("names", [Z, [Z], (Z,), lambda name: name == Z])
    def test_every_way_to_name_a_point(self, model, tokens, names):
        assert list(model.run_with_cache(tokens, names_filter=names)[1].keys()) == [Z]

    def test_hooks_from_an_iterator_are_attached(self, model, tokens):
        names = [f"blocks.{layer}.attn.hook_z" for layer in range(2)]
        fired = []
        keep = lambda x, *, hook: fired.append(hook.name)  # noqa: E731
        model.run_with_hooks(tokens, fwd_hooks=zip(names, [keep, keep], strict=True))
        assert fired == names

    @pytest.mark.parametrize("letter", "qkv")
    def test_transformer_lens_other_name_of_the_split_inputs(self, model, tokens, letter):
        seen = []
        hook = (f"blocks.0.attn.hook_{letter}_input", lambda x, *, hook: seen.append(hook.name))
        model.run_with_hooks(tokens, fwd_hooks=[hook])
        assert seen == [f"blocks.0.hook_{letter}_input"]

    @pytest.mark.parametrize("letter", "qkv")
    def test_a_cache_keeps_a_point_under_the_name_it_was_asked_for_by(self, model, tokens, letter):
        ours, theirs = f"blocks.0.hook_{letter}_input", f"blocks.0.attn.hook_{letter}_input"
        expected = model.run_with_cache(tokens, names_filter=ours)[1][ours]
        for names, keys in ((theirs, [theirs]), ([Z, theirs], [theirs, Z]), ([ours, theirs], [ours, theirs])):
            _, cache = model.run_with_cache(tokens, names_filter=names)
            assert list(cache.keys()) == keys
            assert torch.equal(cache[theirs], expected)
        kept = model.add_caching_hooks([theirs])
        model(tokens)
        assert list(kept) == [theirs]
        with torch.enable_grad():
            _, cache = model.run_with_cache(tokens, return_type="loss", incl_bwd=True, names_filter=theirs)
        assert set(cache.keys()) == {theirs, f"{theirs}_grad"}


class TestReturns:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda x: x[:, :1], r"a hook returned shape \(3, 1, 3, 5\), expected \(3, 9, 3, 5\)"),
            (lambda x: x[:, :, :1], r"a hook returned shape \(3, 9, 1, 5\), expected \(3, 9, 3, 5\)"),
            (lambda x: x[0], r"a hook returned shape \(9, 3, 5\), expected \(3, 9, 3, 5\)"),
            (lambda x: x.mean(), r"a hook returned shape \(\), expected \(3, 9, 3, 5\)"),
            (lambda x: x.float(), r"a hook returned dtype torch.float32, expected torch.float64"),
            (lambda x: x.to("meta"), r"a hook returned device meta, expected cpu"),
            (lambda x: x.numpy(), "a hook must return a tensor or None, got ndarray"),
            (lambda x: (x,), "a hook must return a tensor or None, got tuple"),
            (lambda x: 0.0, "a hook must return a tensor or None, got float"),
        ],
    )
    @pytest.mark.parametrize("directly", [False, True])
    def test_a_hook_that_returns_something_else_raises(self, model, tokens, change, message, directly):
        hook = lambda x, *, hook: change(x)  # noqa: E731
        if directly:
            model.hook_dict[Z].add_hook(hook)
        with pytest.raises(HookError, match=f"{Z}: {message}"):
            model.run_with_hooks(tokens, fwd_hooks=[] if directly else [(Z, hook)])

    @pytest.mark.parametrize("name", ["hook_embed", "blocks.1.attn.hook_pattern", "ln_final.hook_scale"])
    def test_at_every_kind_of_point(self, model, tokens, name):
        with pytest.raises(HookError, match=f"{name}: a hook returned shape"):
            model.run_with_hooks(tokens, fwd_hooks=[(name, lambda x, *, hook: x[:1])])

    def test_a_change_in_place_counts(self, model, tokens):
        zeroed = model.run_with_hooks(tokens, fwd_hooks=[(Z, lambda x, *, hook: x.zero_())])
        assert torch.equal(zeroed, model.run_with_hooks(tokens, fwd_hooks=[(Z, ablate)]))

    def test_hooks_at_one_point_run_in_order(self, model, tokens):
        seen = []
        hooks = [(Z, ablate), (Z, lambda x, *, hook: seen.append(x.abs().max()))]
        model.run_with_hooks(tokens, fwd_hooks=hooks)
        assert seen == [0]


class TestLifetime:
    def test_hooks_are_gone_after_a_run(self, model, tokens):
        before = model(tokens)
        model.run_with_hooks(tokens, fwd_hooks=[(Z, ablate)])
        model.run_with_cache(tokens)
        assert not any(attached(model).values())
        assert torch.equal(model(tokens), before)

    def test_hooks_are_gone_after_an_exception_in_a_hook(self, model, tokens):
        def fail(x, *, hook):
            raise KeyError("inside")

        with pytest.raises(KeyError, match="inside"):
            model.run_with_hooks(tokens, fwd_hooks=[(Z, ablate), ("blocks.1.attn.hook_z", fail)])
        with pytest.raises(KeyError, match="inside"), model.hooks(fwd_hooks=[(Z, fail)]):
            model.run_with_cache(tokens)
        assert not any(attached(model).values())
        assert model.context_level == 0

    def test_hooks_are_gone_after_a_wrong_return(self, model, tokens):
        with pytest.raises(HookError):
            model.run_with_hooks(tokens, fwd_hooks=[(Z, lambda x, *, hook: x[0])])
        assert not any(attached(model).values())

    def test_the_users_own_hooks_survive(self, model, tokens):
        model.add_hook(Z, ablate)
        alone = model(tokens)
        _, cache = model.run_with_cache(tokens)
        assert cache[Z].abs().max() == 0
        model.run_with_hooks(tokens, fwd_hooks=[("blocks.1.attn.hook_z", ablate)])
        with model.hooks(fwd_hooks=[("blocks.1.attn.hook_z", ablate)]):
            model.run_with_cache(tokens, names_filter=Z)
        assert attached(model)[Z] == sum(attached(model).values()) == 1
        assert torch.equal(model(tokens), alone)
        model.reset_hooks()
        assert not torch.equal(model(tokens), alone)

    def test_hooks_of_an_outer_context_survive_inner_runs(self, model, tokens):
        with model.hooks(fwd_hooks=[(Z, ablate)]):
            _, cache = model.run_with_cache(tokens)
            model.run_with_hooks(tokens, fwd_hooks=[(Z, nothing)])
            assert attached(model)[Z] == 1
        assert cache[Z].abs().max() == 0
        assert not any(attached(model).values())

    def test_permanent_hooks_stay(self, model, tokens):
        model.add_perma_hook(Z, ablate)
        model.reset_hooks()
        assert attached(model)[Z] == 1
        model.reset_hooks(including_permanent=True)
        assert attached(model)[Z] == 0


class TestCache:
    def test_removing_the_batch_axis(self, model, tokens):
        _, cache = model.run_with_cache(tokens[:1], remove_batch_dim=True)
        assert cache[Z].shape == (9, 3, 5)
        assert not cache.has_batch_dim

    @pytest.mark.parametrize("named", [False, True])
    def test_removing_the_batch_axis_of_ids_that_have_none(self, model, tokens, named):
        given = ((), {"input": tokens[0]}) if named else ((tokens[0],), {})
        _, cache = model.run_with_cache(*given[0], **given[1], remove_batch_dim=True)
        _, expected = model.run_with_cache(tokens[:1], remove_batch_dim=True)
        assert torch.equal(cache[Z], expected[Z])

    def test_removing_the_batch_axis_of_several_prompts_raises(self, model, tokens):
        with pytest.raises(ValueError, match=r"remove_batch_dim: expected one prompt \[1 pos\], got 3 rows"):
            model.run_with_cache(tokens, remove_batch_dim=True)

    def test_gradients(self, model, tokens):
        with torch.enable_grad():
            _, cache = model.run_with_cache(tokens, return_type="loss", incl_bwd=True, names_filter=Z)
        assert set(cache.keys()) == {Z, f"{Z}_grad"}
        assert cache[f"{Z}_grad"].shape == cache[Z].shape

    def test_a_mask_is_passed_on(self, model, tokens):
        mask = torch.ones_like(tokens)
        mask[0, :4] = 0
        _, cache = model.run_with_cache(tokens, attention_mask=mask)
        assert cache["pattern", 0][0, :, 4:, :4].abs().max() == 0
        assert cache["pattern", 0][1, :, 4:, :4].min() > 0
