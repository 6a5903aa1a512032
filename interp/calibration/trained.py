"""Of which trained heads is the truth known? Of an only one; and of all where the related word has no part in the task.

- **A single head**: a model of attention alone, one layer of one head: words do not meet anywhere else. Once it is
  trained to agree its verbs, the task needs its head and the related word's feature in it, for nothing else tells the
  answer. That it looks there more than elsewhere is what training makes of it: a head that looked everywhere alike
  could tell a related word's value from an attractor's. And whatever it is trained for, it cannot do induction, which
  takes two layers: the key of an item does not say which word stood before it (Elhage et al. 2021, "A mathematical
  framework for transformer circuits").
- **Told**: a model that is trained to answer by a key among the words (``language.load_told``). Its heads look for the
  key, carry its value and are needed; none of them tracks what is tagged as the related word.

Words and places are embedded as in planted models, and answers are read as there; the heads' weights start at random
and are trained, in seconds.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from interp.calibration.drawing import PHENOMENA_TASKS
from interp.calibration.language import LONGEST, PHENOMENA, TaskName, pairs, told, vocabulary
from interp.calibration.planted import Shape, plant
from interp.claims.rules import Verdict
from interp.model.transformer import HookedTransformer
from interp.tasks.example import Example, MinimalPair

SINGLE: Mapping[TaskName, Verdict] = {"agreement": "tracks", "coreference": "tracks", "induction": "none"}
"""What is true of a single head."""
SHAPE = Shape(n_layers=1, n_heads=1)
ENOUGH, MOST_STEPS = 0.002, 500
"""Training ends when its loss is smaller, or after so many steps."""
BATCH, PAIRS = 64, 500
"""Examples of a step, and pairs that are drawn of each task."""
LEARNING_RATE, INIT_STD = 0.01, 0.05


def single_head(seed: int) -> HookedTransformer:
    """Train a model of one head to do agreement and coreference.

    Args:
        seed: Of the weights and of what it is trained on.
    """
    draws = np.random.default_rng([seed, len(SINGLE)])
    return _trained(SHAPE, (pair for task in PHENOMENA_TASKS for pair in pairs(task, PAIRS, draws, 0.5)), seed)


def told_model(shape: Shape, seed: int) -> HookedTransformer:
    """Train a model of any shape to answer by keys.

    Args:
        shape: Of the model.
        seed: Of the weights and of what it is trained on.
    """
    draws = np.random.default_rng([seed, len(SINGLE)])
    return _trained(shape, (pair for what in PHENOMENA.values() for pair in told(what, PAIRS, draws)), seed)


def _trained(shape: Shape, drawn: Iterable[MinimalPair], seed: int) -> HookedTransformer:
    """All weights of attention are trained until right answers are certain to be likelier than wrong ones."""
    model, generator = plant(shape, [], seed=seed), torch.Generator().manual_seed(seed)
    weights = [getattr(block.attn, name) for block in model.blocks for name in ("W_Q", "W_K", "W_V", "W_O")]
    with torch.no_grad():
        for weight in weights:
            weight.normal_(std=INIT_STD, generator=generator)
    tokens, queries, answers = _encoded([each for pair in drawn for each in (pair.item, pair.counterfactual) if each])
    optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.0)
    for _ in range(MOST_STEPS):
        batch = torch.randint(len(tokens), (BATCH,), generator=generator)
        logits = model(tokens[batch])[torch.arange(BATCH), queries[batch]].gather(1, answers[batch])
        optimizer.zero_grad()
        loss = softplus(logits[:, 1] - logits[:, 0]).mean()
        loss.backward()
        optimizer.step()
        if loss < ENOUGH:
            break
    return model.eval()


def _encoded(examples: list[Example]) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of tokens, where each asks, and its right and wrong answer."""
    ids = {word.text: number for number, word in enumerate(vocabulary())}
    rows = [[0, *(ids[word] for word in example.prompt.split())] for example in examples]
    tokens = torch.zeros(len(rows), LONGEST, dtype=torch.long)
    for row, own in zip(tokens, rows, strict=True):
        row[: len(own)] = torch.tensor(own)
    answers = [[ids[each.right.strip()], ids[each.wrong.strip()]] for each in examples]
    return tokens, torch.tensor([len(own) - 1 for own in rows]), torch.tensor(answers)
