"""Random trees, and a model whose first head knows them."""

import numpy as np
import torch
from banks import document, sentence, word_level
from planted import Planted, even, onto

FORMS = [f"w{number}" for number in range(40)]
TO_HEAD, TO_DEPENDENT = "dependent to head", "head to dependent"
N_DOCUMENTS = 40
"""Enough to decide anything."""


def trees(n_documents=N_DOCUMENTS, n_sentences=3, *, seed=0, length=8):
    """Random trees over the same words: which word depends on which is in no position."""
    generator = np.random.default_rng(seed)
    for number in range(n_documents):
        yield document(*(tree(generator, length) for _ in range(n_sentences)), name=f"d{number}")


def tree(generator, length):
    """A sentence of different words, each of which but the first depends on an earlier one in some random order."""
    order, words = generator.permutation(length), generator.permutation(len(FORMS))[:length]
    heads = [-1] * length
    for rank in range(1, length):
        heads[order[rank]] = int(order[generator.integers(rank)])
    return sentence(" ".join(FORMS[each] for each in words), heads)


def by_text(documents, tokenizer):
    """Each sentence by its row of ids."""
    return {tuple(tokenizer(each.text)["input_ids"]): each for document in documents for each in document.sentences}


def knowing(documents, *, causal=False, share=1.0, seed=0):
    """Head 0 looks from each word to its head, in a share of the cases; head 1 looks everywhere alike."""
    tokenizer = word_level(FORMS, both_sides=not causal)
    known = by_text(documents, tokenizer)
    generator = np.random.default_rng(seed)

    def pattern(ids):
        found = known[tuple(ids[1:] if causal else ids)]
        targets = {
            at + 1: word.head + 1
            for at, word in enumerate(found.words)
            if word.head >= 0 and (word.head < at or not causal) and generator.random() < share
        }
        spread = even(len(ids))
        if causal:
            spread = torch.tril(torch.ones(len(ids), len(ids)))
            spread = spread / spread.sum(-1, keepdim=True)
        own = torch.where(onto(len(ids), targets) == even(len(ids)), spread, onto(len(ids), targets))
        return torch.stack([own, spread])[None]

    return Planted(tokenizer, pattern, causal=causal)


def row(frame, looks=TO_HEAD, head=0, relation="dep"):
    (found,) = frame.query("relation == @relation and looks == @looks and head == @head").to_dict("records")
    return found
