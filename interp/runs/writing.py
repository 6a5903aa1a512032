"""How does what is computed come to the disk? Shard after shard, as they come, by who asked for them.

Each is on the disk before the next one is begun here: a kill costs the one that is being computed, and no other.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from interp.errors import LoadError
from interp.runs.content import ShardContent, ShardFileBytes
from interp.runs.executors import Executor
from interp.runs.folder import Draft
from interp.runs.index import INDEX, join_parts, write_part
from interp.runs.manifest import Manifest, Request, ShardFile, require_undamaged
from interp.runs.reading import Progress, ShardReader
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
        self._parts: dict[int, Path] = {}
        draft.write_state(self._manifest(None))

    def _manifest(self, index: str | None) -> Manifest:
        return Manifest(self._request, tuple(shard for _, shard in sorted(self._shards.items())), index)

    def write(self, passages: Iterable[Passage], model: Any, executor: Executor, progress: Progress) -> None:
        """Have what is missing computed, and write it, until the store is complete.

        Args:
            passages: Read as far as shards are wanted.
            model: Whose activations they are.
            executor: Who computes them.
            progress: Called with the number of words that are done.

        Raises:
            InputError, TaskError: As ``ShardReader.run`` and ``passage_index``, or what ``executor`` cannot do.
            LoadError: The shards that were complete before are of other passages.
            OutputError: The folder cannot be written.
        """
        done = sum(each.rows for each in self._shards.values())
        # Of this process's own shards more is known than when they end.
        reader = ShardReader(model, self._request, lambda rows: progress(done + rows))
        for shard, content in executor.stream(reader, self._missing(passages), threads=torch.get_num_threads()):
            self._write(shard, content)
            done += shard.rows
            progress(done)
        if len(self._parts) < len(self._shards):
            raise _of_others(max(self._begun), self._draft.folder)
        self._finish()

    def _missing(self, passages: Iterable[Passage]) -> Iterator[Shard]:
        """The shards that are not there; of those that are, the words are compared and written."""
        for shard in shards_of(passages, self._request.shard_rows):
            if shard.file in self._begun:
                self._recognize(shard)
            else:
                yield shard

    def _recognize(self, shard: Shard) -> None:
        """Write the words of a shard that was complete before."""
        if self._shards[shard.file].read != shard.read:
            raise _of_others(shard.file, self._draft.folder)
        self._write_part(shard)

    def _write(self, shard: Shard, content: ShardContent | ShardFileBytes) -> None:
        """Write a shard's activations and its words."""
        with self._draft.writing():
            content.write(self._draft.path(shard.file))
            digest = sha256_of(self._draft.path(shard.file))
            self._draft.keep(shard.file)
        self._shards[shard.file] = ShardFile(shard.file, shard.rows, shard.read, digest)
        self._draft.write_state(self._manifest(None))
        self._write_part(shard)

    def _write_part(self, shard: Shard) -> None:
        part = self._draft.path(f"{shard.number}.parquet")
        with self._draft.writing():
            write_part(shard, part)
        self._parts[shard.number] = part

    def _finish(self) -> None:
        with self._draft.writing():
            join_parts([part for _, part in sorted(self._parts.items())], self._draft.path(INDEX))
            index = sha256_of(self._draft.path(INDEX))
            self._draft.keep(INDEX)
        self._draft.finish(self._manifest(index))


def _of_others(file: str, folder: Path) -> LoadError:
    return LoadError(
        f"{folder / file}: collected from other passages than those that are given now under the same data hash; give "
        "the same, or another folder"
    )
