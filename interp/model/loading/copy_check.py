"""Does a copy compute what its original computes? Both run the same tokens; what they give is compared.

Equal weights do not say so: the original may be changed past them, by a hook, a config that was edited, or weights
that were split or folded into others.
"""

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

import torch
from torch import Tensor, nn

from interp.errors import LoadError
from interp.model.devices import whole_precision
from interp.model.transformer import HookedTransformer
from interp.shapes import Tokens

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.2}
"""The largest relative difference that rounding explains, by a model's dtype."""
ALLOWED = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 0.01, torch.bfloat16: 0.05}
"""The largest that an original's own rounding explains, by its dtype.

In 64 bits, too, transformers computes rotary positions and norms in 32. Of 6 random families, 8 of each shape, 0.007
and 0.049 were the largest in 16 bits.
"""
ALLOWED_BOTH = ALLOWED | {torch.float16: 0.015, torch.bfloat16: 0.075}
"""The same where the copy is rounded as well: 0.013 and 0.065 were the largest."""

LOGITS = "the logits"


@torch.inference_mode()
def differences(original: Any, copy: HookedTransformer, tokens: Tokens, points: Sequence[str] = ()) -> dict[str, float]:
    """How far a copy is from its original, relative to the largest magnitude, at the logits and at some points.

    Infinite where a shape is another one, where a value is no finite number, or where the original does not run the
    point.
    """
    theirs, ours = _outputs(original, tokens, points), _outputs(copy, tokens, points)
    return {name: _relative(ours[name], theirs.get(name)) for name in (LOGITS, *points)}


@torch.inference_mode()
def written_difference(original: Any, copy: HookedTransformer, tokens: Tokens, point: str) -> float:
    """How far the logits are apart, relative to the largest, where both models are given other values at a point.

    Equal activations do not say that writing there does the same: TransformerLens' bridge shows at ``hook_resid_mid``
    what its MLP's norm reads, and the stream goes on beside it.
    """
    hooks = [(point, lambda x, hook: x.flip(-1))]
    theirs, ours = (model.run_with_hooks(tokens, fwd_hooks=hooks) for model in (original, copy))
    return _relative(ours, theirs)


class ModuleLogits(nn.Module):
    """What a module of ``transformers`` computes, by its own code and hooks, without dropout."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self._module = module

    def forward(self, tokens: Tokens) -> Tensor:
        """The logits; of a body alone, those of its embedding."""
        module: Any = self._module
        training, by_name = {each: each.training for each in module.modules()}, module.config.return_dict
        try:
            module.config.return_dict = True
            with torch.compiler.set_stance("force_eager"):
                found = module.eval()(tokens)
            if isinstance(found, Tensor | tuple):
                return found if isinstance(found, Tensor) else found[0]
            logits: Tensor | None = found.get("logits", found.get("prediction_logits"))
            return found.last_hidden_state @ module.get_input_embeddings().weight.T if logits is None else logits
        except Exception as error:  # whatever somebody's own code raises
            raise LoadError(
                f"{type(module).__name__}: it does not run on token ids ({type(error).__name__}: {error}), so nobody "
                "knows whether a copy computes the same; save it, and load the folder"
            ) from error
        finally:
            module.config.return_dict = by_name
            for each, before in training.items():
                each.training = before


@torch.no_grad()
def require_agreement(original: Any, copy: HookedTransformer, name: str) -> None:
    """Refuse a copy that computes something else. What all logits of a position share counts for its rounding alone."""
    config, dtype = copy.config, next(original.parameters()).dtype
    tokens = torch.arange(min(16, config.n_ctx))[None] * 97 % config.d_vocab
    with whole_precision():
        theirs, ours = (_outputs(model, tokens, ())[LOGITS].double().cpu() for model in (original, copy))
    if not theirs.isfinite().all():
        raise LoadError(f"{name}: its logits are NaN or infinite; take weights that are less, or a wider dtype")
    own, others = (each - each.mean(-1, keepdim=True) for each in (ours, theirs))
    found, rounded = _relative(own, others), torch.finfo(dtype).eps * theirs.abs().max()
    tiny = torch.finfo(theirs.dtype).tiny  # all logits may be 0
    bounds = ALLOWED_BOTH if copy.W_E.dtype == dtype else ALLOWED
    allowed = bounds[dtype] + float(rounded / others.abs().max().clamp(min=max(float(rounded), tiny)))
    if not found <= allowed:
        raise LoadError(
            f"the logits of our copy differ from those of the {name} by {found:.1e} of the largest, expected at most "
            f"{allowed:.0e}: it computes something else than its weights and config say, by hooks, "
            "code or settings of somebody's own, or by weights that were processed or changed behind them"
        )


def _outputs(model: Any, tokens: Tokens, points: Sequence[str]) -> dict[str, Tensor]:
    tokens = tokens.to(next(model.parameters()).device)
    known = [name for name in points if name in model.hook_dict]
    if not known:
        return {LOGITS: model(tokens)}
    logits, cache = model.run_with_cache(tokens, names_filter=known)
    return {LOGITS: logits, **{name: cache[name] for name in known if name in cache}}


def _relative(ours: Tensor, theirs: Tensor | None) -> float:
    if theirs is None or theirs.shape != ours.shape:
        return inf
    a, b = ours.double().cpu(), theirs.double().cpu()
    gap, largest = float((a - b).abs().max()), float(b.abs().max())
    return gap / (largest or 1.0) if isfinite(gap) else inf
