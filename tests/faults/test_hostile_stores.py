"""What was once found in malformed results of runs: sizes that are only claimed, and other libraries' tracebacks."""

import hashlib
import json
from math import nan

import pandas as pd
import pytest
import torch
from cases import assert_plain, bounded
from safetensors.torch import load_file, save_file
from test_stores import SIZES, STEP, checkpoint, ngram, opened, restored, saved, store

from forerunners.convolution import Convolution, ConvolutionConfig
from forerunners.ngram import NGramConfig
from forerunners.recurrent import Recurrent, RecurrentConfig
from forerunners.saved import load_forerunner
from interp.errors import ConfigError, LoadError
from interp.model.sites import Site


def refused(read, message, kind=LoadError):
    with bounded(5, 2**30), pytest.raises(kind, match=message) as raised:
        read()
    assert_plain(str(raised.value))


class TestManifests:
    @pytest.fixture
    def folder(self, tmp_path):
        store(tmp_path)
        return tmp_path

    def sign(self, folder, change):
        """Change a manifest, and its own hash, too."""
        path = folder / "manifest.json"
        content = json.loads(path.read_text())
        change(content)
        del content["sha256"]
        text = self.written(content)
        content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        path.write_text(self.written(content))

    def written(self, content):
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    @pytest.mark.parametrize("content", ["[" * 100_000, '{"format": "interp activation store", "a": NaN}'])
    def test_what_is_no_json(self, folder, content):
        (folder / "manifest.json").write_text(content)
        refused(lambda: opened(True)(folder), "expected the manifest of a store")

    def test_half_a_character(self, folder):
        (folder / "manifest.json").write_text('{"format": "interp activation store", "a": "\\ud800"}')
        refused(lambda: opened(True)(folder), "expected the manifest of a store")

    @pytest.mark.parametrize(
        "change",
        [
            lambda content: content.pop("request"),
            lambda content: content.update(request=[], shards={}),
            lambda content: content.update(rows=nan),
            lambda content: content.update(rows=content["rows"] + 1),
            lambda content: content["request"].pop("dtype"),
            lambda content: content["request"].update(dtype="float8"),
            lambda content: content["request"].update(shard_rows=True),
            lambda content: content["request"].update(more=1),
            lambda content: content["request"]["sites"][0].update(name="nowhere"),
            lambda content: content["request"]["sites"][0].update(shape=["12"]),
            lambda content: content["request"]["sites"][1].update(layer=None),
            lambda content: content["shards"][0].update(file="../../secret.safetensors"),
            lambda content: content["shards"].append(None),
        ],
    )
    def test_signed_nonsense(self, folder, change):
        self.sign(folder, lambda _content: None)
        assert opened(True)(folder).rows
        self.sign(folder, change)
        refused(lambda: opened(True)(folder), "expected the manifest of a store|in version")

    def test_activations_that_no_file_could_hold(self, folder):
        self.sign(folder, lambda content: content["request"]["sites"][0].update(shape=[10**9, 10**9]))
        found = opened(False)(folder)
        refused(lambda: found.read(Site("embed")), "shard-00000.safetensors: cannot be read .expected at least")

    def test_a_tensor_of_another_shape(self, folder):
        path = folder / "shard-00000.safetensors"
        held = load_file(path)
        name = Site("z", 0).hook_name
        save_file(held | {name: held[name].flatten(1)}, path)
        refused(lambda: opened(False)(folder).read(Site("z", 0), heads=[2]), r"expected \d+ rows of \(3, 5\) numbers")

    @pytest.mark.parametrize("change", [lambda frame: frame[:-1], lambda frame: frame.drop(columns="form")])
    def test_an_index_of_other_words(self, folder, change):
        path = folder / "index.parquet"
        change(pd.read_parquet(path)).to_parquet(path)
        refused(lambda: opened(False)(folder).index, "index.parquet: expected (.* words, got|a column 'form', got)")


class TestBaselines:
    def change(self, folder, **fields):
        content = json.loads((folder / "config.json").read_text())
        content["config"] |= fields
        (folder / "config.json").write_text(json.dumps(content))

    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("d_vocab", 10**12, r"tensor 'embed.W_E': expected shape \(1000000000000, 8\)"),
            ("d_vocab", 10**25, "expected sizes that can be counted"),
            ("n_layers", 10**9, "1000000000 layers, but"),
        ],
    )
    def test_sizes_that_are_only_claimed(self, tmp_path, field, value, message):
        saved(Recurrent, RecurrentConfig(**SIZES))(tmp_path)
        self.change(tmp_path, **{field: value})
        refused(lambda: load_forerunner(tmp_path), message)

    @pytest.mark.parametrize("sizes", [{"n_layers": 60}, {"n_layers": 10**9}, {"kernel_size": 10**9}])
    def test_layers_that_look_further_than_memory(self, sizes):
        refused(lambda: ConvolutionConfig(**SIZES | sizes), "each layer looks twice as far", ConfigError)

    def test_one_layer_too_few_to_look_back(self):
        assert Convolution(ConvolutionConfig(**SIZES | {"kernel_size": 1}))

    @pytest.mark.parametrize("order", [64, 10**9, 10**400])
    def test_n_grams_without_end(self, order):
        refused(lambda: NGramConfig(order, 11), "order: the n-grams of .* cannot be numbered", ConfigError)

    @pytest.mark.parametrize(
        ("name", "dtype"), [("contexts", torch.uint32), ("words", torch.bool), ("alpha", torch.complex64)]
    )
    def test_tables_of_other_kinds_of_numbers(self, tmp_path, name, dtype):
        ngram(tmp_path)
        state = load_file(tmp_path / "model.safetensors")
        state[f"orders.0.{name}"] = state[f"orders.0.{name}"].to(dtype)
        save_file(state, tmp_path / "model.safetensors")
        refused(lambda: load_forerunner(tmp_path), "the table of order 2 is none of 11 words")


class TestTrainings:
    def test_a_step_that_only_looks_like_a_number(self, tmp_path):
        checkpoint(tmp_path)
        path = tmp_path / STEP / "training.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"held_out": {"²": 1.5}}))
        refused(lambda: restored(tmp_path), "expected settings, material and losses")

    def test_optimisers_that_remember_no_numbers(self, tmp_path):
        checkpoint(tmp_path)
        path = tmp_path / STEP / "optimizers.safetensors"
        state = load_file(path)
        name = next(name for name in state if name.endswith("exp_avg"))
        state[name][0] = nan
        save_file(state, path)
        refused(lambda: restored(tmp_path), f"tensor '{name}': .* are NaN or infinite; delete")
