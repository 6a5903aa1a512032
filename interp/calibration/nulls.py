"""On which models must no head track anything? Four kinds; what any of them yields is a false claim.

- **trained**: a small model that was trained until it does its tasks without fail, of which the related word is no
  part: the query itself tells the answer (``language.load_told``). Its heads do other work, induction for one.
- **permuted labels**: a planted model; in half of the clusters, at random, right and wrong change places, and in other
  ones the two values of the feature. No effect and no probe can be about the task.
- **permuted pairs**: a planted model; in each cluster the tag of the related word goes to it or to an attractor, each
  as often. No attention is to the related word. The references are permuted apart: baselines are chosen elsewhere.
- **untrained**: a model with random weights, whose heads do have effects, tiny ones.

Permuted and untrained models are not able to do the task, or not shown to be: the first thing that the dossier asks.
So claims are counted with that gate and without.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Literal, get_args

import numpy as np

from interp.calibration.drawing import PHENOMENA_TASKS, Plan
from interp.calibration.language import LEMMAS, LONGEST, PHENOMENA, induction, load_told, tokenizer, told, vocabulary
from interp.calibration.planted import Shape
from interp.model.config import TransformerConfig
from interp.model.training import TrainingConfig, packed_rows, train
from interp.model.transformer import HookedTransformer
from interp.tasks.task import EncodedExample, Task, Unit

NullKind = Literal["trained", "permuted labels", "permuted pairs", "untrained"]
NULLS: tuple[NullKind, ...] = get_args(NullKind)
STEPS, ROWS = 120, 16
"""Of training, and of a step."""
SMALL = Shape(n_layers=0, n_heads=0, d_model=64, d_head=16)
"""The widths of a trained model, which has to be trained in seconds."""


def null_case(kind: NullKind, plan: Plan) -> tuple[HookedTransformer, list[Task]]:
    """A model on which nothing is to be found, and its tasks.

    Args:
        kind: Which.
        plan: Its layers and heads, tasks, sample size and seed; of permuted ones the planted model itself.
    """
    generator = np.random.default_rng([plan.seed, NULLS.index(kind)])
    if kind == "trained":
        tasks = [load_told(name, n=plan.difficulty.n, seed=plan.seed) for name in PHENOMENA_TASKS]
        return _trained(plan), tasks
    if kind == "untrained":
        return HookedTransformer(_config(plan), tokenizer(), seed=plan.seed).eval(), plan.tasks()
    return plan.model(), [permuted(task, kind, generator) for task in plan.tasks()]


def _config(plan: Plan, widths: Shape | None = None) -> TransformerConfig:
    shape = plan.shape
    wide = widths or shape
    return TransformerConfig(
        n_layers=shape.n_layers,
        n_heads=shape.n_heads,
        d_model=wide.d_model,
        d_head=wide.d_head,
        d_mlp=wide.d_model,
        d_vocab=len(vocabulary()),
        n_ctx=LONGEST,
        tied=False,
        init_std=0.3,
    )


def _trained(plan: Plan) -> HookedTransformer:
    """Told sentences of both kinds, and induction, in equal parts."""
    model = HookedTransformer(_config(plan, SMALL), tokenizer(), seed=plan.seed)
    ids = {word.text: number for number, word in enumerate(vocabulary())}
    generator = np.random.default_rng([plan.seed, len(NULLS)])

    def documents() -> Iterator[list[int]]:
        while True:
            lemma = int(generator.integers(LEMMAS))
            found = [*(next(told(what, 1, generator)) for what in PHENOMENA.values()), induction(lemma, generator)]
            yield from ([ids[word] for word in pair.item.text.split()] for pair in found)

    rows = packed_rows(documents(), bos=0, n_ctx=LONGEST)
    train(model, islice(rows, STEPS * ROWS), TrainingConfig(steps=STEPS, batch_size=ROWS, warmup_steps=20))
    return model


Way = Callable[[EncodedExample], EncodedExample]
Permute = Callable[[Unit, np.random.Generator], Way]


def permuted(task: Task, kind: Literal["permuted labels", "permuted pairs"], generator: np.random.Generator) -> Task:
    """The task with each cluster's examples changed in one way; its references apart from its units.

    Args:
        task: Of the planted language.
        kind: What is exchanged.
        generator: Of the ways.
    """
    permute = _labels if kind == "permuted labels" else _related
    units, *references = (_changed(each, permute, generator) for each in (task.units, *task.references))
    return replace(task, units=units, references=tuple(references))


def _changed(units: Sequence[Unit], permute: Permute, generator: np.random.Generator) -> tuple[Unit, ...]:
    ways: dict[str, Way] = {}
    found = []
    for unit in units:
        way = ways.setdefault(unit.cluster, permute(unit, generator))
        other = None if unit.counterfactual is None else way(unit.counterfactual)
        found.append(replace(unit, item=way(unit.item), counterfactual=other))
    return tuple(found)


def _labels(unit: Unit, generator: np.random.Generator) -> Way:
    """Exchange the answers, and the feature's values; each or not."""
    answers, features = generator.random(2) < 0.5
    values = {name: [each.example.features[name] for each in unit.examples] for name in unit.item.example.features}

    def way(encoded: EncodedExample) -> EncodedExample:
        example = encoded.example
        if features:
            turned = {name: _other(value, values[name]) for name, value in example.features.items()}
            encoded = replace(encoded, example=replace(example, features=turned))
        return replace(encoded, right=encoded.wrong, wrong=encoded.right) if answers else encoded

    return way


def _other(value: str, values: list[str]) -> str:
    return next((each for each in values if each != value), value)


def _related(_unit: Unit, generator: np.random.Generator) -> Way:
    """Exchange the related word with one of its attractors, or with none; each as likely."""
    share = generator.random()  # of a cluster, whose templates have different numbers of attractors

    def way(encoded: EncodedExample) -> EncodedExample:
        names = [None, *sorted(encoded.distractors)]
        chosen = names[int(share * len(names))]
        if chosen is None:
            return encoded
        distractors = {**encoded.distractors, chosen: encoded.related}
        return replace(encoded, related=encoded.distractors[chosen], distractors=distractors)

    return way
