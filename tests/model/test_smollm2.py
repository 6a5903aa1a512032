"""A real model, SmolLM2-135M-Instruct: its numbers are transformers' and TransformerLens', its heads the known ones.

Its Q4_1 file is read by all three: by interp as `interp model fetch` reads it, by transformers by itself, and by
TransformerLens from the folder that transformers saved.
"""

import numpy as np
import pytest
import torch
from tiny_models import relative_error
from transformers import AutoModelForCausalLM, AutoTokenizer

from interp.interventions.intervention import Intervention
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Cell, Sweep
from interp.methods.function_heads import function_heads, repeated
from interp.model.loading import load_model
from interp.model.sites import Site
from interp.tasks import induction
from interp.tasks.encoding import encode_task

pytestmark = pytest.mark.unchecked

TEXTS = [
    "The keys to the cabinet are on the table, and Mary gave John the 3 books that she'd read in 1999.",
    "When Alice and Bob went to the store, Bob gave a drink to Alice. When Alice and Bob went to the",
]
INDUCTION = {(18, 6), (17, 3), (17, 4), (17, 5)}
DETECTED = {
    "previous token": "previous_token_head",
    "duplicate token": "duplicate_token_head",
    "induction": "induction_head",
}
"""Our names of what heads look at, and those of TransformerLens' head_detector."""


@pytest.fixture(scope="module")
def model(smollm2_folder):
    return load_model("smollm2")


@pytest.fixture(scope="module")
def theirs(smollm2_for_transformers):
    how = {"dtype": torch.float32, "attn_implementation": "eager"}
    return AutoModelForCausalLM.from_pretrained(smollm2_for_transformers, **how).eval()


@pytest.fixture(scope="module")
def tokenizer(smollm2_for_transformers):
    return AutoTokenizer.from_pretrained(smollm2_for_transformers)


@pytest.fixture(scope="module")
def bridge(smollm2_for_transformers):
    from transformer_lens.model_bridge import TransformerBridge

    return TransformerBridge.boot_transformers(str(smollm2_for_transformers), device="cpu", dtype=torch.float32).eval()


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def patterns(cache, layers):
    return torch.stack([cache["pattern", layer] for layer in range(layers)])


class TestAgainstTransformers:
    @pytest.mark.parametrize("text", TEXTS)
    def test_logits_and_patterns(self, model, theirs, text):
        tokens = model.to_tokens(text)
        expected = theirs(tokens, output_attentions=True)
        logits, cache = model.run_with_cache(tokens, names_filter=lambda name: name.endswith("hook_pattern"))
        assert relative_error(logits, expected.logits) < 1e-5
        assert relative_error(patterns(cache, 30), torch.stack(expected.attentions)) < 1e-5

    @pytest.mark.parametrize("text", [*TEXTS, "  def f(x):\n\treturn x**2  # été 漢字 😀 <|im_start|>user", ""])
    def test_token_ids(self, model, tokenizer, text):
        assert model.tokenizer(text)["input_ids"] == tokenizer(text)["input_ids"]

    def test_special_tokens_and_chat_template(self, model, tokenizer):
        assert model.tokenizer.special_tokens_map == tokenizer.special_tokens_map
        assert (model.tokenizer.bos_token, model.tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
        turns = [{"role": "user", "content": "Who are you?"}]
        asked, expected = (
            each.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            for each in (model.tokenizer, tokenizer)
        )
        assert asked == expected
        assert asked.endswith("<|im_start|>user\nWho are you?<|im_end|>\n<|im_start|>assistant\n")

    def test_greedy_generation(self, model, theirs):
        tokens = model.to_tokens("The capital of France is")
        expected = theirs.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=12, do_sample=False)
        assert model.generate(tokens, 12, temperature=0.0).tolist() == expected.tolist()


class TestHeads:
    def test_the_known_induction_heads_are_found(self, model):
        """Those that most attend to what came after the same token last time, on random tokens said twice."""
        found = function_heads(model, n_rows=4).summary().query("function == 'induction'").nlargest(4, "score")
        assert set(zip(found["layer"], found["head"], strict=True)) == INDUCTION
        assert (found["score"] > 0.5).all()

    @pytest.mark.slow
    @pytest.mark.parametrize("function", DETECTED)
    def test_scores_are_those_of_head_detector(self, model, bridge, function):
        """It divides by all queries, and ours by those that have anything to look at."""
        from transformer_lens.head_detector import detect_head

        text = model.tokenizer.decode(repeated(model, 1, seed=3)[0][1:])
        (row,) = bridge.to_tokens(text).tolist()
        assert row == model.to_tokens(text)[0].tolist()
        frame = function_heads(model, [row]).examples.query("function == @function")
        ours = np.zeros((30, 9))
        ours[frame["layer"], frame["head"]] = frame["attention"] * frame["n_queries"] / len(row)
        expected = detect_head(bridge, text, DETECTED[function]).numpy()
        assert np.abs(ours - expected).max() < 1e-4
        assert expected.max() > 0.3, "some head does it"


@pytest.mark.slow
class TestAgainstTransformerLens:
    @pytest.mark.parametrize("text", TEXTS)
    def test_logits_and_patterns(self, model, bridge, text):
        tokens = model.to_tokens(text)
        assert bridge.to_tokens(text).tolist() == tokens.tolist()
        (logits, cache), (expected, their_cache) = (each.run_with_cache(tokens) for each in (model, bridge))
        assert relative_error(logits, expected) < 1e-5
        assert relative_error(patterns(cache, 30), patterns(their_cache, 30)) < 1e-5

    def test_every_resid(self, model, bridge):
        tokens = model.to_tokens(TEXTS[0])
        (_, cache), (_, theirs) = (each.run_with_cache(tokens) for each in (model, bridge))
        for layer in range(30):
            for point in ("hook_resid_pre", "hook_resid_post", "hook_attn_out", "hook_mlp_out"):
                name = f"blocks.{layer}.{point}"
                assert relative_error(cache[name], theirs[name]) < 1e-4, name


class TestEngine:
    def test_it_equals_the_plain_way(self, model):
        """Heads that share keys and values, a whole layer, and an MLP, at all positions and at one."""
        about = {"name": "again", "description": "It goes on as it did.", "metric": "logit_difference"}
        task = encode_task(induction.pairs(3, seed=0), tokenizer=model.tokenizer, **about)
        zero = Zero()
        cells = [
            Cell({"cell": "18.6"}, (Intervention(Site("z", 18), zero, heads=(6,)),)),
            Cell({"cell": "3.0, a word"}, (Intervention(Site("z", 3), zero, heads=(0,), positions=(3,)),)),
            Cell({"cell": "17"}, (Intervention(Site("z", 17), zero),)),
            Cell({"cell": "mlp 5"}, (Intervention(Site("mlp_out", 5), zero),)),
        ]
        fast, plain = (Sweep(cells).run(model, task, plainly=plainly).examples for plainly in (False, True))
        largest = plain["value"].abs().max()
        assert (fast["value"] - plain["value"]).abs().max() < 1e-5 * largest
        assert (fast["base"] - plain["base"]).abs().max() < 1e-5 * largest
        assert fast.groupby("cell")["effect"].mean().abs().min() > 1e-4


@pytest.mark.slow
def test_the_file_is_what_was_fetched(model, smollm2_for_transformers):
    """Loading the .gguf by itself gives the same weights; in 16 bits those, rounded."""
    file = smollm2_for_transformers / "smollm2.gguf"
    assert load_model(file).hash == model.hash
    assert load_model(file, dtype="bfloat16").hash == load_model("smollm2", dtype="bfloat16").hash
