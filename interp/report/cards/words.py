"""What are the parts of a card called, for readers?"""

from interp.report.legible import visible

POSITIONS = {
    "related": "the related word",
    "rest": "the other words",
    "query": "the query",
    "last": "the last token",
    "all": "all words together",
}
"""Of the task's names for positions, those that need words of their own."""
READS = {
    "q": "its queries",
    "k": "its keys",
    "v": "its values",
}
PARTS = {
    "replacements": "ablation under every replacement",
    "agreement": "agreement of the replacements",
    "positions": "patching by word",
    "feeds": "direct paths into the head",
    "readers": "direct paths from the head",
    "feature": "what is taken out where it reads",
    "circuits": "circuits",
}
TAKEN_OUT = {
    "values at the related word": "putting the mean in place of its values at the related word",
    "feature": "erasing {feature} from what it writes",
    "random directions": "erasing as many random directions",
}
"""Of what is taken out of a head at one place; the feature has a name of its own."""

STATES = {"drop": "a drop", "rise": "a rise", "none": "an effect below the minimum", "undecided": "undecided"}
"""Of the effect under one replacement."""


def position(name: str) -> str:
    """A position's name in a sentence."""
    return POSITIONS.get(name, name if name == "BOS" else f"the {name}")


def kind(name: str) -> str:
    """A replacement's name in a sentence."""
    return name.replace("_", " ")


def quoted(text: str) -> str:
    """A token in a sentence: without its leading space, and visible."""
    return f"“{visible(text)}”"


def component(name: str) -> str:
    """Who sends or receives: ``the embeddings``, ``MLP 2``, ``head 1.3``, ``the logits``."""
    if name in ("embed", "logits"):
        return {"embed": "the embeddings", "logits": "the logits"}[name]
    kind, _, rest = name.partition(".")
    return f"MLP {rest}" if kind == "mlp" else f"head {name}"
