"""``interp probe``: can a feature be read out of what heads write, or of the stream, beyond its controls?"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli import completing
from interp.cli.generated import Fields
from interp.cli.hints import after_probe, say_next
from interp.cli.options import TreebankOption, UnequalOption, require_no_layers
from interp.cli.running import Work, measuring
from interp.errors import InputError
from interp.options import ProbeOptions

if TYPE_CHECKING:
    from interp.methods.probes.judging import ProbeResult

_SHOWN = 12
_ASKED = ("feature", "site", "kind", "measure", "task", "data", "store", "held_out", "n_probes")
_FEATURES = "upos, deprel, distance, entity, number, gender, antecedent, feats:NAME or sense:LEMMA"
_OF_SOURCES = {
    "at": ("--task",),
    "context": ("--data",),
    "pooling": ("--task", "--data"),
    "unequal_lengths": ("--task",),
}
"""Options that say nothing of other sources."""


def probe(
    feature: Annotated[
        str,
        typer.Option(
            help=f"What is to be read: of a treebank {_FEATURES}; of a task what its examples have, such as number.",
            show_default=False,
            metavar="NAME",
        ),
    ],
    asked: ProbeOptions,
    work: Annotated[Work, Fields(without=("processes", "executor", "address", "gpus"))],
    task: Annotated[
        str | None,
        typer.Option(
            help="A task of `interp tasks`; or one of --data, --store.",
            show_default=False,
            metavar="NAME",
            autocompletion=completing.TASKS,
        ),
    ] = None,
    data: TreebankOption = None,
    store: Annotated[
        Path | None,
        typer.Option(
            help="Activations of this model that `interp activations collect` stored.",
            show_default=False,
            metavar="DIR",
        ),
    ] = None,
    unequal_lengths: UnequalOption = False,
) -> None:
    """What can be read out of every head, or layer? Probes for a feature, held against their controls.

    Words come from exactly one of --task, --data and --store.
    """
    named = [f"--{name}" for name, value in (("task", task), ("data", data), ("store", store)) if value]
    if len(named) != 1:
        raise InputError(f"expected one of --task, --data and --store, got {' and '.join(named) or 'none'}")
    for name, sources in _OF_SOURCES.items():
        given = unequal_lengths if name == "unequal_lengths" else getattr(asked, name) != getattr(ProbeOptions, name)
        if given and named[0] not in sources:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option}: expected it with {' or '.join(sources)}, got {named[0]}; leave it out")
    require_no_layers(asked.heads, asked.layers)
    run = work.run()
    words: Any = None
    from interp.cli.loading import can_be_asked, corpus_with, predicts

    if data:
        words = corpus_with(data, feature)
    elif store is not None:
        from interp.runs.store import ActivationStore

        words = ActivationStore.open(store)
    from interp.cli.terminal import print_json
    from interp.methods.probes.probe import probe as measure
    from interp.report.sections import page_of
    from interp.tasks.catalogue import load_task

    loaded = work.load()
    if task is not None:
        drawn: Any = {"n": asked.n, "seed": asked.seed, "unequal_lengths": unequal_lengths}
        words = load_task(task, **drawn, tokenizer=loaded.tokenizer, n_ctx=loaded.cfg.n_ctx)
    options = asked if task is None else replace(asked, n=None)
    with measuring("probe") as progress:
        result = measure(loaded, words, feature, options, progress=progress, run=run)
    source: dict[str, Any] = {"data": data} if data else {} if store is None else {"store": str(store)}
    result = replace(result, provenance={**result.provenance, **source})
    folder = work.save(result)
    if work.as_json:
        print_json({**_numbers(result), **work.left(folder)})
        return
    work.tell(page_of(result), folder)
    relations = bool(data) and bool(words.contents.relations)
    able = can_be_asked(loaded) if task is None else predicts(loaded)
    say_next(after_probe(feature, work.model, task=task, data=data, relations=relations, able=able))


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
