"""Reading checkpoints: one file a family, and the only place that knows foreign names."""

from interp.model.loading.load import configuration_and_tokenizer, embedded_models, load_model
from interp.model.loading.native import save_model

__all__ = ["configuration_and_tokenizer", "embedded_models", "load_model", "save_model"]
