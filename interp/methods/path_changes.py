"""What arrives at the end of paths? The change of a sender's output, as it comes to what a receiver reads.

1. A sender's output changes by ``d``, from the run to its source. All heads write what they write in the run.
2. Where MLPs are **recomputed**, every MLP between the sender and the next node writes what it makes of its changed
   input, and that arrives, too (Wang et al. 2022). Where they are **frozen**, ``d`` alone arrives: an edge of the graph
   (Goldowsky-Dill et al. 2023). Layer norms are recomputed in both.
3. A receiver on the way reads what arrives on top of its input in the run, and the change of its output goes on from
   there in the same way. Paths that share their ends meet where these begin.
4. The last receiver. Of paths that are patched together, Wang et al. take what every receiver reads from this frozen
   pass, whatever the others do to it. An edge's change comes on top of what the others have changed already, as in
   Goldowsky-Dill et al.'s set of paths.

Wang et al. (2022), "Interpretability in the wild", appendix B; Goldowsky-Dill et al. (2023), "Localizing model behavior
with path patching".
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from interp.interventions.activations import read_source
from interp.interventions.rows import Batch, Row
from interp.methods.path_nodes import Node, Path, mlp_nodes
from interp.model.places import places_of
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.residual.activations import read
from interp.shapes import Residual

Mlps = Literal["recomputed", "frozen"]


class Runs:
    """Activations of a batch and of its sources, as far as some paths need them; the last batch's are kept.

    Attributes:
        model: What is run.
        mlps: What the MLPs between the nodes of a path do.
        sites: What is kept of a run.
        sources: What is kept of its source.
    """

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
class Arriving:
    """A replacement: what a receiver reads, with what arrives along paths.

    Attributes:
        paths: They end in this receiver.
        runs: What they are computed from.
    """

    paths: tuple[Path, ...]
    runs: Runs = field(repr=False)
    kind: ClassVar[str] = "path"
    draws: ClassVar[int] = 1
    from_source: ClassVar[bool] = True
    breadth: ClassVar[int] = 1

    @property
    def keeps(self) -> tuple[Site, ...]:
        """Of the run, and of its source."""
        return (*self.runs.sites, *self.runs.sources)

    @property
    def identity(self) -> str:
        """The paths, and what the MLPs between do."""
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

    def group(self, row: Row, draw: int) -> Hashable:
        """Nothing is known."""
        return None


def _arriving(receiver: Node, paths: Sequence[Path], runs: Runs, batch: Batch) -> Residual:
    """How the stream that `receiver` reads changes along `paths`, which end there."""
    before: dict[Node, list[Path]] = {}
    for path in paths:
        before.setdefault(path[-2], []).append(path[:-1])
    written = {node: _written(node, shorter, runs, batch) for node, shorter in before.items()}
    for mlp in runs.recomputed(before, receiver):
        heard = [change for node, change in written.items() if node.writes_at < mlp.reads_at]
        written[mlp] = _passed_on(mlp, _sum(heard), runs, batch)
    return _sum(list(written.values()))


def _written(node: Node, paths: Sequence[Path], runs: Runs, batch: Batch) -> Residual:
    """How the output of `node` changes, with which `paths` end: what sends is the source's, whatever arrives at it."""
    if (node,) in paths:
        return _sent(node, runs, batch)
    return _passed_on(node, _arriving(node, paths, runs, batch), runs, batch)


def _sum(changes: Sequence[Residual]) -> Residual:
    return reduce(torch.add, changes)


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
    w_o = list(runs.model.blocks)[sender.layer].attn.W_O[sender.head]
    return (source[name][:, :, sender.head] - run[name][:, :, sender.head]) @ w_o


def _passed_on(node: Node, change: Residual, runs: Runs, batch: Batch) -> Residual:
    """How a receiver's output changes when it reads `change` on top of its input."""
    run, _ = runs.of(batch)
    block = list(runs.model.blocks)[node.layer]
    stream = run[node.stream.hook_name] + change
    if node.head is None:
        changed: Residual = block.mlp(block.ln2(stream))
        return changed - run[Site("mlp_out", node.layer).hook_name]
    attention, head = block.attn, node.head
    q, k, v = (run[Site(name, node.layer).hook_name].clone() for name in ("q", "k", "v"))
    read = {"q": (q, attention.W_Q, attention.b_Q), "k": (k, attention.W_K, attention.b_K)}
    parts, weight, bias = (read | {"v": (v, attention.W_V, attention.b_V)})[node.reads or ""]
    parts[:, :, head] = block.ln1(stream) @ weight[head] + bias[head]
    writing = [head] if node.reads == "q" else list(range(head * attention.group, (head + 1) * attention.group))
    places = places_of(torch.ones_like(batch.tokens, dtype=torch.bool), batch.length, causal=runs.model.config.causal)
    z = attention.mixed(attention.turn(q, places.query), attention.turn(k, places.key), v, places)
    change = (z - run[Site("z", node.layer).hook_name])[:, :, writing]
    return torch.einsum("bphd,hdm->bpm", change, attention.W_O[writing])
