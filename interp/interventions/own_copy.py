"""On which model does the engine measure? On ours; for a ``TransformerBridge``, on our own copy of its weights.

1. The copy is built from the module that the bridge stands around, on its device and in its dtype, so its weights are
   in memory twice while the bridge lives. It is made once, and anew when the weights have changed: a hash of their
   values tells, for counters of changes miss what is written through ``.data``.
2. Before every sweep, a few of its rows are run on both: the logits and the activations at the sweep's sites must
   agree, and the logits again where something is written at these. They do not everywhere: what is written at
   TransformerLens' ``hook_resid_mid`` reaches the MLP alone, and its ``hook_resid_post`` is another tensor in BERT.
3. The sweep's audit measures its sample of cells on the bridge itself, one hooked forward at a time.

Where any of this is not to be had, the plain way measures, and the provenance says why.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from interp.errors import LoadError
from interp.interventions.engine.budget import out_of_memory
from interp.interventions.rows import Row, batches
from interp.model.config import TransformerConfig
from interp.model.loading.agreement import TOLERANCE, differences, written_difference
from interp.model.loading.bridge import has_hooks, is_bridge, module_behind
from interp.model.loading.load import module_checkpoint
from interp.model.loading.tensors import build
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.model.weights import weights_hash
from interp.residual.activations import read
from interp.shapes import Tokens

COMPARED_ROWS = 2

_copies: WeakKeyDictionary[Any, tuple[str, HookedTransformer]] = WeakKeyDictionary()


class _NoEngineError(Exception):
    """Why the engine cannot measure on a model."""


def engine_model(
    model: Any, rows: Sequence[Row], sites: Iterable[Site], *, plainly: bool = False
) -> tuple[HookedTransformer | None, dict[str, Any]]:
    """The model that the engine measures on in place of `model`, and what the provenance says of it.

    None where the plain way is to measure; then the provenance says why.

    Args:
        model: Follows TransformerLens' protocol.
        rows: What is going to be run.
        sites: What is going to be changed.
        plainly: Whether the plain way was asked for.

    Raises:
        InputError: A bridge does not have a site, or does not run it, so that nothing can be measured there.
    """
    if is_bridge(model):
        return _for_bridge(model, rows, sorted(sites, key=lambda each: each.hook_name), plainly)
    if plainly:
        return None, {"why_plain": "it was asked for"}
    if type(model) is not HookedTransformer:
        kind = type(model).__name__
        return None, {"why_plain": f"{kind} is neither a model of ours nor a TransformerBridge, whose weights we know"}
    if any(point.listened for point in model.hook_dict.values()):
        return None, {"why_plain": "somebody's hooks are on the model, and the engine would not run them"}
    return model, {}


def shape_of(model: Any) -> TransformerConfig | None:
    """What a model of ours with the weights of `model` is made of; None where its architecture is not known here.

    Args:
        model: Follows TransformerLens' protocol.
    """
    if isinstance(model, HookedTransformer):
        return model.config
    if not is_bridge(model):
        return None
    try:
        return _copy_of(model).config
    except _NoEngineError:
        return None


def _for_bridge(
    bridge: Any, rows: Sequence[Row], sites: Sequence[Site], plainly: bool
) -> tuple[HookedTransformer | None, dict[str, Any]]:
    first = [row for row in rows if len(row.tokens) == len(rows[0].tokens)][:COMPARED_ROWS]
    tokens = batches(bridge, first)[0].tokens
    read(bridge, tokens, [each.hook_name for each in sites])
    try:
        if plainly:
            raise _NoEngineError("it was asked for")
        if has_hooks(bridge):
            raise _NoEngineError("somebody's hooks are on the bridge, and the engine would not run them")
        copy = _copy_of(bridge)
        _require_context(copy, rows)
        _require_agreement(bridge, copy, tokens, sites)
    except _NoEngineError as reason:
        return None, {"why_plain": str(reason)}
    n_bytes = sum(each.numel() * each.element_size() for each in copy.parameters())
    return copy, {"engine_model": f"own copy of {_kind(bridge)}", "engine_model_bytes": n_bytes}


def _copy_of(bridge: Any) -> HookedTransformer:
    """Our copy of a bridge's weights: the one that is kept, unless they have changed.

    Raises:
        _NoEngineError: Their architecture is not known here, they are on several devices or in several dtypes, or
            there is no memory.
    """
    kinds = {(each.device, each.dtype) for each in bridge.parameters()}
    if len(kinds) > 1:
        raise _NoEngineError(f"the bridge's weights are in several places or dtypes: {sorted(map(str, kinds))}")
    ((device, dtype),) = kinds
    state = f"{weights_hash(bridge)} {device} {dtype}"
    if bridge in _copies and _copies[bridge][0] == state:
        return _copies[bridge][1]
    _copies.pop(bridge, None)  # before the new one takes its memory
    try:
        copy = build(module_checkpoint(module_behind(bridge), None), device, dtype)
    except LoadError as error:
        reason, _, _ = str(error).partition("; ")  # what follows is advice to who loads a model
        raise _NoEngineError(reason) from error
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise _NoEngineError("there is no memory for a copy of the bridge's weights") from error
    _copies[bridge] = (state, copy)
    return copy


def _require_context(copy: HookedTransformer, rows: Sequence[Row]) -> None:
    longest = max(max(len(row.tokens), len(row.source_tokens)) for row in rows)
    if longest > copy.config.n_ctx:
        raise _NoEngineError(f"a prompt has {longest} tokens, and the context of our copy is {copy.config.n_ctx}")


def _require_agreement(bridge: Any, copy: HookedTransformer, tokens: Tokens, sites: Sequence[Site]) -> None:
    """Refuse a copy that gives other numbers than the bridge; warn where a point of the bridge is not what it seems.

    Raises:
        _NoEngineError: It does.
    """
    allowed, of = TOLERANCE[copy.W_E.dtype], f"a model of ours with the weights of {_kind(bridge)}"
    points = [each.hook_name for each in sites]
    found = differences(bridge, copy, tokens, points)
    worst = max(found, key=found.__getitem__)
    if found[worst] > allowed:
        raise _NoEngineError(
            f"{of} differs from the bridge at {worst} by {found[worst]:.1e} of the largest value, expected at most "
            f"{allowed:.0e}"
        )
    for point in {each.name: each.hook_name for each in reversed(sites)}.values():  # of each kind the first
        gap = written_difference(bridge, copy, tokens, point)
        if gap > allowed:
            reason = f"what is written at {point} does not do on the bridge what it does in {of}"
            warnings.warn(
                f"{reason}: the logits differ by {gap:.1e} of the largest; these are the bridge's own numbers, and "
                "interp.load_model(bridge) gives the model whose point is what its name says",
                RuntimeWarning,
                stacklevel=6,
            )
            raise _NoEngineError(reason)


def _kind(bridge: Any) -> str:
    return type(module_behind(bridge)).__name__
