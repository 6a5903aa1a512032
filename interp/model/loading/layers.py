"""How are the layers of a transformer stored elsewhere, and which of our parameters are they?

Every function takes one layer's tensors and yields our parameters: views, with nothing copied. Which biases there are,
our config's ``biases`` say.
"""

from collections.abc import Callable, Iterator

import einops
from jaxtyping import Float
from torch import Tensor

from interp.errors import LoadError
from interp.model.config import TransformerConfig
from interp.model.loading.taker import Taker

Parameters = Iterator[tuple[str, Tensor]]
Matrix = Callable[[Taker, str, int, int], Float[Tensor, "n_in n_out"]]
OTHER_TENSORS = ("score.weight", "classifier.weight", "qa_outputs.weight")
"""What transformers writes of heads that classify texts or words, or answer questions."""


def linear(take: Taker, name: str, n_in: int, n_out: int) -> Float[Tensor, "n_in n_out"]:
    """The matrix of PyTorch's ``Linear``, which keeps it transposed."""
    return take(f"{name}.weight", n_out, n_in).T


def conv1d(take: Taker, name: str, n_in: int, n_out: int) -> Float[Tensor, "n_in n_out"]:
    """The matrix of a ``Conv1D``, which keeps it as it is."""
    return take(f"{name}.weight", n_in, n_out)


def norm(take: Taker, name: str, ours: str, width: int, *, bias: bool = True) -> Parameters:
    """A LayerNorm, or an RMSNorm, which has no bias. In old checkpoints, weights are ``gamma`` and biases ``beta``."""
    weight, shift = ("gamma", "beta") if f"{name}.gamma" in take else ("weight", "bias")
    yield f"{ours}.w", take(f"{name}.{weight}", width)
    if bias:
        yield f"{ours}.b", take(f"{name}.{shift}", width)


def heads_in(take: Taker, name: str, ours: str, letter: str, config: TransformerConfig) -> Parameters:
    """Queries, keys or values of a layer, by a ``Linear`` of their own."""
    heads = config.n_heads if letter == "Q" else config.kv_heads
    weight = linear(take, name, config.d_model, heads * config.d_head)
    yield f"{ours}.W_{letter}", einops.rearrange(weight, "d (h e) -> h d e", h=heads)
    if "qkv" in config.biases:
        yield f"{ours}.b_{letter}", take(f"{name}.bias", heads * config.d_head).reshape(heads, config.d_head)


def joined_heads_in(take: Taker, name: str, ours: str, config: TransformerConfig, matrix: Matrix) -> Parameters:
    """Queries, keys and values of all heads in one matrix, one after the other (GPT-2's ``c_attn``)."""
    inner = config.n_heads * config.d_head
    for letter, each in zip("QKV", matrix(take, name, config.d_model, 3 * inner).split(inner, dim=1), strict=True):
        yield f"{ours}.W_{letter}", einops.rearrange(each, "d (h e) -> h d e", h=config.n_heads)
    if "qkv" in config.biases:
        for letter, each in zip("QKV", take(f"{name}.bias", 3 * inner).split(inner), strict=True):
            yield f"{ours}.b_{letter}", each.reshape(config.n_heads, config.d_head)


def heads_out(take: Taker, name: str, ours: str, config: TransformerConfig, matrix: Matrix = linear) -> Parameters:
    """What the heads of a layer write."""
    weight = matrix(take, name, config.n_heads * config.d_head, config.d_model)
    yield f"{ours}.W_O", einops.rearrange(weight, "(h e) d -> h e d", h=config.n_heads)
    if "o" in config.biases:
        yield f"{ours}.b_O", take(f"{name}.bias", config.d_model)


def mlp_in(
    take: Taker, name: str, ours: str, config: TransformerConfig, matrix: Matrix = linear, *, which: str = "in"
) -> Parameters:
    """What the neurons of a layer read; `which` is ``in``, or ``gate``."""
    yield f"{ours}.W_{which}", matrix(take, name, config.d_model, config.d_mlp)
    if "mlp" in config.biases:
        yield f"{ours}.b_{which}", take(f"{name}.bias", config.d_mlp)


def mlp_out(take: Taker, name: str, ours: str, config: TransformerConfig, matrix: Matrix = linear) -> Parameters:
    """What the neurons of a layer write."""
    yield f"{ours}.W_out", matrix(take, name, config.d_mlp, config.d_model)
    if "mlp" in config.biases:
        yield f"{ours}.b_out", take(f"{name}.bias", config.d_model)


def require_head(take: Taker, name: str, *, tied: bool = False) -> None:
    """Refuse a body alone, as transformers writes it, and a head that predicts something else than tokens.

    Args:
        take: The checkpoint's tensors.
        name: A tensor of the head that predicts tokens.
        tied: Whether the embedding takes its place.

    Raises:
        LoadError: `name` is missing, or a tensor of another head is there.
    """
    others = [each for each in OTHER_TENSORS if each in take]
    if others or not (tied or name in take):
        fault = f"tensor {others[0]!r} is of another head" if others else f"tensor {name!r} is missing"
        raise LoadError(
            f"{take.source}: {fault}: this model has no head that predicts tokens, so it has no logits; save one of "
            "a class with a head (AutoModelForCausalLM, BertForMaskedLM) that was trained; interp attend, which reads "
            "no logits, takes it as 'bridge:FOLDER', from the folder that it was saved in"
        )


def embeddings(take: Taker, embed: str, unembed: str, config: TransformerConfig) -> Parameters:
    """The token embedding, and the unembedding where it is another: both ``[d_vocab d_model]``, by their names."""
    W_E = take(embed, config.d_vocab, config.d_model)
    yield "embed.W_E", W_E
    if config.tied:
        take.take_copy(unembed, W_E, embed)
    else:
        yield "unembed.W_U", take(unembed, config.d_vocab, config.d_model).T
