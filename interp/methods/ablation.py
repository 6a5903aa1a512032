"""Does the model need this head? Ablate one head at a time and see what happens to a task.

1. Prepare the replacement (zero, mean, positional mean, resample) from the task's reference set.
2. For every head, replace its ``z`` at all positions and measure the task again.
3. The effect is the change of the metric, example by example, paired with the base run.

Michel, Levy & Neubig (2019), "Are sixteen heads really better than one?"; replacements as in
``interventions/replacement.py``.
"""

from collections.abc import Sequence
from typing import Any, Literal

from interp.errors import InputError
from interp.interventions.intervention import Intervention
from interp.interventions.reference_set import reference_hash
from interp.interventions.replacement import DRAWS, Kind, make_replacement
from interp.interventions.sweep import Cell, Progress, Sweep, SweepResult
from interp.methods.given_task import as_task
from interp.model.sites import Site
from interp.tasks.task import Task


def ablate(
    model: Any,
    task: Task | str,
    *,
    components: Literal["heads"] = "heads",
    kind: Kind = "mean",
    heads: Sequence[tuple[int, int]] | None = None,
    n: int | None = None,
    seed: int = 0,
    draws: int = DRAWS,
    progress: Progress | None = None,
) -> SweepResult:
    """Ablate attention heads one at a time, at all positions.

    Args:
        model: Follows TransformerLens' protocol.
        task: A task, or the name of one.
        components: What is ablated one by one.
        kind: What replaces a head's ``z``.
        heads: ``(layer, head)`` pairs; None for all of the model's.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw, the resamples and the statistics.
        draws: How many resamples to average the effects of.
        progress: Called with (heads done, heads in all).

    Returns:
        One row per head and example; ``summary()`` has one row per head.

    Raises:
        InputError: A head that the model does not have, a replacement that the task cannot
            provide, or rows that the model cannot carry.
    """
    if components != "heads":
        raise InputError(f"components: expected 'heads', got {components!r}")
    chosen = _check_heads(model, heads)
    given = as_task(task, model, n=n, seed=seed)
    sites = {layer: Site("z", layer) for layer, _ in chosen}
    replacement = make_replacement(kind, model, given, sites=list(sites.values()), draws=draws, seed=seed)
    cells = [
        Cell({"layer": layer, "head": head}, (Intervention(sites[layer], replacement, heads=(head,)),))
        for layer, head in chosen
    ]
    result = Sweep(cells).run(model, given, seed=seed, progress=progress)
    used = None if kind == "zero" else reference_hash(given)
    return SweepResult(result.frame, {**result.provenance, "replacement": kind, "reference_hash": used})


def _check_heads(model: Any, heads: Sequence[tuple[int, int]] | None) -> list[tuple[int, int]]:
    n_layers, n_heads = model.cfg.n_layers, model.cfg.n_heads
    if heads is None:
        return [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    _require_pairs(heads)
    heads = [(layer, head) for layer, head in heads]
    for layer, head in heads:
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise InputError(
                f"head {layer}.{head}: the model has {n_layers} layers (0 to {n_layers - 1}) of {n_heads} heads "
                f"(0 to {n_heads - 1}); choose one of these"
            )
    if not heads or len(set(heads)) < len(heads):
        raise InputError(f"heads: expected different (layer, head) pairs, at least one; got {list(heads)}")
    return sorted(heads)


def _require_pairs(heads: Any) -> None:
    if not all(isinstance(each, tuple | list) and len(each) == 2 for each in heads):
        raise InputError(f"heads: expected (layer, head) pairs, got {heads!r}; give a list such as [(2, 1)]")
