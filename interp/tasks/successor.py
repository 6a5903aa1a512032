"""Task: what comes next in a known sequence?

"Anna came to Monday, then to" Tuesday, for days, months, letters and numbers (Gould et al., 2023,
"Successor Heads", https://arxiv.org/abs/2312.09230). Numbers are words, since many tokenizers split figures into
digits. Days and months go round.

In the counterfactual another word of the sequence is asked, so the right and the wrong answer swap. The relation is
from the last word to the word asked; where another member of the sequence is named before, that is the distractor.
"""

from collections.abc import Iterator

from interp.tasks.associations import Association, Recall
from interp.tasks.example import MinimalPair
from interp.tasks.grammar.items import Fits, Frame
from interp.tasks.grammar.phrases import Shape, Split

SEQUENCES = {
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday Monday",
    "month": "January February March April May June July August September October November December January",
    "letter": "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z",
    "number": (
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty"
    ),
}
"""Each word is followed by its successor."""
TABLES = {kind: tuple(map(Association, words.split(), words.split()[1:])) for kind, words in SEQUENCES.items()}
TEMPLATES = (
    "person came to asked , then to",
    "the {kind} was asked , person said , and the next {kind} was",
    "person left bystander , came to asked , then to",
    "person began with asked and went on with",
    "person said bystander . The {kind} was asked , and the next {kind} was",
    "person was told that the {kind} is asked , and that the next {kind} is",
)
OPENINGS: tuple[Shape | None, ...] = (None, "short", "medium", None, "long", "short")
FRAMES = {
    kind: tuple(
        Frame(opening, table=kind, template=template.format(kind=kind))
        for opening, template in zip(OPENINGS, TEMPLATES, strict=True)
    )
    for kind in SEQUENCES
}
STRUCTURES = tuple(FRAMES)


def pairs(n: int, *, seed: int, split: Split = "test", fits: Fits | None = None) -> Iterator[MinimalPair]:
    """Draw `n` minimal pairs, the kinds of sequence in turn.

    Args:
        n: How many; the first items are the same for every `n`.
        seed: Names the draw.
        split: Whose pairs of a person and a member of the sequence they use.
        fits: Whether a pair can be used; in the place of one that cannot another is drawn. None if all can.

    Returns:
        The pairs, for ``interp.encode_task``; fewer than `n` where no more fit.

    Raises:
        TaskError: `n` is below 1.

    Examples:
        >>> from interp.tasks import successor
        >>> len(list(successor.pairs(4, seed=0)))
        4
    """
    what = Recall("successor", FRAMES, TABLES, relation="word before")
    return what.pairs(n, seed=seed, split=split, fits=fits)
