"""What is run together? Some cells on a batch: their trajectories, when these begin, and what is changed on the way."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Int

from interp.interventions.engine.bundles import Classifier, Interventions, RowClass
from interp.interventions.engine.pack import Block
from interp.interventions.intervention import Intervention
from interp.model.sites import Site

STAGES = (
    ("resid_pre", "q_input", "k_input", "v_input", "q", "k", "v", "pattern"),
    ("z", "result", "attn_out"),
    ("resid_mid", "mlp_in", "mlp_pre", "mlp_post"),
    ("mlp_out", "resid_post"),
)
"""Where a trajectory can begin within a layer: before the attention, before it writes, before and after the MLP."""
STAGE_OF = {name: number for number, names in enumerate(STAGES) for name in names}


@dataclass(frozen=True)
class Strand:
    """One cell with one draw of its replacements.

    Attributes:
        cell: Its number.
        draw: Which draw.
        interventions: Those of the cell.
    """

    cell: int
    draw: int
    interventions: Interventions

    @property
    def first_layer(self) -> int:
        """Where it begins."""
        return min(each.site.layer or 0 for each in self.interventions)


@dataclass
class Edits:
    """What is replaced at one site with values of one replacement and draw, entry by entry.

    Attributes:
        rank: How many interventions of the same cells come before, at the same site.
        intervention: One of those that are made; its replacement gives the values of all.
        draw: Which of the replacement's draws.
        parts: By bundle: trajectories, rows, positions, and heads or neurons (none: the whole activation).
        trajectories: By bundle, those that are changed, also where another one computes it.
    """

    rank: int
    intervention: Intervention
    draw: int
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    trajectories: list[np.ndarray] = field(default_factory=list)

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Trajectory, row, position and head or neuron of every entry; the last is empty for whole activations."""
        trajectory, row, position, component = (np.concatenate(each) for each in zip(*self.parts, strict=True))
        return trajectory, row, position, component


class Chunk:
    """Strands that are run together.

    Attributes:
        strands: What is run.
        n: How many trajectories.
        spans: By strand, the slice of its trajectories.
        rows: By trajectory, its row in the batch.
        owner: By trajectory and position, the trajectory that computes it; None where nothing is shared.
        wanted: By layer and stage, the blocks that are to be held there.
        edits: By site, what is replaced.
        idle: By trajectory, how many interventions find nothing to change.
    """

    def __init__(self, strands: Sequence[Strand], classifier: Classifier, length: int, device: torch.device):
        """Number the trajectories of `strands`, and sort out what is done to each.

        Args:
            strands: What is run.
            classifier: Knows which rows each strand changes.
            length: Tokens of a row.
            device: Where it is run.
        """
        self.strands = tuple(strands)
        self.spans: list[slice] = []
        self.wanted: dict[tuple[int, int], list[Block]] = {}
        self.edits: dict[Site, list[Edits]] = {}
        self._by_values: dict[tuple[object, ...], Edits] = {}
        rows: list[np.ndarray] = []
        owners: list[np.ndarray] = []
        idle: list[np.ndarray] = []
        self.n, any_shared = 0, False
        for strand in strands:
            found = classifier.classes(strand.interventions, strand.draw)
            begin, of_row = self.n, np.full(0 if found.owner is None else len(found.owner), -1)
            for each in found.classes:
                trajectories = np.arange(self.n, self.n + len(each.rows))
                self._add(strand, each, trajectories, device)
                rows.append(each.rows)
                idle.append(np.full(len(each.rows), sum(not positions for positions in each.positions)))
                self.n += len(each.rows)
                if found.owner is not None:
                    of_row[each.rows] = trajectories
            chosen = np.concatenate(rows[len(rows) - len(found.classes) :]) if found.classes else np.zeros(0, int)
            if found.owner is None:
                owners.append(np.repeat(np.arange(begin, self.n)[:, None], length, axis=1))
            else:
                owners.append(of_row[found.owner[chosen]])
                any_shared = True
            self.spans.append(slice(begin, self.n))
        self.rows: Int[np.ndarray, " trajectory"] = np.concatenate(rows) if rows else np.zeros(0, int)
        self.idle = np.concatenate(idle) if idle else np.zeros(0, int)
        self.owner = np.concatenate(owners) if any_shared else None

    def _add(self, strand: Strand, rows: RowClass, trajectories: np.ndarray, device: torch.device) -> None:
        begins: dict[tuple[int, int], set[int]] = {}
        ranks: Counter[Site] = Counter()
        for intervention, positions in zip(strand.interventions, rows.positions, strict=True):
            if not positions:
                continue
            stage = (intervention.site.layer or 0, STAGE_OF[intervention.site.name])
            begins.setdefault(stage, set()).update(positions)
            own = np.array([each for each in positions if each >= rows.own], dtype=int)
            self._edit(strand, intervention, ranks[intervention.site], (rows.rows, trajectories, own))
            ranks[intervention.site] += 1
        for stage, held in begins.items():
            stored = tuple(sorted(each for each in held if each >= rows.own))
            block = Block(trajectories, torch.from_numpy(rows.rows).to(device), stored, rows.own, min(held))
            self.wanted.setdefault(stage, []).append(block)

    def _edit(
        self, strand: Strand, each: Intervention, rank: int, where: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> None:
        chosen = each.heads if each.heads is not None else each.units
        draw = strand.draw % each.replacement.draws
        key = (rank, id(each.replacement), each.site, draw, chosen is None, each.keys)
        edits = self._by_values.get(key)
        if edits is None:
            edits = self._by_values[key] = Edits(rank, each, draw)
            self.edits.setdefault(each.site, []).append(edits)
            self.edits[each.site].sort(key=lambda each: each.rank)
        rows, trajectories, own = where
        edits.trajectories.append(trajectories)
        n, p, c = len(rows), len(own), 1 if chosen is None else len(chosen)
        components = np.zeros(0, dtype=int) if chosen is None else np.tile(np.array(chosen), n * p)
        positions = np.tile(np.repeat(own, c), n)
        edits.parts.append((np.repeat(trajectories, p * c), np.repeat(rows, p * c), positions, components))

    @property
    def first_layer(self) -> int | None:
        """Where the first trajectory begins; None where nothing is changed."""
        return min((layer for layer, _ in self.wanted), default=None)
