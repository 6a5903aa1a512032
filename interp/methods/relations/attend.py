"""Does a head look from a word to the word that it is related to, on real text, more than position explains?

1. **Accuracy**: how often the other word that a head attends to most, from the word that looks, is a related one; and
   the mean attention on the related words (``relations/word_attention.py``, ``relations/items.py``).
2. **Baseline**: of the rules that need no attention (``relations/rules.py``) the one that is right most often, chosen
   on other documents than it is held against: those of `choose_on`, or the other half of the corpus.
3. **Excess**: accuracy less the baseline's, pair by pair. Documents are the clusters of its interval and of its
   test; of more than 1,000, neighbours together (``relations/clusters.py``).
4. **Correction**: without `choose_on` every head is tested, and one family-wise correction covers heads x relations.
   With it, the most accurate head of each relation there is chosen, and only the chosen ones are tested and corrected.
5. **Verdict**: ``attends`` where an excess of no more than the minimum is rejected, ``none`` where one of the minimum
   at least is, both over all heads and relations (``claims/claim.py``); what is neither is ``undecided``, and so is
   what has too few documents, or a baseline that leaves less than the minimum to be better by.

The halves choose for each other, so a head that does what one of several equally good rules does can gain a little by
their luck; with `choose_on` none can. A causal model only looks back: pairs whose related word comes later are counted,
not scored, and its numbers are no measure of a model that looks both ways.

Clark et al. (2019), "What does BERT look at?", section 4.2; Voita et al. (2019), "Analyzing multi-head self-attention".
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, cast, get_args

from interp.arguments import as_names
from interp.claims.corrections import Correction
from interp.errors import InputError, shown
from interp.interventions.provenance import model_asked, model_provenance
from interp.interventions.sweep import Progress
from interp.methods.relations.counting import Counting, named
from interp.methods.relations.counts import Excluded, RelationCounts
from interp.methods.relations.scores import RelationResult, tabulate
from interp.model.devices import documented
from interp.runs.caching import answered
from interp.runs.run import Run, as_run
from interp.tasks.corpus import Contents, Corpus, Documents
from interp.tasks.relations import Direction, directions

MINIMUM = 0.1
"""Smallest excess that counts: a tenth of the pairs."""
LONGEST_WINDOW = 512
"""Tokens that are read at once of a document, if the model's context is longer."""

_CORRECTIONS = get_args(Correction)


@documented
def attend(
    model: Any,
    corpus: Documents | Corpus,
    relations: Sequence[str] | str | None = None,
    *,
    choose_on: Documents | Corpus | None = None,
    exclude: Sequence[Excluded] | Excluded = ("special", "self"),
    longest_window: int = LONGEST_WINDOW,
    minimum: float = MINIMUM,
    alpha: float = 0.05,
    correction: Correction = "max-T",
    seed: int = 0,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> RelationResult:
    """Score every head on every relation, in both directions.

    Args:
        model: Follows TransformerLens' protocol, with a fast tokenizer.
        corpus: Files in CoNLL-U, or documents (``interp/tasks/treebank.py``).
        relations: Names, or one, as in ``interp/tasks/relations.py``; None for every dependency label without its
            subtypes, and ``coref`` where the corpus has it.
        choose_on: Another corpus, on which baselines and one head for each relation and direction are chosen; documents
            that are scored, too, choose nothing, with a warning. None: all heads are tested, and the two halves of the
            corpus choose each other's baselines.
        exclude: What a head's most attended word is not chosen among: ``special`` tokens, the word ``self``.
        longest_window: Most tokens of a document that are read at once; a shorter context goes before it.
        minimum: Smallest excess that counts, as a share of the pairs.
        alpha: Error rate of the verdicts.
        correction: ``max-T`` bounds the chance of any false claim; ``fdr`` (Benjamini & Hochberg) is exploratory.
        seed: Of the resampling.
        progress: Called with (words read, words to read).
        run: Where what is counted is kept, group by group of documents, and found again: a folder of runs; or an
            ``interp.Run``, whose executor reads several groups at the same time. None to keep nothing.

    Raises:
        InputError: The model has no tokenizer, its attention is no number, nothing could be read, `choose_on` holds
            nothing but what is scored, or an option is unknown.
        TaskError: The corpus cannot be read, a relation does not occur in it, or the tokenizer gives no offsets.
    """
    exclude = cast("list[Excluded]", as_names("exclude", exclude))
    _check(exclude, correction, minimum=minimum, alpha=alpha, longest_window=longest_window)
    kept, own = as_run(run), model_provenance(model)
    scored = Corpus.of(corpus)
    there = scored.contents
    choosing, not_chosen_on = (None, []) if choose_on is None else _apart(Corpus.of(choose_on), there)
    chosen_there = None if choosing is None else choosing.contents
    asked = _asked(relations, there, chosen_there)
    counting = Counting(model, own, asked, exclude, longest_window, kept)
    options = {
        "attention_dir": "causal" if counting.reader.causal else "bidirectional",
        "data_hash": there.hash,
        "n_documents": len(there.documents),
        "n_sentences": there.n_sentences,
        "n_words": sum(there.documents.values()),
        "chosen_on": "the other half of the corpus" if chosen_there is None else chosen_there.hash,
        "not_chosen_on": not_chosen_on,
        "excluded": list(exclude),
        "longest_window": counting.reader.longest_window,
        "minimum": minimum,
        "alpha": alpha,
        "correction": correction,
        "seed": seed,
    }

    def scoring() -> RelationResult:
        counts, chosen = _counted(counting, scored, choosing, progress)
        return tabulate(counts, chosen, there.documents, {**own, **options, "too_long": counts.counted.too_long})

    def request() -> dict[str, Any]:
        return {"kind": "attend", **model_asked(model, own), "relations": named(asked), **options}

    return answered(kept, request, own, RelationResult, scoring)


def _counted(
    counting: Counting, scored: Corpus, choosing: Corpus | None, progress: Progress | None
) -> tuple[RelationCounts, RelationCounts | None]:
    """What is in both corpora; words are told as they are read."""
    first = counting.words(scored.contents)
    total = first + (0 if choosing is None else counting.words(choosing.contents))
    tell = progress or _nobody
    counts = counting.of(scored, lambda done: tell(done, total))
    chosen = None if choosing is None else counting.of(choosing, lambda done: tell(first + done, total))
    tell(total, total)  # what is too long, or has nothing to score, was not counted
    return counts, chosen


def _nobody(_done: int, _total: int) -> None:
    """Who does not want to know."""


def _apart(choosing: Corpus, there: Contents) -> tuple[Corpus, list[str]]:
    """The corpus that chooses without what is scored, and the names of what was passed over.

    Raises:
        InputError: Nothing is left.
    """
    found = choosing.contents
    both = {each: name for each, name in found.hashes.items() if each in there.hashes}
    if found.hash == there.hash or len(both) == len(found.documents):
        raise InputError(
            "attend: choose_on holds nothing but what is scored, so that what is chosen would flatter itself; expected "
            "other documents, or None: the halves of the corpus then choose for each other"
        )
    if not both:
        return choosing, []
    names = sorted(both.values())
    warnings.warn(
        f"{len(names)} documents of choose_on are scored, and choose nothing: {', '.join(names[:4])}"
        f"{', ...' if len(names) > 4 else ''}",
        RuntimeWarning,
        stacklevel=3,
    )
    apart = replace(choosing, without=choosing.without | frozenset(both))
    return apart, names


def _asked(relations: Sequence[str] | str | None, there: Contents, chosen_there: Contents | None) -> list[Direction]:
    """The directions that are scored.

    Raises:
        TaskError: A relation does not occur in one of the corpora.
    """
    names = default_relations(there) if relations is None else as_names("relations", relations)
    if chosen_there is None:
        return directions(names, there.relations)
    if relations is None:
        known = {each.relation for each in chosen_there.relations}
        names = [name for name in names if name in known]
    else:
        directions(names, chosen_there.relations, "the corpus that chooses")
    return directions(names, there.relations)


def _check(exclude: Sequence[str], correction: str, *, minimum: float, alpha: float, longest_window: int) -> None:
    for what, given, known in (("exclude", exclude, get_args(Excluded)), ("correction", [correction], _CORRECTIONS)):
        unknown = [each for each in given if each not in known]
        if unknown:
            raise InputError(f"attend: expected {what} of {', '.join(known)}, got {shown(unknown)}")
    for what, share in (("minimum", minimum), ("alpha", alpha)):
        if not 0 < share < 1:
            raise InputError(f"attend: expected {what} between 0 and 1, got {share}")
    if longest_window < 2:
        raise InputError(f"attend: expected longest_window of 2 tokens at least, got {longest_window}")


def default_relations(there: Contents) -> list[str]:
    """Every dependency label without its subtypes and every link, by frequency, and ``coref``."""
    wanted = [
        each
        for each, _ in there.relations.most_common()
        if ":" not in each.relation and each.looks in ("dependent to head", "query to related", "anaphor to antecedent")
    ]
    return list(dict.fromkeys(each.relation for each in wanted))
