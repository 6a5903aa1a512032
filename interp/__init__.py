"""Which attention heads track what: the table of contents. Names are imported when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import interp.source  # noqa: F401  notes what the source is, before any of it is imported

if TYPE_CHECKING:
    from interp import plots as plots
    from interp.methods.ablation import ablate
    from interp.methods.attention import attend
    from interp.methods.dossier import heads
    from interp.methods.patching import patch
    from interp.methods.path_patching import path_patch
    from interp.methods.probing import probe
    from interp.model.folding import fold_layer_norm
    from interp.model.loading import load_model, save_model
    from interp.model.transformer import HookedTransformer
    from interp.residual.lens import direct_logit_attribution
    from interp.residual.stream import residual_stream
    from interp.runs.run import Run
    from interp.tasks.catalogue import list_tasks, load_task
    from interp.tasks.encoding import encode_task
    from interp.tasks.example import Example, MinimalPair, Relation, Span

__version__ = "0.1.0"

_HOMES = {
    "Example": "interp.tasks.example",
    "HookedTransformer": "interp.model.transformer",
    "MinimalPair": "interp.tasks.example",
    "Relation": "interp.tasks.example",
    "Run": "interp.runs.run",
    "Span": "interp.tasks.example",
    "ablate": "interp.methods.ablation",
    "attend": "interp.methods.attention",
    "direct_logit_attribution": "interp.residual.lens",
    "encode_task": "interp.tasks.encoding",
    "fold_layer_norm": "interp.model.folding",
    "heads": "interp.methods.dossier",
    "list_tasks": "interp.tasks.catalogue",
    "load_model": "interp.model.loading",
    "load_task": "interp.tasks.catalogue",
    "patch": "interp.methods.patching",
    "path_patch": "interp.methods.path_patching",
    "probe": "interp.methods.probing",
    "residual_stream": "interp.residual.stream",
    "save_model": "interp.model.loading",
}

__all__ = [
    "Example",
    "HookedTransformer",
    "MinimalPair",
    "Relation",
    "Run",
    "Span",
    "ablate",
    "attend",
    "direct_logit_attribution",
    "encode_task",
    "fold_layer_norm",
    "heads",
    "list_tasks",
    "load_model",
    "load_task",
    "patch",
    "path_patch",
    "probe",
    "residual_stream",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module("interp.plots")
    if name not in _HOMES:
        raise AttributeError(f"module 'interp' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "plots"]
