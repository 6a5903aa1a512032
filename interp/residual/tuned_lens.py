"""What would the model say if it stopped here, in the terms of the last layer? The tuned lens (Belrose et al. 2023).

The logit lens reads every stream with an unembedding that was made for the last one. A tuned lens first translates: at
each depth ``l`` an affine map ``x + x W_l + b_l``, trained so that what is read comes as near as it can to the model's
own distribution (``tuned_lens_training.py``). With ``W = 0`` and ``b = 0`` it is the logit lens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from interp.errors import InputError, LoadError, OutputError
from interp.model.devices import documented, ordinary_modes
from interp.model.loading.files import check_numbers, check_shapes, read_safetensors
from interp.model.transformer import HookedTransformer
from interp.model.weights import config_hash
from interp.residual.logit_lens import logit_lens
from interp.shapes import Residual

FORMAT = "2"


@dataclass(frozen=True, repr=False)
class TunedLens:
    """A translator for the stream at each depth but the last: ``x + x W + b``.

    Attributes:
        W: One matrix a depth.
        b: One vector a depth.
        model_hash: Of the weights that it was trained on; it translates no other model's streams.
        config_hash: Of the config that it was trained on: the same weights with another activation have other streams.
    """

    W: Float[Tensor, "layer d_model d_model"]
    b: Float[Tensor, "layer d_model"]
    model_hash: str
    config_hash: str | None

    def __repr__(self) -> str:
        return f"TunedLens({len(self.W)} depths, d_model {self.W.shape[-1]}, of model {self.model_hash[:12]})"

    def __call__(self, x: Residual, depth: int) -> Residual:
        """The stream at `depth`, translated, in its own dtype.

        Raises:
            InputError: There is no translator for this depth.
        """
        if not 0 <= depth < len(self.W):
            raise InputError(f"depth: expected 0 to {len(self.W) - 1}, got {depth}; the last stream is not translated")
        return translated(x, self.W[depth], self.b[depth])

    def save(self, path: str | Path) -> Path:
        """Write the lens to one safetensors file, with the hash of its model.

        Raises:
            OutputError: The file cannot be written.
        """
        tensors = {name: tensor.cpu().contiguous() for name, tensor in (("W", self.W), ("b", self.b))}
        hashes = {"model_hash": self.model_hash, "config_hash": str(self.config_hash)}
        try:
            save_file(tensors, path, metadata={"format": FORMAT, **hashes})
        except (OSError, SafetensorError) as error:
            raise OutputError(f"{path}: no lens can be written here ({error}); name another file") from error
        return Path(path)

    @classmethod
    @ordinary_modes()
    def load(cls, path: str | Path, model: HookedTransformer) -> "TunedLens":
        """The lens that ``save`` wrote to `path`, on the model's device.

        Args:
            path: One safetensors file.
            model: The model that it was trained on.

        Raises:
            LoadError: The file is missing, damaged or no lens, or a lens of other weights or of another config.
        """
        state, kept = read_safetensors(Path(path)), _metadata(Path(path))
        if kept.get("format") != FORMAT:
            raise LoadError(f"{path}: expected a tuned lens in format {FORMAT}, got format {kept.get('format')!r}")
        depths, width = model.config.n_layers, model.config.d_model
        check_shapes(state, [("W", (depths, width, width)), ("b", (depths, width))], str(path))
        check_numbers(state, str(path))
        weights, config = model.hash, config_hash(model)
        for what, mine in (("model_hash", weights), ("config_hash", config)):
            if kept.get(what) != mine:
                raise LoadError(
                    f"{path}: a lens of a model with {what} {kept.get(what)}, and this one's is {mine}; "
                    "give the model that it was trained on, or train one for this model"
                )
        return cls(state["W"].to(model.W_E.device), state["b"].to(model.W_E.device), weights, config)


def translated(x: Residual, W: Float[Tensor, "d_model d_model"], b: Float[Tensor, " d_model"]) -> Residual:
    """``x + x W + b``, computed in the translator's dtype and added in the stream's."""
    return x + (x.to(W.dtype) @ W + b).to(x.dtype)


@documented
def compare_lenses(
    model: HookedTransformer, prompts: str | Sequence[str] | Int[Tensor, "batch pos"], lens: TunedLens
) -> pd.DataFrame:
    """How far is each depth from the model's own distribution, by the logit lens and by a tuned one?

    Args:
        model: The model that `lens` was trained on.
        prompts: Texts or token ids that it was not trained on.
        lens: The tuned lens.

    Returns:
        One row a depth: ``depth``, ``kl_logit_lens`` and ``kl_tuned_lens`` (means over tokens, in nats), ``n``
        (tokens). The last depth is the model's own output, and 0 for both.

    Raises:
        InputError: The prompts do not fit the model, or the lens is another model's.
    """
    if (lens.model_hash, lens.config_hash) != (model.hash, config_hash(model)):
        raise InputError(
            f"lens: expected one that was trained on this model ({model.hash[:12]}), "
            f"got one of {lens.model_hash[:12]}, or of the same weights with another config"
        )
    plain, tuned = (logit_lens(model, prompts, translate=each, top=1).summary() for each in (None, lens))
    columns = {"depth": plain["depth"], "kl_logit_lens": plain["kl"], "kl_tuned_lens": tuned["kl"], "n": plain["n"]}
    return pd.DataFrame(columns)


def _metadata(path: Path) -> dict[str, str]:
    with safe_open(path, "pt") as file:
        return file.metadata() or {}
