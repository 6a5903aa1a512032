"""Which component tells which? Patch what one writes into what another reads, and nowhere else.

1. A path is a list of nodes: a sender (``2.1``, a head; ``mlp.1``; ``embed``, the embeddings), receivers that it
   passes through, and a last receiver (``2.3.q``, ``2.3.k``, ``2.3.v``: what a head's queries, keys or values are made
   from; ``mlp.2``; ``logits``).
2. The sender's output changes by ``d``, from the run to its source; every receiver on the way is given
   ``d`` on top of what it reads, all else as in the run, and its output's change is the next ``d``.
3. The last receiver reads ``d`` on top of its input, and from there the model runs on.

A direct path is one of two nodes. All paths from a sender together are its activation patch.

Wang et al. (2023), "Interpretability in the wild"; Goldowsky-Dill et al. (2023), "Localizing model behavior with path
patching".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError, suggest
from interp.interventions.activations import read_source
from interp.interventions.given_numbers import as_list
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import MetricName
from interp.interventions.replacement import Add
from interp.interventions.rows import Batch, Direction
from interp.interventions.sweep import Cell, Progress, Sweep
from interp.methods.given_task import as_pairs
from interp.methods.patching import PatchResult
from interp.methods.path_nodes import Node, Path, parse_path
from interp.model.places import places_of
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.residual.activations import read
from interp.residual.stream import require_additive
from interp.runs.run import Run, as_run
from interp.shapes import Residual
from interp.tasks.task import Task


def path_patch(
    model: Any,
    task: Task | str,
    paths: Sequence[Sequence[str]],
    *,
    together: bool = False,
    direction: Direction = "denoise",
    metric: MetricName | None = None,
    n: int | None = None,
    seed: int = 0,
    memory_budget: int | None = None,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> PatchResult:
    """Patch along paths, one after the other or all at once.

    Args:
        model: One of ours.
        task: A task, or the name of one.
        paths: Lists of nodes; ``paths_to`` and ``paths_from`` give the direct ones.
        together: Whether all paths are patched in one cell; otherwise each is a cell.
        direction: ``denoise`` runs the corrupted prompt with the clean run's change along the path, ``noise`` the
            clean prompt with the corrupted run's.
        metric: What is measured; None for the task's own.
        n: Units to draw where `task` is a name; None for the task's own default.
        seed: Of the task's draw, the statistics and the audit.
        memory_budget: Bytes beside the model's weights; None for the device's default.
        progress: Called with (cells done, cells in all).
        run: Where what is measured is kept at once, and found again: a folder of runs; or an ``interp.Run``, which also
            says who measures. None to keep nothing.

    Returns:
        One row per path (``sender``, ``via``, ``receiver``) and example, as ``patch`` gives them.

    Raises:
        InputError: A node that the model does not have, a path that no information can take, no unit with a
            counterfactual of its length, a model that is not ours or whose stream is no sum, or a budget too small
            for one cell.
        AuditError: The engine's numbers are not those of the plain way.
        OutputError: What is measured cannot be kept.
    """
    if direction not in get_args(Direction):
        raise InputError(f"direction: {direction!r} is unknown; {suggest(str(direction), get_args(Direction))}")
    if not isinstance(model, HookedTransformer):
        raise InputError(
            f"path patching: expected one of our own models, whose attention it repeats, got a {type(model).__name__}; "
            "load its weights with interp.load_model"
        )
    require_additive(model)
    listed = as_list(paths)
    if listed is None:
        raise InputError(f"paths: expected a list of paths such as [['0.1', '2.3.k']], got {paths!r}")
    parsed = [parse_path(path, model) for path in listed]
    if not parsed or len(set(parsed)) < len(parsed):
        raise InputError(f"paths: expected different paths, at least one, got {[list(path) for path in listed]}")
    runs = _Runs(model, parsed)
    changes = [Intervention(path[-1].site, _along(path, runs), heads=_heads(path[-1])) for path in parsed]
    if together:
        names = {"sender": " + ".join(dict.fromkeys(path[0].name for path in parsed)), "via": "", "receiver": "all"}
        cells = [Cell(names, tuple(changes))]
    else:
        cells = [Cell(_labels(path), (change,)) for path, change in zip(parsed, changes, strict=True)]
    given = as_pairs(task, model, n=n, seed=seed, metric=metric)
    how: Any = {"metric": metric, "direction": direction, "memory_budget": memory_budget}
    result = Sweep(cells).run(model, given, seed=seed, progress=progress, run=as_run(run), **how)
    return PatchResult(result.frame, {**result.provenance, "direction": direction}, result.labels)


def _labels(path: Path) -> dict[str, str]:
    return {
        "sender": path[0].name,
        "via": " > ".join(node.name for node in path[1:-1]),
        "receiver": path[-1].name,
    }


def _heads(node: Node) -> tuple[int, ...] | None:
    return None if node.head is None else (node.head,)


class _Runs:
    """Activations of a batch and of its sources, as far as some paths need them; the last batch's are kept."""

    def __init__(self, model: HookedTransformer, paths: Sequence[Path]):
        self.model = model
        self.sites = tuple({site for path in paths for node in path[:-1] for site in _needs(node)})
        self._kept: tuple[Batch, Mapping[str, Tensor], Mapping[str, Tensor]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what another process runs for itself."""
        return vars(self) | {"_kept": None}

    def of(self, batch: Batch) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        """Of the run, and of its source."""
        if self._kept is None or self._kept[0] is not batch:
            names = [site.hook_name for site in self.sites]
            self._kept = (batch, read(self.model, batch.tokens, names), read_source(self.model, batch, names))
        return self._kept[1:]


def _needs(node: Node) -> list[Site]:
    """What has to be known of a node that sends or passes on."""
    if node.name == "embed":
        return [Site("resid_pre", 0)]
    if node.head is None:
        return [Site(_seen_by_mlp(node), node.layer), Site("mlp_out", node.layer)]
    names = ("z",) if node.reads is None else ("resid_pre", "q", "k", "v", "z")
    return [Site(name, node.layer) for name in names]


def _seen_by_mlp(node: Node) -> str:
    return "resid_pre" if node.parallel else "resid_mid"


@dataclass(frozen=True)
class _Along:
    """What arrives at the end of a path, to be added to what is read there."""

    path: Path
    runs: _Runs

    def __call__(self, site: Site, batch: Batch) -> Float[Tensor, "..."]:
        with torch.inference_mode():
            change = _sent(self.path[0], self.runs, batch)
            for node in self.path[1:-1]:
                change = _passed_on(node, change, self.runs, batch)
        return change if self.path[-1].head is None else change[:, :, None]


def _along(path: Path, runs: _Runs) -> Add:
    of_both = (*runs.sites, *runs.sites)  # of the run, and of its source
    return Add(_Along(path, runs), from_source=True, keeps=of_both, identity=f"along {_labels(path)}")


def _sent(sender: Node, runs: _Runs, batch: Batch) -> Residual:
    """How much more the sender writes in the source."""
    run, source = runs.of(batch)
    name = _needs(sender)[-1].hook_name
    if sender.head is None:
        return source[name] - run[name]
    w_o = list(runs.model.blocks)[sender.layer].attn.W_O[sender.head]
    return (source[name][:, :, sender.head] - run[name][:, :, sender.head]) @ w_o


def _passed_on(node: Node, change: Residual, runs: _Runs, batch: Batch) -> Residual:
    """How a receiver's output changes when it reads `change` on top of its input."""
    run, _ = runs.of(batch)
    block = list(runs.model.blocks)[node.layer]
    if node.head is None:
        stream = run[Site(_seen_by_mlp(node), node.layer).hook_name]
        changed: Residual = block.mlp(block.ln2(stream + change))
        return changed - run[Site("mlp_out", node.layer).hook_name]
    attention, head = block.attn, node.head
    q, k, v = (run[Site(name, node.layer).hook_name].clone() for name in ("q", "k", "v"))
    read = {"q": (q, attention.W_Q, attention.b_Q), "k": (k, attention.W_K, attention.b_K)}
    parts, weight, bias = (read | {"v": (v, attention.W_V, attention.b_V)})[node.reads or ""]
    y = block.ln1(run[Site("resid_pre", node.layer).hook_name] + change)
    parts[:, :, head] = y @ weight[head] + bias[head]
    writing = [head] if node.reads == "q" else list(range(head * attention.group, (head + 1) * attention.group))
    places = places_of(torch.ones_like(batch.tokens, dtype=torch.bool), batch.length, causal=runs.model.config.causal)
    z = attention.mixed(attention.turn(q, places.query), attention.turn(k, places.key), v, places)
    change = (z - run[Site("z", node.layer).hook_name])[:, :, writing]
    return torch.einsum("bphd,hdm->bpm", change, attention.W_O[writing])
