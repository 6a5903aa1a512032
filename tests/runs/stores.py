"""A small model, what it reads, and the bytes of a store."""

import pytest
from random_passages import random_passages
from tiny_models import random_model

from interp.model.sites import Site
from interp.residual.collecting import word_activations
from interp.runs.collecting import collect

SITES = (Site("embed"), Site("z", 0), Site("resid_post", 1))
ROW_BYTES = 8 * (12 + 3 * 5 + 12)


def collected(out, *, rows=20, n=30, model=None, passages=None, sites=SITES, **options):
    """A store of some passages, so many words a shard."""
    options = {"data_hash": "abc", "shard_bytes": rows * ROW_BYTES, **options}
    given = random_passages(n) if passages is None else passages
    return collect(random_model() if model is None else model, given, sites, out, **options)


def files_of(folder):
    """Every file's bytes, by its place."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stop_after(n):
    """A progress that interrupts when more than `n` words are done."""

    def progress(done):
        if done > n:
            raise KeyboardInterrupt

    return progress


def interrupted(out, after, **options):
    """Begin a store, and interrupt it when more than so many words are done."""
    with pytest.raises(KeyboardInterrupt):
        collected(out, progress=stop_after(after), **options)


def noting(run):
    """Notes the batches that are run."""

    def note(*arguments, **options):
        for batch in word_activations(*arguments, **options):
            run.append(batch)
            yield batch

    return note


def flipped(path, at):
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 0x15
    path.write_bytes(content)
