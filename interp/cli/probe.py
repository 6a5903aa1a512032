"""``interp probe``: can a feature be read out of what heads write, or of the stream, beyond its controls?"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from interp.cli.dataclass_options import Fields
from interp.cli.hints import Next, after_probe
from interp.cli.options import Unequal, require_no_layers
from interp.cli.running import Work, measuring
from interp.errors import InputError
from interp.options import ProbeOptions

if TYPE_CHECKING:
    from interp.methods.probes.verdicts import ProbeResult

_SHOWN = 12
_ASKED = ("feature", "site", "kind", "measure", "task", "data", "store", "held_out", "n_probes", "fitted_on")
_OF_SOURCES = {
    "at": ("--task",),
    "context": ("--data",),
    "pooling": ("--task", "--data"),
    "unequal_lengths": ("--task",),
    "chat": ("--task",),
}
"""Options that say nothing of other sources."""


@dataclass(frozen=True, kw_only=True)
class Words(Unequal):
    """What is read of which words.

    Attributes:
        feature: The feature to read: in a treebank upos, deprel, distance, entity, number, gender, antecedent,
            feats:NAME or sense:LEMMA; in a task one that its examples have, such as number.
        task: A task of `interp tasks`; or give --data or --store.
        data: A treebank in CoNLL-U, hub:NAME:CONFIG:SPLIT, or senses:bank, senses:run; repeat it for several.
        store: Activations of this model that `interp activations collect` stored.
    """

    feature: str
    task: str | None = None
    data: list[str] | None = None
    store: Path | None = None


def probe(
    of: Words, asked: ProbeOptions, work: Annotated[Work, Fields(without=("processes", "executor", "address", "gpus"))]
) -> None:
    """What can be read out of every head, or layer? Probes for a feature are compared with their controls.

    Words come from exactly one of --task, --data and --store.
    """
    named = [f"--{name}" for name in ("task", "data", "store") if getattr(of, name)]
    if len(named) != 1:
        raise InputError(f"expected one of --task, --data and --store, got {' and '.join(named) or 'none'}")
    for name, sources in _OF_SOURCES.items():
        given = of.how[name] if name in of.how else getattr(asked, name) != getattr(ProbeOptions, name)
        if given and named[0] not in sources:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option}: expected it with {' or '.join(sources)}, got {named[0]}; leave it out")
    require_no_layers(asked.heads, asked.layers)
    run = work.run()
    words: Any = None
    from interp.cli.loading import can_be_asked, corpus_with, predicts

    if of.data:
        words = corpus_with(of.data, of.feature)
    elif of.store is not None:
        from interp.runs.store import ActivationStore

        words = ActivationStore.open(of.store)
    from interp.methods.probes.probe import probe as measure
    from interp.tasks.catalogue import load_task

    loaded = work.load()
    if of.task is not None:
        drawn: Any = {"n": asked.n, "seed": asked.seed, **of.how}
        words = load_task(of.task, **drawn, tokenizer=loaded.tokenizer, n_ctx=loaded.cfg.n_ctx)
    options = asked if of.task is None else replace(asked, n=None)
    with measuring("probe") as progress:
        result = measure(loaded, words, of.feature, options, progress=progress, run=run)
    source: dict[str, Any] = {"data": of.data} if of.data else {} if of.store is None else {"store": str(of.store)}
    result = replace(result, provenance={**result.provenance, **source})

    def hint() -> Next:
        relations = bool(of.data) and bool(words.contents.relations)
        able = can_be_asked(loaded) if of.task is None else predicts(loaded)
        read: Any = {"task": of.task, "data": of.data, "relations": relations, "typed": of.typed}
        return after_probe(of.feature, work.model, **read, able=able)

    work.answer(result, lambda: _numbers(result), hint)


def _numbers(result: "ProbeResult") -> dict[str, Any]:
    from interp.cli.terminal import records
    from interp.report.folder import plain
    from interp.report.probes_sentences import cautions, ranked, summarise

    summary, cells = summarise(result), result.cells
    return {
        **{name: plain(result.provenance.get(name)) for name in _ASKED},
        "n": int(cells["n"].max()),
        "n_documents": int(cells["n_documents"].max()),
        "verdict": summary.verdict,
        "headline": summary.headline,
        "cautions": cautions(result),
        "verdicts": {str(name): int(n) for name, n in cells["verdict"].value_counts().items()},
        "best": records(ranked(cells).head(_SHOWN)),
    }
