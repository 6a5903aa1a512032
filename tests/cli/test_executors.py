"""Who computes, as the options ask."""

import pytest

from interp.cli.running import executor_of

pytestmark = pytest.mark.unchecked


@pytest.mark.parametrize(
    ("device", "gpus", "cuda", "expected"),
    [
        ("cpu", None, True, None),
        ("cpu", 0.5, True, 0.5),
        ("auto", None, False, None),
        ("auto", None, True, 1),
        ("cuda", None, True, 1),
        ("auto", 0.5, True, 0.5),
    ],
)
def test_a_worker_of_a_cluster_has_a_gpu_where_it_computes_on_one(monkeypatch, device, gpus, cuda, expected):
    monkeypatch.setattr("torch.cuda.is_available", lambda: cuda)
    monkeypatch.setattr("torch.cuda.device_count", lambda: int(cuda))
    assert executor_of(executor="ray", device=device, gpus=gpus).gpus == expected
