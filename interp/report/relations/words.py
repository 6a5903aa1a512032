"""What are relations, and what they relate, called in sentences?"""

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
