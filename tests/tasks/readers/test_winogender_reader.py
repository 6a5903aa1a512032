import re
from collections import Counter

import pytest

from interp.tasks.readers.winogender import read_winogender

SENTENCES = (
    "sentid\tsentence\n"
    "cook.guest.0.male.txt\tThe guest thanked the cook because he was kind.\n"
    "cook.guest.0.neutral.txt\tThe guest thanked the cook because they were kind.\n"
    "cook.someone.0.female.txt\tSomeone thanked the cook because she was kind.\n"
    "cook.someone.1.female.txt\tThe cook met someone to hear her wish.\n"
)
AN_ID, A_SHARE = "expected an id such as technician.customer.1.male.txt", "expected a share in percent"
STATISTICS = "occupation\tbergsma_pct_female\tbls_pct_female\tbls_year\ncook\t1.0\t38.5\t2015\n"


@pytest.fixture
def write(tmp_path):
    def write(sentences=SENTENCES, statistics=STATISTICS):
        files = {"all_sentences": sentences, "occupations-stats": statistics}
        for name, content in files.items():
            if content is not None:
                (tmp_path / f"{name}.tsv").write_text(content, encoding="utf-8")
        return tmp_path

    return write


def words(item):
    return [span.of(item.text) for span in (item.pronoun_span, item.occupation_span, item.participant_span)]


def by_template(template, item):
    """Where a template says that the words stand: its slots as groups of a pattern."""
    pattern = re.escape(template).replace("was", "(?:was|were)")
    slots = {r"\$OCCUPATION": "occupation", r"\$PARTICIPANT": "participant"}
    slots |= {rf"\${case}_PRONOUN": "pronoun" for case in ("NOM", "POSS", "ACC")}
    pattern = re.sub(r"(?:the|an?)\\ (?=\\\$PARTICIPANT)", "(?:the |an? )?", pattern, flags=re.IGNORECASE)
    for slot, name in slots.items():
        pattern = pattern.replace(slot, rf"(?P<{name}>[\w-]+)")
    found = re.fullmatch(pattern, item.text, re.IGNORECASE)
    return found and [found.span(name) for name in ("pronoun", "occupation", "participant")]


def test_reads_the_published_sentences_whole(data_dir):
    """Counts by plain splitting; spans by the published templates, which the reader does not know."""
    folder = data_dir / "winogender"
    rows, templates = (
        [row.split("\t") for row in (folder / f"{name}.tsv").read_text().splitlines()[1:]]
        for name in ("all_sentences", "templates")
    )
    items = list(read_winogender(folder))
    assert len(items) == len(rows) == 720
    assert [(item.sentence_id, item.text) for item in items] == [tuple(row) for row in rows]
    assert Counter(item.answer for item in items) == {"occupation": 360, "participant": 360}
    assert Counter(item.gender for item in items) == {"masculine": 240, "feminine": 240, "neutral": 240}
    assert sum(item.participant == "someone" for item in items) == 360
    for item in items:
        own = [
            row[3]
            for row in templates
            if row[0] == item.occupation and (row[2] == "1") == (item.answer != "occupation")
        ]
        expected = [spans for each in own if (spans := by_template(each, item))]
        assert [
            (span.start, span.stop) for span in (item.pronoun_span, item.occupation_span, item.participant_span)
        ] in expected


def test_the_share_of_women_is_the_published_one(data_dir):
    rows = [row.split("\t") for row in (data_dir / "winogender/occupations-stats.tsv").read_text().splitlines()[1:]]
    shares = {item.occupation: item.bls_pct_female for item in read_winogender(data_dir / "winogender")}
    assert shares == {row[0]: float(row[2]) for row in rows}
    assert len(shares) == 60
    assert shares["technician"] == 40.34


def test_reads_a_folder_or_its_sentences(write):
    folder = write()
    items = list(read_winogender(folder))
    assert items == list(read_winogender(folder / "all_sentences.tsv"))
    assert [(item.occupation, item.participant, item.answer, item.gender) for item in items] == [
        ("cook", "guest", "occupation", "masculine"),
        ("cook", "guest", "occupation", "neutral"),
        ("cook", "someone", "occupation", "feminine"),
        ("cook", "someone", "participant", "feminine"),
    ]
    assert [words(item) for item in items] == [
        ["he", "cook", "guest"],
        ["they", "cook", "guest"],
        ["she", "cook", "Someone"],
        ["her", "cook", "someone"],
    ]
    assert {item.bls_pct_female for item in items} == {38.5}


@pytest.mark.parametrize("statistics", [None, STATISTICS.replace("cook", "nurse")])
def test_the_share_of_women_may_be_unknown(write, statistics):
    assert {item.bls_pct_female for item in read_winogender(write(statistics=statistics))} == {None}


def changed(old, new):
    """The file that holds `old`, with `new` in its place."""
    files = {"sentences": SENTENCES, "statistics": STATISTICS}
    return {name: content.replace(old, new, 1) for name, content in files.items() if old in content}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"sentences": ""}, "all_sentences.tsv: expected Winogender's sentences, got an empty file"),
        ({"sentences": "sentid\tsentence\n"}, "all_sentences.tsv: expected Winogender's sentences, got a header with"),
        (changed("sentid", "id"), "all_sentences.tsv, line 1: expected the header 'sentid sen"),
        (changed(".txt\t", ".txt "), "all_sentences.tsv, line 2: expected 2 fields between"),
        (changed("0.male", "2.male"), f"line 2: {AN_ID}, got 'cook.guest.2.male.txt'"),
        (changed("cook.guest", "cook.boss"), "line 2: expected boss once in the sentence, got 0 in 'The guest thanked"),
        (changed("he was", "she was"), "line 2: expected he or his or him once in the sentence, got 0 in 'The guest"),
        (changed("The guest", "The cook's guest"), "line 2: expected cook once in the sentence, got 2 in"),
        (
            changed("38.5", "most"),
            f"occupations-stats.tsv, line 2: {A_SHARE} in the column 'bls_pct_female', got 'most'",
        ),
        (changed("38.5", "385"), f"line 2: {A_SHARE}"),
        ({"sentences": None}, "all_sentences.tsv: expected Winogender's sentences, got no such file"),
    ],
)
def test_a_bad_file_is_one_clear_line(write, refusal, files, says):
    assert says in refusal(read_winogender, write(**files))


def test_the_hub_has_the_same_sentences(write, save, refusal):
    rows = [dict(zip(("sentid", "sentence"), line.split("\t"), strict=True)) for line in SENTENCES.splitlines()[1:]]
    assert list(read_winogender(f"{save(test=rows)}::test")) == list(read_winogender(write(statistics=None)))
    name = save(test=[{"sentid": "cook"}])
    says = ", row 1: expected text in the columns 'sentid' and 'sentence', got 'cook' and None"
    assert refusal(read_winogender, f"{name}::test").startswith(says)
