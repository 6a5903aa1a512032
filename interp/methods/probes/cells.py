"""Where are probes fitted? Heads of a site that has heads, or layers of one that has none."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from interp.errors import InputError, suggest
from interp.interventions.given_numbers import numbers_below
from interp.methods.components import Head
from interp.model.sites import SITES, Site, is_layered


@dataclass(frozen=True)
class SiteCells:
    """The cells of one site: its heads, or itself.

    Attributes:
        site: With its layer.
        heads: Which; None where it has none.
    """

    site: Site
    heads: tuple[int, ...] | None


def distinct_sites(site: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the sites that are meant.

    Raises:
        InputError: An unknown site, one twice, none, or some that have heads beside some that have none.
    """
    names = (site,) if isinstance(site, str) else tuple(site)
    for name in names:
        if name not in SITES:
            raise InputError(f"no site is called {name!r}; {suggest(str(name), SITES)}")
    if not names or len(set(names)) < len(names):
        raise InputError(f"site: expected different ones, at least one, got {list(names)}")
    kinds = {(is_layered(name), "head" in SITES[name][1]) for name in names}
    if len(kinds) > 1:
        raise InputError(
            f"site: expected sites of heads, or sites of layers, got {', '.join(names)}; probe them one after the other"
        )
    return names


def choose_cells(
    site: str,
    shape: tuple[int, int],
    layers: Sequence[int] | None = None,
    heads: Sequence[Head] | None = None,
) -> list[SiteCells]:
    """The cells that are meant, layer by layer.

    Args:
        site: The name of one, such as ``z`` or ``resid_post``.
        shape: Layers, and heads of a layer.
        layers: Which; None for all.
        heads: ``(layer, head)`` pairs; None for all of these layers.

    Raises:
        InputError: A site of pairs of positions; layers or heads that the model does not have, or
            heads of a site without heads.
    """
    axes = SITES[site][1]
    if axes[1] != "pos":
        raise InputError(f"site {site!r}: a word has no activation of its own there; take z, or a point of the stream")
    if heads is not None and (layers is not None or "head" not in axes):
        raise InputError(f"heads: expected them without layers, and a site that has heads, got site {site!r}")
    n_layers, n_heads = shape
    if not is_layered(site):
        return [SiteCells(Site(site), None)]
    if heads is not None:
        return _of_heads(site, heads, shape)
    chosen = range(n_layers) if layers is None else sorted(numbers_below(n_layers, "layers", layers))
    every = tuple(range(n_heads)) if "head" in axes else None
    return [SiteCells(Site(site, layer), every) for layer in chosen]


def frame_of(cells: Sequence[SiteCells]) -> pd.DataFrame:
    """One row a cell: ``site``, ``layer`` and ``head`` as far as there are any."""
    rows = [
        {"site": each.site.name, "layer": each.site.layer, "head": head}
        for each in cells
        for head in (each.heads if each.heads is not None else (None,))
    ]
    frame = pd.DataFrame(rows)
    return frame[[name for name in frame.columns if frame[name].notna().all()]]


def _of_heads(site: str, heads: Sequence[Head], shape: tuple[int, int]) -> list[SiteCells]:
    chosen: dict[int, set[int]] = {}
    for layer, head in heads:
        if not (0 <= layer < shape[0] and 0 <= head < shape[1]):
            raise InputError(
                f"head {layer}.{head}: there are {shape[0]} layers (0 to {shape[0] - 1}) of {shape[1]} heads (0 to "
                f"{shape[1] - 1}); choose one of these"
            )
        chosen.setdefault(layer, set()).add(head)
    if not chosen:
        raise InputError("heads: expected (layer, head) pairs, got none")
    return [SiteCells(Site(site, layer), tuple(sorted(chosen[layer]))) for layer in sorted(chosen)]
