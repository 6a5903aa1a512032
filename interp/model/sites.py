"""Sites: the typed names of the points where activations are read and written.

A site says what an activation is and how its axes are named; ``hook_name`` is what TransformerLens calls it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from interp.arguments import named_arguments
from interp.errors import InputError, suggest

SITES: dict[str, tuple[str, tuple[str, ...]]] = {
    "embed": ("hook_embed", ("batch", "pos", "d_model")),
    "pos_embed": ("hook_pos_embed", ("batch", "pos", "d_model")),
    "resid_pre": ("blocks.{layer}.hook_resid_pre", ("batch", "pos", "d_model")),
    "resid_mid": ("blocks.{layer}.hook_resid_mid", ("batch", "pos", "d_model")),
    "resid_post": ("blocks.{layer}.hook_resid_post", ("batch", "pos", "d_model")),
    "attn_out": ("blocks.{layer}.hook_attn_out", ("batch", "pos", "d_model")),
    "mlp_out": ("blocks.{layer}.hook_mlp_out", ("batch", "pos", "d_model")),
    "q_input": ("blocks.{layer}.hook_q_input", ("batch", "pos", "head", "d_model")),
    "k_input": ("blocks.{layer}.hook_k_input", ("batch", "pos", "head", "d_model")),
    "v_input": ("blocks.{layer}.hook_v_input", ("batch", "pos", "head", "d_model")),
    "mlp_in": ("blocks.{layer}.hook_mlp_in", ("batch", "pos", "d_model")),
    "q": ("blocks.{layer}.attn.hook_q", ("batch", "pos", "head", "d_head")),
    "k": ("blocks.{layer}.attn.hook_k", ("batch", "pos", "head", "d_head")),
    "v": ("blocks.{layer}.attn.hook_v", ("batch", "pos", "head", "d_head")),
    "z": ("blocks.{layer}.attn.hook_z", ("batch", "pos", "head", "d_head")),
    "result": ("blocks.{layer}.attn.hook_result", ("batch", "pos", "head", "d_model")),
    "scores": ("blocks.{layer}.attn.hook_attn_scores", ("batch", "head", "query_pos", "key_pos")),
    "pattern": ("blocks.{layer}.attn.hook_pattern", ("batch", "head", "query_pos", "key_pos")),
    "mlp_pre": ("blocks.{layer}.mlp.hook_pre", ("batch", "pos", "d_mlp")),
    "mlp_post": ("blocks.{layer}.mlp.hook_post", ("batch", "pos", "d_mlp")),
}


def is_layered(name: str) -> bool:
    """Whether a site, by its name in ``SITES``, stands in every layer."""
    return "{layer}" in SITES[name][0]


@dataclass(frozen=True)
class Site:
    """One kind of activation, in one layer where it has layers.

    Attributes:
        name: A key of ``SITES``, such as ``z`` or ``resid_mid``.
        layer: The block, from 0; None for ``embed`` and ``pos_embed``.

    Raises:
        InputError: No such site, or a layer is missing or too much.
    """

    name: str
    layer: int | None = None

    def __post_init__(self) -> None:
        if self.name not in SITES:
            raise InputError(f"no site is called {self.name!r}; {suggest(self.name, SITES)}")
        layered = is_layered(self.name)
        if layered != (self.layer is not None):
            raise InputError(f"site {self.name!r}: expected {'a' if layered else 'no'} layer, got {self.layer!r}")
        if self.layer is not None and self.layer < 0:
            raise InputError(f"site {self.name!r}: layers count from 0, got {self.layer}")

    @property
    def hook_name(self) -> str:
        """TransformerLens' name of the point."""
        return SITES[self.name][0].format(layer=self.layer)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the activation's axes, as in ``shapes.py``."""
        return SITES[self.name][1]


@named_arguments
def require_sites(model: Any, sites: Iterable[Site], known: Iterable[str] = tuple(SITES)) -> None:
    """Refuse sites that a model does not have: one of attention alone has none of an MLP's.

    Args:
        model: Follows TransformerLens' protocol.
        sites: What is asked for, of layers that the model has.
        known: What the caller can do something with, by name; those of them that the model has are named.

    Raises:
        InputError: A site that is not there.
    """
    points: Any = getattr(model, "hook_dict", None)  # TransformerLens' protocol does not promise one
    for site in sites if points is not None else ():
        if site.hook_name not in points:
            there = [name for name in known if SITES[name][0].format(layer=site.layer or 0) in points]
            raise InputError(
                f"site {site.name!r}: expected one that the model has, got {site.hook_name}, which it does "
                f"not have; choose among {', '.join(there)}"
            )
