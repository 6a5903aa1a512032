"""Writing on: the cache, the batch and the settings change nothing that they should not."""

import pytest
import torch
from as_users_call import unchecked
from tiny_models import WORDS, random_model, random_tokens, relative_error, word_tokenizer
from variants import VARIANTS

from interp.errors import InputError
from interp.model.attention import KeyValueCache

CAUSAL = {name: fields for name, fields in VARIANTS.items() if fields.get("causal", True)}

PROMPTS = ["The keys to the cabinet are", "Mary", "John gave Mary a book to the table on a"]


@pytest.fixture(scope="module")
def model():
    """A model that writes known words only, so that texts tell what was chosen."""
    model = random_model(tokenizer=word_tokenizer(), n_ctx=24, tied=False, seed=5)
    with torch.no_grad():
        model.b_U[:258], model.b_U[258:] = -1e4, 0
    return model


@pytest.fixture
def greedy(model):
    """A naive loop: the whole prompt every time, no cache, no batch."""

    def write(text, n):
        tokens = model.to_tokens(text)
        for _ in range(n):
            with torch.no_grad():
                following = model(tokens)[0, -1].argmax()
            tokens = torch.cat([tokens, following[None, None]], 1)
            if following == model.tokenizer.eos_token_id or tokens.shape[1] == model.config.n_ctx:
                break
        return model.tokenizer.decode(tokens[0], skip_special_tokens=True)

    return write


def test_the_model_has_more_than_one_thing_to_say(model):
    assert len({word for text in model.generate(PROMPTS, 8) for word in text.split()[-8:]}) > 4


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("n", [1, 5, 100])
def test_greedy_writing_equals_a_naive_loop(model, greedy, prompt, n):
    assert model.generate(prompt, n) == greedy(prompt, n)


@pytest.mark.parametrize("n", [1, 5, 100])
def test_a_batch_writes_what_each_prompt_writes_alone(model, n):
    assert model.generate(PROMPTS, n) == [model.generate(prompt, n) for prompt in PROMPTS]


def steered(token):
    """A model that always writes `token`: the last LayerNorm's output is constant."""
    model = random_model(tokenizer=word_tokenizer(), n_ctx=24, tied=False)
    with torch.no_grad():
        model.ln_final.w.zero_()
        model.ln_final.b.fill_(1)
        model.W_U.zero_()
        model.b_U.zero_()
        model.b_U[model.to_single_token(token) if isinstance(token, str) else token] = 9
    return model


def test_a_prompt_fills_the_context_and_no_more():
    model = steered(" key")
    texts = model.generate(["The", "The keys to the"], 100)
    assert [len(model.to_tokens(text)[0]) for text in texts] == [24, 24]
    assert texts[0] == "The" + 22 * " key"


def test_nothing_is_written_after_the_end_of_the_text(monkeypatch):
    model = steered(" key")
    original, calls = type(model).forward, []

    def end_the_first_row_once(self, *args, **kwargs):
        logits = original(self, *args, **kwargs)
        if len(calls) == 1:
            logits[0, -1, self.tokenizer.eos_token_id] = 1e6
        calls.append(1)
        return logits

    monkeypatch.setattr(type(model), "forward", end_the_first_row_once)
    assert model.generate(["The keys", "The"], 4) == ["The keys key", "The key key key key"]


def test_the_loop_ends_when_all_prompts_have(monkeypatch):
    model = steered(0)
    original, calls = type(model).forward, []
    monkeypatch.setattr(type(model), "forward", lambda self, *a, **k: calls.append(1) or original(self, *a, **k))
    assert model.generate(["The keys", "The"], 5) == ["The keys", "The"]
    assert len(calls) == 1


def test_a_tokenizer_without_an_end_of_text_never_stops():
    model = steered(" key")
    model.tokenizer.eos_token = None
    assert model.generate("The", 3) == "The key key key"


def test_a_prompt_that_ended_does_not_end_the_others(model, monkeypatch):
    alone = model.generate(PROMPTS[1], 6)
    original = type(model).forward

    def end_the_first_row(self, *args, **kwargs):
        logits = original(self, *args, **kwargs)
        logits[0, -1, self.tokenizer.eos_token_id] = 1e6
        return logits

    monkeypatch.setattr(type(model), "forward", end_the_first_row)
    assert model.generate(PROMPTS[:2], 6) == [PROMPTS[0], alone]


def test_the_cache_gives_the_logits_of_the_whole_prompt(model):
    tokens = random_tokens(model, 3, 12)
    mask = torch.ones_like(tokens)
    mask[0, :5] = 0
    with torch.no_grad():
        whole = model(tokens, attention_mask=mask)
        for listened in (False, True):
            cache, parts = KeyValueCache.empty(2), []
            hooks = [("blocks.1.attn.hook_pattern", lambda x, *, hook: None)] if listened else []
            for start, stop in ((0, 7), (7, 8), (8, 12)):
                piece = model.run_with_hooks(
                    tokens[:, start:stop], attention_mask=mask[:, start:stop], cache=cache, fwd_hooks=hooks
                )
                parts.append(piece)
            got = torch.cat(parts, 1)
            assert relative_error(got[mask.bool()], whole[mask.bool()]) < 1e-12


def test_a_cache_is_unharmed_by_a_refused_step(model):
    tokens = random_tokens(model, 1, 6)
    cache = KeyValueCache.empty(2)
    with torch.no_grad():
        model(tokens[:, :5], cache=cache)
        with pytest.raises(InputError, match="token ids"):
            model(torch.tensor([[10_000]]), cache=cache)
        with pytest.raises(InputError, match="cache: it holds 1 prompts, got 2"):
            model(tokens[:, 5:].repeat(2, 1), cache=cache)
        assert relative_error(model(tokens[:, 5:], cache=cache), model(tokens)[:, 5:]) < 1e-12


@pytest.mark.parametrize("point", ["blocks.1.attn.hook_q", "blocks.1.hook_mlp_out", "ln_final.hook_normalized"])
def test_a_cache_is_unharmed_by_a_step_that_fails_on_its_way(model, point):
    def fail(x, *, hook):
        raise KeyError("inside")

    tokens = random_tokens(model, 1, 6)
    cache = KeyValueCache.empty(2)
    with torch.no_grad():
        model(tokens[:, :5], cache=cache)
        with pytest.raises(KeyError, match="inside"):
            model.run_with_hooks(tokens[:, 5:], cache=cache, fwd_hooks=[(point, fail)])
        assert relative_error(model(tokens[:, 5:], cache=cache), model(tokens)[:, 5:]) < 1e-12


@pytest.mark.parametrize("n_layers", [1, 3])
def test_a_cache_of_another_model_raises(model, n_layers):
    with pytest.raises(InputError, match=f"cache: it holds {n_layers} layers, the model has 2; start with"):
        model(random_tokens(model), cache=KeyValueCache.empty(n_layers))


def test_tokens_are_written_as_text_is(model):
    tokens, mask = model.tokenize(PROMPTS, padding_side="left")
    written = model.generate(tokens, 8, attention_mask=mask)
    texts = [model.tokenizer.decode(row, skip_special_tokens=True) for row in written]
    assert texts == model.generate(PROMPTS, 8)
    assert torch.equal(written[:, : tokens.shape[1]], tokens)


@pytest.mark.parametrize("fields", CAUSAL.values(), ids=CAUSAL.keys())
def test_every_architecture_writes_the_same_with_its_cache_as_without(fields):
    model = random_model(**fields | {"n_ctx": 24})
    tokens = random_tokens(model)
    written = model.generate(tokens, 12)
    assert torch.equal(model.generate(tokens, 12, use_past_kv_cache=False), written)
    naive = tokens
    with torch.no_grad():
        for _ in range(12):
            naive = torch.cat([naive, model(naive)[:, -1].argmax(-1)[:, None]], 1)
    assert torch.equal(written, naive)


def test_the_last_logits_are_those_of_the_whole_prompt(model):
    tokens = random_tokens(model)
    with torch.no_grad():
        last = model(tokens, last_only=True)
        assert last.shape == (3, 1, model.config.d_vocab)
        assert relative_error(last[:, 0], model(tokens)[:, -1]) < 1e-12


def test_what_follows_padding_is_refused(model):
    tokens, mask = random_tokens(model), torch.ones(3, 1, dtype=torch.bool).expand_as(random_tokens(model)).clone()
    mask[1, -2:] = False
    with pytest.raises(InputError, match="one is padding; pad on the left"):
        model.generate(tokens, attention_mask=mask)
    with pytest.raises(InputError, match="last_only: the last position of a row is padding"):
        model(tokens, attention_mask=mask, last_only=True)


def test_a_bidirectional_model_writes_nothing():
    model = random_model(causal=False)
    with pytest.raises(InputError, match="a bidirectional model has no next token"):
        model.generate(random_tokens(model))


class TestSampling:
    def test_the_same_seed_writes_the_same(self, model):
        texts = [model.generate(PROMPTS, 8, temperature=1.0, seed=3) for _ in range(2)]
        assert texts[0] == texts[1]
        assert model.generate(PROMPTS, 8, temperature=1.0, seed=4) != texts[0]

    def test_the_global_generator_is_left_alone(self, model):
        torch.manual_seed(0)
        before = torch.get_rng_state()
        model.generate("The", 3, temperature=1.0, seed=3)
        assert torch.equal(torch.get_rng_state(), before)

    @pytest.mark.parametrize(
        "settings",
        [{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-6}, {"temperature": 1e-45}, {"temperature": 5e-324}],
    )
    def test_no_choice_is_greedy(self, model, settings):
        settings = {"temperature": 1.0} | settings
        assert model.generate(PROMPTS, 6, **settings) == model.generate(PROMPTS, 6)

    @pytest.mark.parametrize(
        ("settings", "shares"),
        [
            ({"temperature": 1.0}, [0.5, 0.3, 0.2]),
            ({"temperature": 0.5}, [0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38]),
            ({"temperature": 1.0, "top_k": 2}, [0.625, 0.375, 0.0]),
            ({"temperature": 1.0, "top_p": 0.6}, [0.625, 0.375, 0.0]),
            ({"temperature": 1.0, "top_p": 0.45}, [1.0, 0.0, 0.0]),
            ({"temperature": 1.0, "top_k": 500}, [0.5, 0.3, 0.2]),
        ],
    )
    def test_tokens_are_drawn_with_their_probabilities(self, settings, shares):
        words = [" key", " keys", " table"]
        model = steered(" key")
        with torch.no_grad():
            model.b_U.fill_(-torch.inf)
            for word, share in zip(words, [0.5, 0.3, 0.2], strict=True):
                model.b_U[model.to_single_token(word)] = torch.tensor(share).log()
        n = 2000
        drawn = [text.removeprefix("The") for text in model.generate(["The"] * n, 1, seed=1, **settings)]
        for word, share in zip(words, shares, strict=True):
            assert drawn.count(word) / n == pytest.approx(share, abs=4 * (0.25 / n) ** 0.5 if 0 < share < 1 else 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens: expected at least 1, got 0"),
        ({"temperature": -0.5}, "temperature: expected 0 .greedy. or more, got -0.5"),
        ({"temperature": float("nan")}, "temperature: expected 0 .greedy. or more, got nan"),
        ({"temperature": 1.0, "top_k": 0}, "top_k: expected at least 1, got 0"),
        ({"temperature": 1.0, "top_p": 0.0}, "top_p: expected a share above 0 and at most 1, got 0.0"),
        ({"temperature": 1.0, "top_p": 1.5}, "top_p: expected a share above 0 and at most 1, got 1.5"),
        ({"seed": -1}, "seed: expected a whole number from 0 to .*, got -1"),
        ({"seed": 2**63}, "seed: expected a whole number from 0 to .*, got 9223372036854775808"),
        ({"top_k": 5}, "temperature=0 samples nothing; raise it"),
        ({"top_p": 0.5}, "temperature=0 samples nothing; raise it"),
    ],
)
def test_bad_settings_raise(model, settings, message):
    with pytest.raises(InputError, match=message):
        model.generate("The keys", **settings)
    with pytest.raises(InputError, match=message):
        list(model.generate_stream("The keys", **settings))


def test_a_prompt_that_leaves_no_room_raises(model):
    with pytest.raises(InputError, match="generate: the longest prompt has 24 tokens, expected at most 23"):
        model.generate(["The", " ".join(["keys"] * 23)])


class TestText:
    TEXT = "The keys to the cabinet, John!"

    def test_bos_comes_first_and_only_once(self, model):
        assert model.to_tokens("The keys")[0, 0] == model.tokenizer.bos_token_id
        assert model.to_tokens("The keys").shape == (1, 3)
        assert torch.equal(model.to_tokens("The keys", prepend_bos=False), model.to_tokens("The keys")[:, 1:])

    def test_text_comes_back(self, model):
        tokens = model.to_tokens(self.TEXT, prepend_bos=False)
        assert model.to_string(tokens[0]) == self.TEXT
        assert model.to_string(tokens) == [self.TEXT]
        assert model.to_string(tokens[0].tolist()) == self.TEXT

    def test_the_texts_of_the_tokens_join_to_the_text(self, model):
        pieces = model.to_str_tokens(self.TEXT)
        assert pieces[:3] == ["<|endoftext|>", " The", " keys"]
        assert "".join(pieces[1:]) == f" {self.TEXT}"
        assert model.to_str_tokens(model.to_tokens(self.TEXT)) == pieces
        with pytest.raises(InputError, match="to_str_tokens: expected one prompt, got 2"):
            model.to_str_tokens(model.to_tokens(["The", "keys"]))

    def test_a_single_token(self, model):
        assert [model.to_single_token(f" {word}") for word in sorted(WORDS)] == list(range(258, 258 + len(WORDS)))
        with pytest.raises(InputError, match=r"' cabinets': expected one token, got \d+ \(Ġ | c.*\)"):
            model.to_single_token(" cabinets")

    @pytest.mark.parametrize(
        ("option", "value"), [("padding_side", "left"), ("truncate", True), ("move_to_device", False), ("other", 1)]
    )
    def test_an_option_that_is_not_there_raises(self, model, option, value):
        advice = r"use tokenize\(..., padding_side='left'\)" if option == "padding_side" else "leave it out$"
        with pytest.raises(InputError, match=rf"to_tokens: .* has no option {option}=.*; {advice}"):
            model.to_tokens("The keys", **{option: value})

    @pytest.mark.parametrize(
        "options",
        [
            {"padding_side": None},
            {"padding_side": "right", "truncate": None},
            {"truncate": False, "move_to_device": True},
        ],
    )
    def test_an_option_that_asks_for_what_is_done_anyway(self, model, options):
        assert torch.equal(model.to_tokens("The keys", **options), model.to_tokens("The keys"))

    def test_the_option_at_fault_is_named_alone(self, model):
        with pytest.raises(InputError, match=r"has no option truncate=True; leave it out$"):
            model.to_tokens("The keys", padding_side="right", truncate=True, move_to_device=None)

    @pytest.mark.parametrize("text", ["The \ud800 keys", "\udfff"])
    def test_half_of_a_surrogate_pair_raises(self, model, text):
        for read in (model.to_tokens, model.to_single_token, model):
            with pytest.raises(InputError, match="expected Unicode text, got half of a surrogate pair"):
                read(text)

    @pytest.mark.parametrize(("texts", "message"), [([], "at least one text"), ([3], "expected text, got int")])
    def test_no_text_raises(self, model, texts, message):
        tokenize = unchecked(type(model).tokenize)
        with pytest.raises(InputError, match=message):
            tokenize(model, texts)

    def test_an_empty_text_is_bos_alone(self, model):
        assert model.to_tokens("").tolist() == [[0]]
        with pytest.raises(InputError, match="expected a text of at least one token, got an empty text"):
            model.to_tokens("", prepend_bos=False)

    def test_a_tokenizer_without_bos(self):
        model = random_model(tokenizer=word_tokenizer())
        model.tokenizer.bos_token = None
        with pytest.raises(InputError, match=r"prepend_bos=True: the tokenizer names no BOS token.*leave prepend_bos"):
            model("The keys", prepend_bos=True)
        tokens, mask = model.tokenize(["The keys to", "The"])
        assert mask.tolist() == [[True] * 3, [True, False, False]]
        assert model.to_string(tokens[0]) == "The keys to"
