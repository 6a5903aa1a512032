import json
from dataclasses import replace

import datasets
import pytest

from interp.tasks.readers.blimp import BlimpItem, read_blimp

FILE = "keys.jsonl"

RECORD = {
    "sentence_good": "The keys are on the table.",
    "sentence_bad": "The keys is on the table.",
    "one_prefix_prefix": "The keys",
    "one_prefix_word_good": "are",
    "one_prefix_word_bad": "is",
    "linguistics_term": "subject_verb_agreement",
    "UID": "keys",
    "one_prefix_method": True,
    "two_prefix_method": False,
    "pairID": "7",
}


def line(**changes):
    record = {key: value for key, value in (RECORD | changes).items() if value is not None}
    return json.dumps(record, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 8])
def test_all_67_published_paradigms_are_read_whole(data_dir, every):
    files = [path for path in data_dir.glob("blimp*/*.jsonl") if path.stem != "models_summary"]
    assert len(files) == 67
    for path in sorted(files)[::every]:
        items = list(read_blimp(path))
        assert len(items) == 1000
        assert {item.uid for item in items} <= {path.stem, path.stem.replace("adjective", "adj")}
        for item in items:
            assert item.prefix is None or item.good.startswith(f"{item.prefix} {item.word_good}")
            assert not item.one_prefix or item.bad.startswith(f"{item.prefix} {item.word_bad}")


def test_text_beyond_ascii_and_a_byte_order_mark(write):
    changes = {"sentence_good": "Zoë are.", "sentence_bad": "Zoë is.", "one_prefix_prefix": "Zoë"}
    (item,) = read_blimp(write(b"\xef\xbb\xbf" + line(**changes).encode()))
    assert item.good == "Zoë are."


TWO_PREFIXES = {
    "one_prefix_method": False,
    "two_prefix_method": True,
    "two_prefix_prefix_good": "The keys",
    "two_prefix_prefix_bad": "The key",
    "two_prefix_word": "are",
    "sentence_bad": "The key are on the table.",
}
NO_PREFIXES = dict.fromkeys(("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad"))
ITEM = BlimpItem(
    "keys", "7", "subject_verb_agreement", RECORD["sentence_good"], RECORD["sentence_bad"], "The keys", "are", "is"
)
TWO_PREFIX_ITEM = replace(ITEM, bad=TWO_PREFIXES["sentence_bad"], word_bad=None)
SENTENCES = replace(ITEM, prefix=None, word_good=None, word_bad=None)


@pytest.mark.parametrize(
    ("changes", "item"),
    [
        ({key: f" {value}  " for key, value in RECORD.items() if isinstance(value, str)}, ITEM),
        (TWO_PREFIXES | {"two_prefix_word": " are", "two_prefix_prefix_bad": "The key "}, TWO_PREFIX_ITEM),
        ({"pairID": 7}, ITEM),
        ({"pairID": None, "pair_id": 7}, ITEM),
        ({"pairID": None, "pair_id": "7"}, ITEM),
        ({"UID": 12}, replace(ITEM, uid="12")),
        ({"pairID": None}, replace(ITEM, pair_id=ITEM.good)),
        ({"field": "morphology", "simple_LM_method": None, "lexically_identical": 3, "dependency_length": 2}, ITEM),
        ({"one_prefix_method": "True", "two_prefix_method": "False"}, ITEM),
        ({"one_prefix_method": 1, "two_prefix_method": 0}, ITEM),
        (TWO_PREFIXES | {"one_prefix_method": "false", "two_prefix_method": "true"}, TWO_PREFIX_ITEM),
        (TWO_PREFIXES | NO_PREFIXES, TWO_PREFIX_ITEM),
        ({"one_prefix_method": "FALSE"}, SENTENCES),
        ({"one_prefix_method": None, "two_prefix_method": None}, SENTENCES),
        (NO_PREFIXES, SENTENCES),
        (dict.fromkeys(NO_PREFIXES, ""), SENTENCES),
        (NO_PREFIXES | {"one_prefix_method": False, "two_prefix_method": True}, SENTENCES),
    ],
)
@pytest.mark.parametrize("kept", ["null", "left out"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_shape_of_the_fields(write, changes, item, kept, mark, end):
    record = {key: value for key, value in (RECORD | changes).items() if value is not None or kept == "null"}
    assert list(read_blimp(write(mark + f"{json.dumps(record)}{end}{json.dumps(record)}{end}".encode()))) == [item] * 2


@pytest.mark.parametrize("write_as", ["to_json", "to_csv", "to_parquet"])
def test_a_copy_of_the_hub_s_data_set(tmp_path, write_as):
    """As ``datasets`` saves ``nyu-mll/blimp``, whose rows have no prefixes."""
    row = {key: value for key, value in RECORD.items() if key not in NO_PREFIXES and key != "pairID"}
    rows = [row | {"field": "morphology", "simple_LM_method": True, "pair_id": number} for number in (7, 8)]
    getattr(datasets.Dataset.from_list(rows), write_as)(tmp_path / f"train.{write_as.removeprefix('to_')}")
    wanted = [SENTENCES, replace(SENTENCES, pair_id="8")]
    assert list(read_blimp(f"hub:{tmp_path}")) == wanted
    if write_as == "to_json":
        assert list(read_blimp(tmp_path / "train.json")) == wanted


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "got an empty file"),
        ("\n \n", "got an empty file"),
        (line() + "{nonsense\n", "line 2: expected a JSON object, got '{nonsense'"),
        (line() + "\n" + "[1, 2]\n", "line 3: expected a JSON object, got '[1, 2]'"),
        ("[" * 100_000, "line 1: expected a JSON object"),
        (line().encode() + line().encode("utf-16"), "line 2: expected UTF-8, got byte 0xff at column 0"),
        (line(UID=None), "line 1: expected a key 'UID'"),
        (line(sentence_bad=None), "line 1: expected a key 'sentence_bad'"),
        (line(linguistics_term=None), "line 1: expected a key 'linguistics_term'"),
        (line(one_prefix_word_bad=None), "line 1: expected a key 'one_prefix_word_bad'"),
        (
            line(one_prefix_method=False, two_prefix_method=True, two_prefix_word="are"),
            "line 1: expected a key 'two_prefix_prefix_good'",
        ),
        (line(one_prefix_method="often"), "line 1: expected true or false for 'one_prefix_method', got 'often'"),
        (line(two_prefix_method=2, one_prefix_method=False), "expected true or false for 'two_prefix_method', got 2"),
        (line(pairID=True), "line 1: expected text for 'pairID', got True"),
        (line(pairID=7.5), "line 1: expected text for 'pairID', got 7.5"),
        (line(sentence_good=3), "line 1: expected text for 'sentence_good', got 3"),
        (line(sentence_good=" "), "line 1: expected text for 'sentence_good', got ' '"),
        (line(one_prefix_word_bad="am"), "line 1: expected a sentence that begins with 'The keys' 'am'"),
        (line(sentence_good="The keys aren't here."), "line 1: expected a sentence that begins with 'The keys' 'are'"),
    ],
)
def test_a_bad_file_is_one_clear_line(write, refusal, content, says):
    assert says in refusal(read_blimp, write(content))
