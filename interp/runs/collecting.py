"""Collecting a model's activations at the words of many texts into a store, shard by shard; it can be gone on with.

1. What is run at once is a function of the request alone (``shards.py``). So a store that was interrupted is the same,
   byte by byte, as one that was not. It goes on only as it was begun: same threads, program and kind of device.
2. Shards are computed by this process or by several (``executors.py``), and written here in any order. Each is on the
   disk before the next is begun: a file is written in ``collecting.partial`` inside the store, brought to the disk
   (fsync), and renamed. Then ``state.json`` there, a manifest without an index, is written in the same way.
3. ``lock`` there is held by one process. What a killed one left beside the state is deleted by the next.
4. Asked again, a shard that is there is compared with its hash and not computed. Another request is refused.
5. The manifest is written last, and ``collecting.partial`` is deleted: then the store is complete.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from interp.errors import InputError, LoadError, OutputError
from interp.interventions.provenance import require_told_by_weights
from interp.model.devices import arithmetic, documented, place_of, resolve_dtype
from interp.model.loading.bridge import settings_hash
from interp.model.provenance import model_provenance
from interp.model.sites import SITES, Site
from interp.residual.collecting import Pooling, WordActivations, word_activations
from interp.runs.executors import HERE, Executor, nobody
from interp.runs.files import locked, put, sha256_of, writing
from interp.runs.key import program
from interp.runs.shards import Progress, Shard, ShardContent, ShardReader, shards_of
from interp.runs.store import INDEX, ActivationStore, join_parts, write_part
from interp.runs.store_manifest import MANIFEST, PARTIAL, Manifest, Request, ShardFile, StoredSite, require_undamaged
from interp.tasks.passages import Passage

STATE, LOCK = "state.json", "lock"


def require_usable(folder: Path) -> None:
    """Refuse a folder that holds something else than a store, complete or begun.

    Raises:
        OutputError: It does, or is a file.
        LoadError: Its manifest is damaged, or of something else.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"output folder {folder}: expected a folder, got a file; name another")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if names and not names & {PARTIAL, MANIFEST}:
        raise OutputError(
            f"output folder {folder}: expected a new or empty folder or a store of activations, got one with other "
            f"files ({', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''}); name another"
        )
    if MANIFEST in names:
        Manifest.read(folder / MANIFEST)


@contextmanager
def _collecting_into(folder: Path) -> Iterator["_Draft"]:
    """Lock a store's folder, which is made where there is none, and is gone afterwards if it has no complete shard."""
    draft = _Draft(folder)
    with locked(draft.path(LOCK), folder):
        try:
            draft.clean()
            yield draft
        finally:
            draft.end()


class _Draft:
    """The folder of a store that is being written."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._partial = folder / PARTIAL
        self._made = [each for each in (folder, *folder.parents) if not each.exists()]
        with writing(folder):
            require_usable(folder)
            self._partial.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        """Where a file is written at first."""
        return self._partial / name

    def keep(self, name: str) -> None:
        """Bring a file that was written to the disk, and to its place in the store."""
        self._replace(self.path(name), self.folder / name)

    def known(self) -> Manifest | None:
        """What is in the store so far: that of its manifest, or of its state; None of a new one."""
        for path in (self.folder / MANIFEST, self._partial / STATE):
            if path.exists():
                return Manifest.read(path)
        return None

    def write_state(self, state: Manifest) -> None:
        """Note which shards are complete; what was a complete store is none from here on."""
        draft = self.path(f"{STATE}.new")
        with writing(self.folder):
            draft.write_text(state.text(), encoding="utf-8")
            self._replace(draft, self._partial / STATE)
            (self.folder / MANIFEST).unlink(missing_ok=True)

    def clean(self) -> None:
        """Delete what a killed process left half-written."""
        with writing(self.folder):
            for path in self._partial.iterdir():
                if path.name not in (STATE, LOCK):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def end(self) -> None:
        """Delete what is of no further use: of a complete store the state, of one without a shard everything."""
        with suppress(LoadError, OutputError):
            self.clean()
            known = self.known()
            if (self.folder / MANIFEST).exists() or known is None or not known.shards:
                (self._partial / STATE).unlink(missing_ok=True)
                (self._partial / LOCK).unlink(missing_ok=True)
        # Only what is empty goes.
        for folder in (self._partial, *self._made):
            with suppress(OSError):
                folder.rmdir()

    def _replace(self, draft: Path, path: Path) -> None:
        # Safetensors makes files that nobody but their owner may read; the lock has the usual permissions.
        shutil.copymode(self._partial / LOCK, draft)
        put(draft, path)


class StoreWriter:
    """Writes a store, and goes on with one of which the shards `begun` were complete before."""

    def __init__(self, draft: _Draft, request: Request, begun: Iterable[ShardFile]):
        self._draft, self._request, self._folder = draft, request, draft.folder
        self._shards = {each.file: each for each in begun if (draft.folder / each.file).exists()}
        for each in self._shards.values():
            require_undamaged(draft.folder / each.file, each.sha256)
        self._begun = set(self._shards)
        self._parts: dict[int, Path] = {}
        draft.write_state(self._manifest(None))

    def _manifest(self, index: str | None) -> Manifest:
        return Manifest(self._request, tuple(shard for _, shard in sorted(self._shards.items())), index)

    def write(self, passages: Iterable[Passage], model: Any, executor: Executor, progress: Progress) -> None:
        """Have the missing shards computed and write them, until the store is complete."""
        done = sum(each.rows for each in self._shards.values())
        # Of this process's own shards more is known than when they end.
        reader = ShardReader(model, self._request, lambda rows: progress(done + rows))
        for shard, content in executor.stream(reader, self._missing(passages), threads=torch.get_num_threads()):
            self._write(shard, content)
            done += shard.rows
            progress(done)
        if len(self._parts) < len(self._shards):
            raise _of_others(max(self._begun), self._folder)
        with writing(self._folder):
            join_parts([part for _, part in sorted(self._parts.items())], self._draft.path(INDEX))
            index = sha256_of(self._draft.path(INDEX))
            self._draft.keep(INDEX)
            self._draft.path(MANIFEST).write_text(self._manifest(index).text(), encoding="utf-8")
            self._draft.keep(MANIFEST)

    def _missing(self, passages: Iterable[Passage]) -> Iterator[Shard]:
        """The shards that are not there; of those that are, the words are compared and written."""
        for shard in shards_of(passages, self._request.shard_rows):
            if shard.file not in self._begun:
                yield shard
            elif self._shards[shard.file].read != shard.read:
                raise _of_others(shard.file, self._folder)
            else:
                self._write_part(shard)

    def _write(self, shard: Shard, content: ShardContent) -> None:
        """Write a shard's activations and its words."""
        with writing(self._folder):
            content.write(self._draft.path(shard.file))
            digest = sha256_of(self._draft.path(shard.file))
            self._draft.keep(shard.file)
        self._shards[shard.file] = ShardFile(shard.file, shard.rows, shard.read, digest)
        self._draft.write_state(self._manifest(None))
        self._write_part(shard)

    def _write_part(self, shard: Shard) -> None:
        part = self._parts[shard.number] = self._draft.path(f"{shard.number}.parquet")
        with writing(self._folder):
            write_part(shard, part)


def _of_others(file: str, folder: Path) -> LoadError:
    return LoadError(
        f"{folder / file}: collected from other passages than those that are given now under the same data hash; give "
        "the same, or another folder"
    )


SHARD_BYTES = 128 * 2**20
"""Of activations in a shard, at most."""
MOST_ROWS = 2**14
"""Of a shard, however short they are: so many words' labels are held in memory."""


@documented
def collect(
    model: Any,
    passages: Iterable[Passage],
    sites: Sequence[Site],
    out: str | Path,
    *,
    data_hash: str,
    pooling: Pooling = "last",
    dtype: str | torch.dtype | None = None,
    shard_bytes: int = SHARD_BYTES,
    progress: Progress | None = None,
    executor: Executor = HERE,
) -> ActivationStore:
    """Store a model's activations at the words of passages; go on with a store that was begun; leave a complete one.

    Args:
        model: Follows TransformerLens' protocol, and shows its weights.
        passages: Read one after the other, all of them also when the collection goes on.
        sites: Points with an activation for each position.
        out: The folder; new, empty, or with a store of the same request.
        data_hash: Of all that `passages` are made from.
        pooling: Over the tokens of a word.
        dtype: Of the stored numbers; None for that of the activations.
        shard_bytes: Of a shard's activations, at most, but for one row, which there always is.
        progress: Called with the number of words that are done; where others compute, after each shard.
        executor: Who computes the shards: ``Local()``, ``Processes(n)`` or ``interp.cluster.ray``'s ``Ray(...)``, each
            worker with as many threads as this process has. The store is the same.

    Returns:
        The store, for ``interp.probe``.

    Raises:
        InputError: No word to be read, no size, or as ``word_activations``; a number that the dtype cannot hold; a
            model that shows no weights, has somebody's hooks, or cannot be sent to the executor's workers.
        ConfigError: No such dtype.
        LoadError: The folder's store is of another request, or damaged, or is not complete and was computed in another
            way; what differs, or the file, is named.
        OutputError: The folder cannot be written, holds something else, or another process collects into it.

    Examples:
        >>> from interp.model.sites import Site
        >>> from interp.runs.collecting import collect
        >>> from interp.tasks.passages import task_passages
        >>> model = interp.load_model()
        >>> task = interp.load_task("agreement", tokenizer=model.tokenizer, n=40)
        >>> store = collect(model, task_passages(task), [Site("z", 2)], "store", data_hash=task.hash)
        >>> store.missing()
        []
    """
    if shard_bytes < 1:
        raise InputError(f"shard_bytes: expected a size, got {shard_bytes}; leave it out for {SHARD_BYTES:,}")
    given = iter(passages)
    first = next((passage for passage in given if passage.words), None)
    if first is None:
        raise InputError("passages: expected words to be read, got none; take another corpus, or other features")
    tell = progress or nobody
    with _collecting_into(Path(os.path.expanduser(out)).absolute()) as draft:
        (sample,) = word_activations(model, [_beginning(first)], _ordered(sites), pooling=pooling)
        request = _request(model, sample, dtype, shard_bytes, data_hash=data_hash, pooling=pooling)
        known = draft.known()
        if known is not None:
            known.request.require_same(request, draft.folder)
        store = None if known is None or known.index is None else ActivationStore(draft.folder, known)
        if store is None or store.missing():
            if known is not None:
                known.request.require_computed(request, draft.folder)
            writer = StoreWriter(draft, request, () if known is None else known.shards)
            writer.write(chain([first], given), model, executor, tell)
        else:
            store.verify()
            tell(store.rows)
    return ActivationStore.open(draft.folder, verify=False)


def _beginning(passage: Passage) -> Passage:
    """Its first word, with what stands before it."""
    word = passage.words[0]
    return replace(passage, ids=passage.ids[: max(word.tokens, default=0) + 1], words=(word,))


def _ordered(sites: Sequence[Site]) -> list[Site]:
    order = [*SITES]
    return sorted(set(sites), key=lambda site: (-1 if site.layer is None else site.layer, order.index(site.name)))


def _request(
    model: Any, sample: WordActivations, dtype: str | torch.dtype | None, shard_bytes: int, **given: Any
) -> Request:
    """What is asked for, with the shapes and dtypes of a sample of the activations; the rest is `given`."""
    own = model_provenance(model)
    if own["model_hash"] is None:
        raise InputError(
            f"{own['model']}: expected a model that shows its weights (a torch module), got one without, which no "
            "hash can tell from others; read it with word_activations"
        )
    require_told_by_weights(model, own["model"], "read it with word_activations")
    own_dtype = reduce(torch.promote_types, (each.dtype for each in sample.values.values()))
    kept = own_dtype if dtype is None else resolve_dtype(dtype)
    row_bytes = sum(each[0].numel() for each in sample.values.values()) * kept.itemsize
    return Request(
        model_hash=own["model_hash"],
        config_hash=own["config_hash"],
        tokenizer_hash=own["tokenizer_hash"],
        model_dtype=own["dtype"],
        sites=tuple(StoredSite(site.name, site.layer, tuple(each.shape[1:])) for site, each in sample.values.items()),
        dtype=str(kept).removeprefix("torch."),
        shard_rows=min(max(shard_bytes // row_bytes, 1), MOST_ROWS),
        computed={
            "threads": own["threads"],
            "device": place_of(model)[0].type,
            "settings_hash": settings_hash(model),
            **program(),
            **arithmetic(),
        },
        **given,
    )
