"""What a tree asks for, and what a prediction is worth: by hand, against other programs, and where nothing is known."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from banks import sentence
from planted_trees import tree

from analyses.structural_probe.trees import (
    scored_words,
    spanning_edges,
    structural_scores,
    structural_summary,
    tree_depths,
    tree_distances,
    tree_edges,
)
from interp.claims.bootstrap import cluster_bootstrap
from interp.claims.units import ClusterTable
from interp.errors import InputError

DOGS = sentence("the dogs , barked .", [1, 3, 1, -1, 3], upos=["DET", "NOUN", "PUNCT", "VERB", "PUNCT"])
CHAIN = sentence("a b c d", [-1, 0, 1, 2])


def symmetric(n, upper):
    found = np.zeros((n, n))
    found[np.triu_indices(n, k=1)] = upper
    return found + found.T


def random_distances(generator, n):
    return symmetric(n, generator.random(n * (n - 1) // 2))


def graph(found):
    edges = [(at, word.head) for at, word in enumerate(found.words) if word.head >= 0]
    return nx.Graph(edges)


def test_a_sentence_by_hand():
    assert tree_depths(DOGS).tolist() == [2, 1, 2, 0, 1]
    assert tree_distances(DOGS).tolist() == symmetric(5, [1, 2, 2, 3, 1, 1, 2, 2, 3, 1]).tolist()
    assert scored_words(DOGS).tolist() == [True, True, False, True, False]
    assert tree_edges(DOGS) == {(0, 1), (1, 3)}


@pytest.mark.parametrize("seed", range(10))
def test_distances_are_shortest_paths_and_depths_are_those_to_the_root(seed):
    generator = np.random.default_rng(seed)
    found = tree(generator, int(generator.integers(2, 12)))
    paths = dict(nx.all_pairs_shortest_path_length(graph(found)))
    n = len(found.words)
    assert tree_distances(found).tolist() == [[paths[one][other] for other in range(n)] for one in range(n)]
    (root,) = [at for at, word in enumerate(found.words) if word.head == -1]
    assert tree_depths(found).tolist() == [paths[root][at] for at in range(n)]
    assert tree_edges(found) == {(min(edge), max(edge)) for edge in graph(found).edges}


@pytest.mark.parametrize("seed", range(10))
def test_the_spanning_tree_is_that_of_networkx(seed):
    generator = np.random.default_rng(seed)
    distances, scored = random_distances(generator, 9), generator.random(9) < 0.7
    whole = nx.Graph()
    whole.add_weighted_edges_from((one, other, distances[one, other]) for one in range(9) for other in range(one))
    expected = nx.minimum_spanning_tree(whole.subgraph(np.flatnonzero(scored).tolist())).edges
    assert spanning_edges(distances, scored) == {(min(edge), max(edge)) for edge in expected}


def test_a_distance_of_0_is_the_nearest_and_equal_ones_join_neighbours():
    distances = symmetric(4, [5, 6, 0, 7, 8, 9])
    assert spanning_edges(distances, np.ones(4, dtype=bool)) == {(0, 3), (0, 1), (0, 2)}
    assert spanning_edges(np.zeros((5, 5)), np.ones(5, dtype=bool)) == {(0, 1), (1, 2), (2, 3), (3, 4)}
    assert spanning_edges(np.zeros((5, 5)), np.array([True, False, True, False, False])) == {(0, 2)}
    assert spanning_edges(np.zeros((2, 2)), np.array([True, False])) == frozenset()


def test_scores_by_hand():
    """Punctuation is near to everything; the words join as 0-3, 0-1, of which the second is right."""
    distances = symmetric(5, [0.7, 0.1, 0.5, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1])
    depths = np.array([[3.0, 1, -1, 2, -2], [3.0, 2, -1, 1, -2]])
    scores = structural_scores([DOGS], distances=[np.stack([distances, tree_distances(DOGS)])], depths=[depths])
    assert scores["cell"].tolist() == [0, 1]
    assert scores["n_words"].tolist() == [5, 5]
    assert scores["n_edges"].tolist() == [2, 2]
    assert scores["right"].tolist() == [1, 2]
    assert scores["root"].tolist() == [0, 1]
    assert scores["distance_spearman"][1] == pytest.approx(1)


def test_spearman_by_hand():
    """Of the words in order: 0.5, 0.866, -0.866 and -1; of the depths, 1 - 6 * 12 / 60."""
    distances, depths = symmetric(4, [1, 3, 2, 4, 5, 6]), np.array([5.0, 1, 2, 3])
    scores = structural_scores([CHAIN], distances=[distances[None]], depths=[depths[None]])
    assert scores["distance_spearman"][0] == pytest.approx((0.5 - 1) / 4)
    assert scores["depth_spearman"][0] == pytest.approx(-0.2)
    assert scores["root"][0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_spearman_is_scipys(seed):
    generator = np.random.default_rng(seed)
    found = tree(generator, 9)
    distances = np.round(np.stack([random_distances(generator, 9) for _ in range(3)]), 1)
    depths = np.round(generator.random((3, 9)), 1)
    scores = structural_scores([found], distances=[distances], depths=[depths])
    true, others = tree_distances(found), ~np.eye(9, dtype=bool)
    for cell in range(3):
        asked = [at for at in range(9) if len(set(true[at, others[at]])) > 1]
        by_word = [scipy.stats.spearmanr(true[at, others[at]], distances[cell, at, others[at]])[0] for at in asked]
        assert scores["distance_spearman"][cell] == pytest.approx(np.mean(by_word))
        expected = scipy.stats.spearmanr(tree_depths(found), depths[cell])[0]
        assert scores["depth_spearman"][cell] == pytest.approx(expected)


def test_where_nothing_is_asked_nothing_is_scored():
    """A word by itself; two words, whose distances are in one order only; one word beside punctuation."""
    sentences = [sentence("go"), sentence("go now", [-1, 0]), sentence("go !", [-1, 0], upos=["VERB", "PUNCT"])]
    sizes = [len(each.words) for each in sentences]
    scores = structural_scores(
        sentences,
        distances=[np.ones((1, n, n)) for n in sizes],
        depths=[np.arange(n, dtype=float)[None] for n in sizes],
    )
    assert scores["n_edges"].tolist() == [0, 1, 0]
    assert scores["distance_spearman"].isna().all()
    assert scores["root"].isna().tolist() == [True, False, True]
    assert scores["depth_spearman"].isna().tolist() == [True, False, False]
    summary = structural_summary(scores).iloc[0]
    assert summary["uuas"] == summary["root_accuracy"] == 1
    assert np.isnan(summary["distance_spearman"])  # no sentence of 5 words


def test_a_word_that_is_as_far_from_all_others_asks_for_no_order():
    """The middle of three: both others are its dependents."""
    scores = structural_scores([sentence("a b c", [1, -1, 1])], distances=[symmetric(3, [1, 3, 2])[None]])
    assert scores["distance_spearman"][0] == pytest.approx(1)


def test_a_prediction_that_is_the_same_everywhere_knows_nothing():
    found = tree(np.random.default_rng(0), 8)
    scores = structural_scores([found], distances=[np.zeros((1, 8, 8))], depths=[np.zeros((1, 8))])
    assert scores["distance_spearman"][0] == scores["depth_spearman"][0] == 0
    assert scores["root"][0] == 1 / 8


def test_random_distances_have_two_edges_in_n():
    """The spanning tree has 7 of 28 pairs, and any pair is as likely as another."""
    generator = np.random.default_rng(0)
    sentences = [tree(generator, 8) for _ in range(400)]
    distances = [random_distances(generator, 8)[None] for _ in sentences]
    depths = [generator.random((1, 8)) for _ in sentences]
    summary = structural_summary(structural_scores(sentences, distances=distances, depths=depths)).iloc[0]
    assert summary["uuas"] == pytest.approx(2 / 8, abs=0.03)
    assert summary["root_accuracy"] == pytest.approx(1 / 8, abs=0.05)
    assert abs(summary["distance_spearman"]) < 0.03
    assert abs(summary["depth_spearman"]) < 0.05


def test_lengths_count_alike_however_many_sentences_they_have():
    """Of 5 words one sentence that is right, of 6 three that are wrong; of 4 words one that does not count."""
    sentences = [sentence(" ".join("abcdef"[:n]), [-1, *range(n - 1)]) for n in (5, 6, 6, 6, 4)]
    depths = [tree_depths(each)[None] * sign for each, sign in zip(sentences, (1, -1, -1, -1, 1), strict=True)]
    summary = structural_summary(structural_scores(sentences, depths=depths))
    assert summary["depth_spearman"][0] == pytest.approx(0)
    assert summary.columns.tolist() == ["cell", "root_accuracy", "depth_spearman"]


def test_documents_can_be_resampled():
    generator = np.random.default_rng(1)
    sentences = [tree(generator, int(generator.integers(3, 9))) for _ in range(60)]
    distances = [np.stack([random_distances(generator, len(each.words)), tree_distances(each)]) for each in sentences]
    scores = structural_scores(sentences, distances=distances).assign(document=lambda frame: frame["sentence"] // 3)
    sums, counts = (
        scores.pivot_table(values=name, index="document", columns="cell", aggfunc="sum").to_numpy(dtype=float)
        for name in ("right", "n_edges")
    )
    found = cluster_bootstrap(ClusterTable(sums, counts, pd.RangeIndex(2, name="cell")), resamples=200)
    assert found.estimate.tolist() == pytest.approx(structural_summary(scores)["uuas"].tolist())
    assert found.low[0] < found.estimate[0] < found.high[0] < found.low[1] == 1


def test_bad_input():
    with pytest.raises(InputError, match="s: expected a tree of one root, got 2 roots; leave the sentence out"):
        tree_depths(sentence("a b", [-1, -1]))
    with pytest.raises(InputError, match="s: expected a tree, got heads in a circle at word 1"):
        tree_distances(sentence("a b c", [-1, 2, 1]))
    with pytest.raises(InputError, match="expected sentences with distances, depths or both, got none"):
        structural_scores([CHAIN])
    with pytest.raises(InputError, match="distances: expected one array for each of 1 sentences, got 2"):
        structural_scores([CHAIN], distances=[np.zeros((1, 4, 4))] * 2)
    with pytest.raises(InputError, match=r"depths: expected \[cell, 4\] of s, got \(1, 5\)"):
        structural_scores([CHAIN], depths=[np.zeros((1, 5))])
    with pytest.raises(InputError, match="distances: expected finite numbers, got others in s"):
        structural_scores([CHAIN], distances=[np.full((1, 4, 4), np.nan)])
    with pytest.raises(InputError, match=r"expected as many cells in every array, got \[1, 2\]"):
        structural_scores([CHAIN, CHAIN], depths=[np.zeros((1, 4)), np.zeros((2, 4))])
