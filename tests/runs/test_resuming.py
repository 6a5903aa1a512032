"""A store that was interrupted goes on; another request, a damaged file or somebody else's folder is refused."""

import json
import os
import socket
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from random_passages import random_passages
from stores import collected, files_of, flipped, interrupted, noting
from tiny_models import random_model

from interp.errors import LoadError, OutputError
from interp.model.sites import Site
from interp.runs import collecting
from interp.runs.files import signed
from interp.runs.key import program
from interp.runs.store import ActivationStore
from interp.tasks.passages import Passage, ReadWord


@pytest.mark.parametrize("after", range(0, 122, 9))
def test_what_was_interrupted_goes_on_to_the_same_bytes(out, tmp_path, after):
    expected = files_of(collected(tmp_path / "whole").folder)

    interrupted(out, after)
    if after < 20:
        assert not out.exists()
    else:
        with pytest.raises(LoadError, match="the store is incomplete; run the same collection again, and it goes on"):
            ActivationStore.open(out)
    collected(out)
    assert files_of(out) == expected


def test_what_is_there_is_not_computed_again(model, out, monkeypatch):
    interrupted(out, 65, model=model)
    told, run = [], []
    monkeypatch.setattr("interp.runs.shards.batch_activations", noting(run))
    store = collected(out, model=model, progress=told.append)
    assert min(told) > 60
    assert told[-1] == store.rows
    first = min(number for batch in run for number in batch.numbers.tolist())
    assert 60 - 12 < first <= 60, "of the shards before, only the passage that they have in common with the next"
    told.clear()
    run.clear()
    assert collected(out, model=model, progress=told.append).manifest == store.manifest
    assert run == []
    assert told == [store.rows]


@pytest.mark.parametrize("lost", ["index.parquet", "shard-00000.safetensors", "shard-00002.safetensors"])
def test_what_is_lost_is_made_anew(out, lost):
    expected = files_of(collected(out).folder)
    (out / lost).unlink()
    with pytest.raises(LoadError, match=f"{lost}: expected a file of the store, got none; collect again"):
        ActivationStore.open(out)
    collected(out)
    assert files_of(out) == expected


def test_a_damaged_shard_of_an_incomplete_store_is_named(out, tmp_path):
    interrupted(out, 65)
    flipped(out / "shard-00001.safetensors", 500)
    with pytest.raises(LoadError, match=r"shard-00001\.safetensors: expected SHA-256"):
        collected(out)
    (out / "shard-00001.safetensors").unlink()
    assert files_of(collected(out).folder) == files_of(collected(tmp_path / "whole").folder)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data_hash": "xyz"}, "data_hash was 'abc' there and is 'xyz' here"),
        ({"pooling": "mean"}, "pooling was 'last' there and is 'mean' here"),
        ({"dtype": "float32", "rows": 10}, "dtype was 'float64' there and is 'float32' here"),
        ({"rows": 21}, "shard_rows was 20 there and is 21 here"),
        (
            {"sites": [Site("z", 0)]},
            "sites was hook_embed, blocks.0.attn.hook_z, blocks.1.hook_resid_post there and",
        ),
        ({"model": random_model(seed=1)}, "model_hash was "),
        ({"model": random_model(eps=0.1)}, "config_hash was "),
        ({"model": random_model(dtype=torch.float32), "dtype": "float64"}, "model_hash was "),
    ],
)
def test_another_request_is_refused(out, complete, change, said):
    if complete:
        collected(out)
    else:
        interrupted(out, 65)
    before = files_but_lock(out)
    with pytest.raises(LoadError) as error:
        collected(out, **change)
    assert f"{out}: a store of another request: " in str(error.value)
    assert said in str(error.value)
    assert str(error.value).endswith("give the same, or another folder")
    assert files_but_lock(out) == before


def files_but_lock(out):
    return {name: content for name, content in files_of(out).items() if "lock" not in name}


class TestComputedInAnotherWay:
    """Threads, program or settings: what was begun goes on as it was begun, and what is complete is taken as it is."""

    @pytest.fixture
    def two_threads(self):
        before = torch.get_num_threads()
        torch.set_num_threads(before + 1)
        yield
        torch.set_num_threads(before)

    def test_begun(self, out, tmp_path, monkeypatch):
        interrupted(out, 65)
        before = files_but_lock(out)
        with monkeypatch.context() as patched:
            patched.setattr(collecting, "program", lambda: {**program(), "interp": "0123456789abcdef" * 4})
            with pytest.raises(LoadError) as error:
                collected(out)
        assert str(error.value) == (
            f"{out}: a store that was computed in another way: interp was {program()['interp'][:16]} there and is "
            "0123456789abcdef here; go on in the same way, or collect into another folder"
        )
        assert files_but_lock(out) == before
        assert files_of(collected(out).folder) == files_of(collected(tmp_path / "whole").folder)

    def test_begun_with_other_threads(self, out, request):
        interrupted(out, 65)
        n = torch.get_num_threads()
        request.getfixturevalue("two_threads")
        with pytest.raises(LoadError, match=f"threads was {n} there and is {n + 1} here; go on in the same way"):
            collected(out)

    @pytest.mark.parametrize("lost", [False, True])
    def test_complete(self, out, lost, request):
        before = files_of(collected(out).folder)
        request.getfixturevalue("two_threads")
        if lost:
            (out / "shard-00001.safetensors").unlink()
            with pytest.raises(LoadError, match="computed in another way: threads was"):
                collected(out)
        else:
            assert files_of(collected(out).folder) == before


@pytest.mark.parametrize("n", [29, 12, 31])
def test_other_passages_under_the_same_hash_are_refused(out, n):
    """Fewer, more, or others: what is there was read from those before."""
    interrupted(out, 105)
    other = random_passages(n) if n != 29 else random_passages(30, seed=1)
    if n == 31:
        collected(out, passages=other)
        return
    with pytest.raises(LoadError, match="collected from other passages than those that are given now"):
        collected(out, passages=other)


def test_fewer_passages_that_end_where_a_shard_does_are_refused(out):
    words = tuple(ReadWord("s", number, "w", (number,), {}) for number in range(5))
    passages = [Passage("d", "", (number, 1, 2, 3, 4), words) for number in range(24)]
    interrupted(out, 105, passages=passages)
    with pytest.raises(LoadError, match=r"shard-00004\.safetensors: collected from other passages"):
        collected(out, passages=passages[:8])


class TestPlaces:
    def test_a_file(self, out):
        out.write_text("precious")
        with pytest.raises(OutputError, match="expected a folder, got a file; name another"):
            collected(out)
        with pytest.raises(LoadError, match="expected a store of activations, got a file"):
            ActivationStore.open(out)
        with pytest.raises(OutputError, match="expected a place that can be written"):
            collected(out / "below")
        assert out.read_text() == "precious"

    @pytest.mark.parametrize("name", ["thesis.tex", "shard-00000.safetensors", "manifest.json"])
    def test_somebody_elses_folder(self, out, name):
        out.mkdir()
        (out / name).write_text('{"format": "interp heads report"}')
        with pytest.raises(
            (OutputError, LoadError), match=r"got one with other files|got something else, or a damaged one"
        ):
            collected(out)
        assert [path.name for path in out.iterdir()] == [name]
        with pytest.raises(LoadError, match=r"got a folder without manifest.json|got something else, or a damaged one"):
            ActivationStore.open(out)

    def test_no_folder(self, out):
        with pytest.raises(LoadError, match="expected a store of activations, got no such folder; check the path"):
            ActivationStore.open(out)

    def test_a_place_that_cannot_be_written(self):
        with pytest.raises(OutputError, match=r"output folder /proc/store: expected a place that can be written, got"):
            collected("/proc/store")

    @pytest.mark.skipif(os.geteuid() != 0, reason="who is not root cannot become another")
    def test_a_read_only_folder(self):
        """Root may write anywhere, so a child who is nobody tries."""
        with TemporaryDirectory() as parent:
            os.chmod(parent, 0o755)
            out = Path(parent) / "store"
            out.mkdir(mode=0o555)
            child = get_context("fork").Process(target=_as_nobody, args=(out,))
            child.start()
            child.join()
        assert child.exitcode == 0

    def test_a_newer_version(self, out):
        collected(out)
        content = json.loads((out / "manifest.json").read_text())
        content = {name: value for name, value in content.items() if name != "sha256"} | {"version": 3}
        (out / "manifest.json").write_text(signed(content))
        with pytest.raises(LoadError, match="in version 3, this program reads 2"):
            ActivationStore.open(out)

    def test_a_full_disk(self, out, tmp_path, monkeypatch):
        replace, left = os.replace, iter(range(4))

        def full(*places):
            if next(left, None) is None:
                raise OSError(28, "No space left on device")
            replace(*places)

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(OutputError, match="got 'No space left on device'; name another, or make room and go on"):
            collected(out)
        monkeypatch.undo()
        assert "shard-00000.safetensors" in files_of(out)
        collected(out)
        assert files_of(out) == files_of(collected(tmp_path / "whole").folder)


def _as_nobody(out):
    os.setuid(65534)
    try:
        collected(out)
    except OutputError as error:
        os._exit(0 if "expected a place that can be written, got 'Permission denied'" in str(error) else 1)
    os._exit(2)


def test_two_collectors_at_once(out, tmp_path):
    said = []

    def second(done):
        if not said:
            with pytest.raises(OutputError) as error:
                collected(out)
            said.append(str(error.value))
            child = get_context("fork").Process(target=_second, args=(out,))
            child.start()
            child.join()
            said.append(child.exitcode)

    collected(out, progress=second)
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    told = f"output folder {out}: another process ({holder}) works on it; wait for it, or name another folder"
    assert said == [told, 7]
    assert files_of(out) == files_of(collected(tmp_path / "whole").folder)


def _second(out):
    try:
        collected(out)
    except OutputError as error:
        os._exit(7 if "another process" in str(error) else 1)
    os._exit(0)
