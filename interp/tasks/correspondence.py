"""Which position of one prompt means what in another? Words of two examples of a unit, aligned by their spans.

1. What the task names in both prompts corresponds: BOS (the special tokens in front), the related word, each
   distractor, the query, the last token.
   A word of several tokens corresponds token by token where both have as many, else by its last token.
2. Fillers, the tokens between two neighbouring spans, correspond one by one where the same two spans are neighbours in
   the other prompt, in the same order, with as many fillers between them. All else corresponds to nothing.
"""

from collections.abc import Iterator
from itertools import pairwise

from interp.tasks.task import EncodedExample

NOTHING = -1


def corresponding(run: EncodedExample, source: EncodedExample) -> tuple[int, ...]:
    """For every position of `run`'s prompt, the one of `source`'s prompt that means the same; -1 where none does."""
    if len(run.prompt) == len(source.prompt):
        return tuple(range(len(run.prompt)))
    found = [NOTHING] * len(run.prompt)
    ours, theirs = spans(run), spans(source)
    both = [name for name in ours if name in theirs]
    for name in both:
        found_here = ours[name][-1:], theirs[name][-1:]
        if len(ours[name]) == len(theirs[name]):
            found_here = ours[name], theirs[name]
        for position, other in zip(*found_here, strict=True):
            found[position] = other
    ends, starts = ({ours[name][end]: theirs[name][end] for name in both} for end in (-1, 0))
    ends[-1] = -1  # what stands in front of a prompt
    stretches = set(fillers(source))
    for between in fillers(run):
        if between.start - 1 not in ends or between.stop not in starts:
            continue
        others = range(ends[between.start - 1] + 1, starts[between.stop])
        if len(between) == len(others) and others in stretches:
            found[between.start : between.stop] = others
            stretches.remove(others)
    return tuple(found)


def fillers(encoded: EncodedExample) -> Iterator[range]:
    """The stretches of a prompt in which the task names nothing; its beginning and the last token bound all."""
    named = sorted({-1, *(position for positions in spans(encoded).values() for position in positions)})
    for before, after in pairwise(named):
        if after - before > 1:
            yield range(before + 1, after)


def spans(encoded: EncodedExample) -> dict[str, tuple[int, ...]]:
    """What the task names in a prompt: where two names meet, the later one is the narrower."""
    last = len(encoded.prompt) - 1
    named = {"BOS": tuple(range(encoded.n_before)), **encoded.distractors, "related": encoded.related}
    if encoded.query is not None and encoded.query < last:
        named["query"] = (encoded.query,)
    named["last"] = (last,)
    return {name: positions for name, positions in named.items() if positions and max(positions) <= last}
