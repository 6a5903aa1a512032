"""Path patching: what one component writes is patched into what another one reads, and nowhere else.

1. A path is a list of nodes: a sender, receivers that it passes through, and a last receiver (``paths.py``).
2. The sender writes what it writes in the source, all other heads what they write in the run. Where MLPs are
   **recomputed**, every MLP between the sender and the next node writes what it makes of its changed input (Wang et al.
   2022). Where they are **frozen**, the sender's change alone arrives: one edge of the graph (Goldowsky-Dill et al.
   2023). Layer norms are recomputed in both.
3. A receiver on the way passes the change of its output on in the same way. Paths that share their ends meet there.
4. What the last receiver reads then is kept; all else is as in the run up to there, and from there the model runs on.

With frozen MLPs, all direct paths (of two nodes) from a sender together are its activation patch.

Wang et al. (2022), "Interpretability in the wild: a circuit for indirect object identification in GPT-2 small",
appendix B; Goldowsky-Dill et al. (2023), "Localizing model behavior with path patching".
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from interp.arguments import as_list, require_different
from interp.errors import InputError
from interp.interventions.hooked_runs import EMBEDDED, differentiable_runs
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import name_of
from interp.interventions.replacement import Replacement
from interp.interventions.rows import Batch, read_source, task_rows
from interp.interventions.sweep import Cell, Progress
from interp.methods.ablation import measure
from interp.methods.patching import PatchResult
from interp.methods.paths import Node, Path, mlp_nodes, parse_path
from interp.methods.task_arguments import as_pairs
from interp.model.devices import documented, sent
from interp.model.loading.bridge import require_ours
from interp.model.positions import places_of
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.options import Mlps, PathPatchOptions
from interp.residual.collecting import read
from interp.residual.stream import require_additive
from interp.runs.run import Run
from interp.shapes import Residual
from interp.tasks.task import Task


class Runs:
    """Activations of a batch and of its sources, as far as some paths need them; the last batch's are kept."""

    def __init__(self, model: HookedTransformer, paths: Sequence[Path], mlps: Mlps):
        self.model, self.mlps = model, mlps
        self._recomputed = mlp_nodes(model) if mlps == "recomputed" else []
        steps = {step for path in paths for step in pairwise(path)}
        between = {mlp for before, after in steps for mlp in self.recomputed([before], after)}
        needed = {site for node in {before for before, _ in steps} | between for site in _needs(node)}
        self.sites = tuple(needed | {path[-1].stream for path in paths})
        self.sources = tuple({_needs(path[0])[-1] for path in paths})
        self._kept: tuple[Batch, Mapping[str, Tensor], Mapping[str, Tensor]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what another process runs for itself."""
        return vars(self) | {"_kept": None}

    def of(self, batch: Batch) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        """Of the run, and of its source."""
        if self._kept is None or self._kept[0] is not batch:
            run = read(self.model, batch.tokens, [site.hook_name for site in self.sites])
            source = read_source(self.model, batch, [site.hook_name for site in self.sources])
            self._kept = (batch, run, source)
        return self._kept[1:]

    def recomputed(self, before: Collection[Node], after: Node) -> list[Node]:
        """The MLPs that are recomputed between: those that hear some of `before` and are heard by `after`."""
        return [
            mlp
            for mlp in self._recomputed
            if mlp not in before
            and any(node.writes_at < mlp.reads_at for node in before)
            and mlp.writes_at < after.reads_at
        ]


@dataclass(frozen=True)
class Arriving(Replacement):
    """A replacement: what the receiver reads in which all `paths` end, with what arrives along them."""

    paths: tuple[Path, ...]
    runs: Runs = field(repr=False)
    name: ClassVar[str] = "path"
    from_source: ClassVar[bool] = True

    @property
    def keeps(self) -> tuple[Site, ...]:
        """Of the run, and of its source."""
        return (*self.runs.sites, *self.runs.sources)

    def _told(self) -> str:
        names = [[node.name for node in path] for path in self.paths]
        return f"along {names}, MLPs {self.runs.mlps}"

    def values(self, site: Site, batch: Batch, draw: int) -> Float[Tensor, "..."]:
        """What the receiver reads in the frozen pass; of edges, the change alone."""
        receiver = self.paths[0][-1]
        with torch.inference_mode():
            found = _arriving(receiver, self.paths, self.runs, batch)
            if self.runs.mlps == "recomputed":
                found = self.runs.of(batch)[0][receiver.stream.hook_name] + found
        return found if receiver.head is None else found[:, :, None]

    def new(self, old: Float[Tensor, "..."], values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """What the receiver reads."""
        return values if self.runs.mlps == "recomputed" else old + values


def _arriving(receiver: Node, paths: Sequence[Path], runs: Runs, batch: Batch) -> Residual:
    """How the stream that `receiver` reads changes along `paths`, which end there."""
    before: dict[Node, list[Path]] = {}
    for path in paths:
        before.setdefault(path[-2], []).append(path[:-1])
    written = {node: _written(node, shorter, runs, batch) for node, shorter in before.items()}
    for mlp in runs.recomputed(before, receiver):
        heard = [change for node, change in written.items() if node.writes_at < mlp.reads_at]
        written[mlp] = _passed_on(mlp, reduce(torch.add, heard), runs, batch)
    return reduce(torch.add, written.values())


def _written(node: Node, paths: Sequence[Path], runs: Runs, batch: Batch) -> Residual:
    """How the output of `node` changes, with which `paths` end: what sends is the source's, whatever arrives at it."""
    if (node,) in paths:
        return _sent(node, runs, batch)
    return _passed_on(node, _arriving(node, paths, runs, batch), runs, batch)


def _needs(node: Node) -> list[Site]:
    """What has to be known of a node that sends or passes on; last, what it writes."""
    if node.name == "embed":
        return [Site("resid_pre", 0)]
    if node.head is None:
        return [node.stream, Site("mlp_out", node.layer)]
    names = ("z",) if node.reads is None else ("resid_pre", "q", "k", "v", "z")
    return [Site(name, node.layer) for name in names]


def _sent(sender: Node, runs: Runs, batch: Batch) -> Residual:
    """How much more the sender writes in the source."""
    run, source = runs.of(batch)
    name = _needs(sender)[-1].hook_name
    if sender.head is None:
        return source[name] - run[name]
    block = list(runs.model.blocks)[sender.layer]
    change = (source[name][:, :, sender.head] - run[name][:, :, sender.head]) @ block.attn.W_O[sender.head]
    return block.added_to_the_stream(run[name], change)


def _passed_on(node: Node, change: Residual, runs: Runs, batch: Batch) -> Residual:
    """How a receiver's output changes when it reads `change` on top of its input."""
    run, _ = runs.of(batch)
    block = list(runs.model.blocks)[node.layer]
    stream = run[node.stream.hook_name] + change
    if node.head is None:
        changed: Residual = block.ln2_post(block.mlp(block.ln2(stream)))
        return changed - run[Site("mlp_out", node.layer).hook_name]
    attention, head = block.attn, node.head
    q, k, v = (run[Site(name, node.layer).hook_name].clone() for name in ("q", "k", "v"))
    read = {"q": (q, attention.W_Q, attention.b_Q), "k": (k, attention.W_K, attention.b_K)}
    parts, weight, bias = (read | {"v": (v, attention.W_V, attention.b_V)})[node.reads or ""]
    parts[:, :, head] = block.ln1(stream) @ weight[head] + bias[head]
    writing = [head] if node.reads == "q" else list(range(head * attention.group, (head + 1) * attention.group))
    places = places_of(torch.ones_like(batch.tokens, dtype=torch.bool), batch.length, causal=runs.model.config.causal)
    q, k = (
        places.turned(attention.turn, attention.q_norm(q)),
        places.turned(attention.turn, attention.k_norm(k), keys=True),
    )
    z = attention.mixed(q, k, v, places)
    before = run[Site("z", node.layer).hook_name]
    change = torch.einsum("bphd,hdm->bpm", (z - before)[:, :, writing], attention.W_O[writing])
    return block.added_to_the_stream(before, change)


@documented
def path_patch(
    model: Any,
    task: Task | str,
    paths: Sequence[Sequence[str]],
    options: PathPatchOptions | None = None,
    *,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> PatchResult:
    """Patch along paths, one after the other or all at once.

    Source: Wang et al. (2022), "Interpretability in the wild", appendix B; Goldowsky-Dill et al. (2023), "Localizing
    model behavior with path patching".

    Of a single receiver, without MLPs between, recomputed and frozen MLPs are the same. Where paths are patched
    together, each of several receivers reads what it reads in the frozen pass of its own paths' senders, whatever the
    others do to it (Wang et al. 2022); with frozen MLPs, an edge's change comes on top of what earlier receivers have
    changed (Goldowsky-Dill et al. 2023).

    Args:
        model: One of ours.
        task: A task, or the name of one.
        paths: Lists of nodes; ``paths_to`` and ``paths_from`` give the direct ones.
        options: What is asked; or its fields by name: see ``PathPatchOptions``.
        progress: Called with (cells done, cells in all).
        run: Where what is measured is kept at once, and found again: a folder of runs; or an ``interp.Run``, which also
            says who measures. None to keep nothing.
        fields: Those of `options` that are given by name.

    Returns:
        One row per path (``sender``, ``via``, ``receiver``) and example, as ``patch`` gives them; the provenance has
        ``mlps``.

    Raises:
        InputError: A node that the model does not have, a path that no information can take, no unit with a
            counterfactual of its length, a model that is not ours or whose stream is not a sum, logits beside other
            receivers in one cell with recomputed MLPs, or a budget too small for one cell.
        AuditError: The engine's numbers are not those of the plain way.
        OutputError: What is measured cannot be kept.

    Examples:
        >>> result = interp.path_patch(interp.load_model(), "agreement", [["0.1", "2.2.k"]], n=24)
        >>> result.labels
        ('sender', 'via', 'receiver')
    """
    asked = PathPatchOptions.of(options, fields)
    require_ours(model, "path patching")  # its attention is repeated
    require_additive(model)
    listed = as_list(paths)
    if listed is None:
        raise InputError(f"paths: expected a list of paths such as [['0.1', '2.3.k']], got {paths!r}")
    parsed = [parse_path(path, model) for path in listed]
    require_different("paths", [tuple(node.name for node in path) for path in parsed], "paths")
    if asked.together and asked.mlps == "recomputed":
        _require_heard(parsed)
    runs = Runs(model, parsed, asked.mlps)
    groups = [parsed] if asked.together else [[path] for path in parsed]
    cells = [Cell(_labels(group, asked.together), tuple(_changes(group, runs))) for group in groups]
    pairs = as_pairs(task, model, n=asked.n, seed=asked.seed, metric=asked.metric)
    result = measure(model, pairs, cells, asked, progress=progress, run=run, direction=asked.direction)
    how = {**result.provenance, "direction": asked.direction, "mlps": asked.mlps}
    return PatchResult(result.examples, how, result.labels)


def _require_heard(paths: Sequence[Path]) -> None:
    """Refuse receivers that nobody would hear: what the logits are made from is set last."""
    receivers = list(dict.fromkeys(path[-1].name for path in paths))
    if "logits" in receivers and len(receivers) > 1:
        raise InputError(
            "paths: together, with recomputed MLPs, every receiver is set to what it reads in the frozen pass, and the "
            "logits last, so that the others would do nothing; expected the logits alone or not at all, got "
            f"{', '.join(receivers)}; leave the logits out, or give mlps='frozen', where changes add up"
        )


def _changes(paths: Sequence[Path], runs: Runs) -> list[Intervention]:
    """What is changed at each receiver."""
    ending: dict[Node, list[Path]] = {}
    for path in paths:
        ending.setdefault(path[-1], []).append(path)
    return [
        Intervention(end.site, Arriving(tuple(own), runs), heads=None if end.head is None else (end.head,))
        for end, own in ending.items()
    ]


def _labels(paths: Sequence[Path], together: bool) -> dict[str, str]:
    if together:
        return {"sender": " + ".join(dict.fromkeys(path[0].name for path in paths)), "via": "", "receiver": "all"}
    (path,) = paths
    return {"sender": path[0].name, "via": " > ".join(node.name for node in path[1:-1]), "receiver": path[-1].name}


@documented
def path_estimates(
    model: HookedTransformer, task: Task, paths: Sequence[Sequence[str]], *, memory_budget: int | None = None
) -> Float[np.ndarray, " path"]:
    """Gradient estimates of denoising along each path by itself, with MLPs frozen: a ranking of where to look.

    An estimate is what arrives at the receiver times the metric's gradient there (``attribution.py``).

    Args:
        model: One of ours.
        task: Pairs of prompts of the same length.
        paths: Lists of nodes, as of ``path_patch``.
        memory_budget: Bytes for the activations of a batch and their gradients; None for the device's default.

    Returns:
        Means over the task's examples, in the metric's units.

    Raises:
        InputError: As ``path_patch``; or a metric without a gradient.

    Examples:
        >>> from interp.methods.path_patching import path_estimates
        >>> model = interp.load_model()
        >>> task = interp.load_task("agreement", tokenizer=model.tokenizer, n=4)
        >>> path_estimates(model, task, [["2.2", "logits"]]).shape
        (1,)
    """
    parsed = [parse_path(path, model) for path in paths]
    runs, points = Runs(model, parsed, "frozen"), [EMBEDDED, *(path[-1].site.hook_name for path in parsed)]
    starts: dict[Path, list[int]] = {}  # paths that differ in their receiver alone bring it the same
    for number, path in enumerate(parsed):
        starts.setdefault(path[:-1], []).append(number)
    rows, total = task_rows(name_of(task.metric), task.units, "denoise"), np.zeros(len(paths))
    for batch, run in differentiable_runs(model, rows, task.metric, points, memory_budget):
        _, steep = run.gradients()
        signs = sent(np.array([row.sign for row in batch.rows]), batch.tokens.device)
        for start, numbers in starts.items():
            with torch.inference_mode():
                change = _written(start[-1], [start], runs, batch)
            for number in numbers:
                end = parsed[number][-1]
                slope = steep[end.site.hook_name]
                products = (slope if end.head is None else slope[:, :, end.head]) * change
                total[number] += float((products.flatten(1).sum(1) * signs).sum())
    return total / len(task.examples)
