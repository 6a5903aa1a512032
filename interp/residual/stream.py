"""Which parts of the model wrote the final residual stream, and do they sum to it?

Every writer only ever adds to the stream (Elhage et al. 2021), so the stream before the last LayerNorm is
exactly the sum of: the token embedding, the position embedding where there is one, each head's ``z W_O``, each
attention layer's ``b_O``, each MLP's ``post W_out`` and each MLP's ``b_out``. A model that normalises the stream
itself has no such sum.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformer_lens.ActivationCache import ActivationCache

from interp.arguments import named_arguments
from interp.errors import InputError
from interp.model.devices import documented
from interp.model.loading.modules import require_ours
from interp.model.transformer import HookedTransformer
from interp.shapes import PaddingMask, Residual, Tokens

EMBEDDED = {"hook_pos_embed": "position", "hook_token_type_embed": "token type"}
"""What is added to the token's embedding, as far as the model has it."""
Part = tuple[str, str, int | None, int | None, Tensor]
ROUNDING = 2  # units in the last place of the largest entry; the same sums on the same machine differ by 0


@dataclass(frozen=True, repr=False)
class ResidualStream:
    """The final residual stream, taken apart.

    Attributes:
        components: ``[component batch pos d_model]``; they sum to ``total``.
        labels: One row a component: ``label`` (such as ``L1H2``), ``kind`` (``embedding``, ``position``,
            ``token type``, ``head``, ``mlp``, ``bias``), ``layer`` and ``head`` where they apply.
        total: The stream as the model computed it, before the last LayerNorm.
        tokens: ``[batch pos]``.
        mask: True for tokens, False for padding.
    """

    components: Float[Tensor, "component batch pos d_model"]
    labels: pd.DataFrame
    total: Residual
    tokens: Tokens
    mask: PaddingMask

    def __repr__(self) -> str:
        n, batch, pos, d_model = self.components.shape
        return f"ResidualStream({n} components of [batch {batch}, pos {pos}, d_model {d_model}])"

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings in words, the strongest with their intervals, and a figure if small."""
        from interp.report.glance import as_html
        from interp.report.results.stream import stream_glance

        return as_html(stream_glance(self))

    def __getitem__(self, label: str) -> Residual:
        """The component called `label`, such as ``L1H2`` or ``L0 mlp``; raises InputError where there is none."""
        names = list(self.labels["label"])
        if label not in names:
            raise InputError(f"no component is called {label!r}; they are {', '.join(names)}")
        return self.components[names.index(label)]

    def norms(self) -> pd.DataFrame:
        """How large what each component writes is, one row a component and token; padding has none.

        Columns: ``label``, ``kind``, ``layer``, ``head``, ``example``, ``pos``, ``norm`` (Euclidean).
        """
        sizes = self.components.float().norm(dim=-1).cpu()
        example, pos = (each.cpu() for each in self.mask.nonzero(as_tuple=True))
        places = pd.DataFrame({"example": example.numpy(), "pos": pos.numpy()})
        labels = self.labels.loc[self.labels.index.repeat(len(places))].reset_index(drop=True)
        tiled = pd.concat([places] * len(self.labels), ignore_index=True)
        return pd.concat([labels, tiled], axis=1).assign(norm=sizes[:, example, pos].flatten().numpy())


@documented
@torch.no_grad()
def residual_stream(
    model: HookedTransformer,
    prompts: str | Sequence[str] | Int[Tensor, "batch pos"],
    *,
    attention_mask: Tensor | None = None,
) -> ResidualStream:
    """Run `prompts` and take the final residual stream apart into everything that wrote to it.

    Args:
        model: The model.
        prompts: Texts (with what ``interp.special_tokens`` puts around them) or token ids.
        attention_mask: With token ids: 1 for tokens, 0 for padding.

    Raises:
        InputError: The prompts do not fit the model, the model normalises the stream itself, or a hook of the user's
            writes to the stream past its components.

    Example:
        >>> stream = interp.residual_stream(interp.load_model(), "The keys to the cabinet")
        >>> stream.labels["label"].tolist()[:4]
        ['embedding', 'position', 'L0H0', 'L0H1']
    """
    require_ours(model, "residual_stream")
    require_additive(model)
    tokens, mask = model.as_tokens(prompts, attention_mask)
    last = f"blocks.{model.config.n_layers - 1}.hook_resid_post"
    wanted = ("hook_embed", *EMBEDDED, "attn.hook_result", "mlp.hook_post", last)
    _, cache = model.run_with_cache(
        tokens, return_type=None, attention_mask=mask, names_filter=lambda name: name.endswith(wanted)
    )
    _require_complete(model, cache, cache[last])
    parts = list(_parts(model, cache))
    labels = pd.DataFrame([part[:4] for part in parts], columns=["label", "kind", "layer", "head"])
    labels = labels.astype({"layer": "Int64", "head": "Int64"})
    return ResidualStream(torch.stack([part[4] for part in parts]), labels, cache[last], tokens, mask)


@named_arguments
def require_additive(model: HookedTransformer) -> None:
    """Refuse a model whose residual stream is not the sum of what was written to it: it normalises that itself."""
    if not model.config.additive_stream:
        post = model.config.norm_position == "post"
        where = "the stream after each addition (post-norm)" if post else "its embedding"
        raise InputError(
            f"the residual stream of {model.name!r} is no sum of components: this architecture normalises {where}, "
            "which rescales all that was written before; read its points with run_with_cache, or take a pre-norm model"
        )


def _parts(model: HookedTransformer, cache: ActivationCache) -> Iterator[Part]:
    """Label, kind, layer, head and value of each component, in the order of the model."""
    yield "embedding", "embedding", None, None, cache["hook_embed"]
    for name, kind in EMBEDDED.items():
        if name in cache:
            yield kind, kind, None, None, cache[name]
    for layer, block in enumerate(model.blocks):
        result = cache[f"blocks.{layer}.attn.hook_result"]
        for head in range(model.config.n_heads):
            yield f"L{layer}H{head}", "head", layer, head, result[:, :, head]
        shape = result[:, :, 0].shape
        yield f"L{layer} b_O", "bias", layer, None, block.attn.b_O.expand(shape)
        if model.config.d_mlp:
            post = cache[f"blocks.{layer}.mlp.hook_post"]
            yield f"L{layer} mlp", "mlp", layer, None, post @ block.mlp.W_out
            yield f"L{layer} b_out", "bias", layer, None, block.mlp.b_out.expand(shape)


def _require_complete(model: HookedTransformer, cache: ActivationCache, total: Residual) -> None:
    """Refuse a stream that holds more than was written to it: the writers are added up again, as the model adds them.

    In the model's own order, so that half-precision rounding is the same on both sides and hides nothing.
    """
    x = cache["hook_embed"]
    for name in EMBEDDED:
        x = x + cache[name] if name in cache else x
    for layer, block in enumerate(model.blocks):
        x = x + (cache[f"blocks.{layer}.attn.hook_result"].sum(-2) + block.attn.b_O)
        if model.config.d_mlp:
            x = x + (cache[f"blocks.{layer}.mlp.hook_post"] @ block.mlp.W_out + block.mlp.b_out)
    largest = total.nan_to_num().abs().max().item()
    if not torch.allclose(x, total, rtol=0, atol=ROUNDING * torch.finfo(total.dtype).eps * largest, equal_nan=True):
        raise InputError(
            "expected components that sum to the stream, but a hook writes to hook_resid_pre, hook_resid_mid, "
            "hook_resid_post, hook_attn_out or hook_mlp_out, which are no components; remove it, or let it write to "
            "hook_embed, hook_pos_embed, attn.hook_result or mlp.hook_post"
        )
