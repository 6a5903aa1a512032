"""The convolution against its equation, and the window that it sees."""

import pytest
import torch
from language_models import random_tokens

from forerunners.convolution import Convolution, ConvolutionConfig


def network(n_layers, kernel_size):
    return Convolution(ConvolutionConfig(n_layers, 8, 11, kernel_size=kernel_size)).double()


@torch.no_grad()
def test_the_equation():
    model, tokens = network(3, 3), random_tokens()
    x = model.embed.W_E[tokens]
    for layer in range(3):
        weight, bias = model.layers[layer].convolution.weight, model.layers[layer].convolution.bias
        seen = torch.zeros(4, 9, 16, dtype=torch.float64) + bias
        for tap in range(3):
            back = (2 - tap) * 2**layer
            seen[:, back:] += x[:, : 9 - back] @ weight[:, :, tap].T
        x = x + seen[..., :8] * seen[..., 8:].sigmoid()
        _, cache = model.run_with_cache(tokens)
        assert torch.allclose(cache[f"layers.{layer}.hook_state"], x, atol=1e-12)


@pytest.mark.parametrize(("n_layers", "kernel_size", "window"), [(1, 3, 3), (2, 3, 7), (3, 2, 8), (1, 1, 1)])
def test_a_prediction_sees_its_window_and_no_more(n_layers, kernel_size, window):
    model = network(n_layers, kernel_size)
    assert model.config.window == window
    tokens = random_tokens(length=12)
    base = model(tokens)[:, -1]
    for back in range(12):
        other = tokens.clone()
        other[:, -1 - back] = (other[:, -1 - back] + 1) % 11
        assert bool((model(other)[:, -1] - base).abs().max() > 0) == (back < window)
