"""Which component pushed the logit up? Direct logit attribution (Elhage et al. 2021; nostalgebraist 2020).

1. The last norm is linear once its scale is known: ``ln(x) = centre(x) / scale * w + b`` (RMSNorm: without centring).
2. So each component of the stream writes ``centre(component) / scale * w @ W_U[:, token]`` to the token's logit.
3. With ``b @ W_U + b_U`` as one more component, the attributions sum to the logit.
"""

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.model.devices import documented
from interp.model.loading.modules import require_ours
from interp.model.transformer import HookedTransformer
from interp.residual.stream import ResidualStream

BIAS = "final bias"


@documented
@torch.inference_mode()
def direct_logit_attribution(
    model: HookedTransformer,
    stream: ResidualStream,
    right: Int[Tensor, " batch"] | int | str,
    wrong: Int[Tensor, " batch"] | int | str | None = None,
    *,
    pos: int = -1,
) -> pd.DataFrame:
    """What each component writes to a token's logit, or to the difference of two tokens' logits.

    Args:
        model: The model that `stream` was taken from. A hook on ``ln_final`` is not seen: its weights are read.
        stream: From ``residual_stream``.
        right: The token, one for all prompts or one each.
        wrong: Attribute ``logit(right) - logit(wrong)`` instead.
        pos: The position whose prediction is attributed; -1 is each prompt's last real token.

    Returns:
        One row a component and prompt: ``label, kind, layer, head, example, attribution`` (in logits), with the
        last LayerNorm's and the unembedding's biases as the component ``final bias``. A prompt's rows sum
        to its logit (difference).

    Raises:
        InputError: `pos` lies outside a prompt, a prompt is all padding, or `right` or `wrong` are no ids, one or
            one a prompt.

    Example:
        >>> model = interp.load_model()
        >>> stream = interp.residual_stream(model, "The keys to the cabinet")
        >>> parts = interp.direct_logit_attribution(model, stream, " are", " is")
        >>> parts.nlargest(1, "attribution")["label"].item()
        'L2 mlp'
    """
    require_ours(model, "direct_logit_attribution")
    made_by = (int(stream.labels["layer"].max()) + 1, stream.total.shape[-1])
    if made_by != (model.config.n_layers, model.config.d_model):
        raise InputError(
            f"stream: expected one of this model, of {model.config.n_layers} layers and a width of "
            f"{model.config.d_model}, got one of {made_by[0]} and {made_by[1]}; take residual_stream(model, prompts)"
        )
    n, device = len(stream.tokens), stream.total.device
    rows = torch.arange(n, device=device)
    at = _positions(stream, pos)
    wide = torch.promote_types(stream.total.dtype, torch.float32)  # float16 cannot hold the square of 300
    direction, bias = _readout(model, right, n, wide)
    if wrong is not None:
        other, other_bias = _readout(model, wrong, n, wide)
        direction, bias = direction - other, bias - other_bias
    final, parts = stream.total[rows, at].to(wide), stream.components[:, rows, at].to(wide)
    norm = model.ln_final
    written = (norm.share(parts, norm.scale(final)) * direction).sum(-1)
    constant = (norm.b.to(wide) * direction).sum(-1) + bias
    labels = pd.concat([stream.labels, pd.DataFrame({"label": [BIAS], "kind": ["bias"]})], ignore_index=True)
    values = torch.cat([written, constant[None]]).double().cpu().numpy()
    frames = [labels.assign(example=example, attribution=values[:, example]) for example in range(n)]
    return pd.concat(frames, ignore_index=True)


def _positions(stream: ResidualStream, pos: int) -> Int[Tensor, " batch"]:
    index = torch.arange(stream.mask.shape[1], device=stream.mask.device)
    if pos == -1:
        empty = (~stream.mask.any(-1)).nonzero().flatten().tolist()
        if empty:
            raise InputError(f"prompts: expected a token in each, but rows {empty} are all padding; leave them out")
        return torch.where(stream.mask, index, -1).max(-1).values
    if isinstance(pos, bool) or not 0 <= pos < stream.mask.shape[1] or not bool(stream.mask[:, pos].all()):
        raise InputError(
            f"pos: expected -1 (the last token) or a position that is a token in every prompt, got {pos}; "
            f"the prompts have {int(stream.mask.sum(-1).min())} to {int(stream.mask.sum(-1).max())} tokens"
        )
    return torch.full((len(stream.tokens),), pos, device=stream.mask.device)


def _readout(
    model: HookedTransformer, tokens: object, n: int, dtype: torch.dtype
) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, " batch"]]:
    """The unembedding's columns and biases of `tokens`, one for each of `n` prompts."""
    ids = model.to_ids(tokens)
    if ids.shape not in ((), (n,)):
        raise InputError(f"tokens: expected one, or one for each of the {n} prompts, got shape {tuple(ids.shape)}")
    ids = ids.expand(n)
    return model.W_U.T[ids].to(dtype), model.b_U[ids].to(dtype)
