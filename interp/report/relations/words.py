"""What are relations, what they relate, and shares of pairs called in sentences?"""

import math

import pandas as pd

_DEPENDENTS = {
    "acl": "adnominal clause",
    "advcl": "adverbial clause",
    "advmod": "adverbial modifier",
    "amod": "adjectival modifier",
    "appos": "apposition",
    "aux": "auxiliary",
    "case": "case marker",
    "cc": "coordinating conjunction",
    "ccomp": "clausal complement",
    "conj": "conjunct",
    "cop": "copula",
    "csubj": "clausal subject",
    "det": "determiner",
    "discourse": "discourse element",
    "expl": "expletive",
    "iobj": "indirect object",
    "mark": "marker",
    "nmod": "nominal modifier",
    "nsubj": "subject",
    "nummod": "numeral",
    "obj": "object",
    "obl": "oblique nominal",
    "punct": "punctuation mark",
    "vocative": "vocative",
    "xcomp": "open clausal complement",
}
_TARGETS = {
    "anaphor to antecedent": "an antecedent",
    "antecedent to anaphor": "a later mention",
    "any word to it": "such a word",
    "query to related": "the related word",
    "related to query": "the word that it is related to",
}


def direction_name(relation: str, looks: str) -> str:
    """A direction as sentences name it, such as ``nsubj (head to dependent)``."""
    return f"{relation} ({looks})"


def target(relation: str, looks: str) -> str:
    """What should be found, with its article: ``the subject`` of ``nsubj``, from head to dependent."""
    dependent = _DEPENDENTS.get(relation.split(":")[0], "dependent")
    if looks == "head to dependent":
        return f"the {dependent}"
    if looks == "dependent to head":
        return f"what the {dependent} depends on"
    if relation == "coref:nearest" and looks == "anaphor to antecedent":
        return "the nearest antecedent"
    return _TARGETS.get(looks, "the related word")


def head_name(row: pd.Series) -> str:
    """A head as L.H."""
    return f"{row['layer']}.{row['head']}"


def counted(n: int, noun: str) -> str:
    """How many there are of a noun that takes an s, with separated thousands."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def percent(share: float) -> str:
    """A share of pairs."""
    return f"{100 * share:.1f} %"


def points(share: float, digits: int = 1) -> str:
    """A difference of shares, in points of 100, without a minus before 0."""
    return f"{round(100 * share, digits) + 0.0:.{digits}f}"


def interval(low: float, high: float) -> str:
    """An interval in points; said where none is known."""
    return "(no interval)" if math.isnan(low) or math.isnan(high) else f"[{points(low)}, {points(high)}]"


def q_value(q: float) -> str:
    """A corrected p, with as many digits as it needs; empty where there is none."""
    if math.isnan(q):
        return ""
    digits = 4 if q < 0.001 else 3
    return f"q = {q:.{digits}f}" if round(q, digits) else "q < 0.0001"


def listed(names: list[str], most: int = 8) -> str:
    """Names as a sentence lists them; of very many the first."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
