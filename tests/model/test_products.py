"""Products on a CPU: one result whichever library multiplies, and the faster one is found once and remembered."""

import json

import pytest
import torch

import interp
from interp.model import layers, products
from interp.model.layers import linear
from interp.model.products import NEVER, cache_root, rows_for_onednn

pytestmark = pytest.mark.unchecked


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows_for_onednn.cache_clear()
    yield tmp_path / "interp" / "products.json"
    rows_for_onednn.cache_clear()


def timed(monkeypatch, rows):
    told = []
    monkeypatch.setattr(products, "_timed", lambda *shape: told.append(shape) or rows)
    return told


@pytest.mark.skipif(not layers.ONEDNN, reason="this PyTorch has no oneDNN")
@pytest.mark.parametrize("activation", [None, *layers.ACTIVATIONS])
@pytest.mark.parametrize("shape", [(50, 16), (2, 25, 16)])
def test_both_libraries_give_the_same(monkeypatch, activation, shape):
    x, weight, bias = torch.randn(shape), torch.randn(16, 24), torch.randn(24)
    product = x @ weight + bias
    expected = product if activation is None else layers.ACTIVATIONS[activation](product)
    for fewest, by_onednn in ((51, False), (50, True)):
        monkeypatch.setattr(layers, "rows_for_onednn", lambda *_, fewest=fewest: fewest)
        with torch.no_grad(), torch.profiler.profile() as profile:
            torch.testing.assert_close(linear(x, weight, bias, activation), expected)
        assert by_onednn == any("_linear_pointwise" in each.name for each in profile.events())


def test_what_is_learned_from_is_not_onednns(monkeypatch):
    monkeypatch.setattr(layers, "rows_for_onednn", lambda *_: 0)
    weight = torch.randn(16, 24, requires_grad=True)
    linear(torch.ones(3, 16), weight, torch.zeros(24)).sum().backward()
    torch.testing.assert_close(weight.grad, torch.full((16, 24), 3.0))


def test_a_shape_is_timed_once_for_all_processes(cache, monkeypatch):
    told = timed(monkeypatch, 32)
    assert [rows_for_onednn(16, 24, 1) for _ in range(2)] == [32, 32]
    rows_for_onednn.cache_clear()  # as another process has it
    assert rows_for_onednn(16, 24, 1) == 32
    assert told == [(16, 24)]
    rows_for_onednn(16, 24, 2)
    rows_for_onednn(24, 16, 1)
    assert told == [(16, 24), (16, 24), (24, 16)]
    assert sum(map(len, json.loads(cache.read_text()).values())) == 3


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_damaged_file_is_written_anew(cache, monkeypatch, text):
    cache.parent.mkdir()
    cache.write_text(text)
    timed(monkeypatch, 32)
    assert rows_for_onednn(16, 24, 1) == 32
    assert [*json.loads(cache.read_text()).values()] == [{"16 x 24": 32}]


def test_where_nothing_can_be_remembered_it_is_timed_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "interp").write_text("no folder")
    timed(monkeypatch, 128)
    assert rows_for_onednn(16, 24, 1) == 128


def test_it_is_found_by_timing():
    assert rows_for_onednn(64, 64, torch.get_num_threads()) in (*products.ROWS, NEVER)


def test_a_model_gives_the_same_with_and_without(monkeypatch):
    model = interp.load_model()
    tokens = torch.arange(1, 41).view(2, 20)
    logits = []
    for fewest in (0, NEVER):
        monkeypatch.setattr(layers, "rows_for_onednn", lambda *_, fewest=fewest: fewest)
        with torch.no_grad():
            logits.append(model(tokens))
    torch.testing.assert_close(*logits, atol=1e-4, rtol=1e-4)
    assert cache_root().name == "interp"


@pytest.mark.parametrize("activation", layers.ACTIVATIONS)
def test_what_is_no_number_stays_none(monkeypatch, activation):
    monkeypatch.setattr(layers, "rows_for_onednn", lambda *_: 0)
    with torch.no_grad():
        found = linear(torch.tensor([[torch.nan], [1.0]]), torch.ones(1, 3), torch.zeros(3), activation)
    assert found.isnan().tolist() == [[True] * 3, [False] * 3]
