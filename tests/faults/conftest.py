import pytest


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """The hub cannot be reached, and nobody tries to."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def refuse(*_):
        raise AssertionError("a test reached for the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
