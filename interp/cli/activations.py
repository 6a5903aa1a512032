"""``interp activations``: stores what a model holds at the words of a treebank or a task, and looks after the store."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.arguments import numbers_below
from interp.cli.dataclass_options import Fields
from interp.cli.exits import INTERRUPTED
from interp.cli.hints import after_collect, say_next
from interp.cli.messages import say
from interp.cli.options import Drawn, names_in
from interp.cli.running import Work, interrupted, seconds_since
from interp.errors import InputError, suggest
from interp.options import Context, Pooling

if TYPE_CHECKING:
    import pandas as pd

    from interp.model.sites import Site
    from interp.runs.store import ActivationStore
    from interp.tasks.corpus import Corpus
    from interp.tasks.passages import CorpusPassages, Passage


@dataclass(frozen=True, kw_only=True)
class Collected(Drawn):
    """What is stored of which words.

    Attributes:
        site: Sites, separated by commas: z, resid_post, ...
        out: Folder for the store: new, empty, or one to go on with.
        data: A treebank in CoNLL-U, hub:NAME:CONFIG:SPLIT, or senses:bank, senses:run; repeat it for several.
        task: In place of --data, a task of `interp tasks`, whose predicting positions are read.
        layers: Only these layers; None for all.
        feature: Features to store of each word, separated by commas, such as upos, number or feats:Tense; None for all
            that the treebank has, without feats:.
        pooling: Which of a word's tokens is stored: the first, the last, or their mean.
        context: What is read at once: as much of a document as fits, or a sentence; None for document.
        max_window: The most tokens of a document that are read at once.
        seed: Seed of every random draw.
    """

    site: list[str]
    out: Path
    data: list[str] | None = None
    task: str | None = None
    layers: list[int] | None = None
    feature: list[str] | None = None
    pooling: Pooling = "last"
    context: Context | None = None
    max_window: int = 512
    seed: int = 0


def collect(of: Collected, work: Annotated[Work, Fields(without=("out", "runs", "fresh"))]) -> None:
    """What are the model's activations at every word? Stores them for probes; after an interrupt, it continues."""
    from interp.report.folder import FOLDER, absolute, check_place
    from interp.residual.collecting import require_positions
    from interp.runs.collecting import require_usable

    folder = absolute(of.out, FOLDER)
    require_usable(folder)
    check_place(folder)
    if (of.data is None) == (of.task is None):
        raise InputError(f"expected either --data or --task, got {'neither' if of.data is None else 'both'}")
    of_tasks: dict[str, object] = {"--n": of.n, **dict.fromkeys(of.typed, True)}
    of_data: dict[str, object] = {"--feature": of.feature, "--context": of.context}
    beside, others = ("--task", of_data) if of.data is None else ("--data", of_tasks)
    for name, value in others.items():
        if value is not None:
            raise InputError(f"{name}: expected none beside {beside}, got {value!r}; leave it out")
    who = work.who()
    names = names_in(of.site) or []
    require_positions(_sites(names, [0]))
    corpus, features = _read(of.data, of.feature)
    loaded = work.load()
    n_layers = loaded.cfg.n_layers
    layers = range(n_layers) if of.layers is None else numbers_below(n_layers, "layers", of.layers)
    sites = _sites(names, layers)
    if corpus is None:
        source = _of_task(loaded, str(of.task), n=of.n, seed=of.seed, **of.how)
    else:
        source = _of_corpus(loaded, corpus, features, of.context or "document", of.max_window)
    store = _collected(loaded, source, sites, folder, pooling=of.pooling, executor=who)
    _show(store, source, work, of.out)


def verify(
    folder: Annotated[Path, typer.Argument(help="A store of activations.", metavar="DIR")],
    work: Annotated[Work, Fields(only=("as_json",))],
) -> None:
    """Is the store as it was written? Compares every byte with its manifest."""
    from interp.runs.store import ActivationStore

    _show(ActivationStore.open(folder), None, work, folder)


@dataclass
class Source:
    """Whose words are read: rows of tokens, the hash of all that they are made from, and about how many words."""

    passages: "CorpusPassages | list[Passage]"
    data_hash: str
    total: int
    whole: bool = False
    """Whether all of it has been read."""

    def __iter__(self) -> "Iterator[Passage]":
        yield from self.passages
        self.whole = True

    @property
    def left_out(self) -> dict[str, int] | None:
        """Words without an activation, by the reason; None where the source was not read to its end."""
        if not self.whole or isinstance(self.passages, list):
            return {} if self.whole else None
        too_long = len(self.passages.windows.too_long)
        return {**self.passages.unaligned, **({"sentences that are too long": too_long} if too_long else {})}


def _of_corpus(model: Any, corpus: "Corpus", features: list[str], context: Context, window: int) -> Source:
    """Every word of a treebank, in windows of its documents of so many tokens at most, or in sentences."""
    from interp.methods.relations.words import with_offsets
    from interp.model.positions import looks_back_only
    from interp.tasks.alignment import Windows
    from interp.tasks.passages import CorpusPassages

    n_ctx = min(model.cfg.n_ctx, window) if context == "document" else model.cfg.n_ctx
    windows = Windows(with_offsets(model, "activations"), n_ctx, both_sides=not looks_back_only(model))
    digest = _hash({"corpus": corpus.contents.hash, "features": features, "context": context, "n_ctx": n_ctx})
    return Source(CorpusPassages(corpus, windows, features, context), digest, sum(corpus.contents.documents.values()))


def _of_task(model: Any, name: str, **drawn: Any) -> Source:
    """The predicting position of every example of a task."""
    from interp.tasks.catalogue import load_task
    from interp.tasks.passages import task_passages

    task = load_task(name, **drawn, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)
    return Source(list(task_passages(task)), _hash({"task": task.hash}), len(task.examples))


def _hash(what: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _read(data: list[str] | None, feature: list[str] | None) -> "tuple[Corpus | None, list[str]]":
    """The treebank, read before a model is loaded, so that what is wrong with it is told at once; and its features."""
    if data is None:
        return None, []
    from interp.cli.loading import corpus_of
    from interp.tasks.features import features_in

    corpus = corpus_of(data)
    there, features = features_in(corpus), names_in(feature)
    if features is None:
        return corpus, [name for name in there if not name.startswith("feats:")]
    for name in features:
        if name not in there:
            raise InputError(f"feature {name!r}: the treebank has none; {suggest(name, there)}")
    return corpus, [name for name in there if name in features]


def _sites(names: Sequence[str], layers: Sequence[int]) -> "list[Site]":
    """Each site in each layer, where it has layers."""
    from interp.model.sites import SITES, Site, is_layered

    places: dict[bool, Sequence[int | None]] = {True: layers, False: [None]}
    return [Site(name, layer) for name in names for layer in places[name in SITES and is_layered(name)]]


def _collected(model: Any, source: Source, sites: "Sequence[Site]", folder: Path, **options: Any) -> "ActivationStore":
    """Collect, with a progress bar; an interrupt after the first shard says that it can go on."""
    from interp.cli import terminal
    from interp.runs import collecting
    from interp.runs.store_manifest import PARTIAL

    with terminal.progress_bar("words") as progress:
        options["progress"] = lambda done: progress(done, source.total)
        try:
            store = collecting.collect(model, source, sites, folder, data_hash=source.data_hash, **options)
        except KeyboardInterrupt as interrupt:
            begun, none = (folder / PARTIAL).exists(), "interrupted: no shard was complete, and nothing is kept"
            say(interrupted(folder) if begun else none, err=True)
            raise typer.Exit(INTERRUPTED) from interrupt
        progress(store.rows, store.rows)
    return store


def _show(store: "ActivationStore", source: Source | None, work: Work, given: Path) -> None:
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
        "seconds": seconds_since(work.started),
    }
    if work.as_json:
        print_json(result)
        return
    for name, value in result.items():
        if value is not None:
            shown = ", ".join(f"{key}: {each}" for key, each in value.items()) if isinstance(value, dict) else value
            say(f"{name}: {', '.join(shown) if isinstance(shown, list) else shown}")
    told = [name for name in result["features"] if name not in NUMERIC and _classes(store.index[name]) > 1]
    say_next(after_collect(str(given), told, work.model))


def _classes(labels: "pd.Series") -> int:
    """How many classes have two words or more, so that a probe can be fitted and judged on each."""
    return int((labels.value_counts() > 1).sum())
