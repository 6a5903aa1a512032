"""Whoever computes a store's shards, in whatever order they end, and whoever dies on the way: the same bytes."""

import os
import pickle
import signal
import time
from dataclasses import dataclass
from itertools import islice, pairwise
from multiprocessing import active_children, get_context
from pathlib import Path
from threading import Lock

import numpy as np
import pytest
import torch
from random_passages import random_passages
from stores import collected, files_of, interrupted, stop_after
from tiny_models import random_model

from interp.errors import InputError, LoadError
from interp.runs import collecting as writing
from interp.runs.executors import Processes
from interp.runs.pickling import pack, received
from interp.runs.shards import Shard, ShardContent, ShardReader
from interp.runs.store_manifest import Manifest

pytestmark = pytest.mark.unchecked

MANY = {"n": 160}
ROWS = 20
SLOWLY = 0.02
"""Seconds more of every shard."""


class Shuffled:
    """Does jobs in this process as several workers would: some are under way, and any of them ends next."""

    def __init__(self, n=3, seed=0):
        self.n, self.generator = n, np.random.default_rng(seed)
        self.order = []

    def stream(self, work, jobs, *, threads, begun=None):
        assert threads == torch.get_num_threads()
        copy, coming = pack(work).unpacked(), iter(jobs)
        under_way = list(islice(coming, self.n))
        while under_way:
            job = under_way.pop(self.generator.integers(len(under_way)))
            self.order.append(job.number)
            yield job, received(pickle.dumps(copy.run(job)))
            under_way += islice(coming, 1)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The bytes of a store that this process computed."""
    return files_of(collected(tmp_path_factory.mktemp("whole") / "store", **MANY).folder)


def kept(out):
    """The numbers of the shards that a store that was begun has."""
    return [int(each.file[6:11]) for each in Manifest.read(out / "collecting.partial" / "state.json").shards]


@pytest.mark.parametrize("seed", range(4))
def test_shards_that_end_in_any_order(out, expected, seed):
    executor = Shuffled(seed=seed)
    assert files_of(collected(out, executor=executor, **MANY).folder) == expected
    assert executor.order != sorted(executor.order)
    assert sorted(executor.order) == [*range(len(expected) - 2)]


@pytest.mark.parametrize("after", range(0, 600, 100))
def test_what_was_interrupted_between_shards_goes_on_to_the_same_bytes(out, expected, after):
    first = Shuffled(n=5, seed=after)
    interrupted(out, after, executor=first, **MANY)
    there = kept(out)
    assert there == sorted(first.order)
    told, second = [], Shuffled(seed=after + 1)
    assert files_of(collected(out, executor=second, progress=told.append, **MANY).folder) == expected
    assert sorted(there + second.order) == [*range(len(expected) - 2)]
    assert min(told) > ROWS * (len(there) - 1)


def test_where_shards_are_missing_in_between_this_process_fills_them_in(out, expected):
    interrupted(out, 300, executor=Shuffled(n=9), **MANY)
    there = kept(out)
    assert there != [*range(len(there))]
    told = []
    assert files_of(collected(out, progress=told.append, **MANY).folder) == expected
    assert told == sorted(told), "words that are done, and stay so"
    assert told[0] > ROWS * (len(there) - 1)
    assert told[-1] == len(words(random_passages(**MANY)))


def words(passages):
    return [word for passage in passages for word in passage.words]


def test_other_passages_are_refused(out):
    interrupted(out, 300, executor=Shuffled(), **MANY)
    with pytest.raises(LoadError, match="collected from other passages than those that are given now"):
        collected(out, executor=Shuffled(), passages=random_passages(160, seed=1))


def test_each_shard_is_written_before_the_next_is_begun(out, expected, monkeypatch):
    """What a kill costs, and whether memory is used again too early."""
    events, read, write, run = [], [], writing.StoreWriter._write, ShardReader.run

    def passages():
        for passage in random_passages(**MANY):
            read.append(len(passage.words))
            yield passage

    def begun(self, shard):
        events.append(("begun", shard.number, sum(read)))
        return run(self, shard)

    def written(self, shard, content):
        write(self, shard, content)
        events.append(("written", shard.number, sum(read)))

    monkeypatch.setattr(ShardReader, "run", begun)
    monkeypatch.setattr(writing.StoreWriter, "_write", written)
    assert files_of(collected(out, passages=passages(), **MANY).folder) == expected
    n_shards = len(expected) - 2
    assert [each[:2] for each in events] == [(what, n) for n in range(n_shards) for what in ("begun", "written")]
    assert all(there - ROWS * number < 3 * ROWS for _, number, there in events), "passages are read as they are wanted"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_what_is_sent_is_the_file(tmp_path, dtype):
    values = torch.randn(5, 3, 2, dtype=torch.float64).to(dtype)
    content = ShardContent({"blocks.0.attn.hook_z": values, "hook_embed": torch.randn(9, 4).to(dtype)[:5]})
    content.write(tmp_path / "here")
    received(pickle.dumps(content)).write(tmp_path / "there")
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


def test_the_model_is_sent_and_no_room_for_a_shard(out):
    model = random_model()
    request = collected(out, model=model, rows=10**6).manifest.request
    packed = pack(ShardReader(model, request, stop_after(0)))
    weights = sum(each.numel() * each.element_size() for each in model.parameters())
    assert sum(each.nbytes for each in packed.buffers) < 2 * weights


@dataclass
class Slowly:
    """Does every job later, so that who is killed was at work."""

    work: object

    def run(self, job):
        time.sleep(SLOWLY)
        return self.work.run(job)


class SlowProcesses(Processes):
    def stream(self, work, jobs, **options):
        yield from super().stream(Slowly(work), jobs, **options)


class TestProcesses:
    def test_the_same_bytes_as_here(self, out, expected):
        told = []
        given = iter(random_passages(**MANY))
        found = collected(out, executor=Processes(2), passages=given, progress=told.append)
        assert files_of(out) == expected
        assert told[-1] == found.rows
        assert all(before < after for before, after in pairwise(told))
        assert len(told) == len(expected) - 2, "after each shard"

    @pytest.mark.slow
    def test_numbers_without_a_name_in_numpy(self, out, tmp_path):
        options = {"dtype": "bfloat16", "rows": ROWS // 4}
        here = collected(tmp_path / "here", **options)
        assert files_of(collected(out, executor=Processes(2), **options).folder) == files_of(here.folder)

    @pytest.mark.slow
    def test_killed_workers(self, out, expected):
        killed = []

        def kill(_done):
            alive = [each.pid for each in active_children() if each.pid not in killed]
            if alive and len(killed) < 2:
                os.kill(alive[-1], signal.SIGKILL)
                killed.append(alive[-1])

        collected(out, executor=SlowProcesses(2), progress=kill, **MANY)
        assert len(killed) == 2
        assert files_of(out) == expected

    @pytest.mark.slow
    def test_interrupted_and_gone_on_with(self, out, expected):
        interrupted(out, 200, executor=Processes(2), **MANY)
        assert active_children() == []
        assert ROWS * len(kept(out)) > 200
        assert files_of(collected(out, executor=Processes(2), **MANY).folder) == expected

    @pytest.mark.slow
    def test_killed_together_with_who_asked(self, out, expected):
        child = get_context("fork").Process(target=_killed_itself, args=(out,))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        assert 0 < len(kept(out)) < len(expected) - 2
        assert files_of(collected(out, **MANY).folder) == expected

    @pytest.mark.slow
    def test_an_error_is_told_as_here_and_what_is_complete_is_kept(self, out, tmp_path):
        """A token of the last passage alone has no finite embedding."""
        model, passages = random_model(d_vocab=41), random_passages(**MANY)
        with torch.no_grad():
            model.embed.W_E[40] = torch.nan
        passages[-1] = type(passages[-1])("d", "", (*passages[-1].ids[:-1], 40), passages[-1].words)
        told = []
        for place, options in ((tmp_path / "here", {}), (out, {"executor": Processes(2)})):
            with pytest.raises(InputError, match="expected finite activations, got others at document 'd'") as error:
                collected(place, model=model, passages=passages, **options)
            told.append((type(error.value), str(error.value)))
        assert told[0] == told[1]
        assert len(kept(out)) >= len(kept(tmp_path / "here")) - 1, "all but what the other worker was at"

    def test_a_model_that_cannot_be_sent(self, out):
        model = random_model()
        model.note = Lock()
        with pytest.raises(InputError, match="expected what can be sent to another process, got something that cannot"):
            collected(out, model=model, executor=Processes(2))
        assert not out.exists()


def _killed_itself(out: Path):
    def kill(done):
        if done > 200:
            os.kill(os.getpid(), signal.SIGKILL)

    collected(out, executor=Processes(2), progress=kill, **MANY)


def test_a_shard_is_named_by_its_words():
    assert str(Shard(3, 60, 80, ())) == "shard 3, of the words 60 to 79"
