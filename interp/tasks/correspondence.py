"""Which position of one prompt means what in another? Words of two examples of a unit, aligned by their spans.

1. What the task names in both prompts corresponds: BOS, the related word, each distractor, the query, the last token.
   A word of several tokens corresponds token by token where both have as many, else by its last token.
2. Between two neighbouring spans, tokens correspond one by one where there are as many of them in both prompts, and
   the spans come in the same order. All else corresponds to nothing.
"""

from itertools import pairwise

from interp.tasks.task import EncodedExample

NOTHING = -1


def corresponding(run: EncodedExample, source: EncodedExample) -> tuple[int, ...]:
    """For every position of `run`'s prompt, the one of `source`'s prompt that means the same; -1 where none does."""
    if len(run.prompt) == len(source.prompt):
        return tuple(range(len(run.prompt)))
    found = [NOTHING] * len(run.prompt)
    ours, theirs = spans(run), spans(source)
    both = sorted((name for name in ours if name in theirs), key=lambda name: ours[name])
    for name in both:
        found_here = ours[name][-1:], theirs[name][-1:]
        if len(ours[name]) == len(theirs[name]):
            found_here = ours[name], theirs[name]
        for position, other in zip(*found_here, strict=True):
            found[position] = other
    for before, after in pairwise(both):
        between = range(ours[before][-1] + 1, ours[after][0])
        others = range(theirs[before][-1] + 1, theirs[after][0])
        if len(between) == len(others):
            for position, other in zip(between, others, strict=True):
                found[position] = other
    return tuple(found)


def spans(encoded: EncodedExample) -> dict[str, tuple[int, ...]]:
    """What the task names in a prompt: where two names meet, the later one is the narrower."""
    last = len(encoded.prompt) - 1
    named = {"BOS": (0,), **encoded.distractors, "related": encoded.related}
    if encoded.query is not None and encoded.query < last:
        named["query"] = (encoded.query,)
    named["last"] = (last,)
    return {name: positions for name, positions in named.items() if positions and max(positions) <= last}
