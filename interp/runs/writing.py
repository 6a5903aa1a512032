"""How does what is computed come to the disk? Shard after shard, by a thread of its own."""

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from safetensors.torch import save_file

from interp.errors import LoadError
from interp.runs.folder import Draft
from interp.runs.index import INDEX, join_parts, write_part
from interp.runs.manifest import Manifest, Request, ShardFile, require_undamaged
from interp.runs.reading import Activations, ShardReader
from interp.runs.shards import Shard, shards_of
from interp.runs.signed import sha256_of
from interp.tasks.passages import Passage


class StoreWriter:
    """Writes a store, and goes on with one that was begun.

    Args:
        draft: The store's folder.
        request: What is asked for.
        begun: The shards that were complete before.

    Raises:
        LoadError: One of them is damaged.
        OutputError: The folder cannot be written.
    """

    def __init__(self, draft: Draft, request: Request, begun: Iterable[ShardFile]):
        self._draft, self._request = draft, request
        self._shards = {each.file: each for each in begun if (draft.folder / each.file).exists()}
        for each in self._shards.values():
            require_undamaged(draft.folder / each.file, each.sha256)
        self._begun = set(self._shards)
        self._parts: list[Path] = []
        draft.write_state(self._manifest(None))

    def _manifest(self, index: str | None) -> Manifest:
        return Manifest(self._request, tuple(shard for _, shard in sorted(self._shards.items())), index)

    def write(self, passages: Iterable[Passage], reader: ShardReader) -> None:
        """Compute and write what is missing, until the store is complete.

        Raises:
            InputError, TaskError: As ``ShardReader.read`` and ``passage_index``.
            LoadError: The shards that were complete before are of other passages.
            OutputError: The folder cannot be written.
        """
        with ThreadPoolExecutor(max_workers=1) as background:
            writing: Future[None] | None = None
            for shard in shards_of(passages, self._request.shard_rows):
                rows = None if shard.file in self._begun else reader.read(shard)
                # Two shards at most are in memory.
                if writing is not None:
                    writing.result()
                writing = background.submit(self._write, shard, rows)
            if writing is not None:
                writing.result()
        if len(self._parts) < len(self._shards):
            raise _of_others(max(self._begun), self._draft.folder)
        self._finish()

    def _write(self, shard: Shard, rows: Activations | None) -> None:
        """Write a shard's words, and its activations where they are not there."""
        if rows is None:
            if self._shards[shard.file].read != shard.read:
                raise _of_others(shard.file, self._draft.folder)
        else:
            with self._draft.writing():
                save_file(rows, self._draft.path(shard.file))
                digest = sha256_of(self._draft.path(shard.file))
                self._draft.keep(shard.file)
            self._shards[shard.file] = ShardFile(shard.file, shard.rows, shard.read, digest)
            self._draft.write_state(self._manifest(None))
        part = self._draft.path(f"{shard.number}.parquet")
        with self._draft.writing():
            write_part(shard, part)
        self._parts.append(part)

    def _finish(self) -> None:
        with self._draft.writing():
            join_parts(self._parts, self._draft.path(INDEX))
            index = sha256_of(self._draft.path(INDEX))
            self._draft.keep(INDEX)
        self._draft.finish(self._manifest(index))


def _of_others(file: str, folder: Path) -> LoadError:
    return LoadError(
        f"{folder / file}: collected from other passages than those that are given now under the same data hash; give "
        "the same, or another folder"
    )
