"""A model of one layer whose heads hold a noun's number, by itself or with the noun, among nouns enough to be held out.

Head 0 looks at the noun, holds its number and writes the verb's; head 1 looks evenly, holds the number and writes what
no answer depends on; head 2 looks evenly and holds which noun it is, not that the noun has a number.
"""

import torch

from interp.model.config import TransformerConfig
from interp.model.transformer import HookedTransformer
from interp.tasks.example import Example, Relation, Span
from interp.tasks.task import EncodedExample, Task, Unit

NOUNS = 48
BOS, BY, NEAR, THERE, IS, ARE = range(6)
SIZE = 6 + 2 * NOUNS
WORDS = ("<bos>", "by", "near", "there", "is", "are", *(f"noun{n}{end}" for n in range(NOUNS) for end in ("", "s")))
SINGULAR, PLURAL = range(6, SIZE, 2), range(7, SIZE, 2)


def noun_model():
    shape = {"n_layers": 1, "n_heads": 3, "d_model": SIZE, "d_head": SIZE, "d_mlp": 0, "d_vocab": SIZE, "n_ctx": 12}
    model = HookedTransformer(TransformerConfig(**shape, positions="none", normalization="none", scores="dot"))
    attention = model.blocks[0].attn
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.W_E.copy_(torch.eye(SIZE))
        attention.W_Q[0, THERE, 0] = 1
        attention.W_K[0, 6:, 0] = torch.log(torch.tensor(9.0))
        for head in (0, 1):
            attention.W_V[head, SINGULAR, IS] = attention.W_V[head, PLURAL, ARE] = 1
        attention.W_V[2] = torch.eye(SIZE)
        attention.W_O[0, IS, IS] = attention.W_O[0, ARE, ARE] = 1
        attention.W_O[1:, :, BY] = 1
    return model


def noun_task(*, n_clusters=NOUNS, name="nouns", feature="number"):
    """Every distance and start equally often; each noun is a cluster."""
    shapes = [(before, after) for before in range(4) for after in range(4)]
    units = [_unit(noun, *shapes[(7 * noun + extra) % 16], fold=0) for noun in range(n_clusters) for extra in range(4)]
    references = [_unit(number % NOUNS, *shape, fold=0) for number, shape in enumerate(3 * shapes)]
    return Task(
        name=name,
        description="By hand.",
        metric="logit_difference",
        query="predicting position",
        units=tuple(units),
        references=(tuple(references),),
        dropped={},
        coverage={},
        hash=name,
        feature=feature,
    )


def _unit(noun, before, after, fold):
    return Unit(*(_encoded(noun, plural, before, after) for plural in (0, 1)), f"noun{noun}", fold)


def _encoded(noun, plural, before, after):
    word = 6 + 2 * noun + plural
    prompt = (BOS, *[BY] * before, word, *[NEAR] * after, THERE)
    text = " ".join(WORDS[each] for each in prompt[1:])
    right, wrong = (ARE, IS) if plural else (IS, ARE)
    related, query = Span.find(WORDS[word], text), Span.find("there", text)
    example = Example(
        prompt=text,
        right=f" {WORDS[right]}",
        wrong=f" {WORDS[wrong]}",
        relation=Relation("subject", query, related),
        template="t",
        layout=f"noun at {before + 1} of {len(prompt)}",
        features={"number": "plural" if plural else "singular"},
    )
    return EncodedExample(example, prompt, (right,), (wrong,), len(prompt) - 1, (before + 1,), {})
