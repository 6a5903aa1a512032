"""How does one model read whole corpora? Sentences by themselves, documents in windows; what is too long is named."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from interp.errors import InputError
from interp.interventions.intervention import looks_back_only
from interp.interventions.sweep import Progress
from interp.methods.relations.batch import Excluded
from interp.methods.relations.clusters import clusters_of
from interp.methods.relations.counts import RelationCounts, count
from interp.methods.relations.word_attention import with_offsets
from interp.tasks.corpus import Contents, Corpus
from interp.tasks.relations import Context, Direction
from interp.tasks.windows import Window, Windows


class Telling:
    """Adds up the progress of several corpora."""

    def __init__(self, progress: Progress | None, total: int):
        self._progress, self._total, self.before = progress, total, 0

    def __call__(self, done: int) -> None:
        """Tell that `done` words of the present corpus are read."""
        if self._progress is not None:
            self._progress(self.before + done, self._total)

    def end(self) -> None:
        """What is too long, or has nothing to score, was not counted."""
        if self._progress is not None:
            self._progress(self._total, self._total)


class RelationReader:
    """One model that reads corpora."""

    def __init__(self, model: Any, exclude: Sequence[Excluded], longest_window: int):
        self._model, self._exclude = model, exclude
        self._tokenizer = with_offsets(model, "attend")
        self.causal = looks_back_only(model)
        self.longest_window = min(model.cfg.n_ctx, longest_window)
        self.too_long: dict[str, int] = {}

    @property
    def special_tokens(self) -> str:
        """What stands around every text."""
        before, after = self._windows("sentence").around
        return " ".join(map(str, self._tokenizer.convert_ids_to_tokens([*before, *after])))

    def words(self, asked: Sequence[Direction], there: Contents) -> int:
        """How many words are read, for the progress."""
        return len({each.context for each in asked}) * sum(there.documents.values())

    def read(self, corpus: Corpus, asked: Sequence[Direction], tell: Callable[[int], None]) -> RelationCounts:
        """Count hits by cluster; ``too_long`` is then of this corpus."""
        self.too_long = {}
        shape = (self._model.cfg.n_layers, self._model.cfg.n_heads)
        counts = RelationCounts(asked, shape, clusters_of(corpus.contents.documents))
        done = 0
        for context in ("sentence", "document"):
            own = [each for each in asked if each.context == context]
            if own:
                before = done
                windows = self._cut(corpus, context)
                done += count(
                    self._model,
                    windows,
                    own,
                    causal=self.causal,
                    exclude=self._exclude,
                    into=counts,
                    progress=lambda n, before=before: tell(before + n),
                )
        if not counts.sums:
            raise InputError(
                "attend: no pair of the corpus can be scored; expected sentences that fit into the model's context of "
                f"{self._model.cfg.n_ctx} tokens with related words that it can look at, got "
                f"{len(self.too_long)} sentences that are too long and {counts.left_out.total()} pairs that cannot be "
                "scored; take another corpus, relation or model"
            )
        return counts

    def _windows(self, context: Context) -> Windows:
        n_ctx = self._model.cfg.n_ctx if context == "sentence" else self.longest_window
        return Windows(self._tokenizer, n_ctx, both_sides=not self.causal)

    def _cut(self, corpus: Corpus, context: Context) -> Iterator[Window]:
        cutter = self._windows(context)
        for document in corpus:
            yield from (cutter.sentences if context == "sentence" else cutter.documents)(document)
            self.too_long |= cutter.too_long
