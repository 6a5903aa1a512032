"""One hash of a model's weights: the same for the same values, another for any others, however they came about."""

import pytest
import torch
from tiny_models import random_model

from interp.model import weights
from interp.model.weights import weights_hash


@pytest.fixture
def model():
    return random_model(dtype=torch.float32)


CHANGES = {
    "in place": lambda w: w.mul_(2.0),
    "past autograd": lambda w: w.data.mul_(2.0),
    "one value": lambda w: w.data[0, 0, 0].add_(1e-7),
    "two heads exchanged": lambda w: w.data.copy_(w.data.flip(0)),
    "two dimensions exchanged": lambda w: w.data.copy_(w.data.flip(1)),
    "through numpy": lambda w: w.detach().numpy().__setitem__((0, 0, 0), 3.0),
}


@pytest.mark.parametrize("name", ["W_Q", "W_O"])
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen_and_undone(model, name, change):
    weight = getattr(model.blocks[0].attn, name)
    before, was = weights_hash(model), weight.detach().clone()
    with torch.no_grad():
        CHANGES[change](weight)
    assert weights_hash(model) != before
    with torch.no_grad():
        weight.copy_(was)
    assert weights_hash(model) == before


def test_the_dtype_does_not_matter(model):
    before = weights_hash(model)
    assert weights_hash(model.double()) == before


def test_it_is_the_hash_of_the_values(model, monkeypatch):
    """Known states are only remembered."""
    before = weights_hash(model)
    monkeypatch.setattr(weights, "_known", {})
    assert weights_hash(model) == before


def test_known_weights_are_not_hashed_again(model, monkeypatch):
    before = weights_hash(model)
    monkeypatch.setattr(weights, "_sha256", lambda _: "again")
    assert weights_hash(model) == before
    with torch.no_grad():
        model.embed.W_E.add_(1.0)
    assert weights_hash(model) == "again"
