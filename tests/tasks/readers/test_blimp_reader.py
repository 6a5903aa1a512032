import json

import pytest

from interp.errors import TaskError
from interp.recipes.published import PARADIGMS
from interp.tasks.readers.blimp import BlimpItem, read_blimp

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


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "keys.jsonl"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def line(**changes):
    record = {key: value for key, value in (RECORD | changes).items() if value is not None}
    return json.dumps(record, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_reads_a_published_paradigm_whole(data_dir, paradigm):
    items = list(read_blimp(data_dir / "blimp" / f"{paradigm}.jsonl"))
    assert len(items) == 1000
    assert len({item.pair_id for item in items}) == 1000
    assert {item.uid for item in items} == {paradigm}
    assert {item.one_prefix for item in items} == {"agreement_2" not in paradigm}
    for item in items:
        assert item.good.startswith(f"{item.prefix} {item.word_good}")
        assert not item.one_prefix or item.bad.startswith(f"{item.prefix} {item.word_bad}")


def test_every_paradigm_at_hand_is_readable(data_dir):
    files = [path for path in (data_dir / "blimp").glob("*.jsonl") if path.stem != "models_summary"]
    assert len(files) >= len(PARADIGMS)
    assert {len(list(read_blimp(path))) for path in files} == {1000}


def test_reads_each_method(write):
    two = line(
        one_prefix_method=False,
        two_prefix_method=True,
        two_prefix_prefix_good="The keys",
        two_prefix_prefix_bad="The key",
        two_prefix_word="are",
        sentence_bad="The key are on the table.",
    )
    whole = line(one_prefix_method=False)
    one_prefix, two_prefix, sentences = read_blimp(write(line() + "\n" + two + whole.rstrip()))
    assert one_prefix == BlimpItem(
        uid="keys",
        pair_id="7",
        phenomenon="subject_verb_agreement",
        good="The keys are on the table.",
        bad="The keys is on the table.",
        prefix="The keys",
        word_good="are",
        word_bad="is",
    )
    assert (two_prefix.prefix, two_prefix.word_good, two_prefix.word_bad) == ("The keys", "are", None)
    assert (sentences.prefix, sentences.word_good, sentences.word_bad) == (None, None, None)
    assert [item.one_prefix for item in (one_prefix, two_prefix, sentences)] == [True, False, False]


def test_text_beyond_ascii_and_a_byte_order_mark(write):
    changes = {"sentence_good": "Zoë are.", "sentence_bad": "Zoë is.", "one_prefix_prefix": "Zoë"}
    (item,) = read_blimp(write(b"\xef\xbb\xbf" + line(**changes).encode()))
    assert item.good == "Zoë are."


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
        (line(pairID=None), "line 1: expected a key 'pairID'"),
        (line(sentence_bad=None), "line 1: expected a key 'sentence_bad'"),
        (line(linguistics_term=None), "line 1: expected a key 'linguistics_term'"),
        (line(one_prefix_word_bad=None), "line 1: expected a key 'one_prefix_word_bad'"),
        (line(one_prefix_method=False, two_prefix_method=True), "line 1: expected a key 'two_prefix_prefix_good'"),
        (line(sentence_good=3), "line 1: expected text for 'sentence_good', got 3"),
        (line(sentence_good=" "), "line 1: expected text for 'sentence_good', got ' '"),
        (line(one_prefix_word_bad="am"), "line 1: expected a sentence that begins with 'The keys' 'am'"),
        (line(sentence_good="The keys aren't here."), "line 1: expected a sentence that begins with 'The keys' 'are'"),
    ],
)
def test_a_bad_file_is_one_clear_line(write, content, says):
    path = write(content)
    with pytest.raises(TaskError) as raised:
        list(read_blimp(path))
    message = str(raised.value)
    assert message.startswith(str(path))
    assert says in message
    assert "\n" not in message


def test_a_missing_file_and_a_folder_are_clear_errors(tmp_path):
    with pytest.raises(TaskError, match=r"none\.jsonl: expected a BLiMP file, got no such file"):
        list(read_blimp(tmp_path / "none.jsonl"))
    with pytest.raises(TaskError, match="expected a BLiMP file, got a folder"):
        list(read_blimp(tmp_path))
