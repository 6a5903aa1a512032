"""llama.cpp's files: their numbers and tokenizers are those of transformers, and what is wrong with one is said."""

import sys

import pytest
import torch
from refusals import refused
from tiny_models import random_gpt2, relative_error, word_tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer
from written_gguf import FACTORS, TEMPLATE, TOKENS, Type, dequantised, factors_of, gemma2, llama, phi3, qwen2, save

from interp.model.loading import configuration_and_tokenizer, load_model, save_model

IDS = torch.arange(40)[None] % len(TOKENS)
STRETCHED = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
STRETCHED |= {"original_max_position_embeddings": 32, "rope_theta": 50.0}
WIDTH = [("attention.key_length", 16)]
BEFORE = "take the model as it was before it was quantised: its folder, or its name on the hub"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return save(tmp_path_factory.mktemp("gguf") / "tiny.gguf", llama(), Type.Q4_1)


class TestNumbers:
    @pytest.mark.parametrize("kind", [Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_1])
    def test_logits_are_those_of_the_module_that_was_written(self, tmp_path, kind):
        module = llama()
        with torch.no_grad():
            expected, plain = dequantised(module, kind)(IDS).logits, module(IDS).logits
            got = load_model(save(tmp_path / "tiny.gguf", module, kind))(IDS)
        assert relative_error(got, expected) < 1e-5
        assert kind == Type.F32 or relative_error(got, plain) > 1e-4, "nothing was quantised"

    def test_as_transformers_reads_it(self, file):
        theirs = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
        with torch.no_grad():
            assert relative_error(load_model(file)(IDS), theirs(IDS).logits) < 1e-5

    def test_an_unembedding_of_its_own(self, tmp_path):
        module = llama(tie_word_embeddings=False)
        with torch.no_grad():
            got = load_model(save(tmp_path / "tiny.gguf", module))(IDS)
            assert relative_error(got, module(IDS).logits) < 1e-5

    def test_another_family(self, tmp_path):
        """Qwen 2's, whose queries, keys and values have biases."""
        module = qwen2()
        with torch.no_grad():
            got = load_model(save(tmp_path / "tiny.gguf", module, architecture="qwen2"))(IDS)
            assert relative_error(got, module(IDS).logits) < 1e-5

    @pytest.mark.parametrize(
        ("make", "fields", "more"),
        [
            (phi3, {"sliding_window": 8}, [("attention.sliding_window", 8)]),
            (gemma2, {"num_hidden_layers": 46, "query_pre_attn_scalar": 16}, WIDTH),  # 64 / 4, as of the largest
            (gemma2, {"sliding_window": 8}, [*WIDTH, ("attention.sliding_window", 8)]),
        ],
        ids=["a window", "a scale of scores", "every other layer"],
    )
    def test_what_transformers_leaves_out(self, tmp_path, make, fields, more):
        module = make(**fields)
        path = save(tmp_path / "tiny.gguf", module, architecture=module.config.model_type, more=more)
        without = make(num_hidden_layers=module.config.num_hidden_layers)
        with torch.no_grad():
            expected = module(IDS).logits
            assert relative_error(load_model(path)(IDS), expected) < 1e-5
            assert relative_error(without(IDS).logits, expected) > 1e-3

    def test_positions_of_llama_3(self, tmp_path):
        """llama.cpp keeps them as a tensor, by what each pair's frequency is divided."""
        module = llama(rope_parameters=STRETCHED)
        with torch.no_grad():
            got = load_model(save(tmp_path / "tiny.gguf", module, extra={FACTORS: factors_of(module)}))(IDS)
            assert relative_error(got, module(IDS).logits) < 1e-5
            assert relative_error(got, llama()(IDS).logits) > 1e-3, "nothing was stretched"

    @pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
    def test_dtypes(self, file, dtype):
        """The weights are dequantised in 32 bits, and then rounded as any others."""
        got, whole = load_model(file, dtype=dtype), load_model(file)
        for (name, ours), expected in zip(got.named_parameters(), whole.parameters(), strict=True):
            assert ours.dtype == getattr(torch, dtype), name
            assert torch.equal(ours, expected.to(ours.dtype)), name

    def test_weights_are_dequantised_in_the_dtype_that_was_asked_for(self, file, monkeypatch):
        """A module in 32 bits beside a model in 16 would be three times its memory."""
        asked = []
        real = AutoModelForCausalLM.from_pretrained
        monkeypatch.setattr(
            AutoModelForCausalLM, "from_pretrained", lambda *a, **how: asked.append(how["dtype"]) or real(*a, **how)
        )
        load_model(file, dtype="bfloat16")
        assert asked == [torch.bfloat16]


class TestTokenizer:
    def test_as_transformers_makes_it(self, file):
        ours = load_model(file).tokenizer
        theirs = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        for text in ("The keys", " keys <s>The</s> 12 they", "unheard of"):
            assert ours(text)["input_ids"] == theirs(text)["input_ids"]
        assert ours.convert_ids_to_tokens(ours("The keys")["input_ids"]) == ["The", "Ġkeys"]
        assert ours.special_tokens_map == theirs.special_tokens_map
        assert (ours.bos_token_id, ours.eos_token_id, ours.unk_token_id) == (1, 2, 0)
        assert ours.chat_template == theirs.chat_template == TEMPLATE

    def test_it_stays_with_the_converted_model(self, file, tmp_path):
        model = load_model(file)
        again = load_model(save_model(model, tmp_path / "mine"))
        assert again.hash == model.hash
        assert again.tokenizer.chat_template == TEMPLATE
        assert again.tokenizer("The keys</s>")["input_ids"] == model.tokenizer("The keys</s>")["input_ids"]

    def test_what_lies_beside_the_file_is_another_models(self, tmp_path):
        random_gpt2().save_pretrained(tmp_path)
        word_tokenizer().save_pretrained(tmp_path)
        model = load_model(save(tmp_path / "tiny.gguf", llama()))
        assert model.tokenizer.bos_token == "<s>"
        assert model.tokenizer("The keys")["input_ids"] == [TOKENS.index("The"), TOKENS.index("Ġkeys")]
        assert model.config.d_model == 64

    def test_one_that_is_given(self, file):
        own = load_model().tokenizer
        assert load_model(file, tokenizer=own).tokenizer is own

    def test_none(self, tmp_path):
        assert load_model(save(tmp_path / "tiny.gguf", llama(), tokenizer=False)).tokenizer is None


class TestPlaces:
    def test_a_folder_with_one_file(self, file):
        assert load_model(file.parent).hash == load_model(str(file)).hash

    def test_beside_a_config_without_weights(self, tmp_path):
        """As repositories on the hub have it."""
        llama().config.save_pretrained(tmp_path)
        save(tmp_path / "tiny.gguf", llama())
        assert load_model(tmp_path).config.d_model == 64

    def test_weights_that_are_not_quantised_come_first(self, tmp_path):
        random_gpt2().save_pretrained(tmp_path)
        save(tmp_path / "tiny.gguf", llama())
        assert load_model(tmp_path).config.d_model == 12

    def test_several_files(self, tmp_path):
        for name in ("a.gguf", "b.gguf"):
            save(tmp_path / name, llama())
        refused(tmp_path, r"several checkpoints \(a.gguf, b.gguf\); name one")

    def test_a_plan_reads_no_weights(self, file, monkeypatch):
        monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *a, **how: pytest.fail("weights were read"))
        config, tokenizer = configuration_and_tokenizer(file)
        assert (config.n_layers, config.n_kv_heads, config.d_vocab) == (2, 2, len(TOKENS))
        assert tokenizer("The")["input_ids"] == [TOKENS.index("The")]


class TestRefused:
    def test_without_the_package(self, file, monkeypatch):
        monkeypatch.setitem(sys.modules, "gguf", None)
        refused(file, r"tiny.gguf: a GGUF file is read by the package gguf; pip install 'interp\[gguf\]'$")

    @pytest.mark.parametrize("share", [0.0, 0.0001, 0.05, 0.3, 0.9, 0.999])
    def test_a_part_of_a_file(self, file, tmp_path, share):
        part = tmp_path / "part.gguf"
        part.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
        refused(part, r"part.gguf: expected a whole GGUF file, got .* bytes that are damaged or stop too early; fetch")

    def test_another_file(self, tmp_path):
        (tmp_path / "x.gguf").write_bytes(b"#!/bin/sh\n" * 100)
        refused(tmp_path / "x.gguf", "expected a whole GGUF file, got 1,000 bytes")

    @pytest.mark.parametrize(
        ("number", "message"),
        [
            (99, r"a tensor is quantised in a way \(type 99\) that gguf [\d.]+ does not know; update gguf, or "),
            (26, r"tensor 'blk.0.attn_q.weight' is quantised as I32, which gguf [\d.]+ cannot undo; "),
        ],
    )
    def test_an_unknown_quantisation(self, tmp_path, number, message):
        path = save(tmp_path / "tiny.gguf", llama())
        content = bytearray(path.read_bytes())
        name = b"blk.0.attn_q.weight"
        kind = content.index(name) + len(name) + 4 + 2 * 8  # after the number of axes and both their lengths
        assert content[kind] == Type.F32
        content[kind] = number
        path.write_bytes(content)
        refused(path, message + BEFORE)

    def test_an_architecture_that_transformers_does_not_read(self, tmp_path):
        path = save(tmp_path / "tiny.gguf", llama(), architecture="rwkv7")
        refused(path, f"transformers cannot read a GGUF file of architecture 'rwkv7' .*; {BEFORE}")

    def test_an_architecture_that_is_not_known_here(self, tmp_path):
        path = save(tmp_path / "tiny.gguf", llama(), architecture="mamba")
        refused(path, r"tiny.gguf: architecture 'mamba' is not known here; .*load_model\('bridge:NAME'\)")

    @pytest.mark.parametrize("factors", [torch.ones(7), torch.zeros(8)], ids=["too few", "zeros"])
    def test_factors_of_other_positions(self, tmp_path, factors):
        path = save(tmp_path / "tiny.gguf", llama(), extra={FACTORS: factors})
        refused(path, f"'rope_freqs.weight': expected a number above 0 for each of the 8 pairs .*, got {len(factors)}")

    @pytest.mark.parametrize(
        "how",
        [
            {"extra": {"rope_factors_long.weight": torch.ones(8)}},
            {"more": [("rope.scaling.type", "yarn")]},
            {"more": [("rope.scaling.factor", 8.0)]},
            {"more": [("rope.scale_linear", 8.0)]},
        ],
        ids=["factors", "yarn", "a factor alone", "llama.cpp's first key"],
    )
    def test_scaled_positions(self, tmp_path, how):
        """transformers leaves them out, and would compute something else without a word."""
        path = save(tmp_path / "tiny.gguf", llama(), **how)
        refused(path, rf"its rotary positions are scaled \(.*\), which transformers does not read .*; {BEFORE}")

    @pytest.mark.parametrize(
        ("make", "key", "value", "got"),
        [
            (phi3, "rope.dimension_count", 12, 16),
            (llama, "final_logit_softcapping", 30.0, None),
            (llama, "attention.sliding_window", 8, 64),
            (llama, "expert_used_count", 2, 0),
        ],
    )
    def test_a_config_that_is_not_the_file_s(self, tmp_path, make, key, value, got):
        """transformers passes over what it does not know of a family."""
        module = make()
        path = save(tmp_path / "tiny.gguf", module, architecture=module.config.model_type, more=[(key, value)])
        refused(path, rf"{key} is {value:g}, and transformers makes a model with {got} of the file; {BEFORE}")

    def test_a_text_in_the_place_of_a_number(self, tmp_path):
        path = save(tmp_path / "tiny.gguf", llama(), more=[("attention.sliding_window", "wide")])
        refused(path, "llama.attention.sliding_window: expected a number, got 'wide'; fetch the file again")

    def test_a_tensor_too_many(self, tmp_path):
        path = save(tmp_path / "tiny.gguf", llama(), extra={"blk.0.attn_q.bias": torch.ones(64)})
        refused(path, "the file has .* numbers and transformers' LlamaForCausalLM .*, so it would pass some over")

    def test_a_tensor_too_few(self, tmp_path):
        """transformers would draw it at random."""
        path = save(tmp_path / "tiny.gguf", llama(), without=["blk.1.ffn_up.weight"])
        refused(path, "nothing is stored for tensor 'model.layers.1.mlp.up_proj.weight'; fetch it again")

    def test_beyond_16_bits(self, tmp_path):
        module = llama()
        with torch.no_grad():
            module.model.norm.weight[0] = 1e5
        path = save(tmp_path / "tiny.gguf", module)
        refused(path, "'model.norm.weight' holds NaN, or values beyond 65504, .*; take bfloat16", dtype="float16")
        assert load_model(path, dtype="bfloat16").W_E.dtype == torch.bfloat16

    def test_one_of_several_parts(self, tmp_path):
        import gguf

        writer = gguf.GGUFWriter(tmp_path / "x-00001-of-00002.gguf", "llama")
        writer.add_uint16("split.count", 2)
        for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
            write()
        writer.close()
        refused(tmp_path, "x-00001-of-00002.gguf: one of 2 parts; join them with llama-gguf-split --merge")
