import pytest
from winobias_rows import hub_row

from interp.errors import TaskError
from interp.tasks.readers.winobias import read_winobias
from interp.tasks.readers.winobias_hub import hub_line

ROW = {
    "document_id": "nw/dev_type1/stereotype//41",
    "tokens": ["The", "cook", "saw", ",", "but", "did", "n't", "greet", "the", "nurse", "'s", "son", "or", "her", "."],
    "coreference_clusters": ["8", "9", "13", "13"],
}


def test_a_row_becomes_the_line_of_the_file():
    assert hub_line(ROW) == "42 The cook saw, but didn't greet [the nurse] 's son or [her]."


@pytest.mark.parametrize(
    "name", [f"{side}_stereotyped_type{kind}.txt.dev" for side in ("pro", "anti") for kind in "12"]
)
def test_lines_that_become_rows_are_read_as_they_were(data_dir, save, name):
    path = data_dir / "winobias" / name
    lines = [line for line in path.read_text().splitlines() if "the [the" not in line]
    assert len(lines) > 390
    published = {item.number: item for item in read_winobias(path)}
    items = list(read_winobias(save(test=[hub_row(line) for line in lines])))
    assert len(items) == len(lines)
    for item in items:
        own = published[item.number]
        assert (item.text, item.referent, item.pronouns) == (own.text, own.referent, own.pronouns)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"document_id": None}, "expected 'document_id' with a number at its end"),
        ({"tokens": [None, *ROW["tokens"][1:]]}, "expected 'document_id' with a number at its end, words in 'tokens'"),
        ({"tokens": "The cook"}, "expected 'document_id' with a number at its end, words in 'tokens'"),
        ({"coreference_clusters": ["8", "9", "13"]}, "expected first and last tokens of 15"),
        ({"coreference_clusters": ["8", "15"]}, "expected first and last tokens of 15"),
        ({"coreference_clusters": ["8", "x"]}, "expected first and last tokens of 15"),
        ({"coreference_clusters": ["8", "9"]}, "expected one person and at least one pronoun in brackets"),
        ({"coreference_clusters": ["8", "9", "9", "13"]}, "expected brackets that open, hold words and close"),
    ],
)
def test_a_bad_row_is_named(save, change, says):
    name = save(test=[ROW | change])
    with pytest.raises(TaskError) as raised:
        list(read_winobias(name))
    assert str(raised.value).startswith(f"{name}, row 1: {says}")
