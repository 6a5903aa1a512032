import logging
import os
import subprocess
from typing import NamedTuple

import pytest
from conllu_text import PLAIN, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.errors import TaskError
from interp.tasks.example import Span
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.treebank import ROOT

FILE = "bank.conllu"

LONGER = ("gum/en_gum-ud-dev", "gum/en_gum-ud-train", "ewt/en_ewt-ud-test")
FILES = ("gum/en_gum-ud-test", "ewt/en_ewt-ud-dev", *(pytest.param(each, marks=pytest.mark.slow) for each in LONGER))


def test_documents_sentences_and_words(write):
    one, two = read_conllu(write(PLAIN))
    assert [each.id for each in (one, two)] == ["one", "two"]
    first, second = one.sentences
    assert (first.id, first.text) == ("one-1", "Mary didn't see the dogs.")
    assert [word.form for word in first.words] == ["Mary", "did", "n't", "see", "the", "dogs", "."]
    assert [word.span.of(first.text) for word in first.words] == [word.form for word in first.words]
    dogs = first.words[5]
    assert (dogs.lemma, dogs.upos, dogs.xpos, dogs.feats) == ("dog", "NOUN", "NNS", {"Number": "Plur"})
    assert (dogs.head, dogs.deprel) == (3, "obj")
    assert first.words[3].head == ROOT
    assert first.words[1].feats == {}
    assert [word.form for word in second.words] == ["She", "ran"], "an empty node stands in no text"
    assert two.sentences[0].id == "bank-3", "a sentence without a name gets the file's and its number"
    assert [(each.entity, each.sentence, each.words, each.head) for each in one.mentions] == [
        ("1", 0, (0,), 0),
        ("2", 0, (4, 5), 5),
        ("1", 1, (0,), 0),
    ]
    assert two.mentions == ()


def test_words_that_do_not_spell_their_token_share_its_characters(write):
    lines = "# text = I dunno it\n1\tI\t_\tX\t_\t_\t2\tdep\t_\t_\n2-3\tdunno\t_\t_\t_\t_\t_\t_\t_\t_\n"
    lines += "2\tdo\t_\tX\t_\t_\t0\troot\t_\t_\n3\tknow\t_\tX\t_\t_\t2\tdep\t_\t_\n4\tit\t_\tX\t_\t_\t2\tdep\t_\t_\n"
    ((sentence,),) = [document.sentences for document in read_conllu(write(lines))]
    assert [word.span for word in sentence.words] == [Span(0, 1), Span(2, 7), Span(2, 7), Span(8, 10)]


def test_a_text_is_put_together_where_there_is_none(write):
    lines = "1-2\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_\n1\tdid\t_\tX\t_\t_\t0\troot\t_\tSpaceAfter=No\n"
    lines += (
        "2\tn't\t_\tX\t_\t_\t1\tdep\t_\t_\n3\tgo\t_\tX\t_\t_\t1\tdep\t_\tSpaceAfter=No\n4\t.\t_\tX\t_\t_\t1\tp\t_\t_\n"
    )
    ((sentence,),) = [document.sentences for document in read_conllu(write(lines))]
    assert sentence.text == "didn't go."
    assert [word.span.of(sentence.text) for word in sentence.words] == ["did", "n't", "go", "."]


def test_without_documents_every_sentence_is_one(write):
    documents = list(read_conllu(write(rows(0) + rows(0, 1))))
    assert [len(document.sentences) for document in documents] == [1, 1]
    assert [document.id for document in documents] == ["bank-1", "bank-2"]


def test_a_document_without_a_name_has_its_first_sentence_s(write):
    documents = list(read_conllu(write("# newdoc\n# sent_id = a\n" + rows(0) + rows(0) + "# newdoc\n" + rows(0))))
    assert [(document.id, len(document.sentences)) for document in documents] == [("a", 2), ("bank-3", 1)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "expected sentences in CoNLL-U, got an empty file"),
        ("\n\n", "got an empty file"),
        ("# text = alone\n\n", "line 1: expected words after the comments"),
        (rows(0) + "1\ttoo\tfew\n\n", "line 3: expected 10 columns separated by tabs, got 3"),
        (rows(0).replace("\t", " "), "line 1: expected 10 columns separated by tabs, got 1"),
        (rows(0, 1).replace("2\tw2", "x\tw2"), "line 2: expected CoNLL-U, got 'x\\tw2"),
        (rows(0, 1).replace("2\tw2", "3\tw2"), "line 2: expected the word number 2, got 3"),
        (rows(0, "up"), "line 2: expected CoNLL-U, got"),
        (rows(0, 3), "line 2: expected a head from 0 to 2, the sentence's words, got 3"),
        (rows(0, -1), "line 2: expected a head from 0 to 2, the sentence's words, got -1"),
        (rows(0, "_"), "line 2: expected a head from 0 to 2, the sentence's words, got none"),
        (rows(0, 3, 2), "line 2: expected a tree, got a circle: from word 2 its heads lead back to word 2"),
        (rows(0, 2), "line 2: expected a tree, got a circle"),
        (rows(2, 0, 0), "line 3: expected one root, got a second one; the first is word 2"),
        (
            "1-2\tw1w2\t_\t_\t_\t_\t_\t_\t_\t_\n"
            + rows(0, 1, 1).replace("2\tw2", "2-3\tw2w3\t_\t_\t_\t_\t_\t_\t_\t_\n2\tw2"),
            "line 3: expected a multiword token of words of the sentence from 3 on, got 2-3",
        ),
        (
            rows(0, 1).replace("2\tw2", "2\tw2", 1).rstrip() + "\n1-2\tw1\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
            "line 3: expected a multiword token of words of the sentence from 3 on, got 1-2",
        ),
        ("# text = w1 other\n" + rows(0, 1), "line 3: expected the text to go on with 'w2', got 'other'"),
        ("1-5\tab\t_\t_\t_\t_\t_\t_\t_\t_\n" + rows(0), "line 1: expected a multiword token of words of the sentence"),
        (rows(0).encode() + b"\xff\n", "line 3: expected UTF-8, got byte 0xff"),
        (rows(0, 1).replace("w2\t_\tX", "w2\t_\tX\u00a0"), "line 2: expected no space in column 4, got 'X\\xa0'"),
        (rows(0, 1).replace("2\tw2", " 2\tw2"), "line 2: expected no space in column 1, got ' 2'"),
        (rows(0).replace("\t_\n", "\t_\t\n"), "line 1: expected 10 columns separated by tabs, got 11"),
        (rows(0).replace("\t_\n", "\tEntity=1)\n"), "line 1: expected an opening bracket of entity '1'"),
        (rows(0).replace("\t_\n", "\tEntity=(1\n"), "line 1: expected a closing bracket for entity '1'"),
    ],
)
def test_a_bad_file_is_one_clear_line(write, refusal, content, says):
    assert says in refusal(read_conllu, write(content))


def test_what_misc_says_may_hold_an_equals_sign(write):
    (document,) = read_conllu(write(rows(0).replace("\t_\n", "\tEntity=(1-a=b)\n")))
    assert [(each.entity, each.type) for each in document.mentions] == [("1", "a=b")]


def test_a_multiword_token_s_entity_is_its_words(write):
    lines = "1-2\tdunno\t_\t_\t_\t_\t_\t_\t_\tEntity=(1-person)\n" + rows(0, 1, forms=["do", "know"])
    (document,) = read_conllu(write(lines))
    assert [each.words for each in document.mentions] == [(0, 1)]


WORDLESS = "# text = _ __\n1-2\t__\t_\t_\t_\t_\t_\t_\t_\t_\n" + rows(2, 0, 2, forms="___")


EMPTY_NODE = "1.1\tgone\t_\t_\t_\t_\t_\t_\t0:root\t_\n"


@pytest.mark.parametrize("content", [WORDLESS, rows(0, forms="_"), EMPTY_NODE, "# newdoc\n" + WORDLESS + WORDLESS])
def test_a_treebank_without_its_words_is_refused(write, content):
    with pytest.raises(TaskError, match="expected words, got '_' or empty nodes for all of them; if the treebank"):
        list(read_conllu(write(content)))


@pytest.mark.parametrize(
    "content",
    [
        WORDLESS,
        rows(0, 1, 1, forms=["the", "dog", "_"]),
        rows(0, 1, forms="__").replace("\tX\t", "\tPUNCT\t"),
        "1-2\t_\t_\t_\t_\t_\t_\t_\t_\t_\n" + rows(0, 1, forms=["do", "n't"]),
    ],
)
def test_sentences_without_words_are_left_out_and_it_is_said(write, caplog, content):
    content = content.replace("\tX\t", "\tNOUN\t")
    with caplog.at_level(logging.WARNING, logger="interp"):
        (a, b) = read_conllu(write(f"# newdoc id = a\n{rows(0)}# newdoc id = b\n{content}{rows(0)}"))
    assert [(each.id, len(each.sentences)) for each in (a, b)] == [("a", 1), ("b", 1)]
    assert (
        "bank.conllu: 1 of 3 sentences are left out, for they have '_' or empty nodes in place of words" in caplog.text
    )


@pytest.mark.parametrize("part_of_speech", ["PUNCT", "SYM", "X"])
def test_an_underscore_among_words_is_one(write, caplog, part_of_speech):
    (document,) = read_conllu(write(rows(0, 1, 1, forms=["a", "_", "b"]).replace("\tX\t", f"\t{part_of_speech}\t")))
    assert [word.form for word in document.sentences[0].words] == ["a", "_", "b"]
    assert not caplog.text


def test_a_pipe_is_refused():
    """A treebank is read more than once."""
    reading, writing = os.pipe()
    os.write(writing, PLAIN.encode())
    os.close(writing)
    with pytest.raises(
        TaskError, match="expected a CoNLL-U file, got a pipe, which can be read only once; write it to"
    ):
        list(read_conllu(f"/dev/fd/{reading}"))
    os.close(reading)


def test_documents_come_one_by_one(write):
    """A broken end of a file does not keep what stands before it from being read."""
    reading = read_conllu(write(PLAIN + "\nbroken\n"))
    assert next(reading).id == "one"
    with pytest.raises(TaskError, match="line 23"):
        list(reading)


def grep(pattern, path):
    return int(subprocess.run(["grep", "-cP", pattern, path], capture_output=True, text=True, check=False).stdout)


def awk(program, path):
    return int(subprocess.run(["awk", "-F\t", program, path], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name", FILES)
def test_a_published_treebank_is_read_whole(data_dir, name):
    path = data_dir / f"{name}.conllu"
    n_documents = n_sentences = n_words = n_mentions = n_arcs = n_subjects = n_closed = 0
    for document in read_conllu(path):
        n_documents += 1
        n_sentences += len(document.sentences)
        n_mentions += len(document.mentions)
        n_closed += sum(len(mention.words) > 1 for mention in document.mentions)
        for sentence in document.sentences:
            n_words += len(sentence.words)
            n_arcs += sum(word.head != ROOT for word in sentence.words)
            n_subjects += sum(word.deprel == "nsubj" for word in sentence.words)
            assert all(word.span.of(sentence.text) for word in sentence.words)
    assert n_documents == grep("^# newdoc id", path)
    assert n_sentences == grep("^# text = ", path)
    assert n_words == grep(r"^\d+\t", path)
    assert n_arcs == awk("$1 ~ /^[0-9]+$/ && $7 != 0 {n++} END {print n}", path)
    assert n_subjects == awk('$1 ~ /^[0-9]+$/ && $8 == "nsubj" {n++} END {print n}', path)
    brackets = '{x = $10; if (x !~ /Entity=/) next; sub(/.*Entity=/, "", x); sub(/[|].*/, "", x); '
    assert n_mentions == awk(brackets + 'n += gsub(/[(]/, "", x)} END {print n + 0}', path)
    assert n_closed == awk(brackets + 'gsub(/[(][^()]*[)]/, "", x); n += gsub(/[)]/, "", x)} END {print n + 0}', path)


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
