"""Models drawn at random: shapes, places and decoys, everything else as asked.

1. A shape: two to four layers of four to eight heads, twelve to eighteen heads in all; in some models, twice as many,
   of which each shares its keys and values with an idle one.
2. Induction: a tracker, and in an earlier layer the head that it needs.
3. Agreement and coreference each: a tracker, or one that looks by value, by itself, beside one that goes another route
   or glances at the related word, or before one that amplifies; or two to four that stand in for each other.
4. Often a head that looks, and one that carries; where none stand in, two loud ones in the last layer, of which one may
   be another tracker.
5. All at random places; a looker reads no later than the first stand-in writes, for that drowns what comes after.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from interp.calibration.language import PHENOMENA, TASKS, TaskName, load
from interp.calibration.planted import FEWEST, WORDS, Shape, plant
from interp.calibration.roles import BY_ATTRACTORS, Planted, Role
from interp.claims.rules import Verdict
from interp.errors import InputError
from interp.model.devices import documented
from interp.model.transformer import HookedTransformer
from interp.tasks.task import Task

PHENOMENA_TASKS: tuple[TaskName, ...] = tuple(task for task in TASKS if task in PHENOMENA)
FEWEST_HEADS = 12
"""Of a model: as many as may have a purpose, and an idle one."""
MOST_HEADS = 18
"""Of a model whose shape is drawn."""
GROUPED = 0.3
"""Share of the drawn models whose heads share keys and values."""
UNITS = 100
"""Of a task, at the standard difficulty: where the best baseline is a second attractor, the half that has one is in 30
clusters and more."""
CORRELATION = 0.95
"""Of attractors with the related word, where a head answers by them."""


@dataclass(frozen=True)
class Difficulty:
    """What makes heads hard to find.

    Attributes:
        n: Units of a task.
        sharpness: Of the planted heads' attention, from 0; 1 looks at hardly anything else.
        noise: What idle heads write to the answers, where a tracker writes 1.
        share: Of a task's answer that a tracker writes; where it is below 1, another tracker writes the rest.
        glance: Of the related word that a glancer reads, where it reads 1 of the attractors; where it is above 0, both
            tasks have one.
    """

    n: int = UNITS
    sharpness: float = 0.6
    noise: float = 0.3
    share: float = 1.0
    glance: float = 0.0


STANDARD = Difficulty()


@dataclass(frozen=True)
class Plan:
    """A model to write, and the tasks that it is asked.

    Attributes:
        shape: Of the model.
        heads: Those with a purpose.
        difficulty: Of finding them.
        seed: Of weights and tasks.
    """

    shape: Shape
    heads: tuple[Planted, ...]
    difficulty: Difficulty
    seed: int

    def model(self) -> HookedTransformer:
        """Write it."""
        asked = self.difficulty
        return plant(self.shape, self.heads, sharpness=asked.sharpness, noise=asked.noise, seed=self.seed)

    def tasks(self) -> list[Task]:
        """Load them."""
        by_another_route = {each.task for each in self.heads if each.role in BY_ATTRACTORS}
        correlations = {name: CORRELATION if name in by_another_route else 0.5 for name in TASKS}
        return [load(name, n=self.difficulty.n, seed=self.seed, correlation=correlations[name]) for name in TASKS]

    def truth(self) -> Mapping[tuple[int, int, TaskName], tuple[Role, Verdict]]:
        """By layer, head and task: the head's role, and the right verdict."""
        placed = {(each.layer, each.head): each for each in self.heads}
        found: dict[tuple[int, int, TaskName], tuple[Role, Verdict]] = {}
        for layer, head in np.ndindex(self.shape.n_layers, self.shape.n_heads):
            planted = placed.get((layer, head))
            for task in TASKS:
                behind = any(each.layer < layer for each in self.heads if (each.role, each.task) == ("by value", task))
                found[layer, head, task] = ("bystander" if behind or head % self.shape.n_queries else "idle", "none")
                if planted is not None and planted.is_about(task):
                    found[layer, head, task] = (planted.role, planted.truth(task))
        return found


@documented
def draw(seed: int, *, shape: Shape | None = None, difficulty: Difficulty = STANDARD, special: str = "") -> Plan:
    """Draw a plan of a model whose heads are known, and which tasks it is asked.

    Args:
        seed: Names the draw, of the plan as of its weights and tasks.
        shape: Of the model; None for a random one.
        difficulty: What makes its heads hard to find.
        special: ``copied`` (a head reads the number at the attractors, to which an earlier one has copied it), or
            ``group of 2``, ``3`` or ``4``: so many stand in for each other for agreement. Empty for neither.

    Returns:
        The plan: ``model()`` writes it, ``tasks()`` loads its tasks, and ``truth()`` has each head's right verdict.

    Raises:
        InputError: The shape is too small.

    Examples:
        >>> from interp.calibration.random_models import draw
        >>> plan = draw(24)
        >>> plan.truth()[1, 3, "agreement"]
        ('tracker', 'tracks')
    """
    generator = np.random.default_rng(seed)
    chosen = shape or _shape(generator)
    check_shape(chosen)
    while True:
        try:
            return Plan(chosen, tuple(_Places(chosen, generator, difficulty, special).fill()), difficulty, seed)
        except _FullError:
            continue


class _FullError(Exception):
    """No place is left where a head would have to stand."""


def check_shape(shape: Shape) -> None:
    """Refuse a shape that is too small for what is planted."""
    n_heads = shape.n_layers * shape.n_heads // shape.n_queries
    fits = shape.n_layers >= 2 and n_heads >= FEWEST_HEADS and shape.d_model >= FEWEST and shape.d_head > WORDS + 1
    if not fits:
        raise InputError(
            f"shape: expected 2 layers and {FEWEST_HEADS} heads in all, d_model {FEWEST} and d_head {WORDS + 2}, at "
            f"least; got {shape.n_layers} layers of {shape.n_heads} heads, d_model {shape.d_model}, d_head "
            f"{shape.d_head}"
        )


def _shape(generator: np.random.Generator) -> Shape:
    while True:
        n_layers, n_heads = int(generator.integers(2, 5)), int(generator.integers(4, 9))
        if FEWEST_HEADS <= n_layers * n_heads <= MOST_HEADS:
            d_model = int(generator.choice([FEWEST, 96, 112]))
            d_head, grouped = int(generator.choice([18, 20, 24])), generator.random() < GROUPED
            return Shape(n_layers, n_heads * (1 + grouped), d_model, d_head, n_heads if grouped else None)


class _Places:
    """Gives out places at random, each once."""

    def __init__(self, shape: Shape, generator: np.random.Generator, difficulty: Difficulty, special: str):
        self._generator, self._special, self._last = generator, special, shape.n_layers - 1
        self._share, self._glance = difficulty.share, difficulty.glance
        places = ((layer, head) for layer in range(shape.n_layers) for head in range(shape.n_heads))
        self._free = [place for place in places if place[1] % shape.n_queries == 0]

    def fill(self) -> list[Planted]:
        """All heads with a purpose."""
        is_standard = self._share == 1 and not self._glance
        earlier = self._take("previous word", "induction", most=self._last - 1)
        found = [earlier, *self._trackers("induction", least=earlier.layer + 1)]
        latest: dict[TaskName, int] = {}
        for task in PHENOMENA_TASKS:
            asked = self._special if task == "agreement" else ""
            if asked == "copied":
                found.append(self._take("copier", task, most=self._last - 1))
                found.append(self._take("copy reader", task, least=found[-1].layer + 1))
            elif asked.startswith("group") or (is_standard and self._chance(0.3)):
                size = int(asked[-1]) if asked.startswith("group") else int(self._generator.integers(2, 5))
                group = [self._take("stand-in", task) for _ in range(size)]
                found += group
                latest[task] = min(each.layer for each in group)
            else:
                by_value = is_standard and self._chance(0.25)
                trackers = [self._take("by value", task)] if by_value else self._trackers(task)
                found += trackers
                if self._glance or (is_standard and self._chance(0.4)):
                    role: Role = "glancer" if self._glance or self._chance(0.5) else "other route"
                    found.append(replace(self._take(role, task), glance=self._glance))
                elif is_standard and trackers[0].layer < self._last and self._chance(0.8):
                    found.append(self._take("amplifier", task, least=trackers[0].layer + 1))
        if self._chance(0.6):
            task = self._one_of(PHENOMENA_TASKS)
            found.append(self._take("looker", task, most=latest.get(task)))
        if self._chance(0.6):
            found.append(self._take("carrier", self._one_of(PHENOMENA_TASKS)))
        if not latest and self._chance(0.8):
            by_another_route = {each.task for each in found if each.role in BY_ATTRACTORS}
            plain = [task for task in PHENOMENA_TASKS if task not in by_another_route]
            of = self._one_of(plain) if is_standard and plain and self._chance(0.6) else None
            found.append(self._take("loud" if of is None else "loud tracker", of, least=self._last))
            found.append(self._take("loud", of, least=self._last, share=-1.0))
        return found

    def _trackers(self, task: TaskName, least: int = 0) -> list[Planted]:
        shares = [self._share] if self._share == 1 else [self._share, 1 - self._share]
        return [self._take("tracker", task, least=least, share=share) for share in shares]

    def _take(
        self, role: Role, task: TaskName | None, *, least: int = 0, most: int | None = None, share: float = 1.0
    ) -> Planted:
        free = [place for place in self._free if least <= place[0] <= (self._last if most is None else most)]
        if not free:
            raise _FullError
        place = free[int(self._generator.integers(len(free)))]
        self._free.remove(place)
        return Planted(*place, role, task, share)

    def _chance(self, p: float) -> bool:
        return bool(self._generator.random() < p)

    def _one_of(self, tasks: Sequence[TaskName]) -> TaskName:
        return tasks[int(self._generator.integers(len(tasks)))]
