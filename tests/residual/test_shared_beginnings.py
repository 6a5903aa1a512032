"""What rows begin alike with is run once; and at every point the rows hold what each does when it is run by itself."""

from threading import Event, Thread

import pytest
import torch
from tiny_models import random_model, relative_error
from variants import every_value

from interp.errors import InputError
from interp.methods.attention_maps import run_patterns
from interp.model.block import Block
from interp.residual.collecting import listen, read

N_TOKENS = 4 + 3 + 4 + 4
"""Of ``rows``, those with different tokens up to them."""


def rows(length=4):
    """Two that are equal, one that departs from them in the middle, one whose end is another's; and one of its own."""
    alike = torch.randint(1, 20, (length,), generator=torch.Generator().manual_seed(0))
    found = alike.repeat(5, 1)
    found[2, 1:] = alike[1:] + 1
    found[3, 0] = 25
    found[4, 0], found[4, 2] = 26, 27
    return found


@pytest.fixture
def counted(monkeypatch):
    """A function of a model that tells how many tokens each run of its last block was given."""

    def of(model):
        seen, forward = [], Block.forward

        def counting(block, x, *rest):
            if block is model.blocks[-1]:
                seen.append(x.shape[:2].numel())
            return forward(block, x, *rest)

        monkeypatch.setattr(Block, "forward", counting)
        return seen

    return of


@every_value
def test_every_point_is_that_of_each_row_by_itself(fields, counted):
    model = random_model(**fields)
    seen, tokens = counted(model), rows()
    names = [name for name in model.hook_dict if not name.startswith(("ln_final", "unembed", "head"))]
    together = read(model, tokens, names)
    assert seen == [N_TOKENS if model.config.causal else tokens.numel()]
    alone = [read(model, row[None], names) for row in tokens]
    for name in names:
        each = torch.cat([found[name] for found in alone])
        torch.testing.assert_close(together[name].expand_as(each), each, rtol=1e-11, atol=1e-11, msg=name)


def test_rows_that_have_little_in_common_are_run_as_they_are(counted):
    model = random_model()
    seen, tokens = counted(model), torch.arange(36).reshape(4, 9)
    read(model, tokens, ["blocks.1.hook_resid_post"])
    read(model, tokens[:1], ["blocks.1.hook_resid_post"])
    assert seen == [36, 9]


def test_who_listens_as_well_sees_all_rows(counted):
    model, shapes = random_model(), []
    seen = counted(model)
    model.add_hook("blocks.0.attn.hook_z", lambda z, hook: shapes.append(tuple(z.shape)) or 2 * z)
    doubled = read(model, rows(), ["blocks.0.attn.hook_z", "blocks.1.hook_resid_post"])
    model.reset_hooks()
    plain = read(model, rows(), ["blocks.0.attn.hook_z", "blocks.1.hook_resid_post"])
    assert shapes == [(5, 4, 3, 5)]
    assert seen == [20, N_TOKENS]
    assert relative_error(doubled["blocks.0.attn.hook_z"], 2 * plain["blocks.0.attn.hook_z"]) < 1e-12
    assert not torch.allclose(doubled["blocks.1.hook_resid_post"], plain["blocks.1.hook_resid_post"])


def test_patterns_are_given_layer_by_layer_and_nothing_behind_is_run(counted):
    model, found, tokens = random_model(), {}, rows()
    seen = counted(model)
    listen(model, tokens, {"blocks.0.attn.hook_pattern": lambda pattern: found.update(alone=pattern)}, blocks=1)
    assert seen == []
    run_patterns(model, tokens, lambda layer, pattern: found.update({layer: pattern}))
    assert seen == [N_TOKENS]
    _, cache = model.run_with_cache(tokens)
    for layer in range(2):
        assert relative_error(found[layer], cache["pattern", layer]) < 1e-12
    assert torch.equal(found["alone"], found[0])


def last_doubled(x):
    return torch.cat([x[:, :-1], 2 * x[:, -1:]], dim=1)


def hooked(block):
    block.register_forward_hook(lambda _, given, out: last_doubled(out))


def replaced(block):
    forward = block.mlp.forward
    block.mlp.forward = lambda x: last_doubled(forward(x))


@pytest.mark.parametrize("change", [hooked, replaced])
def test_what_somebody_put_into_the_model_sees_all_rows(change):
    model, name = random_model(), "blocks.1.hook_resid_post"
    change(model.blocks[0])
    _, cache = model.run_with_cache(rows())
    assert relative_error(read(model, rows(), [name])[name], cache[name]) < 1e-12


def test_another_thread_s_hooks_do_not_decide(counted):
    model, name = random_model(), "blocks.1.hook_resid_post"
    seen, begun, found = counted(model), Event(), []

    def reading():
        begun.set()
        found.append(read(model, rows(), [name]))

    with model.hooks([(name, lambda x, hook: None)]):
        thread = Thread(target=reading)
        thread.start()
        begun.wait()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join()
    assert seen == [N_TOKENS]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [(rows(20), "20 tokens"), (rows() + 30, "token ids"), (rows()[:, :0], "no tokens")],
)
def test_what_a_model_cannot_take_is_refused(tokens, message):
    with pytest.raises(InputError, match=message):
        listen(random_model(), tokens, {})
