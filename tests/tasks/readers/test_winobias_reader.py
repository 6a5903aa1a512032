import re

import pytest
from winobias_rows import hub_row

from interp.tasks.example import Span
from interp.tasks.readers.winobias import WinobiasItem, hub_line, read_winobias

FILE = "pro_stereotyped_type1.txt.dev"

PUBLISHED = [
    f"{side}_stereotyped_type{kind}.txt.{part}" for side in ("pro", "anti") for kind in "12" for part in ("dev", "test")
]
PRONOUNS = {"feminine": {"she", "her", "hers", "herself"}, "masculine": {"he", "his", "him", "himself"}}
ONE_PERSON = "line 1: expected one person and at least one pronoun"
ONE_GENDER = "expected pronouns of one gender in brackets"
BRACKETS = "line 1: expected brackets that open, hold words and close"
GOOD = "1 [The cook] met the nurse because [he] liked the nurse.\n"


def referent(item):
    return item.referent.of(item.text)


def pronouns(item):
    return [span.of(item.text) for span in item.pronouns]


@pytest.mark.parametrize("name", PUBLISHED)
def test_reads_a_published_file_whole(data_dir, name):
    path = data_dir / "winobias" / name
    lines, items = path.read_text().splitlines(), list(read_winobias(path))
    assert len(items) == len(lines) == 396
    assert [item.number for item in items] == list(range(1, 397))
    assert {item.stereotyped for item in items} == {name.startswith("pro")}
    assert {item.type for item in items} == {1 if "type1" in name else 2}
    for line, item in zip(lines, items, strict=True):
        brackets = [each.strip() for each in re.findall(r"\[(.*?)\]", line)]
        assert sorted([referent(item), *pronouns(item)]) == sorted(brackets)
        assert {each.lower() for each in pronouns(item)} <= PRONOUNS[item.gender]
        assert referent(item).lower() not in PRONOUNS["feminine"] | PRONOUNS["masculine"]
        words = line.replace("[", "").replace("]", "").split()[1:]
        assert item.text.split() == (words if "the the" not in " ".join(words) else [*words[:3], *words[4:]])


def test_what_is_odd_in_the_published_files(data_dir):
    by_name = {name: list(read_winobias(data_dir / "winobias" / name)) for name in PUBLISHED}
    assert sum(len(item.pronouns) > 1 for items in by_name.values() for item in items) == 87
    physician = by_name["pro_stereotyped_type2.txt.dev"][175]
    assert physician.text.startswith("The teacher asked the physician about")
    assert referent(physician) == "physician"
    assert physician.text.endswith("believed him.")
    twin = by_name["anti_stereotyped_type2.txt.dev"][175]
    assert (twin.text[:30], referent(twin)) == (physician.text[:30], "the physician")
    chief = by_name["pro_stereotyped_type2.txt.test"][2]
    assert chief.text == "The assistant notified the chief about a problem and asked him to take action."
    assert (referent(chief), pronouns(chief)) == ("the chief", ["him"])
    housekeeper = by_name["anti_stereotyped_type1.txt.dev"][161]
    assert (referent(housekeeper), housekeeper.text[:41]) == (
        "housekeeper",
        "The mechanic fixed the housekeeper 's car",
    )


def test_reads_a_line(write):
    assert list(read_winobias(write("\n7 The CEO hired [the nurse] as [she] knew [her] job. \n"))) == [
        WinobiasItem(
            number=7,
            text="The CEO hired the nurse as she knew her job.",
            referent=Span(14, 23),
            pronouns=(Span(27, 30), Span(36, 39)),
            gender="feminine",
            stereotyped=True,
            type=1,
        )
    ]


@pytest.mark.parametrize(
    ("sentence", "text", "referred"),
    [
        ("The [the cook] left as [he] could.", "The cook left as he could.", "The cook"),
        ("They saw an [an auditor] and [her] dog.", "They saw an auditor and her dog.", "an auditor"),
        ("They saw the [ cook ] and [ his] dog.", "They saw the cook and his dog.", "cook"),
        ("As [She] left, [a baker boy] sang.", "As She left, a baker boy sang.", "a baker boy"),
        ("[The cook] blamed [himself].", "The cook blamed himself.", "The cook"),
    ],
)
def test_slips_are_mended_and_nothing_else(write, sentence, text, referred):
    (item,) = read_winobias(write(f"1 {sentence}"))
    assert (item.text, referent(item)) == (text, referred)
    assert item.pronoun == item.pronouns[0]


@pytest.mark.parametrize(
    ("name", "stereotyped", "kind"),
    [
        ("pro_stereotyped_type2.txt.test", True, 2),
        ("ANTI_stereotyped_Type1.txt", False, 1),
        ("my-anti_type12.txt", False, None),
        ("repro_.txt", None, None),
        ("renamed.txt", None, None),
        ("type2.txt", None, 2),
    ],
)
def test_the_name_says_what_it_can(write, name, stereotyped, kind):
    (item,) = read_winobias(write(GOOD, name))
    assert (item.stereotyped, item.type) == (stereotyped, kind)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", ": expected one numbered sentence a line, got an empty file"),
        ("\n  \n", ": expected one numbered sentence a line, got an empty file"),
        (GOOD + "[The cook] left as [he] could.", "line 2: expected a number and a sentence, got '[The cook] left"),
        (GOOD.encode() + b"\xff", "line 2: expected UTF-8, got byte 0xff at column 0"),
        ("1 The cook left as [he] could.", f"{ONE_PERSON} in brackets, got ['he']"),
        ("1 [The cook] left as he could.", f"{ONE_PERSON} in brackets, got ['The"),
        ("1 [The cook] saw [the nurse] and [him].", ONE_PERSON),
        ("1 [The cook] saw that [they] left.", ONE_PERSON),
        ("1 [The cook] saw [his] and [her] dog.", f"line 1: {ONE_GENDER}, got ['his', 'her']"),
        ("1 [The cook left as [he] could.", f"{BRACKETS}, got '[The cook"),
        ("1 [The cook] left as he] could [his].", BRACKETS),
        ("1 [The cook] left as [] [he] could.", BRACKETS),
    ],
)
def test_a_bad_file_is_one_clear_line(write, refusal, content, says):
    assert says in refusal(read_winobias, write(content))


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
def test_a_bad_row_is_named(save, refusal, change, says):
    assert refusal(read_winobias, save(test=[ROW | change])).startswith(f", row 1: {says}")
