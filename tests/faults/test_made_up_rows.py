"""Rows that nobody would write: hypothesis makes up the fields of task files, and the rows of data sets of the hub."""

import json
from collections import Counter

import pytest
from cases import Reader, assert_plain, bounded, try_all
from damage import BYTES, FIELDS, LINES, json_line_changed
from given import ODD_TEXTS, TEXTS, VALUES, examples
from hypothesis import given
from hypothesis import strategies as st
from test_task_files import GAP, PAIR, TOKENIZER, TWO

from analyses.coreference_heads.gap_reader import COLUMNS, read_gap
from interp.errors import TaskError
from interp.tasks.catalogue import load_task
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.readers.winobias import read_winobias
from interp.tasks.readers.winogender import read_winogender

KNOWN = ("_", "0", "1", "2", "1-2", "1.1", "root", "Entity=(1)", "SpaceAfter=No", "a=b|c", "[", "[he]", "he", "cook")
FIELD = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from([each for each in ODD_TEXTS if each != "\ud800"]),
    st.sampled_from(KNOWN),
)
ITEM = st.dictionaries(st.sampled_from([*PAIR, *TWO]), st.one_of(VALUES, TEXTS), max_size=3)
WORD = st.one_of(
    st.tuples(*map(st.just, "a_X__"), st.integers(0, 3).map(str), st.just("a"), st.just("_"), FIELD),
    st.lists(FIELD, min_size=9, max_size=9),
)
SENTENCE = st.lists(WORD, min_size=1, max_size=3)
ROW = st.dictionaries(st.integers(0, len(COLUMNS) - 1), FIELD, max_size=2)
LINE = st.lists(FIELD, max_size=8).map(" ".join)


def blimp(item):
    return json.dumps(PAIR | item) + "\n"


def conllu(sentence):
    """Words, half of them right but for their heads and for what they say beside, so that what is behind is reached."""
    return "".join("\t".join([str(number), *fields]) + "\n" for number, fields in enumerate(sentence, start=1))


def gap(changes):
    return "\t".join(COLUMNS) + "\n" + "\t".join(changes.get(at, each) for at, each in enumerate(GAP)) + "\n"


def winogender(line):
    return f"sentid\tsentence\ncook.guest.0.male.txt\t{line} the cook saw a guest\n"


KINDS = {
    "blimp": (ITEM, blimp, lambda path: load_task(f"blimp:{path}", tokenizer=TOKENIZER)),
    "conllu": (SENTENCE, conllu, lambda path: list(read_conllu(path))),
    "gap": (ROW, gap, lambda path: list(read_gap(path))),
    "winobias": (
        LINE,
        lambda line: f"1 [The cook] said that [he] saw {line}\n",
        lambda path: list(read_winobias(path)),
    ),
    "winogender": (LINE, winogender, lambda path: list(read_winogender(path))),
}


@pytest.mark.parametrize("n", [40, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", KINDS)
def test_any_row(name, n, tmp_path, record_property):
    rows, write, read = KINDS[name]
    path, found = tmp_path / "rows", Counter()

    def outcome():
        try:
            with bounded(5):
                return "read" if read(path) else "nothing"
        except TaskError as error:
            refusal = error
        assert_plain(str(refusal))
        return "refused"

    @examples(n)
    @given(rows)
    def check(row):
        path.write_text(write(row), encoding="utf-8", newline="")
        found[outcome()] += 1

    check()
    record_property("malformed", dict(found))
    assert found["read"] > 0
    assert found["refused"] > n / 20
    assert not found["nothing"]
    assert found.total() >= n


def dataset(rows, file):
    def write(folder):
        (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    return write


SENTENCES = [
    {"idx": "a", "tokens": ["Go", "on"], "upos": ["VERB", "ADP"], "head": ["0", "1"], "deprel": ["root", "a"]},
    {"idx": "b", "tokens": ["Go"], "upos": ["VERB"], "head": ["0"], "deprel": ["root"], "text": "Go", "mwt": []},
]
HUB = (
    Reader(
        "hub:blimp",
        dataset([PAIR, PAIR | {"pairID": "1"}], "train.jsonl"),
        lambda folder: load_task(f"blimp:hub:{folder}", tokenizer=TOKENIZER),
        {"train.jsonl": (*BYTES, *LINES, *[json_line_changed] * 12)},
        TaskError,
    ),
    Reader(
        "hub:conllu",
        dataset(SENTENCES, "train.jsonl"),
        lambda folder: list(read_conllu(f"hub:{folder}")),
        {"train.jsonl": (*BYTES, *LINES, *FIELDS, *[json_line_changed] * 16)},
        TaskError,
    ),
)


@pytest.mark.parametrize("n", [8, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reader", HUB, ids=lambda reader: reader.name)
def test_a_damaged_data_set_is_refused_or_read_whole(reader, n, tmp_path, monkeypatch, record_property):
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    record_property("malformed", try_all(reader, n, tmp_path))
