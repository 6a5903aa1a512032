"""How is a whole corpus counted? Group by group, here or by others, each kept as it comes, and added in order."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interp.errors import InputError
from interp.interventions.asked import model_asked
from interp.methods.relations.batch import Excluded
from interp.methods.relations.clusters import clusters_of
from interp.methods.relations.counts import Counted, RelationCounts
from interp.methods.relations.reader import GROUPS, WORDS_AT_ONCE, RelationReader, groups_of
from interp.runs.answers import once
from interp.runs.executors import HERE
from interp.runs.names import FRAME
from interp.runs.parts import stream_parts
from interp.runs.run import Run
from interp.runs.run_folder import Finished, RunFolder
from interp.tasks.corpus import Contents, Corpus
from interp.tasks.relations import Direction


class Counting:
    """What is asked of corpora, and how they are read."""

    def __init__(
        self,
        model: Any,
        own: Mapping[str, Any],
        directions: Sequence[Direction],
        exclude: Sequence[Excluded],
        longest_window: int,
        run: Run | None,
    ):
        """Read with `model`.

        Args:
            model: Follows TransformerLens' protocol, with a fast tokenizer.
            own: Its provenance.
            directions: What is scored.
            exclude: What no choice is made among.
            longest_window: Most tokens of a document that are read at once.
            run: Who reads, and where the sums are kept.

        Raises:
            InputError: The model has no tokenizer.
            TaskError: It gives no offsets.
        """
        self._model, self._own, self._directions, self._exclude, self._run = model, own, directions, exclude, run
        self.reader = RelationReader(model, directions, exclude, longest_window)

    def words(self, there: Contents) -> int:
        """How many words are read, for the progress."""
        return len({each.context for each in self._directions}) * sum(there.documents.values())

    def of(self, corpus: Corpus, tell: Callable[[int], None]) -> RelationCounts:
        """Count hits by cluster.

        Args:
            corpus: Read as it streams by.
            tell: Called with the number of words that are read.

        Raises:
            InputError: Nothing could be scored, or the attention is no number.
        """
        there = corpus.contents
        clusters = clusters_of(there.documents)

        def count(folder: RunFolder | None) -> Finished:
            counted = self._counted(corpus, clusters, folder, tell)
            return Finished({FRAME: counted.frame()}, counted.facts())

        found = once(self._run, lambda: self._asked(there), self._own, count)
        counted = Counted.of(found.tables[FRAME], found.facts)
        if not counted.sums:
            raise InputError(
                "attend: no pair of the corpus can be scored; expected sentences that fit into the model's context of "
                f"{self._model.cfg.n_ctx} tokens with related words that it can look at, got "
                f"{len(counted.too_long)} sentences that are too long and {counted.left_out.total()} pairs that cannot "
                "be scored; take another corpus, relation or model"
            )
        shape = (self._model.cfg.n_layers, self._model.cfg.n_heads)
        return RelationCounts(self._directions, shape, clusters, counted)

    def _asked(self, there: Contents) -> dict[str, Any]:
        return {
            "kind": "attention to related words",
            **model_asked(self._model, self._own),
            "data_hash": there.hash,
            "relations": named(self._directions),
            "excluded": sorted(self._exclude),
            "longest_window": self.reader.longest_window,
            "words_at_once": WORDS_AT_ONCE,
        }

    def _counted(
        self, corpus: Corpus, clusters: Mapping[str, str], folder: RunFolder | None, tell: Callable[[int], None]
    ) -> Counted:
        """Add the groups' sums in the corpus' order: those that come before their turn wait."""
        executor = HERE if self._run is None else self._run.executor
        total, early, turn, n_words = Counted(), dict[int, Counted](), 0, 0
        for name, found in stream_parts(folder, executor, self.reader, groups_of(corpus, clusters), GROUPS):
            early[int(name)] = found
            n_words += found.n_words
            tell(n_words)
            while turn in early:
                total.add(early.pop(turn))
                turn += 1
        return total


def named(directions: Sequence[Direction]) -> list[list[str]]:
    """Directions as JSON has them."""
    return [[each.relation, each.looks, each.context] for each in directions]
