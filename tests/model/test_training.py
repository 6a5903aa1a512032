"""Packing, the schedule, and that every matrix really is trained, the same way each time."""

import itertools
import json
import shutil
import signal
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import random_model

from interp.errors import ConfigError, InputError, LoadError, OutputError
from interp.model.checkpoints import checkpoints
from interp.model.config import TransformerConfig
from interp.model.loading import load_model
from interp.model.optimizers import as_matrix, make_optimizers
from interp.model.training import TrainingConfig, learning_rate_scale, packed_rows, train
from interp.model.transformer import HookedTransformer

MATRICES = ("W_Q", "W_K", "W_V", "W_O", "W_in", "W_out")
SHAPES = {"W_Q": (15, 12), "W_K": (15, 12), "W_V": (15, 12), "W_O": (12, 15), "W_in": (20, 12), "W_out": (12, 20)}


def block_matrices(model):
    return {name: p for name, p in model.named_parameters() if name.rpartition(".")[2] in MATRICES}


class TestPackedRows:
    def test_documents_follow_each_other_behind_a_bos_each(self):
        documents = [[1, 2, 3], [4], [5, 6, 7, 8, 9], [10, 11]]
        rows = list(packed_rows(documents, bos=0, n_ctx=5))
        assert rows == [[0, 1, 2, 3, 0], [0, 5, 6, 7, 8]]

    def test_a_row_that_is_filled_exactly(self):
        assert list(packed_rows([[1, 2], [3, 4]], bos=0, n_ctx=3)) == [[0, 1, 2], [0, 3, 4]]

    def test_what_does_not_fill_a_row_is_left_out(self):
        assert list(packed_rows([[1]], bos=0, n_ctx=3)) == []

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

    @pytest.mark.parametrize("field", ["steps", "batch_size", "log_every", "checkpoint_every"])
    def test_values_out_of_range_raise(self, field):
        with pytest.raises(ConfigError, match=f"{field}: expected a whole number of at least 1, got 0"):
            TrainingConfig(**{"steps": 1, field: 0})

    @pytest.mark.parametrize("field", ["muon_lr", "adamw_lr", "weight_decay", "clip"])
    @pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
    def test_rates_out_of_range_raise(self, field, value):
        with pytest.raises(ConfigError, match=f"{field}: expected a finite number of at least 0, got {value}"):
            TrainingConfig(**{"steps": 1, field: value})

    def test_a_negative_warm_up_raises(self):
        with pytest.raises(ConfigError, match="warmup_steps: expected a whole number of at least 0, got -1"):
            TrainingConfig(steps=1, warmup_steps=-1)

    @pytest.mark.parametrize("field", ["optimizer", "precision"])
    def test_an_unknown_choice_raises(self, field):
        with pytest.raises(ConfigError, match=f"{field}: expected one of .*, got 'sgd'"):
            TrainingConfig.from_dict({"steps": 1, field: "sgd"})

    def test_a_misspelt_field_raises(self):
        with pytest.raises(ConfigError, match="unknown field 'warm_up'; did you mean 'warmup_steps'"):
            TrainingConfig.from_dict({"steps": 1, "warm_up": 3})
        with pytest.raises(ConfigError, match="expected 'steps'"):
            TrainingConfig.from_dict({})


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


def repeated_rows(n_ctx=8, d_vocab=30):
    """Endless random rows whose second half repeats the first."""
    generator = torch.Generator().manual_seed(0)
    while True:
        half = torch.randint(1, d_vocab, (n_ctx // 2,), generator=generator).tolist()
        yield half + half


def counting_rows(n_ctx=8, d_vocab=30):
    """Endless rows in which each token is the one before, plus 1."""
    for start in itertools.count():
        yield [(start + step) % d_vocab for step in range(n_ctx)]


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

        def watching(model, name, **rates):
            optimizer = Watch(model.parameters(), lr=1.0)
            optimizer.param_groups[0]["peak_lr"] = 1.0
            return [optimizer]

        monkeypatch.setattr("interp.model.training.make_optimizers", watching)
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
        with pytest.raises(InputError, match="the rows ended in step 4 of 4"):
            train(models[0], rows, TrainingConfig(steps=4, batch_size=4))

    def test_rows_that_end_too_early_raise(self):
        model = HookedTransformer(TransformerConfig(1, 2, 16, 8, 32, 30, 8))
        with pytest.raises(InputError, match="the rows ended in step 3 of 60; give more of them, or fewer steps"):
            train(model, itertools.islice(counting_rows(), 20), self.CONFIG)
        assert not model.training

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


class StoppedError(Exception):
    pass


def ending_rows(n):
    """Rows that are interrupted after `n`."""
    yield from itertools.islice(counting_rows(), n)
    raise StoppedError


@pytest.fixture
def interruptible():
    """As in a terminal, whatever this test's own process makes of an interrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class TestGoingOn:
    """A training that is interrupted and asked for again is the training that never was."""

    CONFIG = TrainingConfig(steps=12, batch_size=4, adamw_lr=0.02, warmup_steps=3, checkpoint_every=5)
    HELD_OUT = tuple(itertools.islice(repeated_rows(), 3))

    def model(self):
        return HookedTransformer(TransformerConfig(2, 2, 16, 8, 32, 30, 8, tied=False))

    @pytest.mark.parametrize("optimizer", ["muon", "adamw"])
    @pytest.mark.parametrize("precision", ["float32", "bfloat16"])
    @pytest.mark.parametrize("interrupted_after", [3, 5, 9, 11])
    def test_to_the_bit(self, tmp_path, optimizer, precision, interrupted_after):
        config = replace(self.CONFIG, optimizer=optimizer, precision=precision)
        whole = self.model()
        expected = train(whole, counting_rows(), config, held_out=self.HELD_OUT)
        with pytest.raises(StoppedError):
            train(self.model(), ending_rows(4 * interrupted_after), config, held_out=self.HELD_OUT, folder=tmp_path)
        kept = [step for step in (5, 10) if step <= interrupted_after]
        assert list(checkpoints(tmp_path)) == kept
        again = self.model()
        got = train(again, counting_rows(), config, held_out=self.HELD_OUT, folder=tmp_path)
        assert got == expected
        assert list(got.held_out) == [5, 10, 12]
        assert again.hash == whole.hash

    @pytest.mark.parametrize(("interrupted_in", "kept"), [(3, [3]), (5, [5]), (9, [5, 9])])
    @pytest.mark.parametrize("place", ["rows", "optimizer"])
    def test_an_interrupt_waits_for_the_end_of_the_step(
        self, tmp_path, monkeypatch, interruptible, place, interrupted_in, kept
    ):
        """Wherever in a step it comes: what is kept is whole steps."""
        times, stepped = itertools.count(1), torch.optim.AdamW.step

        def rows():
            for number, row in enumerate(counting_rows(), start=1):
                if place == "rows" and number == 4 * interrupted_in:
                    signal.raise_signal(signal.SIGINT)
                yield row

        def step(*arguments):
            if place == "optimizer" and next(times) == interrupted_in:
                signal.raise_signal(signal.SIGINT)
            stepped(*arguments)

        whole, again = self.model(), self.model()
        expected = train(whole, counting_rows(), self.CONFIG, held_out=self.HELD_OUT)
        with monkeypatch.context() as patched:
            patched.setattr(torch.optim.AdamW, "step", step)
            with pytest.raises(KeyboardInterrupt):
                train(again, rows(), self.CONFIG, held_out=self.HELD_OUT, folder=tmp_path)
        assert list(checkpoints(tmp_path)) == kept
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert train(again, counting_rows(), self.CONFIG, held_out=self.HELD_OUT, folder=tmp_path) == expected
        assert again.hash == whole.hash

    def test_a_second_interrupt_does_not_wait(self, tmp_path, interruptible):
        def rows():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            yield from counting_rows()

        with pytest.raises(KeyboardInterrupt):
            train(self.model(), rows(), self.CONFIG, folder=tmp_path)
        assert list(checkpoints(tmp_path)) == []

    def test_gradients_of_a_broken_training_are_not_taken_over(self, monkeypatch):
        model, backward = self.model(), torch.Tensor.backward

        def broken(loss):
            backward(loss)
            monkeypatch.undo()
            raise StoppedError

        monkeypatch.setattr(torch.Tensor, "backward", broken)
        with pytest.raises(StoppedError):
            train(model, counting_rows(), self.CONFIG)
        whole = self.model()
        assert train(model, counting_rows(), self.CONFIG) == train(whole, counting_rows(), self.CONFIG)
        assert model.hash == whole.hash

    def test_a_checkpoint_is_a_model(self, tmp_path):
        model = self.model()
        curve = train(model, counting_rows(), self.CONFIG, folder=tmp_path)
        found = checkpoints(tmp_path)
        assert list(found) == [5, 10, 12]
        assert load_model(found[12]).hash == model.hash != load_model(found[5]).hash
        assert [(path / "optimizers.safetensors").is_file() for path in found.values()] == [False, True, True]
        assert train(self.model(), iter(()), self.CONFIG, folder=tmp_path) == curve

    @pytest.mark.parametrize(("field", "value"), [("muon_lr", 0.03), ("steps", 20), ("optimizer", "adamw")])
    def test_another_training_raises(self, tmp_path, field, value):
        train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)
        match = f"a checkpoint of another training: {field} was .* there and is {value!r} here"
        with pytest.raises(LoadError, match=match):
            train(self.model(), counting_rows(), replace(self.CONFIG, **{field: value}), folder=tmp_path)

    def test_another_model_raises(self, tmp_path):
        train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)
        other = HookedTransformer(TransformerConfig(2, 2, 16, 8, 20, 30, 8, tied=False))
        with pytest.raises(LoadError, match="a checkpoint of another training: d_mlp was 32 there and is 20 here"):
            train(other, counting_rows(), self.CONFIG, folder=tmp_path)

    @pytest.mark.parametrize("fields", [{"act_fn": "relu"}, {"scores": "dot"}])
    def test_another_architecture_of_the_same_shapes_raises(self, tmp_path, fields):
        train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)
        other = HookedTransformer(replace(self.model().config, **fields))
        with pytest.raises(LoadError, match=f"a checkpoint of another training: {next(iter(fields))} was"):
            train(other, counting_rows(), self.CONFIG, folder=tmp_path)

    def test_other_material_raises(self, tmp_path):
        train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path, material={"seed": 1})
        with pytest.raises(LoadError, match="a checkpoint of another training: seed was 1 there and is 2 here"):
            train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path, material={"seed": 2})

    def test_a_damaged_checkpoint_is_named_and_without_it_the_training_goes_on(self, tmp_path):
        whole, again = self.model(), self.model()
        train(whole, counting_rows(), self.CONFIG, folder=tmp_path)
        newest = checkpoints(tmp_path)[12]
        damaged = newest / "optimizers.safetensors"
        damaged.write_bytes(damaged.read_bytes()[:200])
        with pytest.raises(LoadError, match=f"not a readable safetensors file.*; delete {newest} to go on from"):
            train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)
        shutil.rmtree(newest)
        train(again, counting_rows(), self.CONFIG, folder=tmp_path)
        assert again.hash == whole.hash

    def test_what_the_optimisers_remember_is_checked(self, tmp_path):
        train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)
        path = checkpoints(tmp_path)[12] / "optimizers.safetensors"
        whole = load_file(path)
        name = min(whole)
        for tensors, message in (
            ({}, "is missing"),
            ({each: tensor for each, tensor in whole.items() if each != name}, f"tensor '{name}' is missing"),
            ({**whole, "0.99.extra": torch.ones(2)}, "tensor '0.99.extra' is not part of these optimisers"),
            ({**whole, name: torch.ones(3, 7)}, rf"tensor '{name}': expected shape \(.*\), got \(3, 7\)"),
        ):
            save_file(tensors, path)
            with pytest.raises(LoadError, match=message):
                train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"train": None}, "expected settings, material and losses"),
            ({"train": ["a"] * 12}, "expected settings, material and losses"),
            ({"train": [1.0]}, "expected a loss for each step, got 1"),
            ({"held_out": {"five": 1.0}}, "expected settings, material and losses"),
            ({"settings": [1]}, "expected settings, material and losses"),
            ({"format": 99}, "a checkpoint in format 99"),
        ],
    )
    def test_a_checkpoint_whose_notes_are_damaged(self, tmp_path, fields, message):
        train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)
        path = checkpoints(tmp_path)[12] / "training.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))
        with pytest.raises(LoadError, match=message):
            train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)

    def test_a_folder_of_another_name_is_no_checkpoint(self, tmp_path):
        train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)
        (tmp_path / "step-latest").mkdir()
        (tmp_path / "step-latest" / "training.json").write_text("{}")
        assert list(checkpoints(tmp_path)) == [5, 10, 12]

    def test_a_half_written_checkpoint_is_none(self, tmp_path, monkeypatch):
        def full_disk(*_, **__):
            raise OSError("No space left on device")

        train(self.model(), counting_rows(), replace(self.CONFIG, steps=12), folder=tmp_path / "good")
        monkeypatch.setattr("interp.model.checkpoints.save_file", full_disk)
        with pytest.raises(OutputError, match=r"no checkpoint can be written here .*No space left"):
            train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path / "bad")
        assert not list((tmp_path / "bad").iterdir())
