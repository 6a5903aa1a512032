"""How do the activations of a model at the words of many texts come into a store? Shard by shard, and it can go on.

1. What is run at once is a function of the request alone (``shards.py``). So a store that was interrupted, and went on,
   is the same, byte by byte, as one that was not. It goes on only as it was begun: with as many threads, by the same
   program, on the same kind of device.
2. Shards are computed (``reading.py``) by this process or by several (``executors.py``). As they end, in any order,
   they are written, hashed and noted here (``writing.py``).
3. Asked again, a shard that is there is compared with its hash and not computed. Who asks for something else than what
   was begun is refused.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from interp.errors import InputError
from interp.interventions.provenance import model_provenance, require_told_by_weights, settings_hash
from interp.model.devices import arithmetic, documented, place_of, resolve_dtype
from interp.model.sites import SITES, Site
from interp.residual.collecting import Pooling, WordActivations, word_activations
from interp.runs.code import program
from interp.runs.executors import HERE, Executor
from interp.runs.folder import collecting_into
from interp.runs.manifest import Request, StoredSite
from interp.runs.reading import Progress, nobody
from interp.runs.store import ActivationStore
from interp.runs.writing import StoreWriter
from interp.tasks.passages import Passage

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

    Raises:
        InputError: No word to be read, no size, or as ``word_activations``; a number that the dtype cannot hold; a
            model that shows no weights, has somebody's hooks, or cannot be sent to the executor's workers.
        ConfigError: No such dtype.
        LoadError: The folder's store is of another request, or damaged, or is not complete and was computed in another
            way; what differs, or the file, is named.
        OutputError: The folder cannot be written, holds something else, or another process collects into it.
    """
    if shard_bytes < 1:
        raise InputError(f"shard_bytes: expected a size, got {shard_bytes}; leave it out for {SHARD_BYTES:,}")
    given = iter(passages)
    first = next((passage for passage in given if passage.words), None)
    if first is None:
        raise InputError("passages: expected words to be read, got none; take another corpus, or other features")
    tell = progress or nobody
    with collecting_into(Path(os.path.expanduser(out)).absolute()) as draft:
        (sample,) = word_activations(model, [_beginning(first)], _ordered(sites), pooling=pooling)
        options: Any = {"pooling": pooling, "dtype": dtype, "shard_bytes": shard_bytes, "data_hash": data_hash}
        request = _request(model, sample, **options)
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
    model: Any,
    sample: WordActivations[Passage],
    *,
    pooling: Pooling,
    dtype: str | torch.dtype | None,
    shard_bytes: int,
    data_hash: str,
) -> Request:
    """What is asked for, with the shapes and dtypes of a sample of the activations."""
    own = model_provenance(model)
    if own["model_hash"] is None:
        raise InputError(
            f"{own['model']}: expected a model that shows its weights (a torch module), got one without, which no "
            "hash can tell from others; read it with word_activations"
        )
    require_told_by_weights(model, own["model"], "read it with word_activations")
    given = reduce(torch.promote_types, (each.dtype for each in sample.values.values()))
    kept = given if dtype is None else resolve_dtype(dtype)
    row_bytes = sum(each[0].numel() for each in sample.values.values()) * kept.itemsize
    return Request(
        model_hash=own["model_hash"],
        config_hash=own["config_hash"],
        tokenizer_hash=own["tokenizer_hash"],
        model_dtype=own["dtype"],
        data_hash=data_hash,
        sites=tuple(StoredSite(site.name, site.layer, tuple(each.shape[1:])) for site, each in sample.values.items()),
        pooling=pooling,
        dtype=str(kept).removeprefix("torch."),
        shard_rows=min(max(shard_bytes // row_bytes, 1), MOST_ROWS),
        computed={
            "threads": own["threads"],
            "device": place_of(model)[0].type,
            "settings_hash": settings_hash(model),
            **program(),
            **arithmetic(),
        },
    )
