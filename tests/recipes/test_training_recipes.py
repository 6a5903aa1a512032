"""`interp train` in small: a recipe's model can be loaded, its seed decides it, and a bad recipe is refused."""

import lzma
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from interp.errors import ConfigError, InputError, LoadError
from interp.model.loading import load_model
from recipes.recipe import read_recipe, recipes
from recipes.text import read_paragraphs
from recipes.train import train_recipe

PROSE = "\n".join(
    ["<|endoftext|>", ""]
    + [f"The {adjective} {noun} was {verb} by the sea, and nobody knew it." for adjective in ("old", "red", "cold")
       for noun in ("house", "boat", "garden", "horse") for verb in ("seen", "found", "bought", "sold", "left")]
)  # fmt: skip

OWN = """
seed = 7
[data]
source = "text"
text = "{text}"
held_out = 0.1
[tokenizer]
kind = "bpe"
size = 300
[model]
n_layers = 1
n_heads = 2
d_model = 16
d_head = 8
d_mlp = 32
n_ctx = 8
[training]
steps = 6
batch_size = 2
checkpoint_every = 4
"""


@pytest.fixture
def prose(tmp_path):
    path = tmp_path / "prose.txt.xz"
    path.write_bytes(lzma.compress(PROSE.encode()))
    return path


@pytest.fixture
def own(tmp_path, prose):
    path = tmp_path / "own.toml"
    path.write_text(OWN.format(text=prose))
    return path


def test_a_seed_gives_one_model_that_loads(tmp_path):
    threads, told, recipe = torch.get_num_threads(), [], read_recipe("default")
    first = train_recipe(recipe, tmp_path / "mine", seed=5, steps=2, progress=lambda *step: told.append(step))
    again = train_recipe(recipe, tmp_path / "again", seed=5, steps=2)
    other = train_recipe(recipe, tmp_path / "other", seed=6, steps=2)
    assert first.hash == again.hash != other.hash
    assert (first.tokens, first.seed, torch.get_num_threads()) == (2 * 16 * 64, 5, threads)
    model = load_model(tmp_path / "mine")
    assert (model.name, model.hash) == ("mine", first.hash)
    assert model.config == recipe.config(len(model.tokenizer))
    assert model.generate("The keys", max_new_tokens=3).startswith("The keys")


def test_a_recipe_of_ones_own(tmp_path, own):
    done = train_recipe(read_recipe(own), tmp_path / "mine")
    assert load_model(tmp_path / "mine").hash == done.hash
    frame = done.frame()
    assert frame["split"].value_counts().to_dict() == {"train": 6, "held out": 2}
    assert frame[frame["split"] == "held out"]["tokens"].tolist() == [4 * 16, 6 * 16]
    assert done.curve.train[-1] < done.curve.train[0]
    assert load_model(tmp_path / "mine" / "checkpoints" / "step-00000006").tokenizer.encode(" sea") != []


def test_an_interrupted_recipe_goes_on(tmp_path, own):
    def stop(step, _loss):
        if step == 5:
            raise KeyboardInterrupt

    recipe = read_recipe(own)
    recipe = replace(recipe, training=replace(recipe.training, log_every=1))
    whole = train_recipe(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_recipe(recipe, tmp_path / "mine", progress=stop)
    told = []
    again = train_recipe(recipe, tmp_path / "mine", progress=lambda step, _: told.append(step))
    assert told == [5, 6]
    assert (again.hash, again.curve) == (whole.hash, whole.curve)


def test_the_embedded_models_have_recipes():
    assert recipes() == ["books", "default"]
    books = read_recipe("books").config(8192)
    assert books.tied
    with pytest.raises(InputError, match=r"books: is trained on a text; name its file with --text"):
        train_recipe(read_recipe("books"), "nowhere")
    with pytest.raises(InputError, match=r"is trained on this project's own English, but got the text a.txt"):
        train_recipe(read_recipe("default"), "nowhere", text="a.txt")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[data]", "[dat]", "unknown field 'dat'; did you mean 'data'"),
        ("seed = 7", "sed = 7", "unknown field 'sed'; did you mean 'seed'"),
        ("seed = 7", "seed = -7", "seed: expected a whole number from 0 to .*, got -7"),
        ("[tokenizer]", "[tokenizer]\nkindd = 1", "tokenizer: unknown field 'kindd'; did you mean 'kind'"),
        ('"bpe"', '"word"', "tokenizer: kind: expected one of lexicon, bpe, got 'word'"),
        ('source = "text"', 'source = "hub"', "data: source: expected one of grammar, text, got 'hub'"),
        ('source = "text"', 'source = "grammar"', "kind 'bpe' is learned from a text"),
        ("size = 300", "size = 12", r"size: expected at least 257 \(the bytes and BOS\), got 12"),
        ("held_out = 0.1", "held_out = 1.0", "held_out: expected 0, or a share from 1e-06 to 0.5, got 1.0"),
        ("held_out = 0.1", "held_out = 1e-320", "held_out: expected 0, or a share from 1e-06 to 0.5, got 1e-320"),
        ('text = "', 'text = 3 # "', "data: text: expected the name of a file, got 3"),
        ("size = 300", 'size = "x"', "size: expected at least 257"),
        ("seed = 7", "seed = true", "seed: expected a whole number from 0 to .*, got True"),
        ("steps = 6", "steps = true", "steps: expected a whole number of at least 1, got True"),
        ("n_heads = 2", "n_heads = 2\ncausal = false", "model: causal: next tokens are what is learned"),
        ("steps = 6", "", "training: expected the fields steps; missing steps"),
        ("n_heads = 2", "", "missing n_heads"),
        ("n_heads = 2", "n_heads = 0", "n_heads: expected a whole number of at least 1, got 0"),
        ("batch_size = 2", "batch_size = 0", "batch_size: expected a whole number of at least 1, got 0"),
        ("seed = 7", 'save_as = "int8"', "dtype: expected one of .*, got 'int8'"),
    ],
)
def test_a_bad_recipe_is_refused(tmp_path, prose, old, new, message):
    path = tmp_path / "bad.toml"
    path.write_text(OWN.format(text=prose).replace(old, new))
    with pytest.raises(ConfigError, match=message):
        read_recipe(path)


def test_a_recipe_on_the_base_of_another(tmp_path):
    path, books = tmp_path / "rotary.toml", read_recipe("books")
    path.write_text('base = "books"\nseed = 4\n[model]\npositions = "rotary"\n[training]\nsteps = 7\n')
    steps = replace(books.training, steps=7)
    changed = {"name": "rotary", "seed": 4, "model": {**books.model, "positions": "rotary"}, "training": steps}
    assert read_recipe(path) == replace(books, **changed)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('base = "book"', "base: expected one of books, default, got 'book'"),
        ("base = 3", "base: expected one of books, default, got 3"),
        ('bas = "books"', "unknown field 'bas'; did you mean 'base'"),
        ('base = "books"\n[seed]\na = 1', "seed: expected a whole number from 0"),
        ('base = "books"\nmodel = 3', r"expected a section \[model\]"),
        ('base = "books"\n[model]\nheads = 3', "model: unknown field 'heads'; did you mean 'n_heads'"),
    ],
)
def test_a_bad_base_is_refused(tmp_path, content, message):
    path = tmp_path / "bad.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_recipe(path)


def test_what_is_no_recipe_is_refused(tmp_path):
    with pytest.raises(LoadError, match=r"nowhere: no such recipe; expected a TOML file or one of books, default"):
        read_recipe("nowhere")
    for content in (b"seed = ", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(LoadError, match="expected a recipe in TOML"):
            read_recipe(tmp_path / "bad.toml")


class TestText:
    def test_every_paragraph_comes_once_before_any_comes_again(self, prose):
        text = read_paragraphs(prose, 0.1)
        assert len(text.held_out) == 6
        assert len(text.trained) == 54
        stream = text.shuffled(0)
        first, second = ([next(stream) for _ in range(54)] for _ in range(2))
        assert sorted(first) == sorted(second) == sorted(text.trained)
        assert first != second
        assert not set(text.held_out) & set(first)

    def test_what_the_text_holds_twice_is_not_held_out(self, tmp_path):
        lines = [f"Paragraph {number}." for number in range(40)]
        (tmp_path / "twice.txt").write_text("\n".join([*lines, *lines[:30]]))
        text = read_paragraphs(tmp_path / "twice.txt", 0.1)
        assert not set(text.held_out) & set(text.trained)
        assert text.held_out

    def test_the_first_that_are_held_out_come_from_the_whole_text(self, tmp_path):
        (tmp_path / "long.txt").write_text("\n".join(map(str, range(1000))))
        first = [int(line) for line in read_paragraphs(tmp_path / "long.txt", 0.1).held_out[:20]]
        assert first != sorted(first)
        assert max(first) > 500

    def test_plain_files_are_read_too(self, tmp_path, prose):
        (tmp_path / "prose.txt").write_text(PROSE)
        assert read_paragraphs(tmp_path / "prose.txt", 0.1) == read_paragraphs(prose, 0.1)

    @pytest.mark.parametrize(
        ("name", "content"), [("a.txt", b"\xff\xff"), ("a.xz", b"no archive"), ("a.xz", lzma.compress(b"a" * 99)[:-9])]
    )
    def test_what_is_no_text_is_refused(self, tmp_path, name, content):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=r"expected a text in UTF-8, plain or .xz"):
            read_paragraphs(tmp_path / name, 0.0)

    def test_a_pipe_is_refused(self):
        """The text is hashed as well as read, so that a training goes on with the same one only."""
        reading, writing = os.pipe()
        os.write(writing, PROSE.encode())
        os.close(writing)
        with pytest.raises(
            InputError, match="expected a text in a file, got a pipe, which can be read only once; write"
        ):
            read_paragraphs(Path(f"/dev/fd/{reading}"), 0.1)
        os.close(reading)

    def test_too_few_paragraphs_are_refused(self, tmp_path):
        (tmp_path / "a.txt").write_text("One.\nTwo.\n")
        with pytest.raises(InputError, match=r"expected at least 10 paragraphs, .* got 2, 0 of them to hold out"):
            read_paragraphs(tmp_path / "a.txt", 0.1)
        with pytest.raises(InputError, match="expected a text"):
            read_paragraphs(tmp_path / "nowhere.txt", 0.0)

    def test_as_many_are_held_out_as_were_asked_for(self, tmp_path):
        lines = [f"Line {number}." for number in range(100)]
        (tmp_path / "a.txt").write_text("\n".join(lines))
        for share in (0.02, 0.3, 0.4, 0.5):
            text = read_paragraphs(tmp_path / "a.txt", share)
            assert (len(text.held_out), len(text.trained)) == (100 * share, 100 - 100 * share)
            assert sorted(text.held_out + text.trained) == sorted(lines)

    def test_a_text_in_which_nothing_that_is_held_out_comes_once(self, tmp_path):
        (tmp_path / "a.txt").write_text("\n".join(2 * [f"Line {number}." for number in range(15)]))
        with pytest.raises(InputError, match="got 30, 0 of them to hold out"):
            read_paragraphs(tmp_path / "a.txt", 0.1)

    def test_a_vocabulary_that_the_text_does_not_fill_is_refused(self, tmp_path, own):
        recipe = replace(read_recipe(own), size=5_000)
        with pytest.raises(InputError, match="of the 5000 entries that the vocabulary is to have; give more text"):
            train_recipe(recipe, tmp_path / "mine")
