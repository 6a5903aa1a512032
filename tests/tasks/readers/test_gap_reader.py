import pytest

from analyses.coreference_heads.gap_reader import COLUMNS, GapCandidate, GapItem, read_gap
from interp.errors import TaskError
from interp.tasks.example import Span

FILE = "made_up.tsv"

HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
ROW = {
    "ID": "made-up-1",
    "Text": "Zoë Ray met Ann Lee. Her dog barked.",
    "Pronoun": "Her",
    "Pronoun-offset": "21",
    "A": "Zoë Ray",
    "A-offset": "0",
    "A-coref": "FALSE",
    "B": "Ann Lee",
    "B-offset": "12",
    "B-coref": "TRUE",
    "URL": "http://example.org/Ann_Lee",
}


def line(**changes):
    return "\t".join((ROW | {key.replace("_", "-"): value for key, value in changes.items()}).values()) + "\n"


def fields_of(path):
    """The published table by plain splitting, column by column."""
    rows = path.read_text(encoding="utf-8").split("\n")[1:]
    return list(zip(*(row.split("\t") for row in rows if row), strict=True))


@pytest.mark.parametrize(("part", "count"), [("development", 2000), ("validation", 454), ("test", 2000)])
def test_reads_a_published_file_whole(data_dir, part, count):
    path = data_dir / "gap" / f"gap-{part}.tsv"
    items, fields = list(read_gap(path)), fields_of(path)
    assert len(items) == count
    assert tuple(item.id for item in items) == fields[0]
    assert tuple(item.text for item in items) == fields[1]
    assert sum(item.a.coreferent for item in items) == fields[6].count("TRUE") > 0
    assert sum(item.b.coreferent for item in items) == fields[9].count("TRUE") > 0
    assert [item.gender for item in items].count("feminine") == count / 2
    for item in items:
        spans = (item.pronoun_span, item.a.span, item.b.span)
        assert tuple(span.of(item.text) for span in spans) == (item.pronoun, item.a.name, item.b.name)
        assert (item.gender == "feminine") == item.pronoun.lower().startswith(("she", "her"))
        assert item.url.startswith("http://en.wikipedia.org/wiki/")


def test_reads_every_column(write):
    assert list(read_gap(write(HEADER + line() + "\n"))) == [
        GapItem(
            id="made-up-1",
            text="Zoë Ray met Ann Lee. Her dog barked.",
            pronoun="Her",
            pronoun_span=Span(21, 24),
            gender="feminine",
            a=GapCandidate("Zoë Ray", Span(0, 7), False),
            b=GapCandidate("Ann Lee", Span(12, 19), True),
            url="http://example.org/Ann_Lee",
        )
    ]


@pytest.mark.parametrize(
    ("pronoun", "gender"),
    [
        *[("she", "feminine"), ("her", "feminine"), ("Hers", "feminine")],
        *[("He", "masculine"), ("his", "masculine"), ("HIM", "masculine")],
    ],
)
def test_the_gender_is_the_pronoun_s(write, pronoun, gender):
    (item,) = read_gap(write(HEADER + line(Pronoun=pronoun, Text=f"Zoë Ray met Ann Lee. {pronoun} left.")))
    assert (item.pronoun, item.gender) == (pronoun, gender)


def test_quotation_marks_are_text(write):
    text = '"Zoë Ray" met Ann Lee. Her dog'
    changes = {"Text": text, "A_offset": "1", "B_offset": "14", "Pronoun_offset": "23"}
    items = list(read_gap(write(HEADER + line(**changes) + line())))
    assert [item.text for item in items] == [text, ROW["Text"]]


def test_the_columns_are_the_official_ones():
    assert "\t".join(COLUMNS) + "\n" == HEADER


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", ": expected a GAP file, got an empty file"),
        (HEADER, ": expected a GAP file, got a header without rows"),
        (line(), "line 1: expected the header 'ID Text Pronoun Pronoun-offset A A-offset A-coref B"),
        (HEADER.replace("A-coref", "A-Coref"), "line 1: expected the header"),
        (HEADER + line() + "a\tb\n", r"line 3: expected 11 fields between tabs, got 2 in 'a\tb'"),
        (HEADER + line(URL="x\ty"), "line 2: expected 11 fields between tabs, got 12"),
        (HEADER.encode() + line().encode("latin-1"), "line 2: expected UTF-8, got byte 0xeb"),
        (HEADER + line(ID=" "), "line 2: expected text in the column 'ID', got ' '"),
        (
            HEADER + line(Pronoun="Their"),
            "line 2: expected one of the pronouns she, her, hers, he, his, him, got 'Their'",
        ),
        (HEADER + line(A_offset="-1"), "line 2: expected a whole number in the column 'A-offset', got '-1'"),
        (HEADER + line(A_offset="x"), "line 2: expected a whole number in the column 'A-offset', got 'x'"),
        (HEADER + line(B_offset="13"), "line 2: expected 'Ann Lee' at the text's character 13 (B), got 'nn Lee.'"),
        (HEADER + line(B_offset="99"), "line 2: expected 'Ann Lee' at the text's character 99 (B), got ''"),
        (
            HEADER + line() + "\n" + line(Pronoun_offset="0"),
            "line 4: expected 'Her' at the text's character 0 (Pronoun), got 'Zoë'",
        ),
        (HEADER + line(A_coref="no"), "line 2: expected TRUE or FALSE in the column 'A-coref', got 'no'"),
    ],
)
def test_a_bad_file_is_one_clear_line(write, refusal, content, says):
    assert says in refusal(read_gap, write(content))


def test_items_come_one_by_one(write):
    items = read_gap(write(HEADER + line() + line(A_offset="3")))
    assert next(items).id == "made-up-1"
    with pytest.raises(TaskError, match="line 3"):
        next(items)
