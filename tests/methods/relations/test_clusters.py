from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from planted_trees import knowing, trees

from interp.methods.relations import counts as clusters
from interp.methods.relations.attend import attend
from interp.methods.relations.counts import MOST_CLUSTERS, clusters_of


def test_documents_are_clusters_of_their_own():
    names = [f"d{number}" for number in range(MOST_CLUSTERS)]
    assert clusters_of(dict.fromkeys(names, 5)) == {name: name for name in names}
    assert clusters_of({}) == {}


@pytest.mark.parametrize("n", [MOST_CLUSTERS + 1, 2 * MOST_CLUSTERS, 12_345])
def test_of_many_documents_neighbours_are_joined(n):
    found = list(clusters_of({f"d{number}": 5 for number in range(n)}).values())
    sizes = Counter(found)
    assert len(sizes) == MOST_CLUSTERS
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert found == [name for name, size in sizes.items() for _ in range(size)], "neighbours, in their order"
    assert set(sizes) <= {f"d{number}" for number in range(n)}


def test_joined_documents_are_scored_as_one_document(monkeypatch):
    """Two by two: the estimates stay, and the spread is that between pairs of documents."""
    documents, choosing = list(trees(48)), list(trees(4, seed=1))

    def scored():
        return attend(knowing([*choosing, *documents], share=0.5), documents, ["dep"], choose_on=choosing)

    apart = scored()
    monkeypatch.setattr(clusters, "MOST_CLUSTERS", 24)
    joined = scored()
    assert (joined.provenance["n_documents"], joined.provenance["n_clusters"]) == (48, 24)
    assert (apart.provenance["n_documents"], apart.provenance["n_clusters"]) == (48, 48)
    estimates = ["accuracy", "attention", "excess"]
    assert np.allclose(joined.summary()[estimates], apart.summary()[estimates], atol=1e-12)
    assert set(joined.summary()["n_documents"]) == {24}
    by_hand = [merged(pair) for pair in zip(documents[::2], documents[1::2], strict=True)]
    monkeypatch.undo()
    expected = attend(knowing([*choosing, *documents], share=0.5), by_hand, ["dep"], choose_on=choosing)
    assert joined.summary().equals(expected.summary())


def merged(pair):
    """Two documents as one, by the first one's name."""
    return replace(pair[0], sentences=tuple(sentence for each in pair for sentence in each.sentences))
