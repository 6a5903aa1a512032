"""nanoGPT's and minGPT's training checkpoints, with the variants that their keys have had."""

import os
import pickle
import re

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from refusals import refused
from tiny_models import random_tokens, relative_error, word_tokenizer
from written_checkpoints import nano, save_min, save_nano
from written_models import SIZES, FirstMinGPT, drawn, tanh_gelu

from interp.model.loading import load_model


class Attack:
    """A pickle of it runs a command when it is opened."""

    def __reduce__(self):
        return os.system, ("exit 1",)


def error(source, theirs):
    model = load_model(source, dtype="float64")
    tokens = random_tokens(model, length=model.config.n_ctx)
    with torch.no_grad():
        return relative_error(model(tokens), theirs(tokens))


class TestNanoGPT:
    @pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module.", "module._orig_mod."])
    @pytest.mark.parametrize("mask", [False, True])
    @pytest.mark.parametrize("bias", [False, True])
    def test_logits(self, tmp_path, bias, mask, prefix):
        theirs = nano(bias=bias, mask=mask)
        assert ("transformer.h.0.attn.bias" in theirs.state_dict()) == mask
        path = save_nano(tmp_path, theirs, prefix=prefix, bias=bias)
        assert error(path, theirs) < 1e-10
        assert load_model(path).config.biases == (("qkv", "o", "mlp", "norm") if bias else ())

    def test_the_folder_is_enough(self, tmp_path):
        path = save_nano(tmp_path, nano(), bias=True)
        assert load_model(tmp_path).hash == load_model(path).hash == load_model(str(path)).hash

    def test_before_biases_were_a_choice_gelu_was_the_approximation(self, tmp_path):
        theirs = nano(gelu=tanh_gelu)
        assert error(save_nano(tmp_path, theirs), theirs) < 1e-10
        assert error(save_nano(tmp_path, theirs, bias=True), theirs) > 1e-7

    def test_the_two_gelus_differ_by_as_much_as_is_said(self):
        x = torch.linspace(-6, 6, 100_001, dtype=torch.float64)
        assert 0.0004 < float((F.gelu(x) - tanh_gelu(x)).abs().max()) < 0.0005

    def test_before_the_embeddings_were_tied(self, tmp_path):
        theirs = nano(tied=False, gelu=tanh_gelu)
        assert error(save_nano(tmp_path, theirs), theirs) < 1e-10
        assert not load_model(tmp_path).config.tied

    def test_a_tokenizer_beside_it_is_read(self, tmp_path):
        tokenizer = word_tokenizer()
        path = save_nano(tmp_path, nano(vocab_size=len(tokenizer)), bias=True, vocab_size=len(tokenizer))
        assert load_model(path).tokenizer is None
        tokenizer.save_pretrained(tmp_path)
        assert load_model(path).to_tokens("the keys").shape == (1, 3)

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            ({"n_head": 5}, "model_args: n_embd=12 is not a multiple of n_head=5"),
            ({"n_layer": 3}, "tensor 'transformer.h.2.ln_1.weight' is missing"),
            ({"n_layer": 1}, "tensor 'transformer.h.1.ln_1.weight' is not part of nanoGPT"),
            ({"block_size": 9}, r"tensor 'transformer.wpe.weight': expected shape \(9, 12\), got \(10, 12\)"),
            ({"vocab_size": 50_304}, r"tensor '.*wte.weight': expected shape \(50304, 12\), got \(43, 12\)"),
            ({"bias": False}, r"tensor 'transformer.h.0.ln_1.bias' is not part of nanoGPT"),
            ({"n_embd": None}, "n_embd: expected a whole number of at least 1, got None"),
        ],
    )
    def test_arguments_of_another_model(self, tmp_path, args, message):
        refused(save_nano(tmp_path, nano(), **{"bias": True} | args), message)

    def test_missing_arguments(self, tmp_path):
        torch.save({"model": nano().state_dict(), "model_args": {}}, tmp_path / "ckpt.pt")
        refused(tmp_path, "model_args: the config has no field 'n_layer', which nanoGPT needs")
        torch.save({"model": nano().state_dict(), "model_args": 5}, tmp_path / "ckpt.pt")
        refused(tmp_path, "'model_args': expected a dictionary of the model's sizes, got int")
        torch.save({"model": 5, "model_args": SIZES}, tmp_path / "ckpt.pt")
        refused(tmp_path, "expected a dictionary of tensors, got int")

    def test_one_that_runs_code_names_it(self, tmp_path):
        (tmp_path / "ckpt.pt").write_bytes(pickle.dumps({"model": {}, "model_args": Attack()}, protocol=2))
        refused(tmp_path, r"ckpt.pt: this pickle holds more than tensors \((posix|nt).system\) and could run code")

    @pytest.mark.parametrize(
        ("tensor", "message"),
        [
            (torch.empty(12, device="meta"), "has no values"),
            (torch.quantize_per_tensor(torch.ones(12), 0.1, 0, torch.qint8), "is quantised"),
            (torch.eye(12).to_sparse(), "is stored as torch.sparse_coo"),
        ],
    )
    def test_tensors_without_values_to_read(self, tmp_path, tensor, message):
        path = save_nano(tmp_path, nano(), bias=True)
        content = torch.load(path)
        content["model"]["transformer.ln_f.weight"] = tensor
        torch.save(content, path)
        refused(path, f"tensor 'transformer.ln_f.weight' {message}")

    def test_two_of_them(self, tmp_path):
        save_nano(tmp_path, nano(), bias=True).rename(tmp_path / "best.pt")
        save_nano(tmp_path, nano(), bias=True)
        refused(tmp_path, r"no config.json with its weights, and several checkpoints \(best.pt, ckpt.pt\); name one")


class TestMinGPT:
    def test_logits(self, tmp_path):
        theirs = nano(tied=False, gelu=tanh_gelu, mask=True)
        assert error(save_min(tmp_path, theirs, model_type=None, **SIZES, embd_pdrop=0.1), theirs) < 1e-10
        assert load_model(tmp_path / "model.pt").hash == load_model(tmp_path).hash

    def test_sizes_that_it_writes_before_it_knows_them(self, tmp_path):
        theirs = nano(tied=False, gelu=tanh_gelu, mask=True, n_layer=3, n_embd=48)
        unknown = dict.fromkeys(("n_layer", "n_head", "n_embd", "vocab_size", "block_size"))
        assert error(save_min(tmp_path, theirs, model_type="gpt-nano", **unknown), theirs) < 1e-10

    def test_a_size_that_its_name_does_not_have(self, tmp_path):
        save_min(tmp_path, nano(tied=False, mask=True), model_type="gpt2")
        refused(tmp_path, "config.json: the config has no field 'n_head', which minGPT needs")

    def test_the_first_generation(self, tmp_path):
        theirs = drawn(FirstMinGPT(**SIZES))
        assert "blocks.0.attn.mask" in theirs.state_dict()
        assert error(save_min(tmp_path, theirs, n_head=3), theirs) < 1e-10

    @pytest.mark.parametrize("joined", ["proj", "c_proj"])
    def test_the_first_generation_with_one_matrix(self, tmp_path, joined):
        theirs = drawn(FirstMinGPT(**SIZES, joined=joined))
        assert "blocks.0.attn.c_attn.weight" in theirs.state_dict()
        assert error(save_min(tmp_path, theirs, n_head=3), theirs) < 1e-10

    def test_matrices_that_are_not_transposed(self, tmp_path):
        """As two days' commits of June 2022 had them."""
        theirs = nano(tied=False, gelu=tanh_gelu, mask=True)
        save_min(tmp_path, theirs, **SIZES)
        matrices = re.compile(r"\.(c_attn|c_proj|c_fc)\.weight$")
        state = theirs.state_dict()
        torch.save(
            {name: each.T if matrices.search(name) else each for name, each in state.items()}, tmp_path / "model.pt"
        )
        assert error(tmp_path, theirs) < 1e-10

    def test_how_many_heads_nobody_says(self, tmp_path):
        path = save_min(tmp_path, nano(tied=False, mask=True)) / "model.pt"
        refused(tmp_path, "config.json: the config has no field 'n_head', which minGPT needs")
        (tmp_path / "config.json").write_text('{"model": {"model_type": ["gpt-nano"]}}')
        refused(path, "config.json: the config has no field 'n_head', which minGPT needs")
        (tmp_path / "config.json").write_text("{}")
        refused(path, "the config.json beside it has no 'model', which minGPT writes")
        (tmp_path / "config.json").unlink()
        refused(path, "expected a dictionary with 'model' and 'model_args', .* got neither")

    def test_a_config_of_another_model(self, tmp_path):
        theirs = nano(tied=False, mask=True)
        refused(
            save_min(tmp_path, theirs, **SIZES | {"n_embd": 15}), r"'transformer.wte.weight': expected shape \(43, 15\)"
        )

    def test_a_foreign_key(self, tmp_path):
        theirs = nano(tied=False, mask=True)
        theirs.extra = torch.nn.Linear(2, 2)
        refused(save_min(tmp_path, theirs, **SIZES), "tensor 'extra.weight' is not part of minGPT")

    def test_no_weights(self, tmp_path):
        (save_min(tmp_path, nano(tied=False), **SIZES) / "model.pt").unlink()
        refused(tmp_path, "model.pt: not a readable PyTorch file")
