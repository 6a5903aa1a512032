import pytest
from tiny_models import random_gpt2


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """The hub cannot be reached, and nobody tries to."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def refuse(*_):
        raise AssertionError("a test reached for the network")

    monkeypatch.setattr("socket.socket.connect", refuse)


@pytest.fixture
def gpt2(tmp_path):
    random_gpt2(tie_word_embeddings=False).save_pretrained(tmp_path)
    return tmp_path
