"""Which heads look from a word to the word that it is related to, on real text, more than position explains?

1. **Accuracy**: how often the other word that a head attends to most is a related one (``relations/words.py``).
2. **Baseline**: the rule without attention that is right most often, chosen on other documents than it is held against:
   those of `choose_on`, or the other half of the corpus. **Excess** is accuracy less the baseline's, pair by pair.
   Documents are the clusters of its interval and test; of more than 1,000, neighbours together.
3. **Correction**: every head is tested, and one family-wise correction covers heads x relations; with `choose_on`, only
   the most accurate head of each relation there is tested and corrected for.
4. **Verdict**: ``attends`` where an excess of no more than ``min_effect`` is rejected, ``none`` where one of at least
   ``min_effect`` is. All else is ``undecided``, and so is what has too few documents, or a baseline that leaves less
   than ``min_effect`` of room for improvement.

The halves choose for each other, so a head that does what one of several equally good rules does can gain a little by
their luck; with `choose_on` none can. A causal model only looks back: pairs whose related word comes later are counted,
not scored.

Clark et al. (2019), "What does BERT look at?", section 4.2; Voita et al. (2019), "Analyzing multi-head self-attention".
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from interp.arguments import as_names
from interp.errors import InputError
from interp.interventions.provenance import model_asked
from interp.interventions.sweep import Progress
from interp.methods.relations.counts import RelationReader, counts_of, named
from interp.methods.relations.relation_scores import RelationResult, tabulate
from interp.model.devices import documented
from interp.model.provenance import model_provenance
from interp.options import AttendOptions
from interp.runs.run import Run, answered, as_run
from interp.tasks.corpus import Contents, Corpus, Documents
from interp.tasks.relations import Direction, directions


@documented
def attend(
    model: Any,
    corpus: Documents | Corpus,
    relations: Sequence[str] | str | None = None,
    options: AttendOptions | None = None,
    *,
    choose_on: Documents | Corpus | None = None,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> RelationResult:
    """Score every head on every relation, in both directions.

    A head's accuracy is the share of the pairs in which the word that it attends to most is the related one.

    Source: Clark et al. (2019), "What does BERT look at?", section 4.2.

    Args:
        model: Follows TransformerLens' protocol, with a fast tokenizer.
        corpus: Files in CoNLL-U, or documents (``interp/tasks/treebank.py``).
        relations: Names, or one, as in ``interp/tasks/relations.py``; None for every dependency label without its
            subtypes, and ``coref`` where the corpus has it.
        options: What is asked; or its fields by name: see ``AttendOptions``.
        choose_on: Another corpus, on which baselines and one head for each relation and direction are chosen; documents
            that are scored, too, choose nothing, with a warning. None: all heads are tested, and the two halves of the
            corpus choose each other's baselines.
        progress: Called with (words read, words to read).
        run: Where what is counted is kept, group by group of documents, and found again: a folder of runs; or an
            ``interp.Run``, whose executor reads several groups at the same time. None to keep nothing.
        **fields: Fields of ``AttendOptions``, such as ``min_effect=0.2``.

    Returns:
        One row a head and direction in ``summary()``; what was counted of each document in ``examples``.

    Raises:
        InputError: The model has no tokenizer, its attention is not a number, nothing could be read, `choose_on` holds
            nothing but what is scored, or an option is unknown.
        TaskError: The corpus cannot be read, a relation does not occur in it, or the tokenizer gives no offsets.

    Examples:
        >>> import interp
        >>> from interp.tasks import agreement
        >>> from interp.tasks.generated_corpus import linked_documents
        >>> corpus = list(linked_documents(agreement.pairs(40, seed=0)))
        >>> interp.attend(interp.load_model(), corpus, ["subject"]).best()["verdict"].tolist()
        ['attends']
    """
    asked = AttendOptions.of(options, fields)
    kept, own = as_run(run), model_provenance(model)
    scored = Corpus.of(corpus)
    there = scored.contents
    choosing, not_chosen_on = (None, []) if choose_on is None else _apart(Corpus.of(choose_on), there)
    chosen_there = None if choosing is None else choosing.contents
    wanted = _directions(relations, there, chosen_there)
    reader = RelationReader(model, wanted, asked)
    how = {
        "attention_dir": "causal" if reader.causal else "bidirectional",
        "data_hash": there.hash,
        "n_documents": len(there.documents),
        "n_sentences": there.n_sentences,
        "n_words": sum(there.documents.values()),
        "chosen_on": "the other half of the corpus" if chosen_there is None else chosen_there.hash,
        "not_chosen_on": not_chosen_on,
        **asked.asked(),
        "max_window": reader.max_window,
    }

    def scoring() -> RelationResult:
        first = reader.words(there)
        total = first + (0 if chosen_there is None else reader.words(chosen_there))

        def tell(done: int) -> None:
            if progress is not None:
                progress(done, total)

        counts = counts_of(scored, reader, own, kept, tell)
        chosen = None if choosing is None else counts_of(choosing, reader, own, kept, lambda n: tell(first + n))
        tell(total)  # what is too long, or has nothing to score, was not counted
        return tabulate(counts, chosen, there.documents, asked, {**own, **how, "too_long": counts.counted.too_long})

    def request() -> dict[str, Any]:
        return {"kind": "attend", **model_asked(model, own), "relations": named(wanted), **how}

    return answered(kept, request, own, RelationResult, scoring)


def _apart(choosing: Corpus, there: Contents) -> tuple[Corpus, list[str]]:
    """The corpus that chooses without what is scored, and the names of what was passed over."""
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
    return replace(choosing, without=choosing.without | frozenset(both)), names


def _directions(
    relations: Sequence[str] | str | None, there: Contents, chosen_there: Contents | None
) -> list[Direction]:
    """The directions that are scored, which occur in both corpora."""
    names = default_relations(there) if relations is None else as_names("relations", relations)
    if chosen_there is None:
        return directions(names, there.relations)
    if relations is None:
        known = {each.relation for each in chosen_there.relations}
        names = [name for name in names if name in known]
    else:
        directions(names, chosen_there.relations, "the corpus that chooses")
    return directions(names, there.relations)


def default_relations(there: Contents) -> list[str]:
    """Every dependency label without its subtypes and every link, by frequency, and ``coref``."""
    wanted = [
        each
        for each, _ in there.relations.most_common()
        if ":" not in each.relation and each.looks in ("dependent to head", "query to related", "anaphor to antecedent")
    ]
    return list(dict.fromkeys(each.relation for each in wanted))
