"""On which models must no head track anything? Four kinds; what any of them yields is a false claim.

- **trained**: a model that was trained to do its tasks without fail, of which the related word is no part: a key among
  the words tells the answer (``trained.told_model``). Its heads look for the key, carry its value, and are needed.
- **permuted labels**: a planted model; in half of the clusters, at random, right and wrong change places, and in half,
  drawn apart, the two values of the feature. No effect and no probe can be about the task.
- **permuted pairs**: a planted model; in each cluster the tag of the related word goes to it or to an attractor, each
  as often. It does the task as before, and no attention is to what is tagged; its other form, taken for the word
  counterfactual by who believes in the tags, turns no answer. The references are permuted apart: baselines are chosen
  elsewhere.
- **untrained**: a model with random weights, whose heads do have effects, tiny ones.

Untrained models, and those whose labels are permuted, are not able to do the task, or not shown to be: the first thing
that the dossier asks. So verdicts are counted of those that are, and kinds of evidence of all.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Literal, get_args

import numpy as np

from interp.calibration.drawing import PHENOMENA_TASKS, Plan
from interp.calibration.language import LONGEST, load_told, other_form, tokenizer, vocabulary, with_other_values
from interp.calibration.planted import Shape
from interp.calibration.trained import told_model
from interp.model.config import TransformerConfig
from interp.model.devices import documented
from interp.model.transformer import HookedTransformer
from interp.tasks.task import EncodedExample, Task, Unit

NullKind = Literal["trained", "permuted labels", "permuted pairs", "untrained"]
NULLS: tuple[NullKind, ...] = get_args(NullKind)


AT_ATTRACTORS = ", tagged at the attractor"
"""The end of a task's name whose tags are wrong."""
MOST_LAYERS, MOST_HEADS = 2, 4
"""Of a trained model; heads of a layer."""


@documented
def null_case(kind: NullKind, plan: Plan) -> tuple[HookedTransformer, list[Task]]:
    """A model on which nothing is to be found, and its tasks.

    Args:
        kind: Which.
        plan: Its layers and heads, tasks, sample size and seed; of permuted ones the planted model itself.
    """
    generator = np.random.default_rng([plan.seed, NULLS.index(kind)])
    if kind == "trained":
        tasks = [load_told(name, n=plan.difficulty.n, seed=plan.seed) for name in PHENOMENA_TASKS]
        return told_model(trained_shape(plan.shape), plan.seed), tasks
    if kind == "untrained":
        return HookedTransformer(_config(plan), tokenizer(), seed=plan.seed).eval(), plan.tasks()
    return plan.model(), [permuted(task, kind, generator) for task in plan.tasks()]


def trained_shape(shape: Shape) -> Shape:
    """That of the trained model of a plan: of no more heads than can be trained and judged in seconds."""
    n_heads = min(MOST_HEADS, shape.n_heads)
    n_kv_heads = None if shape.n_kv_heads is None else max(1, n_heads // shape.n_queries)
    return replace(shape, n_layers=min(MOST_LAYERS, shape.n_layers), n_heads=n_heads, n_kv_heads=n_kv_heads)


def _config(plan: Plan) -> TransformerConfig:
    return TransformerConfig(
        **asdict(plan.shape), d_mlp=0, d_vocab=len(vocabulary()), n_ctx=LONGEST, tied=False, init_std=0.3
    )


Way = Callable[[EncodedExample], EncodedExample]


def permuted(task: Task, kind: Literal["permuted labels", "permuted pairs"], generator: np.random.Generator) -> Task:
    """The task with each cluster's examples changed in one way; its references apart from its units.

    Args:
        task: Of the planted language.
        kind: What is exchanged.
        generator: Of the ways.
    """
    permute = _labels if kind == "permuted labels" else _related
    units, *references = (
        _changed(each, lambda unit: permute(unit, generator)) for each in (task.units, *task.references)
    )
    return replace(task, units=units, references=tuple(references))


def _changed(units: Sequence[Unit], way_of: Callable[[Unit], Way]) -> tuple[Unit, ...]:
    ways: dict[str, Way] = {}
    found = []
    for unit in units:
        way = ways.setdefault(unit.cluster, way_of(unit))
        other = None if unit.counterfactual is None else way(unit.counterfactual)
        found.append(replace(unit, item=way(unit.item), counterfactual=other))
    return tuple(found)


def _labels(_unit: Unit, generator: np.random.Generator) -> Way:
    """Exchange the answers, and the feature's values; each or not."""
    answers, features = generator.random(2) < 0.5

    def way(encoded: EncodedExample) -> EncodedExample:
        encoded = _values_exchanged(encoded) if features else encoded
        return _answers_exchanged(encoded) if answers else encoded

    return way


def _values_exchanged(encoded: EncodedExample) -> EncodedExample:
    other = encoded.word_counterfactual
    turned = None if other is None else replace(other, example=with_other_values(other.example))
    return replace(encoded, example=with_other_values(encoded.example), word_counterfactual=turned)


def _answers_exchanged(encoded: EncodedExample) -> EncodedExample:
    other = encoded.word_counterfactual
    turned = None if other is None else replace(other, right=other.wrong, wrong=other.right)
    return replace(encoded, right=encoded.wrong, wrong=encoded.right, word_counterfactual=turned)


def _related(_unit: Unit, generator: np.random.Generator) -> Way:
    """Exchange the related word with one of its attractors, or with none; each as likely."""
    share = generator.random()  # of a cluster, whose templates have different numbers of attractors

    def way(encoded: EncodedExample) -> EncodedExample:
        names = [None, *sorted(encoded.distractors)]
        chosen = names[int(share * len(names))]
        return encoded if chosen is None else tagged_at(encoded, chosen)

    return way


def tagged_at(encoded: EncodedExample, chosen: str) -> EncodedExample:
    """The example with a distractor tagged as the related word, and its other form for the word counterfactual."""
    distractors = {**encoded.distractors, chosen: encoded.related}
    tagged = replace(encoded, related=encoded.distractors[chosen], distractors=distractors)
    return replace(tagged, word_counterfactual=_other_form(tagged))


def at_attractors(task: Task) -> Task:
    """The task with its first attractors tagged as the related words: wrong tags."""
    units, *references = (
        _changed(each, lambda _: lambda encoded: tagged_at(encoded, "first attractor"))
        for each in (task.units, *task.references)
    )
    return replace(task, name=f"{task.name}{AT_ATTRACTORS}", units=units, references=tuple(references))


def _other_form(encoded: EncodedExample) -> EncodedExample:
    """The example with the other form of the word that is tagged, as if that decided the feature and the answer."""
    (place,), example, words = encoded.related, with_other_values(encoded.example), [each.text for each in vocabulary()]
    other = words.index(other_form(words[encoded.prompt[place]]))
    prompt = (*encoded.prompt[:place], other, *encoded.prompt[place + 1 :])
    text = " ".join(words[each] for each in prompt[1:])
    turned = replace(example, prompt=text, right=example.wrong, wrong=example.right, word_counterfactuals=())
    return replace(
        encoded,
        example=turned,
        prompt=prompt,
        right=encoded.wrong,
        wrong=encoded.right,
        word_counterfactual=None,
    )
