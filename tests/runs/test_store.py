"""Stores: what is read is what was computed, byte by byte; what is damaged, foreign or of another request is named."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from as_users_call import unchecked
from random_passages import random_passages
from stores import SITES, collected, files_of, flipped, noting
from tiny_models import random_model

from interp.errors import ConfigError, InputError, LoadError, TaskError
from interp.model.devices import arithmetic
from interp.model.loading.bridge import settings_hash
from interp.model.sites import Site
from interp.model.weights import config_hash, tokenizer_hash, weights_hash
from interp.residual.collecting import word_activations
from interp.runs import collecting, shards
from interp.runs.key import program
from interp.runs.store import ActivationStore, part_of, row_numbers
from interp.tasks.features import Label
from interp.tasks.passages import Passage, ReadWord

Z, EMBED, RESID = Site("z", 0), Site("embed"), Site("resid_post", 1)


def words_of(passages):
    return [(passage.document, passage.template, word) for passage in passages for word in passage.words]


def streamed(model, passages, site, **options):
    batches = list(word_activations(model, passages, [site], **options))
    order = torch.cat([batch.numbers for batch in batches]).argsort()
    return torch.cat([batch.values[site] for batch in batches])[order]


@pytest.mark.parametrize("rows", [1, 3, 20, 1000])
@pytest.mark.parametrize("pooling", ["first", "last", "mean"])
def test_what_is_read_is_what_the_model_holds(model, out, rows, pooling):
    """Also where a passage's words are in many shards."""
    passages = random_passages(8)
    store = collected(out, rows=rows, model=model, passages=iter(passages), pooling=pooling)
    assert store.rows == len(words_of(passages))
    assert store.sites == (EMBED, Z, RESID)
    for site in store.sites:
        expected = streamed(model, passages, site, pooling=pooling)
        torch.testing.assert_close(store.read(site), expected, rtol=1e-12, atol=1e-12)


def test_the_index_has_a_row_for_every_word(out):
    passages = random_passages(30)
    index = collected(out, rows=20, passages=passages).index
    words = words_of(passages)
    assert [*index.columns] == [
        *("document", "template", "sentence", "word", "token", "n_tokens", "form"),
        *("upos", "upos:carrier", "upos:lemma", "late", "late:carrier", "late:lemma"),
    ]
    assert len(index) == len(words)
    for (document, template, word), row in zip(words, index.itertuples(index=False), strict=True):
        place = (document, template, word.sentence, word.word, min(word.tokens), len(word.tokens))
        assert row[:7] == (*place, word.form)
    for feature in ("upos", "late"):
        labels = [word.labels.get(feature) for *_, word in words]
        assert any(labels)
        assert not all(labels)
        for column, attribute in ((feature, "value"), (f"{feature}:carrier", "carrier"), (f"{feature}:lemma", "lemma")):
            found = [None if pd.isna(each) else each for each in index[column]]
            assert found == [None if each is None else getattr(each, attribute) for each in labels]


def test_the_folder_and_its_manifest(model, out):
    store = collected(out, rows=20, model=model)
    n_shards = -(-store.rows // 20)
    assert sorted(files_of(out)) == [
        *("index.parquet", "manifest.json"),
        *(f"shard-{number:05d}.safetensors" for number in range(n_shards)),
    ]
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["rows"] == store.rows
    assert [each["rows"] for each in manifest["shards"]] == [20] * (n_shards - 1) + [store.rows - 20 * (n_shards - 1)]
    assert manifest["request"] == {
        "model_hash": weights_hash(model),
        "config_hash": config_hash(model),
        "tokenizer_hash": tokenizer_hash(model.tokenizer),
        "model_dtype": "float64",
        "data_hash": "abc",
        "sites": [
            {"name": "embed", "layer": None, "shape": [12]},
            {"name": "z", "layer": 0, "shape": [3, 5]},
            {"name": "resid_post", "layer": 1, "shape": [12]},
        ],
        "pooling": "last",
        "dtype": "float64",
        "shard_rows": 20,
        "computed": {
            **{"threads": torch.get_num_threads(), "device": "cpu", "settings_hash": settings_hash(model)},
            **program(),
            **arithmetic(),
        },
    }
    modes = {path.name: path.stat().st_mode & 0o777 for path in out.iterdir()}
    assert len(set(modes.values())) == 1, "safetensors' files can be read by as many as the others"


def test_the_same_request_gives_the_same_bytes(out, tmp_path):
    """Sites in another order, from an iterator, into a folder of another name."""
    first = files_of(collected(out).folder)
    again = collected(tmp_path / "else" / "where", sites=[*reversed(SITES), EMBED], passages=iter(random_passages(30)))
    assert files_of(again.folder) == first


def test_shards_are_limited_in_rows_too(out, monkeypatch):
    monkeypatch.setattr(collecting, "MOST_ROWS", 7)
    assert collected(out, rows=1000).manifest.request.shard_rows == 7


def test_no_batch_crosses_a_shard(out, monkeypatch):
    passages, run = random_passages(30), []
    found = list(shards.shards_of(passages, 20))
    assert words_of(each for shard in found for each in shard.passages()) == words_of(passages)
    monkeypatch.setattr("interp.runs.shards.batch_activations", noting(run))
    collected(out, passages=passages)
    in_shards = [{number // 20 for number in batch.numbers.tolist()} for batch in run]
    assert all(len(own) == 1 or len(batch.passages) == 1 for own, batch in zip(in_shards, run, strict=True))
    assert any(len(own) > 1 for own in in_shards)
    assert any(len(batch.passages) > 1 for batch in run)
    assert sum(len(batch.numbers) for batch in run) == 122, "each passage is run once"


def test_every_byte_of_the_manifest_counts(out):
    collected(out, n=2)
    path = out / "manifest.json"
    content = path.read_bytes()
    for at in range(len(content)):
        for instead in (bytes([content[at] ^ 0x15]), b""):
            path.write_bytes(content[:at] + instead + content[at + 1 :])
            with pytest.raises(LoadError, match=r"manifest\.json"):
                ActivationStore.open(out, verify=False)


@pytest.mark.parametrize("name", ["index.parquet", "shard-00000.safetensors", "shard-00003.safetensors"])
def test_a_flipped_byte_is_found_and_named(out, name):
    collected(out)
    path = out / name
    whole = path.read_bytes()
    for at in [0, 9, *np.random.default_rng(0).integers(len(whole), size=20).tolist(), len(whole) - 1]:
        path.write_bytes(whole)
        ActivationStore.open(out)
        flipped(path, at)
        with pytest.raises(LoadError, match=f"{name}: expected SHA-256 [0-9a-f]+, got [0-9a-f]+: it is damaged"):
            ActivationStore.open(out)
        with pytest.raises(LoadError, match=f"{name}: .* delete it and collect again"):
            collected(out)
    path.unlink()
    collected(out)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("name", ["index.parquet", "manifest.json", "shard-00001.safetensors"])
def test_an_empty_file_is_named(out, name):
    collected(out)
    (out / name).write_bytes(b"")
    with pytest.raises(LoadError, match=name):
        ActivationStore.open(out)
    if name != "manifest.json":
        store = ActivationStore.open(out, verify=False)
        with pytest.raises(LoadError, match=f"{name}: cannot be read"):
            store.index if name == "index.parquet" else store.read(Z, rows=[25])


class TestRead:
    @pytest.fixture
    def store(self, model, out):
        return collected(out, model=model)

    @pytest.mark.parametrize(
        "rows", [[3], [70, 2, 2, 41], range(18, 63), np.array([64, 1]), slice(15, 45, 7), [], None]
    )
    @pytest.mark.parametrize("heads", [[1], [2, 0], None])
    def test_rows_and_heads(self, store, rows, heads):
        everything = store.read(Z)
        at = range(store.rows)[rows] if isinstance(rows, slice) else range(store.rows) if rows is None else rows
        expected = everything[torch.tensor([*at], dtype=torch.long)]
        expected = expected if heads is None else expected[:, heads]
        found = store.read(Z, rows, heads)
        assert torch.equal(found, expected)
        found += 1
        assert torch.equal(store.read(Z), everything), "a change is not one of the file"

    def test_only_what_is_asked_for_is_copied(self, model, tmp_path):
        """100 MB of other heads and sites take no memory of the process."""
        wide = random_model(n_heads=8, d_head=512, dtype=torch.float32)
        options = {"model": wide, "passages": random_passages(1000), "sites": [Site("z", 0), Site("z", 1)]}
        store = collected(tmp_path / "wide", rows=10**6, **options)
        assert sum(len(each) for each in files_of(store.folder).values()) > 100e6
        before = anonymous_memory()
        part = part_of(store.folder / store.manifest.shards[0].file, Z.hook_name, np.arange(store.rows), None, (8, 512))
        assert part.nbytes > 50e6
        assert anonymous_memory() - before < 2e6
        found = store.read(Z, heads=[3])
        assert anonymous_memory() - before < 2 * found.nbytes + 2e6
        assert found.nbytes < 10e6

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((Site("z", 1),), "nothing is stored of blocks.1.attn.hook_z; did you mean 'blocks.0.attn.hook_z'"),
            ((Z, [-1]), "rows: expected numbers from 0 to 121, got -1"),
            ((Z, [5, 122]), "rows: expected numbers from 0 to 121, got 122"),
            ((Z, None, [3]), "heads: expected numbers from 0 to 2, got 3"),
            ((Z, None, [-1]), "heads: expected numbers from 0 to 2, got -1"),
            ((RESID, None, [0]), "heads: expected none for 'resid_post', which has no heads, got [0]; leave it out"),
        ],
    )
    def test_what_is_not_there(self, store, arguments, said):
        assert store.rows == 122
        with pytest.raises(InputError) as error:
            store.read(*arguments)
        assert said in str(error.value)

    @pytest.mark.parametrize("rows", [np.array([[1]]), np.array([True, False]), [1.5]])
    def test_what_is_no_number_of_a_row(self, rows):
        """Where no types are checked."""
        with pytest.raises(InputError, match="rows: expected a list of numbers, or a slice, got "):
            unchecked(row_numbers)(rows, 2)

    def test_another_model_is_refused(self, model, store):
        store.require_model(model)
        store.require_model(model.to(torch.float64))
        other = random_model(seed=1)
        with pytest.raises(InputError) as error:
            store.require_model(other)
        assert f"model_hash {weights_hash(model)}, got one of {weights_hash(other)}" in str(error.value)
        same_weights = random_model(eps=0.1)
        with pytest.raises(
            InputError, match=f"config_hash {config_hash(model)}, got one of {config_hash(same_weights)}"
        ):
            store.require_model(same_weights)


def anonymous_memory():
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("RssAnon"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", torch.float32])
def test_other_dtypes(model, out, dtype):
    passages = random_passages(5)
    store = collected(out, model=model, passages=passages, dtype=dtype)
    found = store.read(Z)
    assert found.dtype == getattr(torch, str(dtype).removeprefix("torch."))
    assert torch.equal(found, streamed(model, passages, Z).to(found.dtype))
    assert store.manifest.request.shard_rows == 20 * 8 // found.element_size()


def test_numbers_that_do_not_fit_are_refused(model, out):
    with torch.no_grad():
        model.embed.W_E *= 1e6
    with pytest.raises(InputError, match=r"hook_embed: expected numbers that float16 can hold, got \d.*float32"):
        collected(out, model=model, dtype="float16")
    assert not out.exists()
    with pytest.raises(ConfigError, match="dtype: expected one of float64"):
        collected(out, model=model, dtype="int8")


def test_no_size(out):
    with pytest.raises(InputError, match="shard_bytes: expected a size, got 0; leave it out for 134,217,728"):
        collected(out, shard_bytes=0)
    assert not out.exists()


def test_nothing_to_read(out):
    said = "passages: expected words to be read, got none; take another corpus, or other features"
    for passages in ([], [Passage("d", "", (1, 2), ())]):
        with pytest.raises(InputError, match=said):
            collected(out, passages=passages)
    assert not out.exists()


def test_what_is_no_number_leaves_nothing(model, out):
    with torch.no_grad():
        model.blocks[1].mlp.W_in[0, 0] = torch.nan
    with pytest.raises(InputError, match=r"resid_post of layer 1: expected finite activations, got others at document"):
        collected(out / "new", model=model)
    assert not out.exists()
    out.mkdir()
    with pytest.raises(InputError, match="expected finite activations"):
        collected(out, model=model)
    assert list(out.iterdir()) == []


def test_a_model_that_shows_no_weights(model, out, monkeypatch):
    facts = {"model": "Sealed", "model_hash": None, "config_hash": None, "tokenizer_hash": None, "dtype": "float64"}
    monkeypatch.setattr(collecting, "model_provenance", lambda _model: facts)
    with pytest.raises(InputError, match=r"Sealed: expected a model that shows its weights \(a torch module\)"):
        collected(out, model=model)
    assert not out.exists()


def test_a_model_with_hooks(model, out):
    refused = pytest.raises(InputError, match=r"somebody's hooks are on the model.*or read it with word_activations")
    with model.hooks(fwd_hooks=[("blocks.0.attn.hook_z", lambda z, hook: 0 * z)]), refused:
        collected(out, model=model)
    assert not out.exists()


def test_a_feature_that_is_called_like_a_column(out):
    word = ReadWord("s", 0, "it", (1,), {"form": Label("it", "it", "")})
    with pytest.raises(TaskError, match="feature 'form': expected another name than those of the index"):
        collected(out, passages=[Passage("d", "", (1, 2), (word,))])
