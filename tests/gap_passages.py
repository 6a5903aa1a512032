"""Passages of GAP as its files have them."""

import re

from analyses.coreference_heads.gap_reader import COLUMNS


def passage(number, text, pronoun, a, b, right, *, page="p"):
    """`right` is ``A``, ``B`` or nothing."""

    def at(word):
        return re.search(rf"\b{word}\b", text).start()

    answers = [str(right == name).upper() for name in "AB"]
    fields = (f"t-{number}", text, pronoun, at(pronoun), a, at(a), answers[0], b, at(b), answers[1], f"{page}{number}")
    return "\t".join(map(str, fields))


def write(path, *rows):
    path.write_text("\n".join(["\t".join(COLUMNS), *rows]) + "\n")
    return path
