"""The same weights in what training leaves around them: compiled, parallel, sharded, within another module."""

import itertools
import re

import pytest
import torch
from foreign_models import VARIANTS, random_foreign
from refusals import refused
from safetensors.torch import load_file, save_file
from tiny_models import random_gpt2, random_model
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from transformers import GPT2Config, GPT2DoubleHeadsModel, GPT2LMHeadModel, LlamaModel

from interp.errors import LoadError
from interp.model.loading import load_model
from interp.model.loading.bridge import WRAPPERS

FAMILIES = ("gpt2", *VARIANTS)


def module_of(family):
    return random_gpt2() if family == "gpt2" else random_foreign(family)


def renamed(folder, change):
    """The folder of a checkpoint with other names of its tensors."""
    path = folder / "model.safetensors"
    save_file({change(name): tensor for name, tensor in load_file(path).items()}, path)
    return folder


class Wrapper(nn.Module):
    """As data parallelism, DeepSpeed and sharding keep a module; it computes what the module does."""

    def __init__(self, module, name):
        super().__init__()
        self.add_module(name, module)


Wrapper.__module__ = "deepspeed.runtime.engine"


class Steered(Wrapper):
    """Keeps a module as a wrapper does, and adds to what it computes."""

    def __init__(self, module):
        super().__init__(module, "module")
        self.added = nn.Linear(3, 3)


def test_a_module_that_adds_to_the_one_within_is_refused():
    with pytest.raises(LoadError, match=r"module\.get_submodule\('module'\)"):
        load_model(Steered(module_of("gpt2")))


class Scaled(nn.Module):
    """Somebody's own module, which computes something else with the weights of the one within."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, tokens):
        return self.module(tokens).logits / 5


def test_a_module_of_somebody_s_own_is_refused():
    with pytest.raises(
        LoadError, match=r"got Scaled, .* give the GPT2LMHeadModel in it, module\.get_submodule\('module'\)"
    ):
        load_model(Scaled(module_of("gpt2")))


class OwnForward(GPT2LMHeadModel):
    def forward(self, *args, **options):
        out = super().forward(*args, **options)
        out.logits = out.logits * 3
        return out


def hooked(module):
    module.transformer.h[0].attn.register_forward_hook(lambda _module, _inputs, out: (out[0] * 0, *out[1:]))


def with_another_epsilon(module):
    module.transformer.h[0].ln_1.eps = 0.5


def with_another_activation(module):
    module.transformer.h[0].mlp.act = nn.ReLU()


def of_another_class(module):
    module.__class__ = OwnForward


@pytest.mark.parametrize("change", [hooked, with_another_epsilon, with_another_activation, of_another_class])
def test_a_module_that_computes_something_else_than_its_weights_say(change):
    for own, dtype in itertools.product((torch.float64, torch.float32, torch.bfloat16), ("float32", "bfloat16")):
        module = random_gpt2().to(own)
        assert load_model(module, dtype=dtype).W_E.dtype == getattr(torch, dtype)
        change(module)
        with pytest.raises(LoadError, match=r"the logits of our copy differ from those of the .* hooks, code or sett"):
            load_model(module, dtype=dtype)


@pytest.mark.parametrize("own", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_small_change_beside_large_numbers_that_all_logits_share(own, dtype):
    """Of these, only the rounding counts, whatever dtype is asked for."""
    own = getattr(torch, own)
    module = random_gpt2(n_embd=24, n_head=2, n_layer=1, tie_word_embeddings=False).to(own)
    with torch.no_grad():
        module.lm_head.weight += 2 * torch.randn(24, generator=torch.Generator().manual_seed(0)).to(own)
    load_model(module, dtype=dtype)
    module.transformer.h[0].mlp.register_forward_hook(lambda _module, _inputs, out: out * 1.5)
    with pytest.raises(LoadError, match=r"the logits of our copy differ"):
        load_model(module, dtype=dtype)


def test_logits_that_are_all_0():
    module = random_gpt2(n_embd=24, n_head=2, n_layer=1, tie_word_embeddings=False)
    torch.nn.init.zeros_(module.lm_head.weight)
    assert load_model(module)(torch.arange(3)[None]).abs().max() == 0


@pytest.mark.parametrize("own", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("asked", ["its own", "float32"])
@pytest.mark.parametrize("family", ["gemma2", "gemma3"])
def test_what_rounding_explains_is_not_refused(family, asked, own):
    """Gemma's norms are the most rounded: 1 + w, which is kept here, and again behind what is written."""
    for seed in range(4):
        module = random_foreign(family, seed=seed, dtype=own, **VARIANTS[family]["default"])
        load_model(module, dtype=own if asked == "its own" else asked)


def test_what_a_hook_keeps_can_be_trained_with():
    kept, module = [], random_gpt2()
    module.transformer.h[0].register_forward_hook(lambda _module, _inputs, out: kept.append(out[0]))
    load_model(module)
    assert kept
    assert not any(each.is_inference() for each in kept)


def test_a_weight_that_is_computed():
    module = random_gpt2()
    nn.utils.parametrizations.weight_norm(module.lm_head)
    with pytest.raises(LoadError, match=r"part of a weight that is computed; .*remove_parametrizations"):
        load_model(module)
    nn.utils.parametrize.remove_parametrizations(module.lm_head, "weight")
    load_model(module)


def test_a_second_head_beside_that_which_predicts_tokens(tmp_path):
    module = GPT2DoubleHeadsModel(random_gpt2().config).double().eval()
    module.load_state_dict(random_gpt2().state_dict(), strict=False)
    module.save_pretrained(tmp_path)
    assert load_model(module).hash == load_model(tmp_path).hash == load_model(random_gpt2()).hash


def test_a_module_that_does_not_run(tmp_path):
    module = random_gpt2()
    module.register_forward_pre_hook(lambda _module, _inputs: 1 / 0)
    with pytest.raises(LoadError, match=r"GPT2LMHeadModel: it does not run .*ZeroDivisionError.*; save it, and load"):
        load_model(module)
    module.save_pretrained(tmp_path)
    assert load_model(tmp_path).hash == load_model(random_gpt2()).hash


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_module_may_return(family):
    """Tuples, where its config asks for them, which transformers' own classes then cannot unpack."""
    module = module_of(family)
    expected = load_model(module).hash
    module.config.return_dict = False
    assert load_model(module).hash == expected
    assert module.config.return_dict is False


def test_a_module_in_training_mode_stays_in_it():
    module = random_gpt2(resid_pdrop=0.5).train()
    module.transformer.h[0].eval()
    before = [each.training for each in module.modules()]
    assert load_model(module).hash == load_model(module.transformer).hash
    assert [each.training for each in module.modules()] == before


class LightningLike(nn.Module):
    """Somebody's training code, which may compute anything with the model in it."""

    def __init__(self, model):
        super().__init__()
        self.model = model


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod.", "_forward_module.", "model.", "net."])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_whose_names_have_a_prefix(tmp_path, family, prefix):
    module = module_of(family)
    module.save_pretrained(tmp_path)
    expected = load_model(tmp_path).hash
    assert load_model(renamed(tmp_path, lambda name: prefix + name)).hash == expected == load_model(module).hash


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_folder_whose_blocks_were_wrapped(tmp_path, name):
    random_gpt2().save_pretrained(tmp_path)
    expected = load_model(tmp_path).hash
    assert load_model(renamed(tmp_path, lambda each: re.sub(r"\.h\.(\d)\.", rf".h.\1.{name}.", each))).hash == expected


def test_a_body_alone_within_another_module(tmp_path):
    random_gpt2().transformer.save_pretrained(tmp_path)
    expected = load_model(tmp_path).hash
    assert load_model(renamed(tmp_path, lambda name: f"model.{name}")).hash == expected


@pytest.mark.parametrize(
    "wrap",
    [
        torch.compile,
        nn.DataParallel,
        nn.Sequential,
        checkpoint_wrapper,
        lambda module: torch.compile(nn.DataParallel(torch.compile(module))),
        *(lambda module, name=name: Wrapper(module, name) for name in WRAPPERS),
    ],
)
def test_a_wrapped_module(wrap):
    module = random_gpt2()
    assert load_model(wrap(module)).hash == load_model(module).hash


def test_a_module_with_a_compiled_block():
    module = random_gpt2()
    expected = load_model(module).hash
    module.transformer.h[1] = torch.compile(module.transformer.h[1])
    assert any("_orig_mod" in name for name in module.state_dict())
    assert load_model(module).hash == expected


def test_what_was_wrapped_is_told_about():
    refused(torch.compile(random_model()), "'random' already is an interp model")
    refused(nn.DataParallel(nn.Linear(2, 2)), "got Linear, which has no config$")


def test_a_module_that_holds_one():
    holder = LightningLike(random_gpt2())
    refused(
        nn.Sequential(holder, nn.Linear(2, 2)),
        r"got Sequential, which has no config; give the GPT2LMHeadModel in it, module.get_submodule\('0.model'\)",
    )
    refused(holder, r"got LightningLike, .* give the GPT2LMHeadModel in it, module.get_submodule\('model'\)")
    assert load_model(holder.get_submodule("model")).hash == load_model(random_gpt2()).hash


def test_lightnings_checkpoint(tmp_path):
    module = random_gpt2()
    content = {"epoch": 1, "global_step": 9, "state_dict": LightningLike(module).state_dict()}
    torch.save(content, tmp_path / "last.ckpt")
    refused(tmp_path, "last.ckpt: a checkpoint of Lightning.*; save its 'state_dict' as pytorch_model.bin in a folder")
    (tmp_path / "model").mkdir()
    torch.save(torch.load(tmp_path / "last.ckpt")["state_dict"], tmp_path / "model" / "pytorch_model.bin")
    module.config.save_pretrained(tmp_path / "model")
    assert load_model(tmp_path / "model").hash == load_model(module).hash


def test_a_name_that_is_there_twice(tmp_path):
    random_gpt2().save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    name = "transformer.ln_f.weight"
    save_file({**state, f"module.{name}": state[name].clone()}, tmp_path / "model.safetensors")
    refused(tmp_path, rf"model.safetensors: tensor '{name}' is there twice")


class TestShardsOfPyTorchFiles:
    @pytest.fixture
    def folder(self, tmp_path):
        random_gpt2().save_pretrained(tmp_path, max_shard_size="2KB")
        for path in tmp_path.glob("model-*.safetensors"):
            torch.save(load_file(path), tmp_path / f"pytorch_{path.stem}.bin")
            path.unlink()
        index = tmp_path / "model.safetensors.index.json"
        text = index.read_text().replace("model-", "pytorch_model-").replace(".safetensors", ".bin")
        (tmp_path / "pytorch_model.bin.index.json").write_text(text)
        index.unlink()
        return tmp_path

    def test_they_are_read(self, folder):
        assert len([*folder.glob("*.bin")]) > 2
        assert load_model(folder).hash == load_model(random_gpt2()).hash

    def test_one_is_missing(self, folder):
        shard = min(folder.glob("*.bin"))
        shard.unlink()
        refused(folder, f"{shard.name}: not a readable PyTorch file")


class TestAdapters:
    ADVICE = "merge it into .*, and give .*merge_and_unload"

    def test_a_folder(self, tmp_path):
        """Even where the model's weights lie beside it: transformers would add the adapter to them."""
        random_gpt2().save_pretrained(tmp_path)
        (tmp_path / "adapter_config.json").write_text("{}")
        refused(tmp_path, rf"an adapter of PEFT \(adapter_config.json\); {self.ADVICE}")

    @pytest.mark.parametrize(
        "name", ["base_model.model.transformer.wte.weight", "transformer.h.0.attn.c_attn.lora_A.default.weight"]
    )
    def test_weights(self, tmp_path, name):
        random_gpt2().save_pretrained(tmp_path)
        save_file({name: torch.ones(2), "lm_head.weight": torch.ones(2)}, tmp_path / "model.safetensors")
        refused(tmp_path, f"tensor '{name}' is part of an adapter of PEFT; {self.ADVICE}")


class TestOtherFormats:
    def test_weights_of_another_library_are_named(self, tmp_path):
        random_gpt2().config.save_pretrained(tmp_path)
        (tmp_path / "tf_model.h5").touch()
        refused(tmp_path, r"no weights here; expected model.safetensors, .*; got 'config.json', 'tf_model.h5'$")


class TestWithoutAHead:
    def test_a_llama_alone(self):
        body = LlamaModel(random_foreign("llama").config)
        refused(
            body,
            "LlamaModel: tensor 'lm_head.weight' is missing: .* so it has no logits; save one of a class with a head",
        )

    def test_one_whose_unembedding_is_its_embedding(self):
        module = random_foreign("llama", tie_word_embeddings=True)
        assert load_model(module.model).hash == load_model(module).hash


class TestQuantised:
    def test_by_transformers(self):
        module = random_gpt2()
        module.config.quantization_config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
        refused(module, "quantization_config=.* is not supported: its weights are quantised; take the model as it was")

    def test_by_pytorch(self):
        module = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=40, n_positions=16))
        quantised = torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8)
        refused(quantised, "'lm_head._packed_params.*' is quantised; take the model as it was before")
