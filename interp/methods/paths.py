"""Paths: nodes, one after the other. A sender, receivers that it passes through, and a last receiver.

``2.1`` (a head), ``mlp.1`` and ``embed`` (the embeddings) write; ``2.3.q``, ``2.3.k``, ``2.3.v`` (what a head's
queries, keys or values are made from), ``mlp.2`` and ``logits`` read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from interp.arguments import as_list, named_arguments
from interp.errors import InputError
from interp.interventions.intervention import heads_at
from interp.methods.ablation import check_heads, head_name
from interp.model.sites import Site

NODE = re.compile(
    r"(?P<layer>[0-9]{1,9})\.(?P<head>[0-9]{1,9})(\.(?P<reads>[qkv]))?|mlp\.(?P<mlp>[0-9]{1,9})|(?P<end>embed|logits)"
)


@dataclass(frozen=True)
class Node:
    """A component as a sender or a receiver.

    Attributes:
        name: ``2.1``, ``2.1.q``, ``mlp.2``, ``embed`` or ``logits``.
        layer: Its block; -1 for the embeddings, the number of layers for the logits.
        head: The head; None for all else.
        reads: ``q``, ``k`` or ``v`` of a head that receives; None else. Keys and values that several heads share have
            numbers of their own.
        parallel: Whether the MLPs of its model read what attention reads.
    """

    name: str
    layer: int
    head: int | None = None
    reads: str | None = None
    parallel: bool = False

    @classmethod
    def parse(cls, name: str, model: Any) -> "Node":
        """The node called `name`; an error where the model has none."""
        found = NODE.fullmatch(name)
        n_layers, n_heads = model.cfg.n_layers, model.cfg.n_heads
        if found is None:
            raise InputError(f"{name!r:.60} is not a node of a path; expected, say, 2.1, 2.1.q, mlp.2, embed or logits")
        if found["end"]:
            return cls(name, -1 if name == "embed" else n_layers)
        layer, head = int(found["mlp"] or found["layer"]), None if found["mlp"] else int(found["head"])
        n_heads = heads_at(f"{found['reads']}_input", model) if found["reads"] else n_heads
        if layer >= n_layers or (head is not None and head >= n_heads):
            raise InputError(
                f"{name}: the model has layers 0 to {n_layers - 1} of heads 0 to {n_heads - 1}; choose among these"
            )
        if head is None and not model.config.d_mlp:
            raise InputError(f"{name}: the model is of attention alone and has no MLPs; choose heads")
        known = f"mlp.{layer}" if head is None else ".".join(filter(None, (head_name((layer, head)), found["reads"])))
        return cls(known, layer, head, found["reads"], model.config.parallel)

    @property
    def writes_at(self) -> float:
        """When it writes: the MLP of a layer after its heads."""
        return self.layer + (0.5 if self.head is None else 0.0)

    @property
    def reads_at(self) -> float:
        """When it reads, as a receiver: before the heads of a layer write, and before its MLP does."""
        return self.layer + (0.25 if self.head is None and not self.parallel else -0.25)

    @property
    def site(self) -> Site:
        """What it reads, as a receiver."""
        if self.head is not None:
            return Site(f"{self.reads}_input", self.layer)
        return self.stream if self.name == "logits" else Site("mlp_in", self.layer)

    @property
    def stream(self) -> Site:
        """The residual stream that it reads, as a receiver."""
        if self.name == "logits":
            return Site("resid_post", self.layer - 1)
        return Site("resid_mid" if self.head is None and not self.parallel else "resid_pre", self.layer)


Path = tuple[Node, ...]


@named_arguments
def parse_path(path: Sequence[str] | str, model: Any) -> Path:
    """The nodes of a path, each of which can hear the one before it."""
    names = as_list(path)
    if names is None or len(names) < 2 or not all(isinstance(name, str) for name in names):
        raise InputError(f"a path: expected a sender and a receiver, such as ['0.1', '2.3.k'], got {path!r}")
    nodes = (_sender(names[0], model), *(Node.parse(name, model) for name in names[1:]))
    for before, node in pairwise(nodes):
        if node.head is not None and node.reads is None:
            raise InputError(f"{node.name}: say what of the head receives: {node.name}.q, {node.name}.k or .v")
        if before.name == "logits" or node.name == "embed" or before.writes_at > node.reads_at:
            raise InputError(f"no path leads from {before.name} to {node.name}: the one writes after the other reads")
    return nodes


def _sender(name: str, model: Any) -> Node:
    """The node called `name`; an error where it does not write."""
    node = Node.parse(name, model)
    if node.reads or node.name == "logits":
        raise InputError(f"a path begins with what writes: a head such as 0.1 or mlp.0, got {name!r}")
    return node


@named_arguments
def mlp_nodes(model: Any) -> list[Node]:
    """Every MLP of the model, in their order."""
    return [Node.parse(name, model) for name in _mlps(model)]


@named_arguments
def paths_to(model: Any, receiver: str) -> list[list[str]]:
    """The direct paths to `receiver`, from the embeddings and every head and MLP that writes before it reads.

    Args:
        model: Follows TransformerLens' protocol.
        receiver: A node that reads, such as ``2.3.q``, ``mlp.2`` or ``logits``.

    Returns:
        One path ``[sender, receiver]`` for each sender, in the order of the model, for ``interp.path_patch``.

    Raises:
        InputError: The model has no such node.

    Examples:
        >>> from interp.methods.paths import paths_to
        >>> paths_to(interp.load_model(), "1.0.q")[:2]
        [['embed', '1.0.q'], ['0.0', '1.0.q']]
    """
    if not isinstance(receiver, str):
        raise InputError(
            f"receiver: expected one node, such as '1.2.q', got {receiver!r:.80}; add up the lists of several"
        )
    senders = ["embed", *map(head_name, check_heads(model, None)), *_mlps(model)]
    reads_at = Node.parse(receiver, model).reads_at
    return [[name, receiver] for name in senders if Node.parse(name, model).writes_at < reads_at]


@named_arguments
def paths_from(model: Any, sender: str) -> list[list[str]]:
    """The direct paths from `sender`, to everything that reads after it writes.

    Args:
        model: Follows TransformerLens' protocol.
        sender: A node that writes, such as ``1.3``, ``mlp.1`` or ``embed``.

    Returns:
        One path ``[sender, receiver]`` for each receiver, in the order of the model, for ``interp.path_patch``.

    Raises:
        InputError: The model has no such node, or it does not write.

    Examples:
        >>> from interp.methods.paths import paths_from
        >>> paths_from(interp.load_model(), "mlp.1")[-2:]
        [['mlp.1', 'mlp.2'], ['mlp.1', 'logits']]
    """
    node = _sender(sender, model)
    heads = [
        f"{head_name(each)}.{reads}"
        for each, reads in product(check_heads(model, None), "qkv")
        if each[1] < heads_at(f"{reads}_input", model)
    ]
    receivers = [*heads, *_mlps(model), "logits"]
    return [[node.name, name] for name in receivers if node.writes_at < Node.parse(name, model).reads_at]


def _mlps(model: Any) -> list[str]:
    return [f"mlp.{layer}" for layer in range(model.cfg.n_layers)] if model.config.d_mlp else []
