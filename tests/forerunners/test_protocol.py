"""Every forerunner takes what a transformer takes: tokens, text, hooks, tasks, metrics and training."""

import json
import math
from itertools import islice

import pytest
import torch
from as_users_call import unchecked
from language_models import CAUSAL, NEURAL, QUICK, neural_model, random_tokens, remembering_rows, small_ngram
from safetensors.torch import load_file, save_file
from tiny_models import word_tokenizer

import interp
from forerunners.saved import load_forerunner, save_forerunner
from interp.errors import ConfigError, HookError, InputError, LoadError, OutputError
from interp.methods.behaviour import behaviour
from interp.model.provenance import model_provenance
from interp.model.training import TrainingConfig, train
from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.lexicon import english
from recipes.tokenizer import build_tokenizer

BOS = 0


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(english().words())


@pytest.fixture(scope="module")
def models(tokenizer):
    """One of each kind, untrained but for the n-gram."""
    d_vocab = len(tokenizer)
    found = {kind: neural_model(kind, d_vocab, tokenizer, dtype=torch.float32) for kind in NEURAL}
    for model in found.values():
        model.requires_grad_(False)
    rows = [[BOS, *row] for row in tokenizer(["The keys are here.", "The key is here."])["input_ids"]]
    return found | {"n-gram": small_ngram(rows, d_vocab=d_vocab, tokenizer=tokenizer)}


@pytest.fixture(scope="module")
def agreement(tokenizer):
    return interp.load_task("agreement", n=12, tokenizer=tokenizer)


ALL = [*NEURAL, "n-gram"]


def sentence_task(tokenizer):
    """Continuations of several tokens, as BLiMP has them."""
    pairs = [
        MinimalPair(Example("The keys", " are here", " is here", None, "t", "t"), None, str(number))
        for number in range(2)
    ]
    return interp.encode_task(
        pairs, tokenizer=tokenizer, name="sentences", description="", metric="sentence_log_probability"
    )


@pytest.mark.parametrize("kind", ALL)
class TestTasks:
    def test_logit_differences_are_read_off_the_last_position(self, kind, models, agreement):
        frame = behaviour(models[kind], agreement)
        assert len(frame) == len(agreement.examples)
        for value, example in zip(frame["value"], agreement.examples, strict=True):
            last = models[kind](torch.tensor(example.prompt))[0, -1]
            assert value == pytest.approx(float(last[example.right[0]] - last[example.wrong[0]]), abs=1e-6)

    def test_sentences_are_scored_token_by_token(self, kind, models, tokenizer):
        task = sentence_task(tokenizer)
        frame = behaviour(models[kind], task)

        def nats(example, continuation):
            log_p = models[kind](torch.tensor([*example.prompt, *continuation])).log_softmax(-1)[0]
            start = len(example.prompt) - 1
            return sum(float(log_p[start + step, token]) for step, token in enumerate(continuation))

        for value, each in zip(frame["value"], task.examples, strict=True):
            assert len(each.right) == 2
            assert value == pytest.approx(nats(each, each.right) - nats(each, each.wrong), abs=1e-5)

    def test_a_result_can_say_which_model_it_is_of(self, kind, models):
        said = model_provenance(models[kind])
        assert said["model_hash"] == models[kind].hash
        assert said["tokenizer_hash"] is not None


@pytest.mark.parametrize("kind", NEURAL)
class TestNeural:
    def test_a_seed_decides_the_weights_and_the_global_generator_stays(self, kind):
        torch.manual_seed(7)
        expected = torch.rand(3)
        torch.manual_seed(7)
        first, again, other = (neural_model(kind, seed=seed) for seed in (0, 0, 1))
        assert torch.equal(torch.rand(3), expected)
        assert first.hash == again.hash != other.hash

    def test_every_point_fires_and_can_be_written_to(self, kind):
        model, tokens = neural_model(kind), random_tokens()
        base, cache = model.run_with_cache(tokens)
        assert set(cache) == set(model.hook_dict)
        assert {tuple(each.shape) for each in cache.values()} == {(4, 9, 16)}
        for name in model.hook_dict:
            same = model.run_with_hooks(tokens, fwd_hooks=[(name, lambda x, hook: x)])
            changed = model.run_with_hooks(tokens, fwd_hooks=[(name, lambda x, hook: x + 1)])
            assert torch.equal(same, base)
            assert (changed - base).abs().max() > 1e-3
        with pytest.raises(HookError, match=r"no hook point is called 'layer.0.hook_state'"):
            model.run_with_hooks(tokens, fwd_hooks=[("layer.0.hook_state", print)])

    def test_padding_changes_nothing(self, kind):
        tokenizer = word_tokenizer()
        model = neural_model(kind, len(tokenizer), tokenizer)
        texts = ["The keys to the cabinet", "The key"]
        both, loss = model(texts, return_type="both", loss_per_token=True)
        for row, text in enumerate(texts):
            alone, its_loss = model(text, return_type="both", loss_per_token=True)
            assert torch.allclose(both[row, : alone.shape[1]], alone[0], atol=1e-12)
            real = ~loss[row].isnan()
            assert torch.allclose(loss[row][real], its_loss[0], atol=1e-12)

    def test_it_learns_a_toy_language(self, kind):
        model = neural_model(kind, dtype=torch.float32)
        rows = list(islice(remembering_rows(), 10))
        losses = train(model, rows * QUICK.steps, QUICK).train
        assert losses[0] > 0.7 * math.log(11)
        first_word = math.log(10) / 7  # any of ten, and nothing on its left tells which
        assert losses[-1] < (0.1 if kind == "bidirectional" else first_word + 0.1)
        assert not model.training

    def test_a_training_changes_everything_and_can_be_had_again(self, kind):
        untrained, *again = (neural_model(kind, dtype=torch.float32) for _ in range(3))
        for model in again:
            train(model, remembering_rows(), TrainingConfig(steps=3, batch_size=4, warmup_steps=0))
        assert again[0].hash == again[1].hash
        for name, parameter in again[0].named_parameters():
            assert not torch.equal(parameter, untrained.get_parameter(name)), name

    def test_a_saved_model_comes_back(self, kind, tmp_path):
        model = neural_model(kind, 273, word_tokenizer())
        assert len(model.tokenizer) == 273
        again = load_forerunner(save_forerunner(model, tmp_path))
        assert type(again) is type(model)
        assert (again.config, again.name, again.hash) == (model.config, kind, model.hash)
        assert torch.equal(again("The keys"), model("The keys"))

    def test_a_value_that_describes_no_model_raises(self, kind):
        _, config, fields = NEURAL[kind]
        with pytest.raises(ConfigError, match="d_model: expected a whole number of at least 1, got 0"):
            config(d_model=0, d_vocab=5, **fields)
        with pytest.raises(ConfigError, match="unknown field 'd_modle'; did you mean 'd_model'"):
            config.from_dict({"d_modle": 4, "d_vocab": 5, **fields})
        with pytest.raises(ConfigError, match=r"expected the fields n_layers, d_model, d_vocab, .*; missing d_vocab"):
            config.from_dict({"d_model": 4, **fields})


@pytest.mark.parametrize("kind", CAUSAL)
def test_nothing_is_read_ahead(kind):
    model, tokens = neural_model(kind), random_tokens()
    base = model(tokens)
    for position in range(tokens.shape[1]):
        other = tokens.clone()
        other[:, position] = (other[:, position] + 1) % 11
        changed = (model(other) - base).abs().amax((0, 2)) > 0
        assert not changed[:position].any()
        assert changed[position]


def test_the_loss_is_the_mean_over_the_next_tokens():
    model, tokens = neural_model("lstm").requires_grad_(False), random_tokens()
    logits, loss = model(tokens, return_type="both")
    nats = -logits.log_softmax(-1)[:, :-1].gather(2, tokens[:, 1:, None])[..., 0]
    assert float(loss) == pytest.approx(float(nats.mean()))
    assert torch.allclose(model(tokens, return_type="loss", loss_per_token=True), nats)


class TestRefusals:
    def test_what_are_no_tokens(self):
        model = neural_model("elman")
        with pytest.raises(InputError, match=r"expected whole numbers .* got torch.float32 of shape \(2,\)"):
            model.as_tokens(torch.zeros(2))
        with pytest.raises(InputError, match="the model was given no tokens"):
            model(torch.zeros(1, 0, dtype=torch.long))
        with pytest.raises(InputError, match="expected 0 to 10, got 3 to 11"):
            model(torch.tensor([3, 11]))
        with pytest.raises(InputError, match="return_type: expected 'logits', 'loss' or 'both', got 'hidden'"):
            unchecked(type(model).forward)(model, torch.tensor([3]), "hidden")
        with pytest.raises(InputError, match="has no tokenizer"):
            model("The keys")

    def test_unknown_choices(self):
        shape = {"n_layers": 1, "d_model": 4, "d_vocab": 5}
        for kind, field, value, match in (
            ("lstm", "cell", "gru", "cell: expected one of elman, lstm, peephole, got 'gru'"),
            ("lstm", "tied", 1, "tied: expected true or false, got 1"),
            ("convolution", "kernel_size", 0, "kernel_size: expected a whole number of at least 1, got 0"),
        ):
            with pytest.raises(ConfigError, match=match):
                NEURAL[kind][1].from_dict({**shape, field: value})

    def test_checkpoints_of_what_is_no_transformer(self, tmp_path):
        with pytest.raises(InputError, match="checkpoints hold a HookedTransformer, got a Recurrent"):
            train(neural_model("lstm"), remembering_rows(), TrainingConfig(steps=1), folder=tmp_path)

    def test_folders_that_are_no_forerunner(self, tmp_path):
        config = save_forerunner(neural_model("lstm"), tmp_path) / "config.json"
        written = config.read_text()
        for old, new, match in (
            ('"format": 1', '"format": 2', "written in format 2, this version reads format 1"),
            ("Recurrent", "Recurrence", "no forerunner is called 'Recurrence'; did you mean 'Recurrent'"),
            ("d_model", "width", "config.json: config: unknown field 'width'"),
            ('"n_layers": 1', '"n_layers": 2', r"tensor 'layers.1.memory.weight_ih_l0' is missing"),
        ):
            config.write_text(written.replace(old, new))
            with pytest.raises(LoadError, match=match):
                load_forerunner(tmp_path)

    def test_folders_with_damaged_content(self, tmp_path):
        config = save_forerunner(neural_model("lstm"), tmp_path) / "config.json"
        described = json.loads(config.read_text())
        config.write_text(json.dumps({**described, "config": None}))
        with pytest.raises(LoadError, match="config: expected the model's fields by name, got None"):
            load_forerunner(tmp_path)
        config.write_text(json.dumps(described))
        state = load_file(tmp_path / "model.safetensors")
        first = min(state)
        save_file({**state, first: state[first] * torch.nan}, tmp_path / "model.safetensors")
        with pytest.raises(LoadError, match=f"tensor '{first}': .* values are NaN or infinite"):
            load_forerunner(tmp_path)

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputError, match="the model cannot be written here"):
            save_forerunner(neural_model("lstm"), tmp_path / "file")
