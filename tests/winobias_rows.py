"""A line of WinoBias as the hub has it."""

import re


def hub_row(line):
    """``1 [The cook] left as [he] could.`` in words, with the phrases in brackets by their first and last word."""
    number, sentence = line.split(maxsplit=1)
    tokens, ends = [], []
    for piece in re.sub(r"([\[\]]|[.,](?!\d)|n't\b)", r" \1 ", sentence).split():
        if piece == "[":
            ends.append(str(len(tokens)))
        elif piece == "]":
            ends.append(str(len(tokens) - 1))
        else:
            tokens.append(piece)
    document = f"nw/dev_type1/stereotype//{int(number) - 1}"
    return {"document_id": document, "tokens": tokens, "coreference_clusters": ends}
