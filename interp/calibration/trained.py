"""Of which trained head is the truth known? Of the only one: what its model can do, that head does.

A model of attention alone, one layer of one head: words do not meet anywhere else. Once it is trained to agree its
verbs, its head looks at the related word, for nothing else tells the answer, and holds its feature, and the task needs
both. And whatever it is trained for, it cannot do induction, which takes two layers: the key of an item does not say
which word stood before it (Elhage et al. 2021, "A mathematical framework for transformer circuits").

Words and places are embedded as in planted models, and answers are read as there; the head's weights start at random
and are trained, in a second or two.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from interp.calibration.drawing import PHENOMENA_TASKS
from interp.calibration.language import LONGEST, TaskName, pairs, vocabulary
from interp.calibration.planted import Shape, plant
from interp.methods.verdict import Verdict
from interp.model.transformer import HookedTransformer
from interp.tasks.example import Example

SINGLE: Mapping[TaskName, Verdict] = {"agreement": "tracks", "coreference": "tracks", "induction": "none"}
"""What is true of the only head."""
SHAPE = Shape(n_layers=1, n_heads=1)
STEPS, BATCH, PAIRS = 100, 64, 1_000
"""Of training; pairs are drawn of each task."""
LEARNING_RATE, INIT_STD = 0.01, 0.05


def single_head(seed: int) -> HookedTransformer:
    """Train a model of one head to do agreement and coreference.

    Args:
        seed: Of the weights and of what it is trained on.
    """
    model = plant(SHAPE, [], seed=seed)
    weights = [getattr(model.blocks[0].attn, name) for name in ("W_Q", "W_K", "W_V", "W_O")]
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in weights:
            weight.normal_(std=INIT_STD, generator=generator)
    draws = np.random.default_rng([seed, len(SINGLE)])
    drawn = [pair for task in PHENOMENA_TASKS for pair in pairs(task, PAIRS, draws, 0.5)]
    examples = [each for pair in drawn for each in (pair.item, pair.counterfactual) if each is not None]
    tokens, queries, answers = _encoded(examples)
    optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.0)
    for _ in range(STEPS):
        batch = torch.as_tensor(draws.integers(len(examples), size=BATCH))
        logits = model(tokens[batch])[torch.arange(BATCH), queries[batch]].gather(1, answers[batch])
        optimizer.zero_grad()
        softplus(logits[:, 1] - logits[:, 0]).mean().backward()
        optimizer.step()
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
