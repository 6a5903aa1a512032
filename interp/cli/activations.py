"""``interp activations``: stores what a model holds at the words of a treebank or a task, and looks after the store."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli import completing
from interp.cli.answers import seconds_since
from interp.cli.exits import INTERRUPTED
from interp.cli.hints import after_collect, say_next
from interp.cli.options import (
    AddressOption,
    Context,
    DeviceOption,
    DtypeOption,
    ExecutorOption,
    GpusOption,
    JsonOption,
    ModelOption,
    NOption,
    Pooling,
    ProcessesOption,
    SeedOption,
    ThreadsOption,
    TreebankOption,
    UnequalOption,
)
from interp.cli.saying import say
from interp.cli.sources import Source, of_corpus, of_task, read_corpus, require_one, site_names, sites_of

if TYPE_CHECKING:
    import pandas as pd

    from interp.model.sites import Site
    from interp.runs.store import ActivationStore


def collect(
    site: Annotated[
        list[str],
        typer.Option(
            help="Sites, separated by commas: z, resid_post, ...",
            show_default=False,
            metavar="NAMES",
            autocompletion=completing.sites,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder for the store: new, empty, or one to go on with.", show_default=False, metavar="DIR"),
    ],
    data: TreebankOption = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="In place of --data, a task of `interp tasks`: the position that predicts.",
            metavar="NAME",
            autocompletion=completing.TASKS,
        ),
    ] = None,
    model: ModelOption = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(help="Layers, separated by commas.", show_default="all", metavar="NUMBERS"),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="What is noted of each word, separated by commas: upos, number, feats:Tense, ...",
            show_default="all that the treebank has, without feats:",
            metavar="NAMES",
        ),
    ] = None,
    pooling: Annotated[
        Pooling, typer.Option(help="Of a word's tokens, the first, the last, or their mean.", metavar="NAME")
    ] = "last",
    context: Annotated[
        Context | None,
        typer.Option(
            help="What is read at once: as much of a document as fits, or a sentence.",
            show_default="document",
            metavar="NAME",
        ),
    ] = None,
    window: Annotated[
        int, typer.Option(help="Most tokens of a document that are read at once.", min=2, metavar="N")
    ] = 512,
    n: NOption = None,
    unequal_lengths: UnequalOption = False,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = "float32",
    threads: ThreadsOption = 1,
    processes: ProcessesOption = 1,
    executor: ExecutorOption = None,
    address: AddressOption = None,
    gpus: GpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """What does the model hold at every word? Stored for probes; asked again after an interrupt, it goes on."""
    started = time.perf_counter()
    from interp.report.folder import FOLDER, absolute, check_place
    from interp.runs.collecting import require_usable

    folder = absolute(out, FOLDER)
    require_usable(folder)
    check_place(folder)
    of_tasks: dict[str, object] = {"--n": n, "--unequal-lengths": unequal_lengths or None}
    require_one(data, task, {"--data": of_tasks, "--task": {"--feature": feature, "--context": context}})
    from interp.cli.running import executor_of

    who = executor_of(executor=executor, processes=processes, address=address, gpus=gpus, device=device)
    names = site_names(site)
    corpus, features = read_corpus(data, feature)
    from interp.cli.loading import load_for_tasks

    loaded = load_for_tasks(model, device=device, dtype=dtype, threads=threads)
    sites = sites_of(names, layer, loaded.cfg.n_layers)
    if corpus is None:
        source = of_task(loaded, str(task), n=n, seed=seed, unequal_lengths=unequal_lengths)
    else:
        source = of_corpus(loaded, corpus, features, context or "document", window)
    store = _collected(loaded, source, sites, folder, pooling=pooling, executor=who)
    _show(store, source, started, as_json, out, model)


def verify(
    folder: Annotated[Path, typer.Argument(help="A store of activations.", metavar="DIR")], as_json: JsonOption = False
) -> None:
    """Is the store as it was written? Every byte is compared with its manifest."""
    started = time.perf_counter()
    from interp.runs.store import ActivationStore

    _show(ActivationStore.open(folder), None, started, as_json, folder, None)


def _collected(model: Any, source: Source, sites: "Sequence[Site]", folder: Path, **options: Any) -> "ActivationStore":
    """Collect, with a progress bar; an interrupt after the first shard says that it can go on."""
    from interp.cli.running import interrupted
    from interp.cli.terminal import progress_bar
    from interp.runs import collecting
    from interp.runs.store_manifest import PARTIAL

    with progress_bar("words") as progress:
        try:
            store = collecting.collect(
                model,
                source,
                sites,
                folder,
                data_hash=source.data_hash,
                progress=lambda done: progress(done, source.total),
                **options,
            )
        except KeyboardInterrupt as interrupt:
            begun, none = (folder / PARTIAL).exists(), "interrupted: no shard was complete, and nothing is kept"
            say(interrupted(folder) if begun else none, err=True)
            raise typer.Exit(INTERRUPTED) from interrupt
        progress(store.rows, store.rows)
    return store


def _show(
    store: "ActivationStore", source: Source | None, started: float, as_json: bool, given: Path, model: str | None
) -> None:
    from interp.cli.terminal import print_json
    from interp.tasks.features import NUMERIC

    request = store.manifest.request
    result: dict[str, Any] = {
        "folder": str(store.folder),
        "rows": store.rows,
        "sites": [each.hook_name for each in store.sites],
        "features": [name.removesuffix(":carrier") for name in store.index.columns if name.endswith(":carrier")],
        "pooling": request.pooling,
        "dtype": request.dtype,
        "shards": len(store.manifest.shards),
        "bytes": sum(path.stat().st_size for path in store.folder.iterdir()),
        "model_hash": request.model_hash,
        "data_hash": request.data_hash,
        **({} if source is None else {"left_out": source.left_out}),
        "seconds": seconds_since(started),
    }
    if as_json:
        print_json(result)
        return
    for name, value in result.items():
        if value is not None:
            shown = ", ".join(f"{key}: {each}" for key, each in value.items()) if isinstance(value, dict) else value
            say(f"{name}: {', '.join(shown) if isinstance(shown, list) else shown}")
    told = [name for name in result["features"] if name not in NUMERIC and _classes(store.index[name]) > 1]
    say_next(after_collect(str(given), told, model))


def _classes(labels: "pd.Series") -> int:
    """How many classes have two words or more, so that a probe can be fitted and judged on each."""
    return int((labels.value_counts() > 1).sum())
