"""Packing, the schedule, and that a training teaches what its rows say, the same way each time."""

import itertools
from dataclasses import replace

import pytest
import torch
from tiny_models import random_model
from training_rows import counting_rows, repeated_rows

from interp.errors import ConfigError, InputError
from interp.model.config import TransformerConfig
from interp.model.training import TrainingConfig, _as_matrix, _make_optimizers, learning_rate_scale, packed_rows, train
from interp.model.transformer import HookedTransformer


class TestPackedRows:
    def test_documents_follow_each_other_behind_a_bos_each(self):
        documents = [[1, 2, 3], [4], [5, 6, 7, 8, 9], [10, 11]]
        rows = list(packed_rows(documents, bos=0, n_ctx=5))
        assert rows == [[0, 1, 2, 3, 0], [0, 5, 6, 7, 8]]

    def test_a_row_that_is_filled_exactly(self):
        assert list(packed_rows([[1, 2], [3, 4]], bos=0, n_ctx=3)) == [[0, 1, 2], [0, 3, 4]]

    def test_what_does_not_fill_a_row_is_left_out(self):
        assert list(packed_rows([[1]], bos=0, n_ctx=3)) == []

    def test_without_a_bos_documents_follow_each_other(self):
        assert list(packed_rows([[1, 2, 3], [4], [5, 6, 7]], bos=None, n_ctx=4)) == [[1, 2, 3, 4]]

    def test_it_is_lazy(self):
        rows = packed_rows(itertools.repeat([1, 2, 3]), bos=0, n_ctx=8)
        assert next(rows) == [0, 1, 2, 3, 0, 1, 2, 3]


class TestSchedule:
    CONFIG = TrainingConfig(steps=110, warmup_steps=10)

    def test_a_linear_warm_up_and_a_cosine(self):
        scale = [learning_rate_scale(step, self.CONFIG) for step in range(110)]
        assert scale[:10] == pytest.approx([0.1 * (step + 1) for step in range(10)])
        assert scale[10] == 1
        assert scale[35] == pytest.approx(0.5 * (1 + 0.5**0.5))
        assert scale[60] == pytest.approx(0.5)
        assert 0 < scale[-1] < 1e-3
        assert all(a > b for a, b in itertools.pairwise(scale[10:]))

    def test_no_warm_up(self):
        assert learning_rate_scale(0, TrainingConfig(steps=5, warmup_steps=0)) == 1

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            *[
                ({field: 0}, f"{field}: expected a whole number of at least 1, got 0")
                for field in ("steps", "batch_size", "log_every", "checkpoint_every")
            ],
            ({"warmup_steps": -1}, "warmup_steps: expected a whole number of at least 0, got -1"),
            *[
                ({field: value}, f"{field}: expected a finite number of at least 0, got {value}")
                for field in ("muon_lr", "adamw_lr", "weight_decay", "clip")
                for value in (-1.0, float("nan"), float("inf"))
            ],
            *[({field: "sgd"}, f"{field}: expected one of .*, got 'sgd'") for field in ("optimizer", "precision")],
        ],
    )
    def test_values_out_of_range_raise(self, fields, message):
        with pytest.raises(ConfigError, match=message):
            TrainingConfig.from_dict({"steps": 1, **fields})

    def test_a_misspelt_field_raises(self):
        with pytest.raises(ConfigError, match="unknown field 'warm_up'; did you mean 'warmup_steps'"):
            TrainingConfig.from_dict({"steps": 1, "warm_up": 3})
        with pytest.raises(ConfigError, match="training: expected the fields steps; missing steps"):
            TrainingConfig.from_dict({})


class TestTrain:
    CONFIG = TrainingConfig(steps=60, batch_size=8, adamw_lr=0.02, warmup_steps=5, log_every=20)

    def test_a_tiny_model_learns(self):
        model = HookedTransformer(TransformerConfig(1, 2, 16, 8, 32, 30, 8))
        losses = train(model, counting_rows(), self.CONFIG).train
        assert losses[0] == pytest.approx(torch.tensor(30.0).log().item(), rel=0.05)
        assert losses[-1] < 0.5 * losses[0]
        assert not model.training
        assert len(losses) == 60

    def test_the_same_seed_gives_the_same_weights(self):
        models = [HookedTransformer(TransformerConfig(1, 2, 16, 8, 32, 30, 8), seed=seed) for seed in (0, 0, 1)]
        for model in models:
            train(model, counting_rows(), TrainingConfig(steps=10, warmup_steps=0))
        first, again, other = (model.hash for model in models)
        assert first == again != other

    def test_every_step_has_its_own_clipped_gradients(self, monkeypatch):
        model = HookedTransformer(TransformerConfig(1, 2, 16, 8, 32, 30, 8, init_std=3.0))
        seen = []

        class Watch(torch.optim.SGD):
            def step(self):
                seen.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))

        def watching(model, config):
            optimizer = Watch(model.parameters(), lr=1.0)
            optimizer.param_groups[0]["peak_lr"] = 1.0
            return [optimizer]

        monkeypatch.setattr("interp.model.training._make_optimizers", watching)
        rows = list(itertools.islice(repeated_rows(), 2))
        train(model, iter(rows), TrainingConfig(steps=2, batch_size=1))
        for row, got in zip(rows, seen, strict=True):
            model.zero_grad()
            model(torch.tensor([row]), return_type="loss").backward()
            raw = torch.cat([p.grad.flatten() for p in model.parameters()])
            assert raw.norm() > 1.5
            assert torch.allclose(got, raw / raw.norm(), atol=1e-5)

    def test_progress_tells_the_mean_since_the_last_time(self):
        told = []
        model = HookedTransformer(TransformerConfig(1, 2, 16, 8, 32, 30, 8))
        losses = train(model, counting_rows(), self.CONFIG, progress=lambda *each: told.append(each)).train
        assert [step for step, _ in told] == [20, 40, 60]
        assert [loss for _, loss in told] == pytest.approx([sum(losses[i : i + 20]) / 20 for i in (0, 20, 40)])

    def test_rows_may_be_a_list_and_each_is_read_once(self):
        rows = list(itertools.islice(counting_rows(), 12))
        models = [HookedTransformer(TransformerConfig(1, 2, 16, 8, 32, 30, 8)) for _ in range(2)]
        for model, given in zip(models, (rows, iter(rows)), strict=True):
            train(model, given, TrainingConfig(steps=3, batch_size=4, warmup_steps=0))
        assert models[0].hash == models[1].hash
        with pytest.raises(InputError, match="the rows ended in step 4 of 4; give more of them, or fewer steps"):
            train(models[0], rows, TrainingConfig(steps=4, batch_size=4))
        assert not models[0].training

    def test_a_loss_that_is_no_number_raises(self):
        model = HookedTransformer(TransformerConfig(1, 2, 16, 8, 32, 30, 8))
        with torch.no_grad():
            model.W_E[3] = float("nan")
        with pytest.raises(InputError, match="the loss of step 1 is nan, expected a finite number"):
            train(model, counting_rows(), self.CONFIG)

    def test_bfloat16_products_leave_the_weights_in_32_bits(self):
        curves = []
        for precision in ("float32", "bfloat16"):
            model = HookedTransformer(TransformerConfig(1, 2, 16, 8, 32, 30, 8))
            curves.append(train(model, counting_rows(), replace(self.CONFIG, precision=precision)).train)
            assert {p.dtype for p in model.parameters()} == {torch.float32}
        assert curves[0] != curves[1]
        assert curves[1] == pytest.approx(curves[0], rel=0.1)


MATRICES = ("W_Q", "W_K", "W_V", "W_O", "W_in", "W_out")
SHAPES = {"W_Q": (15, 12), "W_K": (15, 12), "W_V": (15, 12), "W_O": (12, 15), "W_in": (20, 12), "W_out": (12, 20)}


def block_matrices(model):
    return {name: p for name, p in model.named_parameters() if name.rpartition(".")[2] in MATRICES}


class TestMatrices:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    def test_a_matrix_shares_memory_with_its_parameter(self, dtype):
        for name, parameter in block_matrices(random_model(dtype=dtype)).items():
            matrix = _as_matrix(name, parameter)
            assert tuple(matrix.shape) == SHAPES[name.rpartition(".")[2]]
            assert matrix.data_ptr() == parameter.data_ptr()
            matrix.zero_()
            assert parameter.abs().max() == 0

    def test_a_matrix_is_the_map_of_all_heads(self):
        attn = random_model().blocks[0].attn
        x = torch.randn(12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            q = torch.einsum("m,hme->he", x, attn.W_Q).flatten()
            assert torch.allclose(_as_matrix("W_Q", attn.W_Q) @ x, q)
            written = torch.einsum("he,hem->m", q.view(3, 5), attn.W_O)
            assert torch.allclose(_as_matrix("W_O", attn.W_O) @ q, written)

    def test_a_weight_that_could_only_be_copied_raises(self):
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            _as_matrix("W_Q", torch.zeros(3, 12, 5))

    def test_every_parameter_has_one_optimizer(self):
        model = random_model()
        muon, adamw = _make_optimizers(model, TrainingConfig(1))
        held = [p.data_ptr() for each in (muon, adamw) for group in each.param_groups for p in group["params"]]
        assert sorted(held) == sorted(p.data_ptr() for name, p in model.named_parameters() if name != "unembed.b_U")
        assert {p.data_ptr() for p in muon.param_groups[0]["params"]} == {
            p.data_ptr() for p in block_matrices(model).values()
        }

    def test_adamw_steps_everything_where_it_is_asked_for(self):
        model = random_model()
        (adamw,) = _make_optimizers(model, TrainingConfig(1, optimizer="adamw"))
        assert len(adamw.param_groups[0]["params"]) == len(list(model.parameters())) - 1
        assert not model.b_U.requires_grad

    @pytest.mark.parametrize("tied", [True, False])
    def test_one_step_changes_everything_but_the_unembedding_bias(self, tied):
        model = HookedTransformer(TransformerConfig(2, 3, 12, 5, 20, 30, 8, tied=tied))
        before = {name: p.clone() for name, p in model.named_parameters()}
        train(model, repeated_rows(), TrainingConfig(steps=2, batch_size=4, warmup_steps=0))
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, before[name]) == (name == "unembed.b_U")
        assert model.b_U.abs().max() == 0

    def test_muon_steps_are_orthogonal(self):
        """With no decay, Muon's step from a gradient has singular values near 1, times the rate."""
        model = random_model(dtype=torch.float32)
        muon, _ = _make_optimizers(model, TrainingConfig(1, muon_lr=0.5, weight_decay=0.0))
        before = {name: _as_matrix(name, p).clone() for name, p in block_matrices(model).items()}
        model(torch.arange(8)[None], return_type="loss").backward()
        muon.step()
        for name, parameter in block_matrices(model).items():
            step = before[name] - _as_matrix(name, parameter)
            longer = max(1.0, step.shape[0] / step.shape[1]) ** 0.5  # torch's default adjustment of the rate
            singular = torch.linalg.svdvals(step) / (0.5 * longer)
            assert 0.3 < singular[0] < 1.3
            assert step.abs().amax(1).min() > 1e-3  # no head's rows are left behind
