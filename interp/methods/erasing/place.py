"""Where is a feature erased? In one head's part of a site, or in all of it; and at which positions of a prompt."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from jaxtyping import Float
from torch import Tensor

from interp.errors import InputError, suggest
from interp.interventions.cell import Cell
from interp.interventions.given_numbers import numbers_below
from interp.interventions.intervention import Intervention, Positions
from interp.interventions.replacement import Replacement
from interp.methods.components import Head, choose_components
from interp.model.sites import Site, require_sites
from interp.tasks.task import EncodedExample, Task

At = Literal["query", "related", "all"]
SITES = ("z", "resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
"""Where erasers are fitted: what heads hold, the stream, and what layers write to it."""


@dataclass(frozen=True)
class Place:
    """What an eraser maps: one vector at each position.

    Attributes:
        site: With its layer.
        head: Of a site that has heads.
    """

    site: Site
    head: int | None = None

    @property
    def labels(self) -> dict[str, Hashable]:
        """What the cell is called: ``layer`` and, where there is one, ``head``."""
        head: dict[str, Hashable] = {} if self.head is None else {"head": self.head}
        return {"layer": self.site.layer, **head}

    def of(self, activations: Float[Tensor, "reading ..."]) -> Float[Tensor, "reading d"]:
        """The vectors among the activations at the site."""
        return activations if self.head is None else activations[:, self.head]

    def cell(self, method: str, replacement: Replacement, positions: Positions) -> Cell:
        """The cell in which `replacement` changes these vectors."""
        heads = None if self.head is None else (self.head,)
        change = Intervention(self.site, replacement, heads=heads, positions=positions)
        return Cell({"method": method, **self.labels}, (change,))


def choose_places(
    model: Any, site: str, heads: Sequence[Head] | None = None, layers: Sequence[int] | None = None
) -> list[Place]:
    """The places that are meant, in the model's order.

    Args:
        model: Follows TransformerLens' protocol.
        site: One of ``SITES``.
        heads: ``(layer, head)`` pairs, at ``z``; None for all.
        layers: Layers; None for all.

    Raises:
        InputError: A site that no eraser is fitted at, or heads or layers that the model or the site does not have.
    """
    if site not in SITES:
        raise InputError(f"erase: no eraser is fitted at site {site!r}; {suggest(str(site), SITES)}")
    if site == "z":
        parts = (part for each in choose_components(model, heads=heads, layers=layers) for part in each.parts)
        return [Place(part.site, head) for part in parts for head in part.heads or ()]
    if heads is not None:
        raise InputError(f"heads: site {site!r} has none, got {heads!r}; leave them out, or give site='z'")
    n = model.cfg.n_layers
    chosen = range(n) if layers is None else sorted(numbers_below(n, "layers", layers))
    sites = [Site(site, layer) for layer in chosen]
    require_sites(model, sites, SITES)
    return [Place(each) for each in sites]


def positions_at(at: At, encoded: EncodedExample) -> tuple[int, ...]:
    """The positions of a prompt that are meant; none where it has no related word."""
    if at == "all":
        return tuple(range(len(encoded.prompt)))
    if at == "related":
        return tuple(each for each in encoded.related if each < len(encoded.prompt))
    return (encoded.looking,)


def task_positions(at: At, task: Task) -> dict[int, tuple[int, ...]]:
    """The positions of every example of a task, by its number.

    Raises:
        InputError: An unknown kind of position, or one that no prompt has.
    """
    if at not in get_args(At):
        raise InputError(f"at: no kind of position is called {at!r}; {suggest(str(at), get_args(At))}")
    found = {number: positions_at(at, each) for number, each in enumerate(task.examples)}
    if not any(found.values()):
        raise InputError(
            f"at={at!r}: none of the {len(found)} prompts of task {task.name!r} holds a tagged related word; "
            "use at='query' or at='all'"
        )
    return found
