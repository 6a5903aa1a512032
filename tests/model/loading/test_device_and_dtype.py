"""Where and how a model is held: mistakes are found before anything is read."""

import pytest
import torch
from refusals import refused

from interp.errors import ConfigError
from interp.model.loading import load_model


class TestDeviceAndDtype:
    @pytest.mark.parametrize("device", ["cuda", "cuda:9"])
    def test_no_cuda(self, gpt2, device, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        refused(gpt2, f"device: '{device}' was asked for, but PyTorch sees no CUDA", ConfigError, device=device)

    def test_not_that_many(self, gpt2, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: True)
        monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
        for device in ("cuda:2", "cuda:9"):
            message = f"device: '{device}' was asked for, but there are 2 CUDA devices, from 0"
            refused(gpt2, message, ConfigError, device=device)

    @pytest.mark.parametrize("device", ["tpu", "mps", "meta", "", "cpu:x", "cuda:-1"])
    def test_unknown_device(self, gpt2, device):
        refused(gpt2, f"device: expected cpu, cuda, cuda:N or auto, got '{device}'", ConfigError, device=device)

    @pytest.mark.parametrize("dtype", ["float8", "fp32", torch.int64, torch.complex64])
    def test_unknown_dtype(self, gpt2, dtype):
        message = f"dtype: expected one of float64, float32, bfloat16, float16, got {dtype!r}"
        refused(gpt2, message, ConfigError, dtype=dtype)

    def test_mistakes_are_found_before_anything_is_read(self, tmp_path):
        refused(tmp_path / "nowhere", "dtype: expected one of", ConfigError, dtype="half")

    def test_defaults(self, gpt2, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        for device in (None, "auto", "cpu", torch.device("cpu")):
            model = load_model(gpt2, device=device)
            assert (model.W_E.device.type, model.W_E.dtype) == ("cpu", torch.float32)
