"""Every matrix of a block really is trained, by the optimiser that it is meant for."""

import pytest
import torch
from tiny_models import random_model
from training_rows import repeated_rows

from interp.model.config import TransformerConfig
from interp.model.optimizers import as_matrix, make_optimizers
from interp.model.training import TrainingConfig, train
from interp.model.transformer import HookedTransformer

MATRICES = ("W_Q", "W_K", "W_V", "W_O", "W_in", "W_out")
SHAPES = {"W_Q": (15, 12), "W_K": (15, 12), "W_V": (15, 12), "W_O": (12, 15), "W_in": (20, 12), "W_out": (12, 20)}


def block_matrices(model):
    return {name: p for name, p in model.named_parameters() if name.rpartition(".")[2] in MATRICES}


RATES = {"muon_lr": 0.02, "adamw_lr": 1.5e-3, "weight_decay": 0.1}


class TestMatrices:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    def test_a_matrix_shares_memory_with_its_parameter(self, dtype):
        for name, parameter in block_matrices(random_model(dtype=dtype)).items():
            matrix = as_matrix(name, parameter)
            assert tuple(matrix.shape) == SHAPES[name.rpartition(".")[2]]
            assert matrix.data_ptr() == parameter.data_ptr()
            matrix.zero_()
            assert parameter.abs().max() == 0

    def test_a_matrix_is_the_map_of_all_heads(self):
        attn = random_model().blocks[0].attn
        x = torch.randn(12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            q = torch.einsum("m,hme->he", x, attn.W_Q).flatten()
            assert torch.allclose(as_matrix("W_Q", attn.W_Q) @ x, q)
            written = torch.einsum("he,hem->m", q.view(3, 5), attn.W_O)
            assert torch.allclose(as_matrix("W_O", attn.W_O) @ q, written)

    def test_a_weight_that_could_only_be_copied_raises(self):
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            as_matrix("W_Q", torch.zeros(3, 12, 5))

    def test_every_parameter_has_one_optimizer(self):
        model = random_model()
        muon, adamw = make_optimizers(model, "muon", **RATES)
        held = [p.data_ptr() for each in (muon, adamw) for group in each.param_groups for p in group["params"]]
        assert sorted(held) == sorted(p.data_ptr() for name, p in model.named_parameters() if name != "unembed.b_U")
        assert {p.data_ptr() for p in muon.param_groups[0]["params"]} == {
            p.data_ptr() for p in block_matrices(model).values()
        }

    def test_adamw_steps_everything_where_it_is_asked_for(self):
        model = random_model()
        (adamw,) = make_optimizers(model, "adamw", **RATES)
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
        muon, _ = make_optimizers(model, "muon", **RATES | {"muon_lr": 0.5, "weight_decay": 0.0})
        before = {name: as_matrix(name, p).clone() for name, p in block_matrices(model).items()}
        model(torch.arange(8)[None], return_type="loss").backward()
        muon.step()
        for name, parameter in block_matrices(model).items():
            step = before[name] - as_matrix(name, parameter)
            longer = max(1.0, step.shape[0] / step.shape[1]) ** 0.5  # torch's default adjustment of the rate
            singular = torch.linalg.svdvals(step) / (0.5 * longer)
            assert 0.3 < singular[0] < 1.3
            assert step.abs().amax(1).min() > 1e-3  # no head's rows are left behind
