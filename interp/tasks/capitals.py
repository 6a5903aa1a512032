"""Task: what is the capital of a country?

Factual recall (Meng et al., 2022, https://arxiv.org/abs/2202.05262; Geva et al., 2023,
https://arxiv.org/abs/2304.14767): "Anna knows that the capital of France is" Paris. The table holds countries, and
states and provinces, whose capital is one word, is undisputed, and is one token in at least one common vocabulary.

In the counterfactual another country (or another state) is asked, so the right and the wrong answer swap. The relation
is from the last word to the country; where another country is named before, that is the distractor.

No two splits share a pair of a person and a country.
"""

from functools import cache

from interp.tasks.associations import Association, draw_asked
from interp.tasks.example import MinimalPair
from interp.tasks.grammar.items import Frame, GeneratedTask, Plan
from interp.tasks.grammar.lexicon import rows_of

TEMPLATES = {
    "of": "person knows that the capital of asked is",
    "whose": "person went to asked , whose capital is",
    "its": "person was in asked and saw its capital ,",
    "born": "person was born in the capital of asked , the city of",
    "from another": "person went from bystander to asked , whose capital is",
    "unlike another": "unlike bystander , person said , asked has as its capital the city of",
}
FRAMES = {
    structure: (
        Frame(None, table="country", template=template),
        Frame("short", table="state", template=template),
        Frame("medium", table="country", template=template),
        Frame("long", table="country", template=template),
        Frame(None, table="state", template=template),
        Frame("short", table="country", template=template),
    )
    for structure, template in TEMPLATES.items()
}
STRUCTURES = tuple(FRAMES)


@cache
def capitals() -> dict[str, tuple[Association, ...]]:
    """The countries, and the states and provinces, with their capitals."""
    rows = rows_of("capitals")
    return {
        kind: tuple(Association(row["place"], row["capital"]) for row in rows if row["kind"] == kind)
        for kind in dict.fromkeys(row["kind"] for row in rows)
    }


def _pair(plan: Plan) -> MinimalPair:
    return draw_asked(plan, capitals(), relation="place of the capital")


TASK = GeneratedTask(
    "capitals",
    "A country, a state or a province has its capital.",
    FRAMES,
    _pair,
)
pairs = TASK.pairs
