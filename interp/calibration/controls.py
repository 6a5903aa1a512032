"""Controls: trained models of which the truth is known without writing them, and nulls on which no head tracks.

Trained models, whose words and places are embedded as in planted ones:

- **A single head**: attention alone, one layer of one head, where words meet nowhere else. Trained to agree, the task
  needs its head and the related word's feature in it. It cannot do induction, which takes two layers (Elhage et al.
  2021, "A mathematical framework for transformer circuits").
- **One that sees**: one layer with LayerNorm and an MLP, of which one head alone can find words by their class. The
  keys of the others are frozen to the subspace in which places are embedded, or, where that head shares its keys with
  another query, that query is frozen at 0. Words and places have equal length, the norm before attention is not
  trained, and a related word and its attractors show their values in one direction: so nothing else tells them apart.
- **Told**: trained to answer by a key among the words (``language.load_told``). Its heads look for the key, carry its
  value and are needed; none of them tracks what is tagged as the related word.

Nulls, on which every ``tracks`` is a false claim:

- **trained**: a model of the last kind.
- **permuted labels**: a planted model; in half of the clusters right and wrong change places, and in half, drawn apart,
  the two values of the feature. No effect and no probe can be about the task.
- **permuted pairs**: a planted model; in each cluster the tag of the related word goes to it or to an attractor. The
  model does the task as before, and no attention is to the tagged word. The references are permuted apart.
- **untrained**: a model with random weights, whose heads do have effects, tiny ones.

Untrained models, and those whose labels are permuted, are not shown to do the task: verdicts are counted of models that
can, and kinds of evidence of all.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from interp.calibration import language
from interp.calibration.language import LONGEST, TaskName, vocabulary
from interp.calibration.planted import PLACES, Shape, model_of, plant
from interp.calibration.random_models import PHENOMENA_TASKS, Plan
from interp.claims.rules import Verdict
from interp.model.devices import documented
from interp.model.transformer import HookedTransformer
from interp.tasks.example import MinimalPair
from interp.tasks.task import EncodedExample, Task, Unit

NullKind = Literal["trained", "permuted labels", "permuted pairs", "untrained"]
NULLS: tuple[NullKind, ...] = get_args(NullKind)
AT_ATTRACTORS = ", tagged at the attractor"
"""The end of a task's name whose tags are wrong."""
MOST_LAYERS, MOST_HEADS = 2, 4
"""Of a trained null; heads of a layer."""
SINGLE: Mapping[TaskName, Verdict] = {"agreement": "tracks", "coreference": "tracks", "induction": "none"}
"""The right verdicts on a single head."""
SHAPE = Shape(n_layers=1, n_heads=1)
ENOUGH, MOST_STEPS = 0.002, 500
"""Training ends when its loss is smaller, or after so many steps."""
BATCH, PAIRS = 64, 500
"""Examples of a step, and pairs that are drawn of each task."""
LEARNING_RATE, INIT_STD = 0.01, 0.05
SEEING = Shape(n_layers=1, n_heads=4, d_model=64, d_head=16)
SENTENCES, SEEING_RATE, SEEING_STEPS = 2000, 0.003, 1500
"""Of a model with one head that sees: pairs of each task that it is trained on, how fast, and how long at most."""


@documented
def single_head(seed: int) -> HookedTransformer:
    """Train a model of one head to do agreement and coreference."""
    return _trained(SHAPE, map(language.pair_of, PHENOMENA_TASKS), seed)


def seeing_head(seed: int) -> int:
    """The head of ``seeing_model`` that sees."""
    return int(np.random.default_rng([seed, SEEING.n_heads]).integers(SEEING.n_heads))


@documented
def seeing_model(seed: int, *, is_crossed: bool, grouped: bool) -> HookedTransformer:
    """Train a model of which one head alone can find words by their class.

    Its language is ``language.crossed`` or, unless it `is_crossed`, agreement and coreference; if `grouped`, two heads
    each share keys and values.
    """
    shape = replace(SEEING, n_kv_heads=SEEING.n_heads // 2 if grouped else None)
    generator, sees, size = torch.Generator().manual_seed(seed), seeing_head(seed), SEEING.d_model
    model = model_of(shape, seed=seed, d_mlp=2 * size)
    basis = torch.randn(size, size, generator=generator)
    basis[:, 0] = 1.0  # the mean, which LayerNorm takes away
    places, words = torch.linalg.qr(basis).Q[:, 1:].T.split([PLACES, size - 1 - PLACES])
    attention: Any = model.blocks[0].attn
    to_places = places.T @ places

    def blind() -> None:
        for head in range(len(attention.W_K)):
            if head != sees // shape.n_queries:
                attention.W_K[head] = to_places @ attention.W_K[head]
        for head in range(SEEING.n_heads):
            if head != sees and head // shape.n_queries == sees // shape.n_queries:
                attention.W_Q[head], attention.b_Q[head] = 0.0, 0.0

    with torch.no_grad():
        model.embed.W_E.copy_(_at_random(words, generator))
        model.pos_embed.W_pos.copy_(normalize(torch.randn(LONGEST, PLACES, generator=generator), dim=-1) @ places)
        blind()
    frozen = {"embed.W_E", "pos_embed.W_pos", "blocks.0.ln1.w", "blocks.0.ln1.b"}
    weights = [each for name, each in model.named_parameters() if name not in frozen]
    tasks = get_args(language.Crossed)
    drawn = [partial(language.crossed, each, each) if is_crossed else language.pair_of(each) for each in tasks]
    how: dict[str, Any] = {"rate": SEEING_RATE, "most_steps": SEEING_STEPS, "after_step": blind}
    return _fitted(model, weights, _pairs(drawn, SENTENCES, seed), generator, **how)


def _at_random(words: Tensor, generator: torch.Generator) -> Tensor:
    """Each word's class, which one it is, and its value; the latter as that of its attractors. All are as long."""
    made: dict[tuple[str, int], Tensor] = {}

    def direction(name: str, number: int = 0) -> Tensor:
        return made.setdefault((name, number), normalize(torch.randn(len(words), generator=generator), dim=0))

    rows = [
        direction(f"class {each.kind}")
        + direction(f"lemma {each.kind}", each.lemma)
        + each.value * direction(f"value {each.kind.removeprefix('of-')}")
        for each in vocabulary()
    ]
    return normalize(torch.stack(rows), dim=-1) @ words


def _trained(shape: Shape, draws: Iterable[language.Draw], seed: int) -> HookedTransformer:
    """All weights of attention are trained until right answers are certain to be likelier than wrong ones."""
    model, generator = plant(shape, [], seed=seed), torch.Generator().manual_seed(seed)
    weights = [getattr(block.attn, name) for block in model.blocks for name in ("W_Q", "W_K", "W_V", "W_O")]
    with torch.no_grad():
        for weight in weights:
            weight.normal_(std=INIT_STD, generator=generator)
    return _fitted(model, weights, _pairs(draws, PAIRS, seed), generator, rate=LEARNING_RATE, most_steps=MOST_STEPS)


def _pairs(draws: Iterable[language.Draw], n: int, seed: int) -> list[MinimalPair]:
    """So many of each task that a model is trained on."""
    generator = np.random.default_rng([seed, len(SINGLE)])
    return [pair for draw in draws for pair in language.pairs(draw, n, generator)]


def _fitted(
    model: HookedTransformer,
    weights: Sequence[Tensor],
    drawn: Iterable[MinimalPair],
    generator: torch.Generator,
    *,
    rate: float,
    most_steps: int,
    after_step: Callable[[], None] = lambda: None,
) -> HookedTransformer:
    """Train `weights` on both examples of pairs."""
    ids = {word.text: number for number, word in enumerate(vocabulary())}
    examples = [each for pair in drawn for each in (pair.item, pair.counterfactual) if each]
    rows = [[0, *(ids[word] for word in each.prompt.split())] for each in examples]
    tokens = torch.tensor([[*own, *[0] * (LONGEST - len(own))] for own in rows])
    queries = torch.tensor([len(own) - 1 for own in rows])
    answers = torch.tensor([[ids[each.rights[0].strip()], ids[each.wrongs[0].strip()]] for each in examples])
    optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
    for _ in range(most_steps):
        batch = torch.randint(len(tokens), (BATCH,), generator=generator)
        logits = model(tokens[batch])[torch.arange(BATCH), queries[batch]].gather(1, answers[batch])
        optimizer.zero_grad()
        loss = softplus(logits[:, 1] - logits[:, 0]).mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            after_step()
        if loss < ENOUGH:
            break
    return model.eval()


@documented
def null_case(kind: NullKind, plan: Plan) -> tuple[HookedTransformer, list[Task]]:
    """A model on which nothing is to be found, and its tasks.

    The `plan` says its layers and heads, tasks, sample size and seed; of permuted ones it is the planted model itself.
    """
    generator = np.random.default_rng([plan.seed, NULLS.index(kind)])
    if kind == "trained":
        tasks = [language.load_told(name, n=plan.difficulty.n, seed=plan.seed) for name in PHENOMENA_TASKS]
        draws = [partial(language.told, what) for what in language.PHENOMENA.values()]
        return _trained(trained_shape(plan.shape), draws, plan.seed), tasks
    if kind == "untrained":
        return model_of(plan.shape, seed=plan.seed, init_std=0.3).eval(), plan.tasks()
    return plan.model(), [permuted(task, kind, generator) for task in plan.tasks()]


def trained_shape(shape: Shape) -> Shape:
    """That of the trained model of a plan: of no more heads than can be trained and judged in seconds."""
    n_heads = min(MOST_HEADS, shape.n_heads)
    n_kv_heads = None if shape.n_kv_heads is None else max(1, n_heads // shape.n_queries)
    return replace(shape, n_layers=min(MOST_LAYERS, shape.n_layers), n_heads=n_heads, n_kv_heads=n_kv_heads)


Change = Callable[[EncodedExample, np.ndarray], EncodedExample]
"""Changes an example as the numbers from 0 to 1 say that are drawn for its cluster."""


def permuted(task: Task, kind: Literal["permuted labels", "permuted pairs"], generator: np.random.Generator) -> Task:
    """The task with each cluster's examples permuted in one way; its references apart from its units."""
    change, n = (_labels, 2) if kind == "permuted labels" else (_related, 1)
    return _changed(task, change, lambda: generator.random(n))


def _changed(task: Task, change: Change, draw: Callable[[], np.ndarray]) -> Task:
    """The task with the examples of each cluster changed by the first numbers that are drawn for it."""

    def changed(units: Sequence[Unit]) -> tuple[Unit, ...]:
        drawn: dict[str, np.ndarray] = {}
        found = []
        for unit in units:
            own = drawn.setdefault(unit.cluster, draw())
            other = None if unit.counterfactual is None else change(unit.counterfactual, own)
            found.append(replace(unit, item=change(unit.item, own), counterfactual=other))
        return tuple(found)

    return replace(task, units=changed(task.units), references=tuple(changed(each) for each in task.references))


def _labels(encoded: EncodedExample, drawn: np.ndarray) -> EncodedExample:
    """Exchange the answers, and the feature's values; each or not."""
    answers, features = drawn < 0.5
    example = language.with_other_values(encoded.example) if features else encoded.example
    right, wrong = (encoded.wrong, encoded.right) if answers else (encoded.right, encoded.wrong)
    other = encoded.word_counterfactual
    turned = None if other is None else _labels(other, drawn)
    return replace(encoded, example=example, right=right, wrong=wrong, word_counterfactual=turned)


def _related(encoded: EncodedExample, drawn: np.ndarray) -> EncodedExample:
    """Exchange the related word with one of its attractors, or with none; each as likely."""
    names = [None, *sorted(encoded.distractors)]  # templates have different numbers of attractors
    chosen = names[int(drawn[0] * len(names))]
    return encoded if chosen is None else tagged_at(encoded, chosen)


def tagged_at(encoded: EncodedExample, chosen: str) -> EncodedExample:
    """The example with a distractor tagged as the related word, and its other form for the word counterfactual.

    That is the example with the other form of the word that is tagged, as if that decided the feature and the answer.
    """
    distractors = {**encoded.distractors, chosen: encoded.related}
    tagged = replace(encoded, related=encoded.distractors[chosen], distractors=distractors)
    (place,), words = tagged.related, [each.text for each in vocabulary()]
    prompt = list(encoded.prompt)
    prompt[place] = words.index(language.other_form(words[prompt[place]]))
    example = replace(
        language.with_other_values(encoded.example),
        prompt=" ".join(words[each] for each in prompt[1:]),
        right=encoded.example.wrong,
        wrong=encoded.example.right,
        word_counterfactuals=(),
    )
    answers: dict[str, Any] = {"right": encoded.wrong, "wrong": encoded.right}
    other = replace(tagged, example=example, prompt=tuple(prompt), **answers, word_counterfactual=None)
    return replace(tagged, word_counterfactual=other)


def at_attractors(task: Task) -> Task:
    """The task with its first attractors tagged as the related words: wrong tags."""
    changed = _changed(task, lambda encoded, _: tagged_at(encoded, "first attractor"), lambda: np.empty(0))
    return replace(changed, name=f"{task.name}{AT_ATTRACTORS}")
