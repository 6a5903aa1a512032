"""A training that was interrupted goes on to the bit, and what its checkpoints hold is checked."""

import itertools
import json
import shutil
import signal
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from training_rows import counting_rows, repeated_rows

from interp.errors import LoadError, OutputError
from interp.model.checkpoints import checkpoints
from interp.model.config import TransformerConfig
from interp.model.loading import load_model
from interp.model.training import TrainingConfig, train
from interp.model.transformer import HookedTransformer


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
        with pytest.raises(LoadError, match="a checkpoint of another training: seed was 1 there and is None here"):
            train(self.model(), counting_rows(), self.CONFIG, folder=tmp_path)

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
