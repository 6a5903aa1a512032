"""`interp model plan`: what it prints, and what does not fit."""

import json
from fnmatch import fnmatch

import pytest
from tiny_models import random_model

from interp.model.loading.load import load_model as real_load_model
from interp.model.loading.native import save_model
from interp.model.presets import parameter_count
from interp.tasks.catalogue import load_task


def test_it_says_what_a_model_would_need(run):
    result = run(
        "model", "plan", "gpt2-xl", "--hardware", "a100", "--dtype", "bfloat16", "--prompts", 4, "--tokens", 64
    )
    assert result.exit_code == 0, result.output
    assert "gpt2-xl: 1,557,611,200 parameters (published: 1,557,611,200)" in result.stdout
    assert "on 1 x A100 80 GB in bfloat16, 4 prompts of 64 tokens" in result.stdout
    assert "weights: 3.12 GB" in result.stdout
    assert "every head ablated once" in result.stdout


def test_json(run):
    options = ("--hardware", "h100", "--dtype", "bfloat16", "--devices", 8, "--json")
    found = json.loads(run("model", "plan", "gpt3-175b", *options).stdout)
    assert found["parameters"] == 174_604_259_328
    assert found["bytes"]["weights"] == 2 * 174_604_259_328
    assert set(found["bytes"]) == {"weights", "cache", "sweep"}
    assert set(found["flops"]) == set(found["seconds"]) == {"forward", "sweep"}
    assert found["seconds"]["sweep"] > found["seconds"]["forward"] > 0


def test_this_machine_is_measured(run):
    result = run("model", "plan", "gpt2")
    assert result.exit_code == 0, result.output
    assert "on 1 x this CPU, 1 thread in float32" in result.stdout


def test_what_does_not_fit(run):
    result = run("model", "plan", "gpt3-175b", "--hardware", "h100", "--dtype", "bfloat16")
    assert result.exit_code == 2
    assert "what would fit: llama-2-7b here, or 5 of these together" in result.stderr


def test_an_unknown_preset(run):
    result = run("model", "plan", "gpt5", "--hardware", "h100")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: no preset is called 'gpt5'; did you mean 'gpt'")


def test_a_model_that_takes_several_devices_is_said_first_to_be_out_of_reach(run):
    options = ("llama-2-70b", "--hardware", "h100", "--dtype", "bfloat16", "--devices", 2)
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
    options = ("--model", described, "--hardware", "h100")
    found = json.loads(run("model", "plan", *options, "--task", "agreement", "--n", 12, "--json").stdout)
    task = load_task("agreement", n=12, tokenizer=real_load_model().tokenizer)
    longest = max(len(each.prompt) for each in task.examples)
    assert (found["model"], found["prompts"], found["tokens"]) == (str(described), 24, longest)
    assert found["parameters"] == parameter_count(random_model(tokenizer=real_load_model().tokenizer, n_ctx=64).config)
    shown = run("model", "plan", *options)
    assert shown.stdout.startswith(f"{described}: {found['parameters']:,} parameters\n")
    assert "16 prompts of 20 tokens" in shown.stdout
    assert f"interp ablate --task ioi --model {described} --dtype float32 --out ablation" in shown.stderr


def test_a_hub_name_s_weights_are_not_fetched(run, described, monkeypatch):
    asked = []

    def snapshot_download(_name, allow_patterns):
        asked.extend(allow_patterns)
        return str(described)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    assert run("model", "plan", "--model", "some/name", "--hardware", "h100").exit_code == 0
    assert "config.json" in asked
    assert not [each for each in asked if fnmatch("model.safetensors", each) or fnmatch("pytorch_model.bin", each)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "model plan: expected a preset or --model, one of the two, got neither"),
        (("gpt2", "--model", "default"), "model plan: expected a preset or --model, one of the two, got both"),
        (("gpt2", "--task", "ioi"), "--task ioi: expected --model with a tokenizer beside its config.json"),
        (("gpt2", "--n", 5), "--n: expected --task beside it"),
        (("gpt2", "--unequal-lengths"), "--unequal-lengths: expected --task beside it"),
        (("--model", "default", "--task", "ioi", "--tokens", 9), "--task: expected no --prompts or --tokens beside it"),
        (("--model", "bridge:gpt2"), "bridge:gpt2: its configuration is TransformerLens' own"),
        (("--model", "/nowhere"), "/nowhere: no such folder"),
    ],
)
def test_what_cannot_be_planned(run, arguments, message):
    result = run("model", "plan", "--hardware", "h100", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1
