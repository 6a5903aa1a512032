"""Every point, gradient and parameter beside TransformerLens' bridge, on the same weights; what differs is listed here.

``docs/migration.md`` lists the same for readers.
"""

import re

import pytest
import torch
from bridges import booted
from tiny_models import relative_error

import interp
from interp.errors import InputError
from interp.model.hooks import EXPENSIVE
from interp.model.loading.load import module_checkpoint
from interp.model.loading.tensors import build

FAMILIES = ("gpt2", "llama, grouped", "neox", "bert", "gpt1")
SPLIT = ("hook_q_input", "hook_k_input", "hook_v_input")
OF_COMPONENTS = re.compile(r"hook_(in|out|unembed|hidden_states|cos|sin)$|\.attn\.hook_([qkv]_input|attn_in)$")
"""Points of the bridge alone: where transformers' modules are entered and left."""
OURS_ALONE = {
    "neox": (r"attn\.hook_rot_[qk]$", r"\.hook_resid_mid$"),
    "bert": (r"hook_token_type_embed$",),
    "gpt1": (r"\.hook_resid_post$",),
}
"""Points of ours that the bridge lacks, or never runs."""
ELSEWHERE = {
    "bert": {
        r"^hook_embed$": "blocks.0.hook_resid_pre",
        r"^embed_ln\.": "ln_embed.",
        r"^ln_final\.": "ln_final.ln.",
        r"^(blocks\.\d\.)hook_attn_out$": r"\1hook_mlp_in",
        r"^(blocks\.\d\.)hook_resid_mid$": r"\1hook_resid_post",
        r"^blocks\.0\.hook_resid_post$": "blocks.1.hook_resid_pre",
        r"^(blocks\.\d\.)attn\.hook_attn_scores$": r"\1attn.hook_pattern",
    },
    "gpt1": {r"^(blocks\.\d\.)hook_resid_mid$": r"\1hook_mlp_in"},
}
"""What the bridge of a model with norms in its stream holds at a point, ours holds at another."""
LAST_SUM = "blocks.1.hook_resid_post"
"""Of an encoder, the bridge's is normalised already; ours has no point behind that norm."""


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    theirs = booted(request.param, folder, dtype=torch.float64)
    return request.param, theirs, interp.load_model(folder, dtype="float64")


@pytest.fixture(scope="module")
def tokens():
    return torch.randint(5, 40, (2, 6), generator=torch.Generator().manual_seed(0))


def run(model, tokens, names):
    """What the points hold the last time that they fire, and the gradients there of what an answer's logit differs."""
    values, gradients = {}, {}

    def keep(value, *, hook, into, name):
        value = value[0] if isinstance(value, tuple) else value
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            into[name] = value.detach().clone()

    def hooks(into):
        return [(name, lambda value, hook, name=name: keep(value, hook=hook, into=into, name=name)) for name in names]

    model.zero_grad()
    with model.hooks(hooks(values), hooks(gradients)):
        logits = model(tokens)
        (logits[:, -1, 5] - logits[:, -1, 9]).sum().backward()
    return values, gradients


def difference(got, expected):
    """Relative, where attention may look: at other scores ours are minus infinity, theirs the dtype's lowest number."""
    assert got.shape == expected.shape
    seen = got.isfinite()
    assert (expected[~seen] == torch.finfo(expected.dtype).min).all()
    return relative_error(got[seen], expected[seen])


def cheap(model):
    return [name for name in model.hook_dict if not name.endswith(EXPENSIVE)]


def same_place(family, name):
    """Where ours holds what the bridge holds at `name`."""
    for pattern, ours in ELSEWHERE.get(family, {}).items():
        if re.search(pattern, name):
            return re.sub(pattern, ours, name)
    return name


def test_every_point_of_theirs_holds_what_ours_does(pair, tokens):
    family, theirs, ours = pair
    values, _ = run(theirs, tokens, cheap(theirs))
    own, _ = run(ours, tokens, list(ours.hook_dict) if family in ELSEWHERE else cheap(ours))
    compared = [name for name in values if not OF_COMPONENTS.search(name) and (family, name) != ("bert", LAST_SUM)]
    assert len(compared) >= 25
    for name in compared:
        assert difference(own[same_place(family, name)], values[name]) < 1e-5, name


def test_every_point_of_ours_is_one_of_theirs(pair, tokens):
    family, theirs, ours = pair
    values, _ = run(theirs, tokens, cheap(theirs))
    own, _ = run(ours, tokens, cheap(ours))
    named = {same_place(family, name) for name in values} | ({LAST_SUM} if family == "bert" else set())
    left = {name for name in own if name not in named and name not in values}
    assert all(any(re.search(each, name) for each in OURS_ALONE.get(family, ())) for name in left), left


def test_every_name_of_theirs_is_one_of_ours_or_listed(pair):
    """Those that never run as well."""
    family, theirs, ours = pair
    never = {"hook_pos_embed"} if family in ("llama, grouped", "neox") else set()
    left = {
        name
        for name in theirs.hook_dict
        if same_place(family, name) not in ours.mod_dict and not OF_COMPONENTS.search(name) and name not in never
    }
    assert not [name for name in left if not name.startswith("rotary_emb.")]


def test_points_with_another_meaning_do_differ(pair, tokens):
    """So that the table of them lists nothing that is the same."""
    family, theirs, ours = pair
    values, _ = run(theirs, tokens, cheap(theirs))
    own, _ = run(ours, tokens, cheap(ours))
    moved = [name for name in values if same_place(family, name) != name and name in own]
    assert (family in ELSEWHERE) == bool(moved)
    for name in moved:
        assert difference(own[name], values[name]) > 1e-3, name


def test_every_gradient(pair, tokens):
    """The bridge's ``hook_resid_mid`` stands in the MLP's branch; ours is the whole stream's."""
    family, theirs, ours = pair
    _, values = run(theirs, tokens, cheap(theirs))
    _, own = run(ours, tokens, [*cheap(ours), *(f"blocks.{layer}.hook_mlp_in" for layer in (0, 1))])
    compared = 0
    for name, gradient in values.items():
        if OF_COMPONENTS.search(name) or same_place(family, name) != name or name.endswith(("hook_mlp_in", LAST_SUM)):
            continue
        place = name.replace("hook_resid_mid", "hook_mlp_in")
        assert relative_error(own[place], gradient) < 1e-4, name
        assert place == name or relative_error(own[name], gradient) > 1e-3
        compared += 1
    assert compared >= 18


def test_points_behind_switches(pair, tokens):
    """Theirs are switched on; ours run when somebody listens. The norm before them then runs for each of the three."""
    family, theirs, ours = pair
    if family == "bert":
        with pytest.raises(NotImplementedError):
            theirs.set_use_attn_result(True)
        return
    wanted = [f"blocks.1.{name}" for name in (*SPLIT, "attn.hook_result", "hook_mlp_in")]
    for switch in ("attn_result", "split_qkv_input", "hook_mlp_in"):
        getattr(theirs, f"set_use_{switch}")(True)
    values, gradients = run(theirs, tokens, wanted)
    own, own_gradients = run(ours, tokens, [*wanted, "blocks.1.hook_resid_post"])
    for switch in ("attn_result", "split_qkv_input", "hook_mlp_in"):
        getattr(theirs, f"set_use_{switch}")(False)
    for name in wanted:
        place = (
            "blocks.1.hook_resid_post" if (family, name) == ("gpt1", wanted[-1]) else name
        )  # theirs is behind the MLP
        assert relative_error(own[place], values[name]) < 1e-5, name
        assert relative_error(own_gradients[place], gradients[name]) < 1e-4, name
    if family == "gpt1":  # attention reads the stream, which is normalised already
        return
    alone, _ = run(ours, tokens, ["blocks.1.ln1.hook_normalized"])
    split, _ = run(ours, tokens, ["blocks.1.ln1.hook_normalized", "blocks.1.hook_v_input"])
    name = "blocks.1.ln1.hook_normalized"
    assert split[name].shape == own["blocks.1.hook_v_input"].shape
    assert relative_error(split[name], alone[name][:, :, None].expand_as(split[name])) < 1e-12


def test_attention_input(pair, tokens):
    """One copy of the stream a query head; keys that a group shares read that of its first head, not the first copies.

    So where there are groups, only the copies' gradients together are the same.
    """
    family, theirs, ours = pair
    if family == "bert":
        return
    theirs.set_use_attn_in(True)
    values, gradients = run(theirs, tokens, ["blocks.0.hook_attn_in"])
    theirs.set_use_attn_in(False)
    own, own_gradients = run(ours, tokens, ["blocks.0.hook_attn_in"])
    assert relative_error(own["blocks.0.hook_attn_in"], values["blocks.0.hook_attn_in"]) < 1e-12
    own_gradient, gradient = own_gradients["blocks.0.hook_attn_in"], gradients["blocks.0.hook_attn_in"]
    if family == "llama, grouped":
        assert relative_error(own_gradient, gradient) > 1e-2
        own_gradient, gradient = own_gradient.sum(2), gradient.sum(2)
    assert relative_error(own_gradient, gradient) < 1e-4


NAMES = {r"^embed_ln\.": "ln_embed.", r"^ln_final\.": "ln_final.ln.", r"^mlm_head\.": "ln_final."}
"""Of an encoder."""
UNNAMED = {"gpt2": {"unembed.W_U"}, "bert": {"token_type_embed.W_token_type", "ln_final.W", "ln_final.b"}}
UNNAMED["bert"] |= {"ln_embed.w", "ln_embed.b"}
"""Parameters that the bridge does not list under a name of TransformerLens."""


def test_every_parameter(pair):
    """Names, shapes and values; what a checkpoint lacks is zeros in both, and no parameter here."""
    family, theirs, ours = pair
    own = {**dict(ours.named_buffers()), **dict(ours.named_parameters()), "unembed.W_U": ours.W_U}
    for name, value in theirs.tl_named_parameters():
        for pattern, place in NAMES.items() if family == "bert" else ():
            name = re.sub(pattern, place, name)
        expected = own.pop(name)
        if family == "llama, grouped" and name.endswith(("_K", "_V")):
            expected = expected.repeat_interleave(2, 0)  # theirs has keys and values once for each query head
        assert torch.equal(expected, value), name
    assert {name for name, _ in ours.named_parameters() if name in own} == UNNAMED.get(family, set()) - {"unembed.W_U"}


def test_every_gradient_of_a_parameter(pair, tokens):
    """The gradients of the module behind the bridge, read as a checkpoint is; of joint projections the copies'."""
    family, theirs, ours = pair
    run(theirs, tokens, [])
    run(ours, tokens, [])
    module = theirs.original_model
    kept = {parameter: parameter.data for parameter in module.parameters()}
    for parameter in kept:
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    read = build(module_checkpoint(module, None), torch.device("cpu"), torch.float64)  # gradients compute nothing
    expected = dict(read.named_parameters())
    for parameter, data in kept.items():
        parameter.data = data
    if family in ("gpt2", "neox", "gpt1"):  # the bridge runs copies, one each for queries, keys and values
        expected |= gradients_of_copies(theirs, ours)
    for name, parameter in ours.named_parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert torch.allclose(gradient, expected[name], rtol=1e-4, atol=1e-6), name
    assert sum(float(each.abs().max()) > 1e-6 for each in expected.values()) > 10


def gradients_of_copies(theirs, ours):
    found = {}
    for layer, block in enumerate(ours.blocks):
        for letter in "QKV":
            copy = getattr(theirs.blocks[layer].attn, letter.lower()).original_component
            heads, d_model, d_head = block.attn.W_Q.shape
            weight = copy.weight.grad.T.reshape(d_model, heads, d_head).transpose(0, 1)
            found[f"blocks.{layer}.attn.W_{letter}"] = weight
            found[f"blocks.{layer}.attn.b_{letter}"] = copy.bias.grad.reshape(heads, d_head)
    return found


STACKED = ("W_Q", "W_K", "W_V", "W_O", "W_in", "W_out", "W_U", "W_E", "b_U", "QK", "OV", "W_gate", "W_E_pos", "W_pos")
STACKED += ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out")
WITHOUT = {(family, name) for family in ("llama, grouped", "neox") for name in ("W_E_pos", "W_pos")}
WITHOUT |= {("llama, grouped", name) for name in ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out")}
"""What a family does not have: the bridge raises; so does ours of positions, and has zeros for biases."""


@pytest.mark.parametrize("name", STACKED)
def test_stacked_weights(pair, name):
    """Of shared keys and values, theirs stacks those that there are; ours one for each query head, as its own class."""
    family, theirs, ours = pair
    if (family, name) in WITHOUT:
        with pytest.raises(AttributeError):
            getattr(theirs, name)
        if name.startswith("b_"):
            assert not getattr(ours, name).any()
        else:
            with pytest.raises(InputError, match="positions are 'rotary' here and have no embedding"):
                getattr(ours, name)
        return
    expected, got = getattr(theirs, name), getattr(ours, name)
    if expected is None or got is None:
        assert expected is got
        return
    expected, got = (each.AB if hasattr(each, "AB") else each for each in (expected, got))
    if family == "llama, grouped" and name in ("W_K", "W_V"):
        expected = expected.repeat_interleave(2, 1)
    assert torch.allclose(got, expected)
