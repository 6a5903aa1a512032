"""Task: what comes next in a known sequence?

"Anna came to Monday, then to" Tuesday, for days, months, letters and numbers (Gould et al., 2023,
"Successor Heads", https://arxiv.org/abs/2312.09230). Numbers are words, since many tokenizers split figures into
digits. Days and months go round.

In the counterfactual another word of the sequence is asked, so the right and the wrong answer swap. The relation is
from the last word to the word asked; where another member of the sequence is named before, that is the distractor.

No two splits share a pair of a person and a member of the sequence.
"""

from interp.tasks.associations import Association, draw_asked
from interp.tasks.example import MinimalPair
from interp.tasks.grammar.items import Frame, GeneratedTask, Plan
from interp.tasks.grammar.phrases import Shape

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


def _pair(plan: Plan) -> MinimalPair:
    return draw_asked(plan, TABLES, relation="word before")


TASK = GeneratedTask(
    "successor",
    "A day, a month, a letter or a number is followed by the next one.",
    FRAMES,
    _pair,
)
pairs = TASK.pairs
