"""What is resampled as one? Documents; of very many, neighbours together.

A treebank that does not mark its documents makes every sentence one, and sums are kept for each, head by head. Beyond
``MOST_CLUSTERS`` neighbours are joined, so that the sums do not grow with the corpus. Clusters of independent clusters
are valid, and neighbours that are not independent are better off in one.
"""

from collections.abc import Mapping

MOST_CLUSTERS = 1000


def clusters_of(documents: Mapping[str, int]) -> dict[str, str]:
    """The cluster of each document, by its first document's name; as many documents in each, up to one.

    Args:
        documents: By name, in the corpus' order.
    """
    names = list(documents)
    n_clusters = min(len(names), MOST_CLUSTERS)
    number = [at * n_clusters // len(names) for at in range(len(names))]
    first: dict[int, str] = {}
    return {name: first.setdefault(each, name) for name, each in zip(names, number, strict=True)}
