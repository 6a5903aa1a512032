"""The final residual stream as a sum: which parts of the model wrote it, and what each of them writes to a logit.

Every writer only ever adds to the stream (Elhage et al. 2021), so the stream before the last LayerNorm is
exactly the sum of: the token embedding, the position embedding where there is one, each head's ``z W_O``, each
attention layer's ``b_O``, each MLP's ``post W_out`` and each MLP's ``b_out``. Where a norm stands before the addition
(Gemma 2, OLMo 2; of the embedding, BLOOM), each part is its share of the normalised sum, with the scale that was
measured. The experts of a block are one component. A model that normalises the stream itself has no such sum.

Direct logit attribution (Elhage et al. 2021; nostalgebraist 2020):

1. The last norm is linear once its scale is known: ``ln(x) = centre(x) / scale * w + b`` (RMSNorm: without centring).
2. So each component of the stream writes ``centre(component) / scale * w @ W_U[:, token]`` to the token's logit.
3. With ``b @ W_U + b_U`` as one more component, the attributions sum to the logit: where the model caps logits, to
   what is capped, so a difference of two is larger than the model's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformer_lens.ActivationCache import ActivationCache

from interp.arguments import named_arguments
from interp.errors import InputError
from interp.model.block import Block
from interp.model.devices import documented
from interp.model.layers import linear
from interp.model.loading.bridge import require_ours
from interp.model.provenance import model_provenance
from interp.model.transformer import HookedTransformer
from interp.residual.readout import token_texts
from interp.result import Result
from interp.shapes import PaddingMask, Residual, Tokens

EMBEDDED = {"hook_pos_embed": "position", "hook_token_type_embed": "token type"}
"""What is added to the token's embedding, as far as the model has it."""
BIAS = "final bias"
COMPONENT = ["label", "kind", "layer", "head"]
Part = tuple[str, str, int | None, int | None, Tensor]
ROUNDING = 2  # units in the last place of the largest entry; the same sums on the same machine differ by 0


@dataclass(frozen=True, eq=False, repr=False)
class ResidualStream(Result):
    """The final residual stream, taken apart.

    Attributes:
        examples: One row per component, prompt and token; padding has none. Columns: ``label``, ``kind``, ``layer``,
            ``head``, ``example``, ``pos``, ``text`` (of the token; None without a tokenizer) and ``norm``, the
            Euclidean norm of what the component writes there.
        provenance: How it was made.
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

    shown_by: ClassVar[str] = "results.stream"

    def summary(self) -> pd.DataFrame:
        """One row a component: ``label``, ``kind``, ``layer``, ``head``, and the means of its norm.

        ``norm_last`` is the mean over the prompts' last tokens, ``norm`` over all ``n`` tokens; that of a first token
        can be many times the others'.
        """
        last = self.examples["pos"] == self.examples.groupby("example")["pos"].transform("max")
        norms = self.examples.groupby("label", sort=False)["norm"]
        at_last = self.examples[last].groupby("label", sort=False)["norm"].mean()
        columns = {"norm_last": at_last, "norm": norms.mean(), "n": norms.size()}
        return self.labels.merge(pd.DataFrame(columns), left_on="label", right_index=True)

    def __getitem__(self, label: str) -> Residual:
        """The component called `label`, such as ``L1H2`` or ``L0 mlp``; raises InputError where there is none."""
        names = list(self.labels["label"])
        if label not in names:
            raise InputError(f"no component is called {label!r}; they are {', '.join(names)}")
        return self.components[names.index(label)]


@documented
@torch.no_grad()
def residual_stream(
    model: HookedTransformer,
    prompts: str | Sequence[str] | Int[Tensor, "batch pos"],
    *,
    attention_mask: Tensor | None = None,
) -> ResidualStream:
    """Run `prompts` and take the final residual stream apart into everything that wrote to it.

    Source: Elhage et al. (2021), "A mathematical framework for transformer circuits".

    Args:
        model: One of ours, whose stream is the sum of what was written to it.
        prompts: Texts (with what ``interp.special_tokens`` puts around them) or token ids ``[batch pos]``.
        attention_mask: With token ids: ``[batch pos]``, 1 for tokens, 0 for padding.

    Returns:
        ``components`` of shape ``[component batch pos d_model]`` that sum to ``total``, ``[batch pos d_model]``, in the
        units of the stream; ``labels`` names them. ``summary()`` has one row per component.

    Raises:
        InputError: The prompts do not fit the model, the model normalises the stream itself, or a hook of the user's
            writes to the stream past its components.

    Examples:
        >>> stream = interp.residual_stream(interp.load_model(), "The keys to the cabinet")
        >>> stream.labels["label"].tolist()[:4]
        ['embedding', 'position', 'L0H0', 'L0H1']
    """
    require_ours(model, "residual_stream")
    require_additive(model)
    tokens, mask = model.as_tokens(prompts, attention_mask)
    last = f"blocks.{model.config.n_layers - 1}.hook_resid_post"
    mlp = "hook_mlp_out" if model.config.n_experts else "mlp.hook_post"
    wanted = ("hook_embed", *EMBEDDED, "attn.hook_result", mlp, last)
    _, cache = model.run_with_cache(
        tokens, return_type=None, attention_mask=mask, names_filter=lambda name: name.endswith(wanted)
    )
    _require_complete(model, cache, cache[last])
    parts = list(_parts(model, cache))
    labels = pd.DataFrame([part[:4] for part in parts], columns=COMPONENT).astype({"layer": "Int64", "head": "Int64"})
    components = torch.stack([part[4] for part in parts])
    how = {**model_provenance(model), "n_prompts": len(tokens), "n_tokens": int(mask.sum())}
    examples = _norms(components, labels, mask, token_texts(model, tokens[mask]))
    return ResidualStream(examples, how, components, labels, cache[last], tokens, mask)


@named_arguments
def require_additive(model: HookedTransformer) -> None:
    """Refuse a model whose residual stream is not the sum of what was written to it: it normalises that itself."""
    if not model.config.additive_stream:
        raise InputError(
            f"the residual stream of {model.name!r} is not a sum of components: this architecture normalises the "
            "stream after each addition (post-norm), which rescales all that was written before; read its points with "
            "run_with_cache, or take a pre-norm model"
        )


def _parts(model: HookedTransformer, cache: ActivationCache) -> Iterator[Part]:
    """Label, kind, layer, head and value of each component, in the order of the model."""
    norm, scale = model.ln_embed, model.ln_embed.scale(_embedded(cache))
    for name, kind in {"hook_embed": "embedding", **EMBEDDED}.items():
        if name in cache:
            yield kind, kind, None, None, norm.share(cache[name], scale)
    if model.config.embed_norm:
        yield "embedding bias", "bias", None, None, norm.b.expand(cache["hook_embed"].shape)
    for layer, block in enumerate(model.blocks):
        result = cache[f"blocks.{layer}.attn.hook_result"]
        norm, written = block.ln1_post, _by_attention(block, result)
        scale = norm.scale(written)
        for head in range(model.config.n_heads):
            yield f"L{layer}H{head}", "head", layer, head, norm.share(result[:, :, head], scale)
        bias = norm.share(block.attn.b_O.expand(written.shape), scale) + norm.b
        yield f"L{layer} b_O", "bias", layer, None, bias
        if model.config.n_experts:
            yield f"L{layer} mlp", "mlp", layer, None, cache[f"blocks.{layer}.hook_mlp_out"]
        elif model.config.d_mlp:
            norm, out = block.ln2_post, cache[f"blocks.{layer}.mlp.hook_post"] @ block.mlp.W_out
            scale = norm.scale(out + block.mlp.b_out)
            yield f"L{layer} mlp", "mlp", layer, None, norm.share(out, scale)
            bias = norm.share(block.mlp.b_out.expand(out.shape), scale) + norm.b
            yield f"L{layer} b_out", "bias", layer, None, bias


def _embedded(cache: ActivationCache) -> Residual:
    """The sum of what is embedded, before a norm of it."""
    return reduce(torch.add, (cache[name] for name in ("hook_embed", *EMBEDDED) if name in cache))


def _by_attention(block: Block, result: Float[Tensor, "batch pos head d_model"]) -> Residual:
    """What the heads write together, before a norm of it."""
    return result.sum(-2) + block.attn.b_O


def _norms(
    components: Float[Tensor, "component batch pos d_model"],
    labels: pd.DataFrame,
    mask: PaddingMask,
    texts: list[str | None],
) -> pd.DataFrame:
    """One row a component and token: how large what it writes is."""
    sizes = components.float().norm(dim=-1).cpu()
    example, pos = (each.cpu() for each in mask.nonzero(as_tuple=True))
    rows = labels.loc[labels.index.repeat(len(example))].reset_index(drop=True)
    places = {"example": example.repeat(len(labels)).numpy(), "pos": pos.repeat(len(labels)).numpy()}
    return rows.assign(**places, text=texts * len(labels), norm=sizes[:, example, pos].flatten().numpy())


def _require_complete(model: HookedTransformer, cache: ActivationCache, total: Residual) -> None:
    """Refuse a stream that holds more than was written to it: the writers are added up again, as the model adds them.

    In the model's own order, so that half-precision rounding is the same on both sides and hides nothing.
    """
    x: Residual = model.ln_embed(_embedded(cache))
    for layer, block in enumerate(model.blocks):
        x = x + block.ln1_post(_by_attention(block, cache[f"blocks.{layer}.attn.hook_result"]))
        if model.config.n_experts:
            x = x + cache[f"blocks.{layer}.hook_mlp_out"]
        elif model.config.d_mlp:
            post = cache[f"blocks.{layer}.mlp.hook_post"]
            x = x + block.ln2_post(linear(post, block.mlp.W_out, block.mlp.b_out))
    largest = total.nan_to_num().abs().max().item()
    if not torch.allclose(x, total, rtol=0, atol=ROUNDING * torch.finfo(total.dtype).eps * largest, equal_nan=True):
        raise InputError(
            "expected components that sum to the stream, but a hook writes to hook_resid_pre, hook_resid_mid, "
            "hook_resid_post, hook_attn_out or hook_mlp_out, which are not components; remove it, or let it write to "
            "hook_embed, hook_pos_embed, attn.hook_result or mlp.hook_post"
        )


@dataclass(frozen=True, eq=False, repr=False)
class LogitAttribution(Result):
    """What each component of the stream writes to a logit, or to the difference of two.

    Attributes:
        examples: One row per component and prompt: ``label``, ``kind``, ``layer``, ``head``, ``example`` and
            ``attribution`` (in logits). The last LayerNorm's and the unembedding's biases are the component ``final
            bias``. A prompt's rows sum to its logit (difference).
        provenance: How it was made.
    """

    shown_by: ClassVar[str] = "results.stream"

    def summary(self) -> pd.DataFrame:
        """One row a component: ``label``, ``kind``, ``layer``, ``head``, mean ``attribution`` over ``n`` prompts."""
        rows = self.examples.groupby(COMPONENT, sort=False, dropna=False)["attribution"]
        return rows.agg(attribution="mean", n="size").reset_index()


@documented
@torch.inference_mode()
def direct_logit_attribution(
    model: HookedTransformer,
    stream: ResidualStream,
    right: Int[Tensor, " batch"] | int | str,
    wrong: Int[Tensor, " batch"] | int | str | None = None,
    *,
    pos: int = -1,
) -> LogitAttribution:
    """What each component writes to a token's logit, or to the difference of two tokens' logits.

    The last norm divides every component by the scale that it measured on the whole stream, so the shares add up.

    Source: Elhage et al. (2021), "A mathematical framework for transformer circuits"; nostalgebraist (2020),
    "interpreting GPT: the logit lens".

    Args:
        model: The model that `stream` was taken from. A hook on ``ln_final`` is not seen: its weights are read.
        stream: From ``residual_stream``.
        right: The token, as a text or an id: one for all prompts, or ids ``[batch]``.
        wrong: A token in the same form, to attribute ``logit(right) - logit(wrong)``; None for ``logit(right)``.
        pos: The position whose prediction is attributed; -1 is each prompt's last real token.

    Returns:
        One row per component and prompt, in logits. A prompt's rows sum to its logit, or to the difference.
        ``summary()`` has one row per component, averaged over the prompts.

    Raises:
        InputError: `pos` lies outside a prompt, a prompt is all padding, or `right` or `wrong` are no ids, one or
            one a prompt.

    Examples:
        >>> model = interp.load_model()
        >>> stream = interp.residual_stream(model, "The keys to the cabinet")
        >>> parts = interp.direct_logit_attribution(model, stream, " are", " is")
        >>> parts.summary().nlargest(1, "attribution")["label"].item()
        'L2 mlp'
    """
    require_ours(model, "direct_logit_attribution")
    made_by = (int(stream.labels["layer"].max()) + 1, stream.total.shape[-1])
    if made_by != (model.config.n_layers, model.config.d_model):
        raise InputError(
            f"stream: expected one of this model, of {model.config.n_layers} layers and a width of "
            f"{model.config.d_model}, got one of {made_by[0]} and {made_by[1]}; take residual_stream(model, prompts)"
        )
    rows, at = torch.arange(len(stream.tokens), device=stream.total.device), _positions(stream, pos)
    wide = torch.promote_types(stream.total.dtype, torch.float32)  # float16 cannot hold the square of 300
    direction, bias = _unembedding(model, right, len(rows), wide)
    if wrong is not None:
        other, other_bias = _unembedding(model, wrong, len(rows), wide)
        direction, bias = direction - other, bias - other_bias
    final, parts = (x.to(model.W_U.device, wide) for x in (stream.total[rows, at], stream.components[:, rows, at]))
    norm = model.ln_final
    written = (norm.share(parts, norm.scale(final)) * direction).sum(-1)
    constant = (norm.b.to(wide) * direction).sum(-1) + bias
    labels = pd.concat([stream.labels, pd.DataFrame({"label": [BIAS], "kind": ["bias"]})], ignore_index=True)
    values = torch.cat([written, constant[None]]).double().cpu().numpy()
    examples = [labels.assign(example=example, attribution=own) for example, own in enumerate(values.T)]
    told = {"right": _told(right), "wrong": _told(wrong), "pos": pos, "logits": "before the cap"}
    if model.config.logit_cap is None:
        del told["logits"]
    return LogitAttribution(pd.concat(examples, ignore_index=True), {**stream.provenance, **told})


def _told(tokens: object) -> object:
    """The token or tokens that were asked for, as provenance has them."""
    return tokens.tolist() if isinstance(tokens, Tensor) else tokens


def _positions(stream: ResidualStream, pos: int) -> Int[Tensor, " batch"]:
    if pos == -1:
        empty = (~stream.mask.any(-1)).nonzero().flatten().tolist()
        if empty:
            raise InputError(f"prompts: expected a token in each, but rows {empty} are all padding; leave them out")
        index = torch.arange(stream.mask.shape[1], device=stream.mask.device)
        return torch.where(stream.mask, index, -1).max(-1).values
    if isinstance(pos, bool) or not 0 <= pos < stream.mask.shape[1] or not bool(stream.mask[:, pos].all()):
        raise InputError(
            f"pos: expected -1 (the last token) or a position that is a token in every prompt, got {pos}; "
            f"the prompts have {int(stream.mask.sum(-1).min())} to {int(stream.mask.sum(-1).max())} tokens"
        )
    return torch.full((len(stream.tokens),), pos, device=stream.mask.device)


def _unembedding(
    model: HookedTransformer, tokens: object, n: int, dtype: torch.dtype
) -> tuple[Float[Tensor, "batch d_model"], Float[Tensor, " batch"]]:
    """The unembedding's columns and biases of `tokens`, one for each of `n` prompts."""
    ids = model.to_ids(tokens)
    if ids.shape not in ((), (n,)):
        raise InputError(
            f"tokens: expected one, or one for each of the {n} prompts, got shape {tuple(ids.shape)}; of a set of "
            "answers attribute one by one: the logarithm of their summed probabilities is no direction of the stream"
        )
    ids = ids.expand(n)
    return model.W_U.T[ids].to(dtype), model.b_U[ids].to(dtype)
