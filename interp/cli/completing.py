"""What does the shell offer when one presses tab? Names, from what can be known without torch.

Names of tasks and presets stand here once more, because to import what they belong to takes a second or more; a test
holds them equal.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

Completer = Callable[[str], list[str]]
_PACKAGE = Path(__file__).parent.parent


def one_of(*names: str) -> Completer:
    """Offers those of the names that begin as what is there."""
    return lambda incomplete: _beginning(incomplete, names)


def several_of(*names: str) -> Completer:
    """Offers them for the last name of a list with commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        left = [name for name in names if name not in before.split(",")]
        return [f"{before}{comma}{name}" for name in _beginning(last, left)]

    return complete


def models(incomplete: str) -> list[str]:
    """The embedded models, and those that were fetched; of files the shell itself knows."""
    cache = Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"), "interp")
    found = [*_PACKAGE.glob("model/zoo/*/config.json"), *cache.glob("models/*/config.json")]
    return _beginning(incomplete, sorted(path.parent.name for path in found))


def plannable(incomplete: str) -> list[str]:
    """Presets, and embedded models."""
    return [*PRESETS(incomplete), *models(incomplete)]


def sites(incomplete: str) -> list[str]:
    """Points where activations are read and written."""
    from interp.model.sites import SITES

    return several_of(*SITES)(incomplete)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


TASKS = one_of(
    *("agreement", "coreference", "reflexive", "ioi", "induction"),
    *("relative_clause", "gendered_pronoun", "successor", "capitals", "greater_than", "retrieval"),
)
PRESETS = one_of(
    "gpt", "gpt2", "gpt2-small", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt3-175b", "llama-2-7b", "llama-2-70b"
)
HARDWARE = one_of("cpu", "a100", "h100", "h200")
DEVICES = one_of("cpu", "cuda", "auto")
DTYPES = one_of("float32", "bfloat16", "float16", "float64")
AXES = several_of("layer", "pos", "head", "key", "neuron")
