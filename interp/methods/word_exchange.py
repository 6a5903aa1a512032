"""Whether what a head reads at the related word turns the answer: the word is exchanged, for one head at a time.

1. Every example needs a word counterfactual: the same prompt with another related word, and another right answer. It is
   the unit's other example, or one of its own (``Unit.word_counterfactuals``).
2. The metric is the right answer of the example against the right answer of its word counterfactual.
3. The item and its word counterfactual are run side by side, and the item once more: the *exchanged* run. In every
   layer, its keys and values at the related word's tokens become the counterfactual's. All heads' do: a query head
   reads those of its own key head only, so that its ``z`` is the same as if these alone had been exchanged.
4. The exchanged run's ``z``, whose pattern has followed, is what is wanted. Before anything reads it the item's is put
   in its place, so that the next layer begins with the item's stream: one run serves all layers.

A head that needs the related word for something else, and reads the feature elsewhere, turns nothing. It is not
testable where no unit has the word in its prompts, before the query, and a word counterfactual of every example; where
that has the same value of the task's feature; and in a model that shows no keys and values. In a bidirectional model
only the first layer is tested: later, keys and values at the word hold what other words have read of it.

As Geiger et al. (2021), "Causal abstractions of neural networks": an interchange intervention, on what one head reads
at one word.
"""

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from interp.arguments import named_arguments
from interp.errors import InputError
from interp.interventions.replacement import Patch
from interp.interventions.rows import Batch, Row
from interp.interventions.sweep import Progress, SweepResult
from interp.methods.ablation import choose_components, measure, sites_of
from interp.methods.attention_baselines import is_in_the_prompt
from interp.methods.task_arguments import as_predicted
from interp.model.devices import documented
from interp.model.positions import looks_back_only
from interp.model.sites import Site
from interp.options import ExchangeOptions
from interp.residual.collecting import require_points, require_run, without_logits
from interp.runs.run import Run
from interp.tasks.task import EncodedExample, Task, Unit

Answer = TypeVar("Answer")
RUNS = 3
"""That go through the model side by side: the item, the item with the other word's keys and values, the other item."""


@dataclass(frozen=True)
class WordExchange(Patch):
    """A head's ``z`` where keys and values at the related word are those of ``Row.source``.

    Attributes:
        sites: ``z`` of the layers whose heads are changed, each once.
        words: Positions of the related word's tokens, by example.

    Raises:
        InputError: A layer behind the first of a model that is not causal.
    """

    words: Mapping[int, tuple[int, ...]] = field(kw_only=True, repr=False)
    name: ClassVar[str] = "word"

    def __post_init__(self) -> None:
        later = sorted({each.layer or 0 for each in self.sites} - {0})
        if later and not looks_back_only(self.model):
            raise InputError(
                f"layer {later[0]}: expected layer 0 of a bidirectional model, where alone keys and values at a word "
                "are the word's own; later they hold what other words have read of it, too; choose heads of layer 0"
            )

    def _told(self) -> str:
        return f"{self.name} at {hashlib.sha256(repr(sorted(self.words.items())).encode()).hexdigest()}"

    def group(self, row: Row, draw: int) -> Hashable:
        """Rows with their words at the same place are alike, as those of ``Patch`` are."""
        return self.words[row.example]

    def read(self, batch: Batch) -> Mapping[str, Tensor]:
        """Every head's ``z`` with the other word's keys and values, by hook name; rows in as many parts as runs."""
        at_once = -(-len(batch.rows) // RUNS)
        starts = range(0, len(batch.rows), at_once)
        parts = [self._read(batch.take(range(len(batch.rows))[start : start + at_once])) for start in starts]
        return {name: torch.cat([each[name] for each in parts]) for name in parts[0]}

    def _read(self, batch: Batch) -> Mapping[str, Tensor]:
        n, there = len(batch.rows), batch.marked(lambda row: self.words[row.example])[..., None, None]
        found: dict[str, Tensor] = {}

        def exchange(old: Float[Tensor, "row pos head d_head"], *, hook: Any) -> Tensor:
            item, exchanged, other = old.split(n)
            return torch.cat([item, torch.where(there, other, exchanged), other])

        def take(old: Float[Tensor, "row pos head d_head"], *, hook: Any, name: str) -> Tensor:
            item, exchanged, other = old.split(n)
            found[name] = exchanged.clone()  # a bridge's hook has a name of its own
            return torch.cat([item, item, other])

        changed = [Site(name, each.layer).hook_name for each in self.sites for name in ("k", "v")]
        taken = [each.hook_name for each in self.sites]
        require_points(self.model, [*changed, *taken])
        hooks = [(name, exchange) for name in changed] + [(name, partial(take, name=name)) for name in taken]
        tokens = torch.cat([batch.tokens, batch.tokens, batch.source_tokens])
        with torch.inference_mode():
            self.model.run_with_hooks(tokens, fwd_hooks=hooks, **without_logits(self.model))
        require_run(taken, found)
        return found


NO_WORD, NO_OTHER = "no related word in the prompt before the query", "no word counterfactual"
SAME_VALUE = "the word counterfactual has the same value of the feature"
"""Why a unit is left out."""


@documented
def exchange_word(
    model: Any,
    task: Task | str,
    options: ExchangeOptions | None = None,
    *,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> SweepResult | None:
    """Exchange the related word, for one head at a time.

    Args:
        model: Follows TransformerLens' protocol; our own runs several times faster, as does a bridge that we know.
        task: A task, or the name of one.
        options: What is asked; or its fields by name: see ``ExchangeOptions``.
        progress: Called with (heads done, heads in all).
        run: Where what is measured is kept at once, and found again: a folder of runs; or an ``interp.Run``, which also
            says who measures. None to keep nothing.
        fields: Those of `options` that are given by name.

    Returns:
        One row per head and example, as of ``ablate``; ``source`` is the metric in the word counterfactual's run, to
        which the exchange of everything would bring it. ``provenance["dropped"]`` counts the units that are left out.
        None where it is not testable.

    Raises:
        InputError: A head that the model does not have, or behind layer 0 of a bidirectional model; answers of several
            tokens where logits are compared; rows that the model cannot carry; or a budget too small for one cell.
        AuditError: The engine's numbers are not those of the plain way.
        OutputError: What is measured cannot be kept.

    Examples:
        >>> from interp.methods.word_exchange import exchange_word
        >>> exchanged = exchange_word(interp.load_model(), "agreement", heads=[(2, 1), (2, 2)], n=24).summary()
        >>> exchanged.nsmallest(1, "effect")[["layer", "head"]].values.tolist()
        [[2, 2]]
    """
    asked = ExchangeOptions.of(options, fields)
    chosen = choose_components(model, heads=asked.heads)
    given = against_other_words(as_predicted(task, model, n=asked.n, seed=asked.seed))
    if not given.units or not shows_keys_and_values(model):
        return None
    words = {number: each.related for number, each in enumerate(given.examples)}
    exchange = WordExchange(model, tuple(sites_of(chosen)), words=words)
    cells = [each.cell(exchange) for each in chosen]
    result = measure(model, given, cells, asked, progress=progress, run=run, direction="word")
    return result.with_provenance(dropped=dict(given.dropped))


def against_other_words(task: Task) -> Task:
    """`task` with the right answer of each example's word counterfactual for its wrong one.

    Units in which an example has none, or no related word to look back at, are left out and counted in ``dropped``. All
    are where some have one with the same value of the task's feature: then what is tagged does not decide it.
    """
    units: list[Unit] = []
    dropped: Counter[str] = Counter()
    for unit in task.units:
        others = unit.word_counterfactuals
        if not all(map(is_in_the_prompt, unit.examples)):
            dropped[NO_WORD] += 1
        elif None in others:
            dropped[NO_OTHER] += 1
        elif any(_same_value(task.feature, each, other) for each, other in zip(unit.examples, others, strict=True)):
            dropped[SAME_VALUE] += 1
        else:
            item, *rest = (_against(each, other) for each, other in zip(unit.examples, others, strict=True) if other)
            units.append(replace(unit, item=item, counterfactual=rest[0] if rest else None))
    if dropped[SAME_VALUE]:
        units = []
    return replace(task, units=tuple(units), dropped={**task.dropped, **dropped})


def _same_value(feature: str | None, encoded: EncodedExample, other: EncodedExample | None) -> bool:
    values = [None if each is None else each.example.features.get(feature or "") for each in (encoded, other)]
    return values[0] is not None and values[0] == values[1]


def _against(encoded: EncodedExample, other: EncodedExample) -> EncodedExample:
    """The example with the other's right answer for its wrong one, and with the other for its word counterfactual.

    Of sets: what is right here alone against what is right there alone; where one of the two is empty (the later years
    after 1720 hold those after 1750), what is right in both stands in its place.
    """
    right, wrong = _apart(encoded.example.rights, other.example.rights)
    example = replace(encoded.example, right=right, wrong=wrong)
    return replace(encoded, example=example, word_counterfactual=other).with_answers(
        *_apart(encoded.rights, other.rights)
    )


def _apart(here: Sequence[Answer], there: Sequence[Answer]) -> tuple[tuple[Answer, ...], tuple[Answer, ...]]:
    """What is right here, and what is right there, apart from what is right in both, if that leaves any."""
    both = tuple(each for each in here if each in there)
    alone = [tuple(each for each in own if each not in both) for own in (here, there)]
    return alone[0] or both, alone[1] or both


@named_arguments
def shows_keys_and_values(model: Any) -> bool:
    """Whether the model has the points that a word is exchanged at."""
    known = getattr(model, "hook_dict", None)  # TransformerLens' protocol does not promise one
    return known is None or all(Site(name, 0).hook_name in known for name in ("k", "v", "z"))
