"""A tuned lens begins as the logit lens, and comes nearer to the model on rows that it has not seen."""

import copy
from dataclasses import replace
from itertools import islice

import pytest
import torch
from safetensors.torch import save_file
from tiny_models import random_model, random_tokens, relative_error

import interp
from interp.errors import InputError, LoadError, OutputError
from interp.model.training import packed_rows
from interp.model.transformer import HookedTransformer
from interp.model.weights import config_hash
from interp.residual.logit_lens import logit_lens
from interp.residual.tuned_lens import TunedLens, TunedLensFitter, compare_lenses, train_tuned_lens
from interp.tasks.grammar.training_text import documents

pytestmark = pytest.mark.unchecked


@pytest.fixture(scope="module")
def model():
    return random_model(dtype=torch.float32)


@pytest.fixture(scope="module")
def lens(model):
    return train_tuned_lens(model, random_tokens(model), steps=2, batch_size=2)


def corpus_rows(model, seed, n):
    """Rows of the embedded model's own English."""
    ids = (model.tokenizer.encode(text, add_special_tokens=False) for text in documents(seed))
    return list(islice(packed_rows(ids, bos=model.tokenizer.bos_token_id, n_ctx=64), n))


def adding_model():
    """A model whose blocks add one vector each to the stream, whatever it holds."""
    model = random_model(dtype=torch.float32)
    with torch.no_grad():
        for block in model.blocks:
            block.attn.W_O.zero_()
            block.mlp.W_out.zero_()
    return model


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_untrained_it_is_the_logit_lens_to_the_bit(dtype):
    model = random_model(dtype=dtype)
    tokens = random_tokens(model)
    plain, tuned = logit_lens(model, tokens), logit_lens(model, tokens, translate=TunedLensFitter(model).lens)
    assert plain.examples.equals(tuned.examples)
    assert plain.top.equals(tuned.top)


def test_it_is_affine(model):
    generator = torch.Generator().manual_seed(0)
    W, b, x = (torch.randn(shape, generator=generator) for shape in ((2, 12, 12), (2, 12), (3, 4, 12)))
    lens = TunedLens(W, b, model.hash, config_hash(model))
    for depth in range(2):
        expected = torch.stack([row @ (torch.eye(12) + W[depth]) + b[depth] for row in x.reshape(-1, 12)])
        assert relative_error(lens(x, depth), expected.reshape(3, 4, 12)) < 1e-5
    assert lens(x.bfloat16(), 0).dtype == torch.bfloat16
    for depth in (-1, 2):
        with pytest.raises(InputError, match=f"depth: expected 0 to 1, got {depth}; the last stream is not translated"):
            lens(x, depth)


def test_a_shift_that_later_blocks_add_is_found():
    """The truth is known: the translators are 0, and the vectors that the blocks from there on add."""
    model = adding_model()
    train, held_out = random_tokens(model, 64, 12, seed=1), random_tokens(model, 16, 12, seed=2)
    table = compare_lenses(model, held_out, train_tuned_lens(model, train, steps=300, lr=0.02)).summary()
    assert (table["kl_logit_lens"][:2] > 0.05).all()
    assert (table["kl_tuned_lens"][:2] < 0.01 * table["kl_logit_lens"][:2]).all()
    assert table["kl_tuned_lens"][2] == table["kl_logit_lens"][2] == 0
    shifts = [sum(block.attn.b_O + block.mlp.b_out for block in list(model.blocks)[depth:]) for depth in range(2)]
    truth = TunedLens(torch.zeros(2, 12, 12), torch.stack(shifts).detach(), model.hash, config_hash(model))
    assert (compare_lenses(model, held_out, truth).examples["kl_tuned_lens"].abs() < 1e-6).all()


def test_trained_on_the_default_model_it_is_nearer_on_other_text():
    model = interp.load_model()
    held_out = corpus_rows(model, 2, 8)
    seen = {tuple(row) for row in held_out}
    train = [row for row in corpus_rows(model, 1, 150) if tuple(row) not in seen]
    lens = train_tuned_lens(model, torch.tensor(train), steps=25, batch_size=6, lr=0.01)
    table = compare_lenses(model, torch.tensor(held_out), lens).summary()
    assert table["n"].tolist() == [8 * 64] * 4
    assert (table["kl_tuned_lens"][:3] < 0.7 * table["kl_logit_lens"][:3]).all()
    assert table["kl_tuned_lens"].is_monotonic_decreasing
    assert (table["kl_tuned_lens"][:3] > 0.1).all()


def test_a_step_lowers_the_divergence_that_it_reports(model):
    tokens = random_tokens(model)
    fitter = TunedLensFitter(model)
    assert fitter.update(tokens, lr=1e-2) is fitter
    after = logit_lens(model, tokens, translate=fitter.lens).summary()["kl"]
    fitter.update(tokens)
    before = logit_lens(model, tokens).summary()["kl"]
    assert fitter.losses[0] == pytest.approx(before[:2].tolist(), rel=1e-5)
    assert fitter.losses[1] == pytest.approx(after[:2].tolist(), rel=1e-5)
    assert (after[:2] < before[:2]).all()


def test_gradients_are_those_of_the_divergence():
    """A step of Adam goes by their signs alone, so they are compared with differences."""
    model = random_model()
    tokens, fitter = random_tokens(model), TunedLensFitter(random_model())
    fitter.update(tokens, lr=0.0)
    for depth, row, column in [(0, 0, 0), (0, 3, 7), (1, 11, 2), (1, 5, 5)]:
        losses = []
        for step in (1e-5, -1e-5):
            W = torch.zeros(2, 12, 12, dtype=torch.float64)
            W[depth, row, column] = step
            lens = TunedLens(W, torch.zeros(2, 12, dtype=torch.float64), model.hash, config_hash(model))
            losses.append(logit_lens(model, tokens, translate=lens).summary()["kl"][depth])
        expected = (losses[0] - losses[1]) / 2e-5
        assert float(fitter._W.grad[depth, row, column]) == pytest.approx(expected, rel=1e-5)


def test_a_lens_is_not_changed_by_later_updates(model):
    fitter = TunedLensFitter(model)
    first = fitter.update(random_tokens(model)).lens
    kept = copy.deepcopy(first)
    fitter.update(random_tokens(model))
    assert torch.equal(first.W, kept.W)
    assert not torch.equal(fitter.lens.W, kept.W)
    assert not fitter.lens.W.requires_grad


def test_the_model_stays_as_it_is(model):
    before = copy.deepcopy(model.state_dict())
    train_tuned_lens(model, random_tokens(model), steps=3, batch_size=2)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(point.fwd_hooks for point in model.hook_dict.values())


def test_the_seed_decides_the_draws(model):
    rows = random_tokens(model, 8)
    lenses = [train_tuned_lens(model, rows, steps=4, batch_size=2, seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(lenses[0].W, lenses[1].W)
    assert not torch.equal(lenses[0].W, lenses[2].W)


def test_training_is_updates_with_a_falling_rate(model):
    rows = random_tokens(model, 4)
    by_hand = TunedLensFitter(model).update(rows, lr=0.02).update(rows, lr=0.01).lens
    lens = train_tuned_lens(model, rows, steps=2, batch_size=4, lr=0.02)
    assert relative_error(lens.W, by_hand.W) < 1e-4


class TestFiles:
    def test_what_is_saved_is_loaded(self, model, lens, tmp_path):
        path = lens.save(tmp_path / "lens.safetensors")
        loaded = TunedLens.load(path, model)
        assert torch.equal(loaded.W, lens.W)
        assert torch.equal(loaded.b, lens.b)
        assert repr(loaded) == repr(lens) == f"TunedLens(2 depths, d_model 12, of model {model.hash[:12]})"

    def test_another_models_lens_is_refused(self, model, lens, tmp_path):
        other = random_model(dtype=torch.float32, seed=1)
        path = lens.save(tmp_path / "lens.safetensors")
        with pytest.raises(
            LoadError, match=f"a lens of a model with model_hash {model.hash}, and this one's is {other.hash}"
        ):
            TunedLens.load(path, other)
        with pytest.raises(InputError, match="lens: expected one that was trained on this model"):
            compare_lenses(other, random_tokens(other), lens)

    def test_the_same_weights_in_another_model_are_refused(self, model, lens, tmp_path):
        other = HookedTransformer(replace(model.config, act_fn="relu"))
        other.load_state_dict(model.state_dict())
        assert other.hash == model.hash
        with pytest.raises(LoadError, match="a lens of a model with config_hash"):
            TunedLens.load(lens.save(tmp_path / "lens.safetensors"), other)
        with pytest.raises(InputError, match="or of the same weights with another config"):
            compare_lenses(other, random_tokens(other), lens)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"W": torch.zeros(1, 12, 12)}, r"tensor 'W': expected shape \(2, 12, 12\), got \(1, 12, 12\)"),
            ({"b": torch.full((2, 12), torch.nan)}, "tensor 'b': 24 of its 24 values are NaN or infinite"),
            ({"c": torch.zeros(1)}, "tensor 'c' is not part of this architecture"),
        ],
    )
    def test_damaged_tensors_are_refused(self, model, tmp_path, change, message):
        path = tmp_path / "lens.safetensors"
        tensors = {"W": torch.zeros(2, 12, 12), "b": torch.zeros(2, 12)} | change
        save_file(tensors, path, metadata={"format": "2", "model_hash": model.hash, "config_hash": config_hash(model)})
        with pytest.raises(LoadError, match=message):
            TunedLens.load(path, model)

    def test_other_files_are_refused(self, model, tmp_path):
        path = tmp_path / "lens.safetensors"
        with pytest.raises(LoadError, match="not a readable safetensors file"):
            TunedLens.load(path, model)
        path.write_bytes(b"no lens")
        with pytest.raises(LoadError, match="not a readable safetensors file"):
            TunedLens.load(path, model)
        save_file({"W": torch.zeros(2, 12, 12)}, path)
        with pytest.raises(LoadError, match="expected a tuned lens in format 2, got format None"):
            TunedLens.load(path, model)

    def test_a_place_that_cannot_be_written_to(self, lens, tmp_path):
        with pytest.raises(OutputError, match=r"no lens can be written here .* name another file"):
            lens.save(tmp_path / "missing" / "lens.safetensors")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps: expected at least 1, got 0"),
        ({"batch_size": 0}, "batch_size: expected at least 1, got 0"),
        ({"batch_size": 4}, "rows: expected at least batch_size=4, got 3; give more rows"),
    ],
)
def test_what_cannot_be_trained_raises(model, options, message):
    with pytest.raises(InputError, match=message):
        train_tuned_lens(model, random_tokens(model), **{"steps": 1, "batch_size": 2} | options)


def test_rows_that_do_not_fit_raise(model):
    with pytest.raises(InputError, match="the longest prompt has 17 tokens, but the model's context is 16"):
        TunedLensFitter(model).update(torch.zeros(1, 17, dtype=torch.long))
