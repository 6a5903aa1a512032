"""``interp probe``: can a feature be read out of what heads write, or of the stream, beyond its controls?"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from interp.cli import completing
from interp.cli.hints import after_probe, say_next
from interp.cli.options import (
    Context,
    CorrectionOption,
    DeviceOption,
    DtypeOption,
    FreshOption,
    HeadOption,
    JsonOption,
    ModelOption,
    OutOption,
    Pooling,
    RunsOption,
    SeedOption,
    ThreadsOption,
    TreebankOption,
    UnequalOption,
    one_head,
    share,
)
from interp.errors import InputError

if TYPE_CHECKING:
    from interp.runs.store import ActivationStore
    from interp.tasks.corpus import Corpus

Kind = Literal["logistic", "ridge", "lda", "mlp"]
At = Literal["query", "related"]
_FEATURES = "upos, deprel, distance, entity, number, gender, antecedent, feats:NAME or sense:LEMMA"


def probe(
    feature: Annotated[
        str,
        typer.Option(
            help=f"What is to be read: of a treebank {_FEATURES}; of a task what its examples have, such as number.",
            show_default=False,
            metavar="NAME",
        ),
    ],
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
    site: Annotated[
        str,
        typer.Option(
            help="Where it is read: z, q, k, v or result of every head; resid_pre, resid_mid, resid_post, attn_out, "
            "mlp_out or mlp_post of every layer; embed.",
            metavar="NAME",
            autocompletion=completing.site,
        ),
    ] = "z",
    model: ModelOption = None,
    layer: Annotated[
        list[int] | None,
        typer.Option(help="A layer, from 0; repeat it for several.", min=0, show_default="all", metavar="N"),
    ] = None,
    head: HeadOption = None,
    kind: Annotated[
        Kind,
        typer.Option(
            help="Of probe: logistic, ridge, lda or mlp. A feature that is a number takes ridge.", metavar="NAME"
        ),
    ] = "logistic",
    at: Annotated[
        At | None,
        typer.Option(
            help="Of a task: query, the position that predicts the answer, or related, the related word.",
            show_default="query",
            metavar="NAME",
        ),
    ] = None,
    context: Annotated[
        Context | None,
        typer.Option(
            help="Of a treebank: what is read at once, as much of a document as fits, or a sentence.",
            show_default="document",
            metavar="NAME",
        ),
    ] = None,
    pooling: Annotated[
        Pooling | None,
        typer.Option(
            help="Of a word's tokens the first, the last, or their mean.", show_default="last", metavar="NAME"
        ),
    ] = None,
    min_examples: Annotated[
        int, typer.Option(help="Classes with fewer examples are left out.", min=1, metavar="N")
    ] = 1,
    n: Annotated[
        int | None,
        typer.Option(
            help="Units of a task to draw, or words of --data or --store.",
            show_default="the task's own; all words",
            min=1,
            metavar="N",
        ),
    ] = None,
    unequal_lengths: UnequalOption = False,
    cv: Annotated[int, typer.Option(help="Folds of documents (or templates), and of lemmas.", min=2, metavar="N")] = 5,
    description_lengths: Annotated[
        bool, typer.Option(help="Measure these, too, which takes about half of the time.")
    ] = True,
    min_effect: Annotated[
        float,
        typer.Option(
            help="Smallest excess over the toughest control that counts: a share of the words, or of a number's "
            "variance.",
            callback=share,
            metavar="X",
        ),
    ] = 0.1,
    alpha: Annotated[float, typer.Option(help="Error rate of the verdicts.", callback=share, metavar="X")] = 0.05,
    correction: CorrectionOption = "max-T",
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 1,
    runs: RunsOption = None,
    fresh: FreshOption = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """What can be read out of every head, or layer? Probes for a feature, held against their controls.

    Words come from exactly one of --task, --data and --store.
    """
    started = time.perf_counter()
    source = _source(task=task, data=data, store=store)
    _require_own(
        source, {"--at": at, "--context": context, "--pooling": pooling, "--unequal-lengths": unequal_lengths or None}
    )
    options: dict[str, Any] = {
        "site": site,
        **_where(layer, head),
        "kind": kind,
        "min_examples": min_examples,
        "cv": cv,
    }
    options |= {"at": at or "query", "context": context or "document", "pooling": pooling or "last"}
    options |= {"min_effect": min_effect, "alpha": alpha, "correction": correction, "seed": seed}
    options |= {"description_lengths": description_lengths}
    from interp.cli.terminal import progress_bar, warnings_as_lines
    from interp.report.folder import check_output

    if out is not None:
        check_output(out)
    from interp.cli.running import run_of

    run = run_of(runs, fresh)
    given: Any = _opened(data, store, feature)
    from interp.cli import probes
    from interp.cli.loading import can_be_asked, load_for_tasks, predicts
    from interp.methods.probes import probe as probing
    from interp.tasks.catalogue import load_task

    loaded = load_for_tasks(model, device=device, dtype=dtype, threads=threads)
    if task is not None:
        drawn: Any = {"n": n, "seed": seed, "unequal_lengths": unequal_lengths}
        given = load_task(task, **drawn, tokenizer=loaded.tokenizer, n_ctx=loaded.cfg.n_ctx)
    else:
        options["n"] = n
    with warnings_as_lines(), progress_bar("probe") as progress:
        result = probing.probe(loaded, given, feature, **options, progress=progress, run=run)
    result = probes.with_source(result, data=data, store=store)
    folder = None if out is None else probes.save(result, out)
    (probes.print_json_object if as_json else probes.print_text)(result, folder, started)
    if not as_json:
        relations = bool(data) and bool(given.contents.relations)
        able = can_be_asked(loaded) if task is None else predicts(loaded)
        say_next(after_probe(feature, model, task=task, data=data, relations=relations, able=able))


def _source(**given: Any) -> str:
    """Which one of the options that name words is given."""
    named = [f"--{name}" for name, value in given.items() if value]
    if len(named) != 1:
        raise InputError(f"expected one of --task, --data and --store, got {' and '.join(named) or 'none'}")
    return named[0]


def _require_own(source: str, given: dict[str, Any]) -> None:
    """Refuse an option that says nothing of this source."""
    own = {"--at": ["--task"], "--context": ["--data"], "--pooling": ["--task", "--data"]}
    own |= {"--unequal-lengths": ["--task"]}
    for name, value in given.items():
        if value is not None and source not in own[name]:
            raise InputError(f"{name}: expected it with {' or '.join(own[name])}, got {source}; leave it out")


def _where(layer: list[int] | None, head: str | None) -> dict[str, Any]:
    """Which cells are meant, as ``probing.probe`` takes them."""
    return {"layers": layer or None} if head is None else {"heads": [one_head(head, layer)]}


def _opened(data: list[str] | None, store: Path | None, feature: str) -> "Corpus | ActivationStore | None":
    """The treebank or the store, before a model is loaded; None of a task."""
    if data:
        from interp.cli.treebanks import with_feature

        return with_feature(data, feature)
    if store is not None:
        from interp.runs.store import ActivationStore

        return ActivationStore.open(store)
    return None
