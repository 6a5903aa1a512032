"""Tokenizers that load and then fail at a text: the error is ours, and comes as early as it can."""

import json

import pytest
from kinds_of_tokenizers import wordpiece
from tiny_models import random_model, word_tokenizer

from interp.errors import InputError, LoadError, TaskError
from interp.model.loading import load_model, save_model
from interp.tasks.encoding import encode_task
from interp.tasks.example import Example, MinimalPair


@pytest.fixture
def unknowing():
    """A tokenizer whose token for unknown words is itself unknown."""
    tokenizer = wordpiece("the", "key")
    described = json.loads(tokenizer.backend_tokenizer.to_str())
    described["model"]["unk_token"] = "[GONE]"
    tokenizer._tokenizer = type(tokenizer.backend_tokenizer).from_str(json.dumps(described))
    return tokenizer


@pytest.mark.parametrize("longest", ["many", [512], {}])
def test_a_length_that_is_no_number(tmp_path, longest):
    save_model(random_model(tokenizer=word_tokenizer()), tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": longest}))
    with pytest.raises(LoadError, match="the tokenizer's files cannot be read"):
        load_model(tmp_path)


def test_a_word_that_it_does_not_know(unknowing):
    model = random_model(tokenizer=unknowing)
    assert model.tokenize("the key", prepend_bos=False)[0].shape == (1, 2)
    with pytest.raises(InputError, match="'the lock': the tokenizer cannot encode this"):
        model.tokenize("the lock", prepend_bos=False)


def test_a_task_of_words_that_it_does_not_know(unknowing):
    pair = MinimalPair(Example("the lock", " is", " are", None, "a", "a"), None, "a")
    with pytest.raises(TaskError, match="the tokenizer cannot encode the texts"):
        encode_task([pair], tokenizer=unknowing, name="a", description="a", metric="logit_difference")
