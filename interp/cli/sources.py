"""Whose words does ``interp activations`` read, and where? A treebank's or a task's; at sites in layers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interp.cli.options import Context, names_in
from interp.errors import InputError, suggest

if TYPE_CHECKING:
    from interp.model.sites import Site
    from interp.tasks.corpus import Corpus
    from interp.tasks.passages import CorpusPassages, Passage


@dataclass
class Source:
    """What is read.

    Attributes:
        passages: Its rows of tokens.
        data_hash: Of all that they are made from.
        total: About how many words it has.
        whole: Whether all of it has been read.
    """

    passages: "CorpusPassages | list[Passage]"
    data_hash: str
    total: int
    whole: bool = False

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


def site_names(lists: list[str]) -> list[str]:
    """The sites' names, which must be of sites with positions."""
    from interp.model.sites import Site
    from interp.residual.collecting import require_positions

    names = names_in(lists) or []
    require_positions([Site(name, 0 if _layered(name) else None) for name in names])
    return names


def _layered(name: str) -> bool:
    from interp.model.sites import SITES, is_layered

    return name in SITES and is_layered(name)


def sites_of(names: Sequence[str], layer: list[str] | None, n_layers: int) -> "list[Site]":
    """Each site in each layer that is asked for."""
    from interp.model.sites import Site

    asked = names_in(layer) or [str(number) for number in range(n_layers)]
    known = {str(number) for number in range(n_layers)}
    bad = [each for each in asked if each not in known]
    if bad:
        raise InputError(f"--layer {bad[0]}: expected a layer of the model, from 0 to {n_layers - 1}")
    layers = [int(each) for each in asked]
    return [Site(name, number) for name in names for number in (layers if _layered(name) else [None])]


def require_one(data: list[str] | None, task: str | None, beside: dict[str, dict[str, object]]) -> None:
    """Refuse both or none of --data and --task, and options that are of no use beside the one that is given."""
    if (data is None) == (task is None):
        raise InputError(f"expected either --data or --task, got {'neither' if data is None else 'both'}")
    given = "--task" if data is None else "--data"
    for name, value in beside[given].items():
        if value is not None:
            raise InputError(f"{name}: expected none beside {given}, got {value!r}; leave it out")


def read_corpus(data: list[str] | None, feature: list[str] | None) -> "tuple[Corpus | None, list[str]]":
    """The treebank, read before a model is loaded, so that what is wrong with it is told at once; and its features."""
    if data is None:
        return None, []
    from interp.cli.treebanks import require_different
    from interp.tasks.corpus import Corpus
    from interp.tasks.features import features_in

    require_different(data, "--data")
    corpus = Corpus.of(data)
    there = features_in(corpus)
    features = names_in(feature)
    if features is None:
        return corpus, [name for name in there if not name.startswith("feats:")]
    for name in features:
        if name not in there:
            raise InputError(f"feature {name!r}: the treebank has none; {suggest(name, there)}")
    return corpus, [name for name in there if name in features]


def of_corpus(model: Any, corpus: "Corpus", features: list[str], context: Context, window: int) -> Source:
    """Every word of a treebank, in windows of its documents of so many tokens at most, or in sentences."""
    from interp.methods.relations.words import with_offsets
    from interp.model.positions import looks_back_only
    from interp.tasks.passages import CorpusPassages
    from interp.tasks.windows import Windows

    n_ctx = min(model.cfg.n_ctx, window) if context == "document" else model.cfg.n_ctx
    windows = Windows(with_offsets(model, "activations"), n_ctx, both_sides=not looks_back_only(model))
    digest = _hash({"corpus": corpus.contents.hash, "features": features, "context": context, "n_ctx": n_ctx})
    passages = CorpusPassages(corpus, windows, features, context)
    return Source(passages, digest, sum(corpus.contents.documents.values()))


def of_task(model: Any, name: str, **drawn: Any) -> Source:
    """The predicting position of every example of a task."""
    from interp.tasks.catalogue import load_task
    from interp.tasks.passages import task_passages

    task = load_task(name, **drawn, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)
    return Source(list(task_passages(task)), _hash({"task": task.hash}), len(task.examples))


def _hash(what: dict[str, Any]) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
