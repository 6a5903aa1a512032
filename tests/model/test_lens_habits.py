"""What a user of TransformerLens types, typed here: the same calls take and return the same kinds of things."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_models import random_model, random_tokens, word_tokenizer

import interp
from interp.errors import InputError, LoadError
from interp.model.transformer import HookedTransformer

TEXT = "The keys to the cabinet"
TEXTS = [TEXT, "Mary gave"]
KINDS = ("str", "tokens", "embeds")


@pytest.fixture(scope="module")
def model():
    return random_model(tokenizer=word_tokenizer(), n_ctx=24)


class TestGenerate:
    @pytest.mark.parametrize("texts", [TEXT, TEXTS], ids=["one", "two"])
    @pytest.mark.parametrize(("given", "wanted"), list(itertools.product(KINDS, (*KINDS, "input"))))
    def test_what_is_given_and_what_is_returned(self, model, texts, given, wanted):
        """Whatever goes in and comes out, the same tokens are written."""
        tokens, mask = model.tokenize(texts, padding_side="left")
        how = {} if given == "str" else {"attention_mask": mask}
        prompt = {"str": texts, "tokens": tokens, "embeds": model.embed(tokens)}[given]
        found = model.generate(prompt, 3, do_sample=False, verbose=False, return_type=wanted, **how)
        written = model.generate(tokens, 3, attention_mask=mask)
        assert written.shape == (len(tokens), tokens.shape[1] + 3)
        wanted = given if wanted == "input" else wanted
        if given == "embeds" and wanted != "embeds":
            written, mask = written[:, -3:], mask[:, :0]
        if wanted == "tokens":
            assert torch.equal(found, written)
        elif wanted == "embeds":
            torch.testing.assert_close(found, model.embed(written))
        else:
            kept = torch.cat([mask, torch.ones_like(written[:, mask.shape[1] :], dtype=torch.bool)], 1)
            expected = [
                model.tokenizer.decode(row[keep], skip_special_tokens=True)
                for row, keep in zip(written, kept, strict=True)
            ]
            assert found == (expected[0] if texts is TEXT else expected)

    def test_embeddings_are_read_and_not_their_tokens(self):
        model = random_model(tokenizer=word_tokenizer(), n_ctx=24, seed=4)
        changed = model.embed(model.to_tokens(TEXT)) * torch.linspace(-4, 4, 6, dtype=torch.float64)[:, None]
        as_tokens = model.generate(TEXT, 6, return_type="tokens")[:, -6:]
        assert not torch.equal(model.generate(changed, 6, return_type="tokens"), as_tokens)
        without = model.generate(changed, 6, return_type="tokens", use_past_kv_cache=False)
        assert torch.equal(without, model.generate(changed, 6, return_type="tokens"))

    def test_sampling_is_asked_for_by_name_or_by_temperature(self, model):
        sampled = model.generate(TEXT, 8, do_sample=True, seed=3)
        assert sampled == model.generate(TEXT, 8, temperature=1.0, seed=3)
        assert model.generate(TEXT, 8, do_sample=False, temperature=1.0, top_k=5) == model.generate(TEXT, 8) != sampled

    def test_where_a_row_ends(self, model):
        tokens = model.to_tokens(TEXT)
        first = int(model.generate(tokens, 1)[0, -1])
        assert model.generate(tokens, 4, eos_token_id=[first, 3]).shape == (1, tokens.shape[1] + 1)
        assert model.generate(tokens, 4, eos_token_id=first, stop_at_eos=False).shape == (1, tokens.shape[1] + 4)

    def test_what_follows_a_full_context_is_padding(self, model):
        long = " ".join(["The keys to the table"] * 4)
        alone = model.generate(long, 30, stop_at_eos=False, return_type="tokens")
        assert alone.shape == (1, 24)
        both = model.generate([long, "The"], 30, stop_at_eos=False, return_type="tokens")
        assert both.shape[1] > 24
        assert torch.equal(both[0, :24], alone[0])
        assert not both[0, 24:].any()

    @pytest.mark.unchecked
    @pytest.mark.parametrize("make", [int, np.int64, torch.tensor, lambda each: [each]])
    def test_an_end_of_every_kind_of_number(self, model, make):
        tokens = model.to_tokens(TEXT)
        first = int(model.generate(tokens, 1)[0, -1])
        assert model.generate(tokens, 4, eos_token_id=make(first)).shape == (1, tokens.shape[1] + 1)

    @pytest.mark.unchecked
    @pytest.mark.parametrize("end", [1.5, -1, 10**30, 10**6, True, [1, -1]])
    def test_an_end_that_is_no_token(self, model, end):
        with pytest.raises(InputError, match=r"eos_token_id: token.*: expected "):
            model.generate(TEXT, 2, eos_token_id=end)
        with pytest.raises(InputError, match=r"eos_token_id: token.*: expected "):
            model.generate_stream(TEXT, 2, eos_token_id=end)

    @pytest.mark.unchecked
    def test_a_tokenizers_end_that_the_model_cannot_write(self, model, monkeypatch):
        """It ends nothing, and does not fill what follows a full context either."""
        long = " ".join(["The keys to the table"] * 4)
        expected = model.generate([long, "The"], 30, stop_at_eos=False, return_type="tokens")
        monkeypatch.setattr(type(model.tokenizer), "eos_token_id", 10**6, raising=False)
        assert torch.equal(model.generate([long, "The"], 30, return_type="tokens"), expected)

    def test_without_a_tokenizer(self):
        model = random_model()
        assert model.generate(random_tokens(model, 1, 5), 3, stop_at_eos=True).shape == (1, 8)
        with pytest.raises(InputError, match="this model has no tokenizer"):
            model.generate(random_tokens(model, 1, 5), 3, return_type="str")

    @pytest.mark.parametrize("size", [1, 4, 100])
    def test_as_a_stream(self, model, size):
        pieces = list(model.generate_stream(TEXT, 7, max_tokens_per_yield=size))
        assert torch.equal(torch.cat(pieces, 1), model.generate(model.to_tokens(TEXT), 7))
        assert len(pieces) == {1: 7, 4: 3, 100: 1}[size]

    @pytest.mark.unchecked
    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ({"temperature": "a"}, "temperature: expected float, got 'a'"),
            ({"top_k": "a"}, r"top_k: expected int \| None, got 'a'"),
            ({"return_type": "str"}, r"generate_stream: has no option return_type; see help\(model.generate\)"),
        ],
    )
    def test_what_a_stream_does_not_take(self, model, how, message):
        with pytest.raises(InputError, match=message):
            model.generate_stream(TEXT, 2, **how)

    @pytest.mark.unchecked
    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ({"input": torch.zeros(2, 3)}, r"embeddings: expected shape \[batch pos 12\], got \(2, 3\)"),
            ({"input": torch.zeros(1, 3, 5)}, r"embeddings: expected shape \[batch pos 12\], got \(1, 3, 5\)"),
            ({"return_type": "text"}, "return_type: expected one of input, str, tokens, embeds, got 'text'"),
            ({"attention_mask": torch.ones(1, 6)}, "attention_mask: text makes its own mask"),
        ],
    )
    def test_what_is_refused(self, model, how, message):
        with pytest.raises(InputError, match=message):
            model.generate(**{"input": TEXT, **how})


class TestText:
    def test_several_texts_at_once(self, model):
        assert model.to_str_tokens(TEXTS) == [model.to_str_tokens(each) for each in TEXTS]

    @pytest.mark.parametrize("make", [list, np.array, torch.tensor, lambda ids: torch.tensor([ids])])
    def test_ids_in_every_shape(self, model, make):
        ids = model.to_tokens(TEXT)[0].tolist()
        assert model.to_str_tokens(make(ids)) == model.to_str_tokens(TEXT)

    @pytest.mark.unchecked
    @pytest.mark.parametrize("id_", [-100, 10**30, 10**6])
    def test_ids_that_are_none(self, model, id_):
        for read in (model.to_string, model.to_str_tokens, model.to_single_str_token):
            with pytest.raises(
                InputError, match=rf"expected (0 to \d+|a text of one token, or token ids), got \[?{id_}"
            ):
                read(id_)
        for read in (model.to_string, model.to_str_tokens):
            with pytest.raises(
                InputError, match=rf"expected (0 to \d+|a text of one token, or token ids), got \[1, {id_}"
            ):
                read([1, id_])

    def test_ids_that_the_tokenizer_alone_has(self, model):
        """Added to it, and not yet to the embedding: they have a text, end nothing, and are no input."""
        fewer = random_model(tokenizer=model.tokenizer, d_vocab=len(model.tokenizer) - 2)
        last = len(model.tokenizer) - 1
        assert fewer.to_string([last]) == model.to_string([last]) != ""
        assert fewer.to_single_str_token(last) == model.to_single_str_token(last)
        assert fewer.generate([TEXT[:8]], 2, eos_token_id=last) == fewer.generate([TEXT[:8]], 2, stop_at_eos=False)
        with pytest.raises(InputError, match="token ids: expected 0 to "):
            fewer.to_ids(last)

    @pytest.mark.unchecked
    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int16"])
    def test_numbers_of_every_width(self, model, dtype):
        ids = np.array([1, 2, 3], dtype=dtype)
        assert model.to_string(ids) == "".join(model.to_str_tokens(ids)) == model.to_string([1, 2, 3])
        with torch.no_grad():
            assert torch.equal(model(torch.from_numpy(ids)), model(torch.tensor([1, 2, 3])))

    def test_texts_of_rows(self, model):
        ids = model.to_tokens(TEXT)
        assert model.to_string(ids[0]) == model.to_string(ids[0].tolist()) == model.to_string(ids)[0]
        assert model.to_string(torch.zeros(0, dtype=torch.long)) == model.to_string([]) == ""
        with pytest.raises(InputError, match=r"to_string: expected ids of shape \[batch pos\], got \(1, 1, 6\)"):
            model.to_string(ids[None])

    @pytest.mark.unchecked
    @pytest.mark.parametrize("given", [5, None, {"text": TEXT}, pd.DataFrame({"text": [TEXT]})])
    def test_what_is_no_text(self, model, given):
        with pytest.raises(InputError, match=r"(input|texts): expected one text or a list of them, got "):
            model.to_tokens(given)
        with pytest.raises(InputError, match="texts: expected "):
            model.tokenize(given)
        assert torch.equal(model.to_tokens(pd.Series([TEXT])), model.to_tokens(TEXT))

    def test_one_token(self, model):
        assert model.to_single_str_token(model.to_single_token(" keys")) == " keys"

    @pytest.mark.parametrize("token", [" the", 259, torch.tensor(259)])
    def test_where_a_token_stands(self, model, token):
        text = "The keys to the table on the cabinet"
        name = " the" if isinstance(token, str) else model.to_single_str_token(int(token))
        places = [at for at, each in enumerate(model.to_str_tokens(text)) if each == name]
        if not places:
            with pytest.raises(InputError, match="expected one of the prompt's tokens"):
                model.get_token_position(token, text)
            return
        for prompt in (text, model.to_tokens(text), model.to_tokens(text)[0]):
            assert model.get_token_position(token, prompt) == places[0]
            assert model.get_token_position(token, prompt, mode="last") == places[-1]
        assert model.get_token_position(token, text, prepend_bos=False) == places[0] - 1

    @pytest.mark.unchecked
    def test_a_token_that_is_not_there(self, model):
        with pytest.raises(InputError, match="' book': expected one of the prompt's tokens"):
            model.get_token_position(" book", TEXT)
        with pytest.raises(InputError, match="mode: expected 'first' or 'last', got 'middle'"):
            model.get_token_position(" the", TEXT, mode="middle")
        with pytest.raises(InputError, match="expected one prompt, got 2"):
            model.get_token_position(" the", model.to_tokens(TEXTS))


class TestForward:
    def test_bos_and_padding(self, model):
        with torch.no_grad():
            part = model(TEXT, prepend_bos=False)
            assert torch.equal(part, model(model.to_tokens(TEXT, prepend_bos=False)))
            assert part.shape[1] == model(TEXT).shape[1] - 1
            left, right = model(TEXTS, padding_side="left"), model(TEXTS)
            torch.testing.assert_close(left[1, -3:], right[1, :3])
            _, cache = model.run_with_cache(TEXT, prepend_bos=False)
            assert cache["resid_pre", 0].shape[1] == part.shape[1]

    @pytest.mark.unchecked
    def test_a_layer_of_any_kind_of_number(self, model):
        with torch.no_grad():
            assert torch.equal(model(TEXT, stop_at_layer=np.int64(1)), model(TEXT, stop_at_layer=1))
            stopped, _ = model.run_with_cache(TEXT, stop_at_layer=np.int64(1))
            torch.testing.assert_close(stopped, model(TEXT, stop_at_layer=1))
        for run in (model, model.run_with_cache):
            with pytest.raises(InputError, match=r"stop_at_layer: expected a block from 0 to .*, got 'a'"):
                run(TEXT, stop_at_layer="a")

    def test_the_loss_of_logits(self, model):
        tokens, mask = model.tokenize(TEXTS)
        with torch.no_grad():
            logits, loss = model(tokens, return_type="both", attention_mask=mask)
            assert torch.equal(model.loss_fn(logits, tokens, mask), loss)
            each = model(tokens, return_type="loss", loss_per_token=True, attention_mask=mask)
            assert torch.equal(model.loss_fn(logits, tokens, mask, per_token=True).nan_to_num(), each.nan_to_num())
            assert torch.equal(model.loss_fn(logits, tokens.where(mask.bool(), -100), mask), loss)

    @pytest.mark.unchecked
    def test_the_loss_of_logits_of_other_tokens(self, model):
        tokens = model.to_tokens(TEXTS)
        logits = model(tokens)
        with pytest.raises(InputError, match=r"logits: expected shape \(2, 6, 'd_vocab'\), got \(2, 5"):
            model.loss_fn(logits[:, :-1], tokens)
        with pytest.raises(InputError, match=r"tokens: expected .*, got 'The keys"):
            model.loss_fn(logits, TEXT)
        with pytest.raises(InputError, match=r"token ids: expected 0 to \d+, got 0 to 100000"):
            model.loss_fn(logits, tokens.where(tokens != tokens[0, 1], 100_000))

    def test_an_edit_of_the_position_embedding_stays_in_its_run(self, model):
        before = model.W_pos.detach().clone()

        def edit(embedding, hook):
            embedding[1] = 0
            assert torch.equal(embedding[0], before[: embedding.shape[1]])
            return embedding

        with torch.no_grad():
            model.run_with_hooks(["The keys", "the book"], fwd_hooks=[("hook_pos_embed", edit)])
        assert torch.equal(model.W_pos, before)


def test_turned_queries_and_keys_have_points():
    model = random_model(positions="rotary", d_head=6)
    with torch.no_grad():
        _, cache = model.run_with_cache(random_tokens(model))
        scores = torch.einsum("bqhd,bkhd->bhqk", cache["rot_q", 0], cache["rot_k", 0]) / 6**0.5
        torch.testing.assert_close(scores.tril(), cache["attn_scores", 0].nan_to_num(neginf=0))
        assert not torch.allclose(cache["rot_q", 0], cache["q", 0])
    assert "blocks.0.attn.hook_rot_q" not in random_model().hook_dict


def test_a_cache_without_a_batch_axis_is_of_the_same_tokens():
    model = interp.load_model()
    for each in (False, True):
        logits, cache = model.run_with_cache("The keys", prepend_bos=False, remove_batch_dim=each)
        assert logits.shape[-2] == cache["resid_post", 0].shape[-2] == 2


@pytest.mark.unchecked
def test_ids_of_numpy_and_of_torch_are_ids():
    model = interp.load_model()
    assert model.to_single_str_token(torch.tensor(300)) == model.to_single_str_token(np.int64(300))
    assert model.to_str_tokens([np.int64(300), np.int64(301)]) == model.to_str_tokens([300, 301])
    with pytest.raises(InputError, match="token: expected int, got 'a'"):
        model.to_single_str_token("a")


@pytest.mark.parametrize("call", ["from_pretrained", "from_pretrained_no_processing"])
def test_models_are_loaded_by_another_call(call):
    with pytest.raises(LoadError, match=r"from_pretrained: models are loaded by interp\.load_model\('gpt2'\)"):
        getattr(HookedTransformer, call)("gpt2", device="cpu")
