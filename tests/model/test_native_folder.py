"""What `save_model` writes, `load_model` gives back."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import random_model, random_tokens, word_tokenizer

from interp.errors import ConfigError, LoadError, OutputError
from interp.model.loading import load_model, save_model

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip_is_exact(tmp_path, dtype, tied):
    model = random_model(dtype=dtype, tied=tied, act_fn="relu", eps=1e-3)
    again = load_model(save_model(model, tmp_path / "a" / "b"), dtype=dtype)
    assert again.config == model.config
    assert again.name == model.name
    assert again.hash == model.hash
    tokens = random_tokens(model)
    assert torch.equal(again(tokens), model(tokens))


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16], ids=str)
def test_the_hash_does_not_depend_on_the_dtype_that_the_weights_are_held_in(tmp_path, stored):
    model = random_model()
    save_model(model, tmp_path, dtype=stored)
    hashes = {load_model(tmp_path, dtype=dtype).hash for dtype in (stored, torch.float32, torch.float64)}
    assert len(hashes) == 1
    assert model.hash not in hashes


def test_the_hash_depends_on_every_weight():
    model = random_model()
    before = {model.hash}
    for parameter in model.parameters():
        with torch.no_grad():
            parameter[(0,) * parameter.ndim] += 1e-3
        before.add(model.hash)
    assert len(before) == 1 + len(list(model.parameters()))


def test_the_tokenizer_travels_along(tmp_path):
    tokenizer = word_tokenizer()
    again = load_model(save_model(random_model(tokenizer=tokenizer), tmp_path))
    text = "Mary gave John a book, can't she? Ünicode"
    assert again.tokenizer.encode(text) == tokenizer.encode(text)
    assert again.tokenizer.bos_token_id == tokenizer.bos_token_id


@pytest.mark.parametrize("named", DTYPES, ids=str)
def test_a_dtype_may_be_named(tmp_path, named):
    save_model(random_model(), tmp_path / "a", dtype=str(named).removeprefix("torch."))
    save_model(random_model(), tmp_path / "b", dtype=named)
    stored = [load_file(tmp_path / name / "model.safetensors") for name in "ab"]
    for name, tensor in stored[0].items():
        assert tensor.dtype == named
        assert torch.equal(tensor, stored[1][name])
    with pytest.raises(ConfigError, match="dtype: expected one of float64, float32, bfloat16, float16, got 'half'"):
        save_model(random_model(), tmp_path / "c", dtype="half")


@pytest.mark.parametrize("size", [10**13, 10**25])
@pytest.mark.parametrize(
    ("field", "tensor"),
    [
        ("d_vocab", "embed.W_E"),
        ("n_ctx", "pos_embed.W_pos"),
        ("n_heads", "blocks.0.attn.W_Q"),
        ("d_mlp", "blocks.0.mlp.W_in"),
        ("n_layers", "blocks.2.ln1.w"),
    ],
)
def test_a_size_beyond_all_memory_is_refused_before_anything_is_made(tmp_path, field, tensor, size):
    save_model(random_model(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, field: size}))
    uncountable = size > 2**63 and field != "n_layers"
    named = rf"tensor '{tensor}'(: expected shape \(.*{size}.*\), got| is missing)"
    with pytest.raises(LoadError, match="a tensor of more than 2[*]{2}63 numbers" if uncountable else named):
        load_model(tmp_path)


def test_weights_that_the_dtype_cannot_hold_are_not_written(tmp_path):
    model = random_model()
    with torch.no_grad():
        model.W_E[0, 0] = 1e6
    with pytest.raises(LoadError, match=r"saving 'random' as torch.float16: tensor 'embed.W_E': 1 of its"):
        save_model(model, tmp_path / "new", dtype=torch.float16)
    assert not (tmp_path / "new").exists()


def test_a_model_without_tokenizer_does_not_take_over_another_ones(tmp_path):
    save_model(random_model(tokenizer=word_tokenizer()), tmp_path)
    with pytest.raises(OutputError, match="holds another model's tokenizer"):
        save_model(random_model(), tmp_path)


def test_nor_one_in_two_files(tmp_path):
    (tmp_path / "vocab.json").write_text("{}")
    save_model(random_model(), tmp_path)  # half a tokenizer is none
    (tmp_path / "merges.txt").write_text("")
    with pytest.raises(OutputError, match="holds another model's tokenizer"):
        save_model(random_model(), tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_what_cannot_be_written_is_an_output_error(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(OutputError, match=rf"cannot be written here \({name} is a folder there\); name another folder"):
        save_model(random_model(tokenizer=word_tokenizer()), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_newer_format_is_refused(tmp_path):
    save_model(random_model(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "format": 2}))
    with pytest.raises(LoadError, match="written in format 2, this version reads format 1; update interp"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_layer": 3}, "unknown field 'n_layer'; did you mean 'n_layers'"),
        ({"n_heads": 0}, "n_heads: expected a whole number of at least 1, got 0"),
        ({"act_fn": "swish"}, "act_fn: expected one of gelu_new, gelu, relu, silu, swiglu_oai, got 'swish'"),
    ],
)
def test_a_config_that_describes_no_model_is_refused(tmp_path, change, message):
    save_model(random_model(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(LoadError, match=message):
        load_model(tmp_path)


W_K, OTHER = "blocks.1.attn.W_K", "blocks.2.attn.W_K"
SHAPES = r"expected shape \(3, 12, 5\), got \(1, 12, 5\)"
OTHER_DTYPE = "expected one of float64, .*, got torch.int8"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda state: state.pop(W_K), f"tensor '{W_K}' is missing"),
        (
            lambda state: state.update({OTHER: state[W_K].clone()}),
            f"'{OTHER}' is not part of this architecture; did you",
        ),
        (lambda state: state.update({W_K: state[W_K][:1].clone()}), f"tensor '{W_K}': {SHAPES}"),
        (lambda state: state[W_K].view(-1)[3:4].fill_(torch.nan), f"'{W_K}': 1 of its 180 values are NaN or infinite"),
        (lambda state: state.update({W_K: state[W_K].to(torch.int8)}), f"tensor '{W_K}': {OTHER_DTYPE}"),
        (dict.clear, "tensor 'embed.W_E' is missing"),
    ],
)
def test_damaged_weights_are_refused_and_named(tmp_path, damage, message):
    save_model(random_model(), tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    damage(state)
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(LoadError, match=message):
        load_model(tmp_path)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match="no folder can be made here"):
        save_model(random_model(), tmp_path / "out")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("full")])
def test_a_failure_leaves_the_older_model(tmp_path, monkeypatch, error):
    older = random_model(tokenizer=word_tokenizer())
    newer = random_model(tokenizer=word_tokenizer(), seed=9)
    assert newer.hash != older.hash

    def fail(*_arguments, **_options):
        raise error

    save_model(older, tmp_path / "old")
    held = sorted(path.name for path in (tmp_path / "old").iterdir())
    monkeypatch.setattr(type(newer.tokenizer), "save_pretrained", fail)
    for folder in ("old", "new/deep"):
        with pytest.raises(OutputError if isinstance(error, RuntimeError) else KeyboardInterrupt):
            save_model(newer, tmp_path / folder)
    assert load_model(tmp_path / "old", dtype="float64").hash == older.hash
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == held
    assert not (tmp_path / "new").exists()


def test_what_a_tokenizer_writes_into_folders_is_replaced_too(tmp_path):
    tokenizer = word_tokenizer()
    tokenizer.chat_template = {"default": "{{ messages }}", "tools": "{{ tools }}"}
    model = random_model(tokenizer=tokenizer)
    for _ in range(2):
        save_model(model, tmp_path)
    assert load_model(tmp_path).tokenizer.chat_template == tokenizer.chat_template
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith(".partial")]
