"""Which tree has the largest sum of weights (Edmonds 1967), and which trees know nothing of them?"""

from collections.abc import Iterator

import networkx as nx
import numpy as np
from jaxtyping import Float

from interp.tasks.treebank import ROOT

CHAINS = ("word before", "word after", "towards the root")
_TIE = 1e-9
"""Weight of the arc to the neighbour towards the root: it decides where attention says nothing."""


def spanning_tree(weights: Float[np.ndarray, "word word"], root: int) -> list[int]:
    """Each word's head in the maximum spanning tree; ``ROOT`` for the root.

    Args:
        weights: From dependent to head, not below 0.
        root: The root.
    """
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(_arcs(weights, root))
    heads = [ROOT] * len(weights)
    for head, dependent in nx.maximum_spanning_arborescence(graph).edges:
        heads[dependent] = head
    return heads


def _arcs(weights: Float[np.ndarray, "word word"], root: int) -> Iterator[tuple[int, int, float]]:
    for dependent, row in enumerate(weights):
        for head, weight in enumerate(row):
            if dependent not in (root, head):
                towards = head == dependent + (1 if dependent < root else -1)
                yield head, dependent, float(weight) + _TIE * towards


def chains(n_words: int, root: int) -> dict[str, list[int]]:
    """By ``CHAINS``, each word's head in the chains of neighbours; at a chain's end it is the root."""
    before = [at - 1 if at else root for at in range(n_words)]
    after = [at + 1 if at + 1 < n_words else root for at in range(n_words)]
    towards = [at + 1 if at < root else at - 1 for at in range(n_words)]
    return dict(zip(CHAINS, (before, after, towards), strict=True))
