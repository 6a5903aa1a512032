"""Universal Dependencies as the hub has them, in local folders: what a file says, and what is wrong with a row."""

import logging

import datasets
import pytest

from interp.errors import TaskError
from interp.tasks.example import Span
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.treebank import ROOT

TAGS = ["NOUN", "PUNCT", "VERB", "PART", "AUX", "DET", "PROPN", "PRON"]
ROW = {
    "idx": "one-1",
    "text": "Mary didn't see the dogs.",
    "tokens": ["Mary", "did", "n't", "see", "the", "dogs", "."],
    "lemmas": ["Mary", "do", "not", "see", "the", "dog", "."],
    "upos": ["PROPN", "AUX", "PART", "VERB", "DET", "NOUN", "PUNCT"],
    "xpos": ["NNP", "VBD", "RB", "VB", "DT", "NNS", None],
    "feats": ["Number=Sing", "None", "None", "None", "None", "Case=Acc|Number=Plur", "_"],
    "head": ["4", "4", "4", "0", "6", "4", "4"],
    "deprel": ["nsubj", "aux", "advmod", "root", "det", "obj", "punct"],
    "deps": ["None"] * 7,
    "misc": ["Entity=(1-person)", "SpaceAfter=No", "None", "None", "Entity=(2-animal", "SpaceAfter=No|Entity=2)", ""],
}
FRENCH = {
    "idx": "fr",
    "text": "Il vient du port.",
    "tokens": ["Il", "vient", "de", "le", "port", "."],
    "head": ["2", "0", "5", "5", "2", "2"],
    "deprel": ["nsubj", "root", "case", "det", "obl", "punct"],
    "misc": ["None", "None", "None", "None", "SpaceAfter=No", "None"],
}
DU = [{"id": "3-4", "form": "du", "misc": "None"}]


@pytest.fixture
def save(save):
    """Write rows as a data set; give its name."""
    return lambda *rows, features=None: save(features=features, train=list(rows))


def test_a_row_is_a_sentence_and_a_document(save):
    one, two = read_conllu(save(ROW, ROW | {"idx": "one-2"}))
    assert [each.id for each in (one, two)] == ["one-1", "one-2"]
    (sentence,) = one.sentences
    assert (sentence.id, sentence.text) == ("one-1", ROW["text"])
    assert [word.span.of(sentence.text) for word in sentence.words] == ROW["tokens"]
    mary, dogs, stop = (sentence.words[at] for at in (0, 5, 6))
    assert (dogs.lemma, dogs.upos, dogs.xpos, dogs.head, dogs.deprel) == ("dog", "NOUN", "NNS", 3, "obj")
    assert (mary.feats, dogs.feats, stop.feats) == ({"Number": "Sing"}, {"Case": "Acc", "Number": "Plur"}, {})
    assert stop.xpos == ""
    assert sentence.words[3].head == ROOT
    assert [(each.entity, each.type, each.words, each.head) for each in one.mentions] == [
        ("1", "person", (0,), 0),
        ("2", "animal", (4, 5), 5),
    ]


def test_class_labels_have_names(save):
    text = datasets.List(datasets.Value("string"))
    features = {name: text if isinstance(value, list) else datasets.Value("string") for name, value in ROW.items()}
    features["upos"] = datasets.List(datasets.ClassLabel(names=TAGS))
    numbers = [*map(TAGS.index, ROW["upos"][:-1]), -1]
    rows = [ROW | {"upos": numbers}]
    (document,) = read_conllu(save(*rows, features=datasets.Features(features)))
    assert [word.upos for word in document.sentences[0].words] == [*ROW["upos"][:-1], ""]
    with pytest.raises(TaskError, match="row 1: expected the names of parts of speech in 'upos', got 6 without a name"):
        list(read_conllu(save(*rows)))


def test_multiword_tokens(save, caplog):
    (document,) = read_conllu(save(FRENCH | {"mwt": DU}))
    (sentence,) = document.sentences
    assert sentence.text == "Il vient du port."
    assert [word.span for word in sentence.words[1:5]] == [Span(3, 8), Span(9, 11), Span(9, 11), Span(12, 16)]
    assert not caplog.records


def test_without_multiword_tokens_a_text_is_put_together(save, caplog):
    with caplog.at_level(logging.WARNING):
        found = [document.sentences[0] for document in read_conllu(save(FRENCH, ROW | {"idx": None}))]
    assert found[0].text == "Il vient de le port."
    assert [word.span.of(found[0].text) for word in found[0].words] == FRENCH["tokens"]
    assert (found[1].text, found[1].id) == (ROW["text"], "row 2")
    (record,) = caplog.records
    assert "the text of 1 sentences of 2 was put together from their words" in record.getMessage()


def test_only_words_heads_and_relations_must_be_there(save):
    needed = {name: FRENCH[name] for name in ("tokens", "head", "deprel")}
    (document,) = read_conllu(save(needed))
    (sentence,) = document.sentences
    assert sentence.text == "Il vient de le port ."
    assert {(word.upos, word.lemma, word.xpos) for word in sentence.words} == {("", "", "")}


def test_none_is_a_word_too(save):
    row = {"text": "None left", "tokens": ["None", "left"], "head": ["2", "0"], "deprel": ["nsubj", "root"]}
    (document,) = read_conllu(save(row | {"lemmas": ["None", "leave"], "xpos": ["None", "VBD"]}))
    none = document.sentences[0].words[0]
    assert (none.form, none.lemma, none.xpos) == ("None", "None", "")


def changed(name, at, value, row=ROW):
    return row | {name: [value if number == at else each for number, each in enumerate(row[name])]}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (changed("head", 3, "9"), ", word 4: expected a head from 0 to 7, the sentence's words, got 9"),
        (changed("head", 3, "None"), ", word 4: expected a head from 0 to 7, the sentence's words, got none"),
        (changed("head", 3, "6"), ", word 1: expected a tree, got a circle"),
        (changed("head", 3, "up"), ", word 4: expected CoNLL-U, got"),
        (changed("tokens", 1, "a\tb"), ": expected one line without tabs in 'tokens', got 'a\\tb'"),
        (changed("feats", 0, "{'Number': 'Sing'}"), ": expected such as 'Number=Sing|Person=3' in 'feats', got"),
        (changed("misc", 5, "Entity=3)"), ", word 6: expected an opening bracket of entity '3'"),
        (changed("misc", 5, "None"), ", word 7: expected a closing bracket for entity '2'"),
        (ROW | {"text": "Mary\nsaw"}, ": expected one line without tabs in 'text', got 'Mary\\nsaw'"),
        (ROW | {"head": ["0"]}, ": expected a list with an entry for each of 7 words in 'head', got 1 entries"),
        (ROW | {"tokens": None}, ": expected a list with an entry for each of 0 words in 'tokens', got None"),
        (ROW | {"tokens": []}, ": expected a list with an entry for each of 0 words in 'tokens', got 0 entries"),
        (ROW | {"mwt": [{"id": "2", "form": "x"}]}, ": expected an id such as 2-3 and a form in 'mwt', got {'id': '2"),
        (ROW | {"mwt": [{"id": "9-10", "form": "x"}]}, ": expected multiword tokens of 7 words in 'mwt', got 9-10"),
        (ROW | {"mwt": [{"id": "2-9", "form": "didn't"}]}, ", words 2-9: expected a multiword token of words of the"),
        (FRENCH | {"mwt": []}, ", word 3: expected the text to go on with 'de', got 'du port.'"),
    ],
)
def test_a_bad_row_is_named(save, refusal, row, says):
    good = {name: None if name == "mwt" else ROW.get(name) for name in row}
    assert refusal(read_conllu, save(good, row)).startswith(f", row 2{says}")


def row_of(block):
    """A sentence of a file as the hub has it, by hand."""
    lines = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
    comments = dict(line[2:].split(" = ", 1) for line in block.splitlines() if line[0] == "#" and " = " in line)
    words = [line for line in lines if line[0].isdecimal()]
    names = {"tokens": 1, "lemmas": 2, "upos": 3, "xpos": 4, "feats": 5, "head": 6, "deprel": 7, "misc": 9}
    columns = {name: ["None" if word[at] == "_" else word[at] for word in words] for name, at in names.items()}
    mwt = [{"id": line[0], "form": line[1], "misc": line[9]} for line in lines if "-" in line[0]]
    return {"idx": comments["sent_id"], "text": comments["text"], **columns, "mwt": mwt}


def test_a_published_treebank_is_the_same_from_rows(data_dir, save):
    path = data_dir / "gum" / "en_gum-ud-test.conllu"
    blocks = path.read_text(encoding="utf-8").split("\n\n")[:150]
    expected = []
    for document in read_conllu(path):
        expected += document.sentences
        if len(expected) >= len(blocks):
            break
    found = list(read_conllu(save(*map(row_of, blocks))))
    assert [document.sentences[0] for document in found] == expected[: len(blocks)]
    assert sum(len(document.mentions) for document in found) > 500


@pytest.mark.parametrize("token", ["_", None, ""])
def test_rows_without_words_are_left_out_or_refused(save, caplog, token):
    without = ROW | {"tokens": [token] * 7, "lemmas": ["_"] * 7, "text": "_ _ _ _ _ _"}
    with pytest.raises(TaskError, match=r"^hub:.*: expected words, got '_' or empty nodes for all of them"):
        list(read_conllu(save(without, without)))
    with caplog.at_level(logging.WARNING, logger="interp"):
        assert len(list(read_conllu(save(without, ROW)))) == 1
    assert "1 of 2 sentences are left out, for they have '_' or empty nodes in place of words" in caplog.text
