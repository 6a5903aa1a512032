"""Treebanks that hypothesis writes, with all that the format allows: what is written is what is read."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.tasks.readers.conllu import read_conllu
from interp.tasks.treebank import ROOT

SPELLED = st.sampled_from(
    ["the", "10  000", "a   b", "New York", "10\u00a0000", "x\u3000y", "#", "=", "a|b", "__", "l'été", "💥"]
)
BESIDE = st.sampled_from(["Gloss=two  spaces", "Note=a=b", "X", "Ref=_", "SpacesAfter=\\s\\n", "Entities=(9)"])


class Written(NamedTuple):
    """A sentence's lines, and what they say."""

    lines: list
    text: str
    words: list
    mentions: list


@st.composite
def sentences(draw):
    forms = draw(st.lists(SPELLED, min_size=1, max_size=6))
    lemmas = [draw(st.one_of(SPELLED, st.just("_"))) for _ in forms]
    heads = tree(draw, len(forms))
    relations = ["root" if head == ROOT else draw(st.sampled_from(["nsubj", "nsubj:pass", "dep"])) for head in heads]
    glued = [draw(st.booleans()) for _ in forms]
    nodes = [f"0.{number}" for number in range(1, draw(st.integers(1, 3)))]
    for word in range(1, len(forms) + 1):
        nodes += [str(word), *(f"{word}.{number}" for number in range(1, draw(st.integers(1, 3))))]
    brackets, mentions = entities(draw, nodes)
    lines = []
    for node, opened in zip(nodes, brackets, strict=True):
        misc = [f"Entity={opened}"] * bool(opened) + draw(st.lists(BESIDE, max_size=2, unique=True))
        columns = ["_", "_", "VERB", "_", "_", "_", "_"]
        if "." not in node:
            at = int(node) - 1
            misc += ["SpaceAfter=No"] * glued[at]
            columns = [forms[at], lemmas[at], "NOUN", "_", "_", str(heads[at] + 1), relations[at]]
        lines.append("\t".join([node, *columns, enhanced(draw, nodes), "|".join(draw(st.permutations(misc))) or "_"]))
    text = "".join(form + " " * (not each) for form, each in zip(forms, glued, strict=True)).rstrip(" ")
    comments = draw(st.sampled_from([[], [f"# text = {text}"]]))
    words = zip(forms, ["" if lemma == "_" else lemma for lemma in lemmas], heads, relations, strict=True)
    return Written([*comments, *lines], text, list(words), mentions)


def tree(draw, n):
    """Each word hangs on one that hangs already."""
    order = draw(st.permutations(range(n)))
    heads = dict.fromkeys(order, ROOT)
    for at, word in enumerate(order[1:], start=1):
        heads[word] = draw(st.sampled_from(order[:at]))
    return [heads[word] for word in range(n)]


def enhanced(draw, nodes):
    graph = draw(
        st.lists(st.tuples(st.sampled_from(["0", *nodes]), st.sampled_from(["nsubj", "conj:a_b"])), max_size=2)
    )
    return "|".join(f"{head}:{relation}" for head, relation in graph) or "_"


def entities(draw, nodes):
    """Brackets of mentions of one or two parts, which begin and end at any nodes: closing, both, opening."""
    brackets, mentions = [("", "", "")] * len(nodes), []
    for number in range(draw(st.integers(0, 4))):
        n_ends = 2 * draw(st.integers(1, 2))
        ends = sorted(draw(st.lists(st.integers(0, len(nodes) - 1), min_size=n_ends, max_size=n_ends)))
        parts = list(zip(ends[::2], ends[1::2], strict=True))
        covered = []
        for part, (first, last) in enumerate(parts, start=1):
            name = f"e{number}" + f"[{part}/{len(parts)}]" * (len(parts) > 1)
            opening = f"({name}" + "-person" * (part == 1)
            if first == last:
                added = {first: ("", f"{opening})", "")}
            else:
                added = {first: ("", "", opening), last: (f"{name})", "", "")}
            for at, each in added.items():
                brackets[at] = tuple(map(str.__add__, brackets[at], each))
            covered += [int(node) - 1 for node in nodes[first : last + 1] if "." not in node]
        if covered:
            mentions.append((f"e{number}", "person", tuple(sorted(set(covered)))))
    return ["".join(each) for each in brackets], mentions


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("written") / "bank.conllu"


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(bank=st.lists(sentences(), min_size=1, max_size=3), ends=st.sampled_from(["\n\n", "\n", ""]), crlf=st.booleans())
def test_what_is_written_is_what_is_read(path, bank, ends, crlf):
    content = "# newdoc id = d\n" + "\n\n".join("\n".join(each.lines) for each in bank) + ends
    path.write_bytes(content.replace("\n", "\r\n" if crlf else "\n").encode())
    (document,) = read_conllu(path)
    read = [[(word.form, word.lemma, word.head, word.deprel) for word in each.words] for each in document.sentences]
    assert read == [each.words for each in bank]
    assert [each.text for each in document.sentences] == [each.text for each in bank]
    assert all(word.span.of(each.text) == word.form for each in document.sentences for word in each.words)
    mentions = [(each.sentence, each.entity, each.type, each.words) for each in document.mentions]
    assert sorted(mentions) == sorted((at, *mention) for at, each in enumerate(bank) for mention in each.mentions)
