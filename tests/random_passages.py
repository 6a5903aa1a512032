"""Rows of random tokens with words of one to three tokens, some of which have labels."""

import numpy as np

from interp.tasks.features import Label
from interp.tasks.passages import Passage, ReadWord


def random_passages(n=12, *, d_vocab=40, longest=15, seed=0):
    """Some tokens at the beginning and between words are of no word."""
    generator = np.random.default_rng(seed)
    passages = []
    for number in range(n):
        length = int(generator.integers(4, longest + 1))
        words, at = [], 1
        while at < length:
            stop = min(at + int(generator.integers(1, 4)), length)
            name = f"w{len(words)}"
            labels = {"upos": Label("NOUN" if len(words) % 2 else "VERB", name, name)}
            if number > n // 2 and not words:
                labels["late"] = Label(str(number), name, "")
            words.append(ReadWord(f"s{number}", len(words), name, tuple(range(at, stop)), labels if at % 3 else {}))
            at = stop + int(generator.integers(0, 2))
        ids = tuple(generator.integers(d_vocab, size=length).tolist())
        passages.append(Passage(f"d{number // 3}", f"t{number % 2}", ids, tuple(words)))
    return passages
