"""The public names, once: ``interp/__init__.py`` imports each from here when it is first used."""

from interp import plots as plots
from interp.methods.ablation import ablate as ablate
from interp.methods.dossier import heads as heads
from interp.methods.patching import patch as patch
from interp.methods.path_patching import path_patch as path_patch
from interp.methods.probes.probe import probe as probe
from interp.methods.relations.attend import attend as attend
from interp.model.folding import fold_layer_norm as fold_layer_norm
from interp.model.loading import load_model as load_model
from interp.model.loading import save_model as save_model
from interp.model.transformer import HookedTransformer as HookedTransformer
from interp.residual.stream import direct_logit_attribution as direct_logit_attribution
from interp.residual.stream import residual_stream as residual_stream
from interp.runs.run import Run as Run
from interp.tasks.catalogue import list_tasks as list_tasks
from interp.tasks.catalogue import load_task as load_task
from interp.tasks.encoding import encode_task as encode_task
from interp.tasks.example import Example as Example
from interp.tasks.example import MinimalPair as MinimalPair
from interp.tasks.example import Relation as Relation
from interp.tasks.example import Span as Span

__version__: str
