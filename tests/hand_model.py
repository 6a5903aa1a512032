"""A one-layer, attention-only model whose numbers can be worked out by hand.

Vocabulary: BOS, two nouns, two fillers, the query word, two answers. The residual stream is one-hot,
and W_E = W_U = 1, so a direction of the stream is a logit.

- Head 0: the query word scores ln 9 with a noun and 0 with all else, so among ``n`` positions it
  gives the noun 9 / (n + 8); it writes 1 to the logit of the noun's answer.
- Head 1: attends evenly and writes the logit of a filler: it changes no answer.
- Everything else attends evenly. ``b_O`` adds 0.2 to the logit of ``is``.
"""

import dataclasses
from types import SimpleNamespace

import torch
from torch import nn
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint

from interp.model.config import TransformerConfig
from interp.model.transformer import HookedTransformer
from interp.tasks.example import Example, Relation, Span
from interp.tasks.task import EncodedExample, Task, Unit

WORDS = ("<bos>", "key", "keys", "by", "near", "there", "is", "are")
BOS, KEY, KEYS, BY, NEAR, THERE, IS, ARE = range(8)
N_CLUSTERS = 48
"""Of the varied task: enough to decide anything."""


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        size = len(WORDS)
        self.W_Q, self.W_K = nn.Parameter(torch.zeros(2, size, size)), nn.Parameter(torch.zeros(2, size, size))
        self.W_V, self.W_O = nn.Parameter(torch.zeros(2, size, size)), nn.Parameter(torch.zeros(2, size, size))
        self.b_O = nn.Parameter(torch.zeros(size))
        self.hook_v, self.hook_pattern, self.hook_z = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x):
        q = torch.einsum("bpm,hmd->bphd", x, self.W_Q)
        k = torch.einsum("bpm,hmd->bphd", x, self.W_K)
        v = self.hook_v(torch.einsum("bpm,hmd->bphd", x, self.W_V))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        pattern = self.hook_pattern(scores.masked_fill(later, -torch.inf).softmax(-1))
        z = self.hook_z(torch.einsum("bhqk,bkhd->bqhd", pattern, v))
        return torch.einsum("bphd,hdm->bpm", z, self.W_O) + self.b_O


class HandModel(HookedRootModule):
    def __init__(self, *, bias=0.2):
        super().__init__()
        size = len(WORDS)
        self.cfg = SimpleNamespace(n_layers=1, n_heads=2, d_model=size, d_head=size, n_ctx=12, d_vocab=size)
        self.tokenizer = None
        self.blocks = nn.ModuleList([nn.Module()])
        self.blocks[0].attn = attention = Attention()
        with torch.no_grad():
            attention.W_Q[0, THERE, 0] = 1
            attention.W_K[0, [KEY, KEYS], 0] = torch.log(torch.tensor(9.0))
            attention.W_V[0, KEY, KEY] = attention.W_V[0, KEYS, KEYS] = 1
            attention.W_O[0, KEY, IS] = attention.W_O[0, KEYS, ARE] = 1
            attention.W_V[1] = torch.eye(len(WORDS))
            attention.W_O[1, :, BY] = 1
            attention.b_O[IS] = bias
        self.setup()

    def forward(self, tokens):
        x = torch.eye(len(WORDS))[tokens]
        return x + self.blocks[0].attn(x)


def encode(prompt, *, right=IS, wrong=ARE, template="t", tagged=True):
    """An example of token ids; the related word is the noun, the query the last token."""
    text = " ".join(WORDS[each] for each in prompt)
    noun = next(position for position, token in enumerate(prompt) if token in (KEY, KEYS))
    example = Example(
        prompt=text,
        right=f" {WORDS[right]}",
        wrong=f" {WORDS[wrong]}",
        relation=Relation("subject", Span(0, 1), Span(0, 1)) if tagged else None,
        template=template,
        layout=f"noun at {noun} of {len(prompt)}",
    )
    return EncodedExample(
        example,
        tuple(prompt),
        (right,),
        (wrong,),
        query=len(prompt) - 1 if tagged else None,
        related=(noun,) if tagged else (),
        distractors={},
    )


def pair(prompt, cluster="c", **options):
    """A unit: a prompt with the singular noun, and the same with the plural."""
    plural = [KEYS if each == KEY else each for each in prompt]
    return Unit(encode(prompt, **options), encode(plural, right=ARE, wrong=IS, **options), cluster, fold=0)


def task_of(units, references, *, name="hand", metric="logit_difference"):
    return Task(
        name=name,
        description="By hand.",
        metric=metric,
        query="predicting position",
        units=tuple(units),
        references=(tuple(references),),
        dropped={},
        coverage={},
        hash="hand",
    )


def prompts(n_before, n_after):
    """BOS, fillers, noun, fillers, query word."""
    return [BOS, *([BY] * n_before), KEY, *([NEAR] * n_after), THERE]


def varied_task(n_clusters=N_CLUSTERS, **options):
    """Every distance and start equally often, so that no offset or position finds the noun."""
    shapes = [(before, after) for before in range(4) for after in range(4)]
    units = [
        pair(prompts(*shapes[(7 * number + extra) % 16]), f"c{number}")
        for number in range(n_clusters)
        for extra in range(4)
    ]
    return task_of(units, [pair(prompts(*shape)) for shape in shapes], **options)


def relabelled(task, features):
    """The task with what `features` makes of each encoded example."""

    def example(each):
        return dataclasses.replace(each, example=dataclasses.replace(each.example, features=features(each)))

    def unit(each):
        other = None if each.counterfactual is None else example(each.counterfactual)
        return dataclasses.replace(each, item=example(each.item), counterfactual=other)

    units, references = tuple(map(unit, task.units)), tuple(tuple(map(unit, each)) for each in task.references)
    return dataclasses.replace(task, units=units, references=references)


def number(encoded):
    return {"number": "singular" if KEY in encoded.prompt else "plural", "length": str(len(encoded.prompt))}


def hand_task(name="hand", **options):
    """The varied task, its examples labelled by the number of their noun and by their length."""
    return relabelled(varied_task(name=name, **options), number)


def hand_weights():
    """The same model as one of ours, with a stream to erase in."""
    size = len(WORDS)
    shape = {"n_layers": 1, "n_heads": 2, "d_model": size, "d_head": size, "d_mlp": 0, "d_vocab": size, "n_ctx": 12}
    config = TransformerConfig(**shape, positions="none", normalization="none", scores="dot")
    model, attention = HookedTransformer(config), HandModel().blocks[0].attn
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.W_E.copy_(torch.eye(size))
        for name in ("W_Q", "W_K", "W_V", "W_O", "b_O"):
            getattr(model.blocks[0].attn, name).copy_(getattr(attention, name))
    return model
