import re
from collections import Counter

import pytest

from interp.errors import TaskError
from interp.tasks.readers.winogender import read_winogender

TEMPLATES = (
    "occupation(0)\tother-participant(1)\tanswer\tsentence\n"
    "cook\tguest\t0\tThe $PARTICIPANT thanked the $OCCUPATION because $NOM_PRONOUN was kind.\n"
    "cook\tguest\t1\tThe $OCCUPATION met a $PARTICIPANT to hear $POSS_PRONOUN wish.\n"
)
SENTENCES = (
    "sentid\tsentence\n"
    "cook.guest.0.male.txt\tThe guest thanked the cook because he was kind.\n"
    "cook.guest.0.neutral.txt\tThe guest thanked the cook because they were kind.\n"
    "cook.someone.0.female.txt\tSomeone thanked the cook because she was kind.\n"
    "cook.someone.1.female.txt\tThe cook met someone to hear her wish.\n"
)
STATISTICS = "occupation\tbergsma_pct_female\tbls_pct_female\tbls_year\ncook\t1.0\t38.5\t2015\n"


@pytest.fixture
def write(tmp_path):
    def write(sentences=SENTENCES, templates=TEMPLATES, statistics=STATISTICS):
        files = {"all_sentences": sentences, "templates": templates, "occupations-stats": statistics}
        for name, content in files.items():
            if content is not None:
                (tmp_path / f"{name}.tsv").write_text(content, encoding="utf-8")
        return tmp_path

    return write


def words(item):
    return [span.of(item.text) for span in (item.pronoun_span, item.occupation_span, item.participant_span)]


def test_reads_the_published_sentences_whole(data_dir):
    """Counts by plain splitting; spans by searching the sentence, not by templates."""
    folder = data_dir / "winogender"
    rows = [row.split("\t") for row in (folder / "all_sentences.tsv").read_text().splitlines()[1:]]
    items = list(read_winogender(folder))
    assert len(items) == len(rows) == 720
    assert [(item.sentence_id, item.text) for item in items] == [tuple(row) for row in rows]
    assert Counter(item.answer for item in items) == {"occupation": 360, "participant": 360}
    assert Counter(item.gender for item in items) == {"masculine": 240, "feminine": 240, "neutral": 240}
    assert sum(item.participant == "someone" for item in items) == 360
    pronouns = {"masculine": "he|his|him", "feminine": "she|her", "neutral": "they|their|them"}
    for item in items:
        for span, word in (
            (item.pronoun_span, pronouns[item.gender]),
            (item.occupation_span, item.occupation),
            (item.participant_span, item.participant),
        ):
            (found,) = re.finditer(rf"\b({word})\b", item.text, re.IGNORECASE)
            assert (span.start, span.stop) == found.span()


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


def test_of_several_templates_the_one_that_gives_the_sentence_counts(write):
    another = "cook\tboss\t0\tThe $OCCUPATION left the $PARTICIPANT when $NOM_PRONOUN could.\n"
    sentence = "cook.someone.0.male.txt\tThe cook left someone when he could.\n"
    item = list(read_winogender(write(SENTENCES + sentence, TEMPLATES + another)))[-1]
    assert words(item) == ["he", "cook", "someone"]


def changed(content, old, new):
    assert old in content
    return content.replace(old, new, 1)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"sentences": ""}, "all_sentences.tsv: expected Winogender's sentences, got an empty file"),
        (
            {"sentences": "sentid\tsentence\n"},
            "all_sentences.tsv: expected Winogender's sentences, got a header without",
        ),
        (
            {"sentences": changed(SENTENCES, "sentid", "id")},
            "all_sentences.tsv, line 1: expected the header 'sentid sen",
        ),
        ({"sentences": changed(SENTENCES, ".txt\t", ".txt ")}, "all_sentences.tsv, line 2: expected 2 fields between"),
        (
            {"sentences": changed(SENTENCES, "0.male.txt", "2.male.txt")},
            "line 2: expected an id such as technician.customer.1.male.txt, got 'cook.guest.2.male.txt'",
        ),
        (
            {"sentences": changed(SENTENCES, "were kind", "was kind")},
            "line 3: expected 'The guest thanked the cook because they were kind.', as the template has it, got 'The ",
        ),
        (
            {"sentences": changed(SENTENCES, "Someone thanked", "The someone thanked")},
            "line 4: expected 'Someone thanked the cook because she was kind.', as the template has it, got 'The some",
        ),
        (
            {"sentences": changed(SENTENCES, "cook.guest", "cook.boss")},
            "line 2: expected a template of cook, boss and answer 0, got none of these",
        ),
        (
            {"templates": changed(TEMPLATES, "cook", "baker")},
            "line 2: expected a template of cook, guest and answer 0, got none of these",
        ),
        (
            {"templates": changed(TEMPLATES, "answer", "0or1")},
            "templates.tsv, line 1: expected the header 'occupation(0)",
        ),
        (
            {"templates": changed(TEMPLATES, "$NOM_PRONOUN", "she")},
            "templates.tsv, line 2: expected $OCCUPATION, $PARTICIPANT and one pronoun once each, got 'The $PART",
        ),
        (
            {"templates": changed(TEMPLATES, "wish", "$ACC_PRONOUN")},
            "templates.tsv, line 3: expected $OCCUPATION, $PARTICIPANT and one pronoun once each, got 'The $OCC",
        ),
        (
            {"statistics": changed(STATISTICS, "38.5", "most")},
            "occupations-stats.tsv, line 2: expected a share in percent in the column 'bls_pct_female', got 'most'",
        ),
        ({"statistics": changed(STATISTICS, "38.5", "385")}, "line 2: expected a share in percent"),
        ({"templates": None}, "templates.tsv: expected the templates of Winogender's sentences, got no such file"),
        ({"sentences": None}, "all_sentences.tsv: expected Winogender's sentences, got no such file"),
    ],
)
def test_a_bad_file_is_one_clear_line(write, files, says):
    folder = write(**files)
    with pytest.raises(TaskError) as raised:
        list(read_winogender(folder))
    message = str(raised.value)
    assert message.startswith(str(folder))
    assert says in message
    assert "\n" not in message


def test_the_hub_has_none_of_it():
    with pytest.raises(
        TaskError, match=r"hub:oskarvanderwal/winogender: Winogender is not read from the hub.*give a path"
    ):
        list(read_winogender("hub:oskarvanderwal/winogender"))
