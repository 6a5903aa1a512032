"""Configs: any field any value, from a file or from Python, is a config that holds, or a ConfigError."""

import dataclasses
from collections import Counter
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from cases import Reader, assert_plain, bounded, try_all
from damage import BYTES, LINES, ODD_VALUES, deep, inserted, nested
from given import TEXTS, VALUES, examples
from hypothesis import given
from hypothesis import strategies as st

from forerunners.convolution import ConvolutionConfig
from forerunners.ngram import NGramConfig
from forerunners.recurrent import RecurrentConfig
from interp.errors import ConfigError, LoadError
from interp.model.config import BIASES, TransformerConfig
from interp.model.training import TrainingConfig
from recipes.recipe import read_recipe

pytestmark = pytest.mark.unchecked  # types are what is given wrongly here: the configs' own checks are to say so

SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 12, "d_head": 6, "d_mlp": 20, "d_vocab": 40, "n_ctx": 16}
KINDS = {
    TransformerConfig: SIZES,
    TrainingConfig: {"steps": 10},
    RecurrentConfig: {"n_layers": 2, "d_model": 12, "d_vocab": 40},
    ConvolutionConfig: {"n_layers": 2, "d_model": 12, "d_vocab": 40},
    NGramConfig: {"order": 3, "d_vocab": 40},
}
LARGEST = (10**5_000, nested(100_000))
"""Of Python alone: JSON has neither."""
CHOICES = [get_args(hint) for hint in get_type_hints(TransformerConfig).values() if get_origin(hint) is Literal]
WORDS = st.sampled_from([each for choices in CHOICES for each in choices])
SOUND = st.one_of(
    st.integers(0, 8), WORDS, st.booleans(), st.lists(st.sampled_from(BIASES), max_size=6), st.floats(1e-6, 1e6)
)


def fields_of(kind):
    names = st.sampled_from([each.name for each in dataclasses.fields(kind)])
    return st.dictionaries(st.one_of(names, names, names, TEXTS), st.one_of(VALUES, SOUND, SOUND), max_size=4)


def refused(make):
    try:
        with bounded(5):
            return make(), False
    except ConfigError as error:
        refusal = error
    assert type(refusal) is ConfigError
    assert_plain(str(refusal))
    return None, True


@pytest.mark.parametrize("n", [40, pytest.param(250, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_any_field_any_value(kind, n, record_property):
    found = Counter()

    @examples(n)
    @given(fields_of(kind), st.booleans())
    def check(fields, from_file):
        known = {each.name for each in dataclasses.fields(kind)}
        given_fields = KINDS[kind] | fields
        if not from_file:
            given_fields = {name: value for name, value in given_fields.items() if name in known}
        config, was_refused = refused(lambda: kind.from_dict(given_fields) if from_file else kind(**given_fields))
        found["refused" if was_refused else "read"] += 1
        if not was_refused:
            written = config.to_dict() if kind is TransformerConfig else dataclasses.asdict(config)
            assert kind.from_dict(written) == kind.from_dict(written)
            assert known == set(written)

    check()
    record_property("malformed", dict(found))
    assert min(found.values()) > n / 20
    assert found.total() >= n


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_field_each_odd_value(kind, record_property):
    found = Counter()
    for field in dataclasses.fields(kind):
        for value in (*ODD_VALUES, *LARGEST):
            _, was_refused = refused(lambda fields={field.name: value}: kind(**KINDS[kind] | fields))
            found["refused" if was_refused else "read"] += 1
    record_property("malformed", dict(found))


@pytest.mark.parametrize("name", ["eps", "init_std", "rotary_base"])
@pytest.mark.parametrize("value", [1, 2**63, 10**300])
def test_a_whole_number_where_any_is_meant(name, value):
    assert isinstance(getattr(TransformerConfig(**SIZES | {name: value}), name), float)


RECIPE = b"""\
base = "default"
seed = 3
save_as = "float32"

[data]
source = "text"
text = "books.txt"
held_out = 0.01

[tokenizer]
kind = "bpe"
size = 500

[model]
n_layers = 2
positions = "rotary"
biases = ["qkv", "mlp"]
eps = 1e-5

[training]
steps = 10
muon_lr = 0.02
precision = "float32"
"""
ODD_TOML = (
    *(b"true", b"-1", b"0", b"9" * 5_000, b"9223372036854775808", b"nan", b"inf", b"1e400", b'""', b"[]", b"{}"),
    *(b'"a"', b'"\\u0000"', b"1979-05-27", b"[[1]]", b"{ a = 1 }", b"[" * 5_000, b'"' + b"a" * 9_000 + b'"'),
)


def value_changed(content, rng):
    lines = content.split(b"\n")
    at = rng.choice([at for at, line in enumerate(lines) if b"=" in line])
    lines[at] = lines[at].split(b"=")[0] + b"= " + rng.choice(ODD_TOML)
    return b"\n".join(lines)


RECIPES = Reader(
    "recipe",
    lambda folder: (folder / "mine.toml").write_bytes(RECIPE),
    lambda folder: read_recipe(folder / "mine.toml"),
    {"mine.toml": (*BYTES, *LINES, inserted, deep, *[value_changed] * 20)},
    (ConfigError, LoadError),
    lambda recipe: recipe.config(300),
)


@pytest.mark.parametrize("n", [40, pytest.param(250, marks=pytest.mark.slow)])
def test_a_damaged_recipe_is_refused_or_read_whole(n, tmp_path, record_property):
    record_property("malformed", try_all(RECIPES, n, tmp_path))
