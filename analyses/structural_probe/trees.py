"""What geometry does a sentence's tree ask for, and how much of it does a prediction have?

1. A word's **path** is itself and what is above it, below the root. Its **depth** is the path's length, and two words'
   **distance** is the number of words on one path alone: the edges between them.
2. **UUAS**: the share of the tree's edges, without their directions, in the minimum spanning tree over the predicted
   distances. Of two pairs as near to each other, the one nearer in the sentence is joined first, then the earlier.
3. **Root**: whether the least predicted depth is the root's. As many tied words, as small the chance.
4. **Spearman**: of distances, for each word, between the true and the predicted ones to all other words, then the mean
   over words; of depths, over the sentence's words. Where the truth is the same everywhere, nothing is asked; a
   prediction that is has 0, as any order has on average. The truth has ties: predictions without them stay below
   1. Over a corpus: the mean over the sentences of a length, then over the lengths from 5 to 50.
5. Punctuation counts as a word for Spearman, but is neither in the spanning tree nor a candidate for the root.

Hewitt & Manning (2019), https://aclanthology.org/N19-1419. Their program lets a word's distance to itself, always 0,
into the Spearman correlation, which raises it; what the paper says, *all other words*, is done here.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import rankdata

from interp.errors import InputError
from interp.tasks.treebank import ROOT, Sentence

PUNCTUATION = "PUNCT"
LENGTHS = range(5, 51)
"""Words of a sentence whose Spearman correlation counts."""

Edges = frozenset[tuple[int, int]]
"""Pairs of words, the earlier first."""
CellDistances = Float[np.ndarray, "cell _ _"]
CellDepths = Float[np.ndarray, "cell _"]


def tree_depths(sentence: Sentence) -> Float[np.ndarray, " word"]:
    """How many edges each word is below the root.

    Raises:
        InputError: The heads form no tree with one root.
    """
    return _paths(sentence).sum(axis=1)


def tree_distances(sentence: Sentence) -> Float[np.ndarray, "word word"]:
    """How many edges are between two words.

    Raises:
        InputError: The heads form no tree with one root.
    """
    paths = _paths(sentence)
    depths = paths.sum(axis=1)
    return depths[:, None] + depths - 2 * paths @ paths.T


def _paths(sentence: Sentence) -> Float[np.ndarray, "word word"]:
    """In each word's row 1 for itself and all words above it, without the root."""
    heads = [word.head for word in sentence.words]
    if heads.count(ROOT) != 1:
        raise InputError(
            f"{sentence.id}: expected a tree of one root, got {heads.count(ROOT)} roots; leave the sentence out"
        )
    paths = np.zeros((len(heads), len(heads)))
    for word, above in enumerate(heads):
        at = word
        while above != ROOT:
            if paths[word, at]:
                raise InputError(f"{sentence.id}: expected a tree, got heads in a circle at word {at}; leave it out")
            paths[word, at] = 1
            at, above = above, heads[above]
    return paths


def scored_words(sentence: Sentence) -> Bool[np.ndarray, " word"]:
    """Which words can be in a spanning tree, or the root: all but punctuation."""
    return np.array([word.upos != PUNCTUATION for word in sentence.words], dtype=bool)


def tree_edges(sentence: Sentence) -> Edges:
    """The tree's edges between words that are scored."""
    scored = scored_words(sentence)
    pairs = [(at, word.head) for at, word in enumerate(sentence.words) if word.head != ROOT]
    return frozenset((min(pair), max(pair)) for pair in pairs if scored[list(pair)].all())


def spanning_edges(distances: Float[np.ndarray, "word word"], scored: Bool[np.ndarray, " word"]) -> Edges:
    """The minimum spanning tree over the words that are scored.

    Args:
        distances: Symmetric; what is above the diagonal is read.
        scored: Which words are in the tree.
    """
    words = np.flatnonzero(scored)
    earlier, later = np.triu_indices(len(words), k=1)
    found = distances[words[earlier], words[later]]
    # A tree depends on the order of distances alone. Places in it are all different, and never 0, scipy's "no edge".
    order = np.lexsort((earlier, later - earlier, found))
    places = np.zeros((len(words), len(words)))
    places[earlier[order], later[order]] = np.arange(1, len(order) + 1)
    tree = minimum_spanning_tree(places).tocoo()
    return frozenset((int(words[one]), int(words[other])) for one, other in zip(tree.row, tree.col, strict=True))


def structural_scores(
    sentences: Sequence[Sentence],
    *,
    distances: Sequence[CellDistances] | None = None,
    depths: Sequence[CellDepths] | None = None,
) -> pd.DataFrame:
    """Hold predictions of several cells (layers, heads, ranks) against the trees.

    Args:
        sentences: With trees.
        distances: Of every sentence, its words' predicted distances in each cell ``[cell word word]``.
        depths: Of every sentence, its words' predicted depths in each cell ``[cell word]``.

    Returns:
        One row per cell and sentence: ``cell`` and ``sentence`` (their numbers), ``n_words``. For `distances`
        ``n_edges`` of the tree, how many of them are ``right``, and ``distance_spearman``; for `depths` ``root`` (1
        where it is found, else 0) and ``depth_spearman``. NaN where nothing is asked. UUAS is the ratio of the sums of
        ``right`` and ``n_edges``: as ``sums`` and ``counts`` of a ``ClusterTable``, documents can be resampled.

    Raises:
        InputError: A sentence has no tree, predictions do not fit the sentences, or a prediction is no finite number.
    """
    given = {name: each for name, each in (("distances", distances), ("depths", depths)) if each is not None}
    if not given or not sentences:
        raise InputError("structural scores: expected sentences with distances, depths or both, got none")
    for name, predicted in given.items():
        _check_predictions(name, sentences, predicted)
    sizes = {len(each) for predicted in given.values() for each in predicted}
    if len(sizes) > 1:
        raise InputError(f"structural scores: expected as many cells in every array, got {sorted(sizes)}")
    (n_cells,) = sizes
    parts = []
    for number, sentence in enumerate(sentences):
        part = {"sentence": np.full(n_cells, number), "n_words": np.full(n_cells, len(sentence.words))}
        if distances is not None:
            part |= _distance_columns(sentence, distances[number])
        if depths is not None:
            part |= _depth_columns(sentence, depths[number])
        parts.append({"cell": np.arange(n_cells), **part})
    return pd.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _check_predictions(name: str, sentences: Sequence[Sentence], predicted: Sequence[np.ndarray]) -> None:
    if len(predicted) != len(sentences):
        raise InputError(f"{name}: expected one array for each of {len(sentences)} sentences, got {len(predicted)}")
    n_axes = 2 if name == "distances" else 1
    for sentence, each in zip(sentences, predicted, strict=True):
        n_words = len(sentence.words)
        if each.shape[1:] != (n_words,) * n_axes:
            shape = ", ".join(["cell", *[str(n_words)] * n_axes])
            raise InputError(f"{name}: expected [{shape}] of {sentence.id}, got {each.shape}")
        if not np.isfinite(each).all():
            raise InputError(f"{name}: expected finite numbers, got others in {sentence.id}")


def _distance_columns(sentence: Sentence, predicted: CellDistances) -> dict[str, np.ndarray]:
    gold, scored = tree_edges(sentence), scored_words(sentence)
    right = np.array([len(gold & spanning_edges(each, scored)) for each in predicted])
    n_words = len(sentence.words)
    others = ~np.eye(n_words, dtype=bool)
    true = tree_distances(sentence)[others].reshape(n_words, -1)
    found = _spearman(true, predicted[:, others].reshape(len(predicted), *true.shape))
    return {"n_edges": np.full(len(right), len(gold)), "right": right, "distance_spearman": _mean(found)}


def _depth_columns(sentence: Sentence, predicted: CellDepths) -> dict[str, np.ndarray]:
    true, scored = tree_depths(sentence), scored_words(sentence)
    asked = scored.sum() > 1 and bool(scored[true == 0].all())
    least = predicted[:, scored] == predicted[:, scored].min(axis=1, keepdims=True, initial=np.inf)
    found = (least & (true[scored] == 0)).sum(axis=1) / least.sum(axis=1).clip(min=1)
    return {"root": found if asked else np.full(len(predicted), np.nan), "depth_spearman": _spearman(true, predicted)}


def _mean(found: Float[np.ndarray, "cell word"]) -> Float[np.ndarray, " cell"]:
    """Over the words for which something is asked; these are the same in every cell."""
    asked = np.isfinite(found).all(axis=0)
    return found[:, asked].mean(axis=1) if asked.any() else np.full(len(found), np.nan)


def _spearman(true: Float[np.ndarray, "*row item"], predicted: Float[np.ndarray, "cell *row item"]) -> np.ndarray:
    """Of every row, ``[cell *row]``: NaN where the truth is the same everywhere, 0 where only the prediction is."""
    if true.shape[-1] < 2:
        return np.full(predicted.shape[:-1], np.nan)
    of_true, of_predicted = (_standard_ranks(each) for each in (true, predicted))
    correlation = (of_true * of_predicted).sum(axis=-1)
    return np.where((of_true != 0).any(axis=-1), correlation, np.nan)


def _standard_ranks(values: Float[np.ndarray, "*row item"]) -> Float[np.ndarray, "*row item"]:
    """Ranks about their mean, of length 1; 0 where all are tied."""
    ranks = rankdata(values, axis=-1)
    away = ranks - ranks.mean(axis=-1, keepdims=True)
    length = np.linalg.norm(away, axis=-1, keepdims=True)
    return np.divide(away, length, out=np.zeros_like(away), where=length > 0)


def structural_summary(scores: pd.DataFrame) -> pd.DataFrame:
    """What Hewitt & Manning report of a corpus.

    Args:
        scores: As ``structural_scores`` returns them.

    Returns:
        One row per cell: ``cell``, and ``uuas``, ``root_accuracy``, ``distance_spearman``, ``depth_spearman`` as far
        as they were scored. NaN where no sentence asks for anything.
    """
    by_cell = scores.groupby("cell", sort=True)
    columns: dict[str, pd.Series] = {}
    if "right" in scores:
        n_edges = by_cell["n_edges"].sum()
        columns["uuas"] = by_cell["right"].sum() / n_edges.where(n_edges > 0)
    if "root" in scores:
        columns["root_accuracy"] = by_cell["root"].mean()
    of_length = scores[scores["n_words"].isin(LENGTHS)].groupby(["cell", "n_words"])
    for name in ("distance_spearman", "depth_spearman"):
        if name in scores:
            columns[name] = of_length[name].mean().groupby("cell").mean()
    return pd.DataFrame(columns, index=pd.Index(sorted(by_cell.groups), name="cell")).reset_index()
