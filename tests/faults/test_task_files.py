"""Files of examples from strangers: minimal pairs, treebanks, tables of pronouns, and data sets as the hub has them."""

import json

import pytest
from cases import Reader, try_all
from conllu_sample import TREEBANK
from damage import BYTES, FIELDS, LINES, json_line_changed

from analyses.coreference_heads.gap_reader import COLUMNS, read_gap
from interp.errors import TaskError
from interp.tasks.catalogue import load_task
from interp.tasks.corpus import Corpus
from recipes.tokenizer import build_tokenizer

PAIR = {
    "sentence_good": "The keys on the table are here.",
    "sentence_bad": "The keys on the table is here.",
    "one_prefix_method": True,
    "two_prefix_method": False,
    "one_prefix_prefix": "The keys on the table",
    "one_prefix_word_good": "are",
    "one_prefix_word_bad": "is",
    "linguistics_term": "agreement",
    "UID": "made_up",
    "pairID": "0",
}
TWO = {
    "one_prefix_method": False,
    "two_prefix_method": True,
    "sentence_bad": "The key on the table are here.",
    "two_prefix_prefix_good": "The keys on the table",
    "two_prefix_prefix_bad": "The key on the table",
    "two_prefix_word": "are",
    "pairID": "1",
}
GAP = (
    *("made-up-1", "Zoë Ray met Ann Lee. Her dog barked.", "Her", "21", "Zoë Ray", "0", "FALSE", "Ann Lee", "12"),
    *("TRUE", "http://example.org"),
)
WINOGENDER = """\
sentid\tsentence
cook.guest.0.male.txt\tThe guest thanked the cook because he was kind.
cook.guest.0.female.txt\tThe guest thanked the cook because she was kind.
cook.guest.0.neutral.txt\tThe guest thanked the cook because they were kind.
cook.someone.1.female.txt\tThe cook met someone to hear her wish.
cook.someone.1.male.txt\tThe cook met someone to hear his wish.
"""
SHARES = "occupation\tbergsma_pct_female\tbls_pct_female\tbls_year\ncook\t1.0\t38.5\t2015\n"
WINOBIAS = """\
1 [The cook] thanked the guest because [he] was kind.
2 The cook thanked [the guest] because [he] was kind and liked [his] dog.
3 [The nurse] called the doctor and gave [him] a book.
"""
TABLE, TEXT = (*BYTES, *LINES, *FIELDS), (*BYTES, *LINES)
PRONOUNS = ("She", "she", "He", "he", "Her", "her", "His", "his", "Him", "him", "them", "herself", "themselves")
TOKENIZER = build_tokenizer((*PRONOUNS, "is", "are", "was", "were", "sees", "see", "Mary", "The", "the", "keys", "key"))


def rows_of_json(folder):
    rows = (PAIR, PAIR | TWO, PAIR | {"one_prefix_method": False, "pairID": "2"})
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def written(**files):
    def write(folder):
        for name, content in files.items():
            (folder / name.replace("__", "-").replace("_tsv", ".tsv").replace("_conllu", ".conllu")).write_text(content)

    return write


def task(name):
    def read(folder):
        return load_task(name.format(folder), tokenizer=TOKENIZER)

    return read


def count(corpus):
    assert corpus.contents.n_sentences >= 1


def whole(loaded):
    assert loaded.units
    assert loaded.hash


def gap(folder):
    row = "\t".join(GAP)
    (folder / "gap.tsv").write_text("\t".join(COLUMNS) + f"\n{row}\n{row}\n{row}\n", encoding="utf-8")


def winobias(folder):
    (folder / "pro_type1.txt").write_text(WINOBIAS)
    (folder / "anti_type1.txt").write_text(WINOBIAS.replace("he]", "she]").replace("his", "her").replace("him", "her"))


TREES = {"bank.conllu": TABLE}
READERS = (
    Reader(
        "blimp",
        rows_of_json,
        task("blimp:{}/pairs.jsonl"),
        {"pairs.jsonl": (*TEXT, *[json_line_changed] * 12)},
        TaskError,
        whole,
    ),
    Reader(
        "conllu",
        written(bank_conllu=TREEBANK),
        lambda folder: Corpus.of(folder / "bank.conllu"),
        TREES,
        TaskError,
        count,
    ),
    *(
        Reader(kind, written(bank_conllu=TREEBANK), task(kind + ":{}/bank.conllu"), TREES, TaskError, whole)
        for kind in ("agreement", "coreference", "anaphora")
    ),
    Reader("gap", gap, lambda folder: list(read_gap(folder / "gap.tsv")), {"gap.tsv": TABLE}, TaskError),
    Reader(
        "winogender",
        written(all_sentences_tsv=WINOGENDER, occupations__stats_tsv=SHARES),
        task("winogender:{}/all_sentences.tsv"),
        {"all_sentences.tsv": TABLE, "occupations-stats.tsv": TABLE},
        TaskError,
        whole,
    ),
    Reader(
        "winobias",
        winobias,
        task("winobias:{}/pro_type1.txt"),
        {"pro_type1.txt": (*TEXT, *FIELDS), "anti_type1.txt": (*TEXT, *FIELDS)},
        TaskError,
        whole,
    ),
)


@pytest.mark.parametrize("n", [30, pytest.param(240, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_refused_or_read_whole(reader, n, tmp_path, record_property):
    record_property("malformed", try_all(reader, n, tmp_path))
