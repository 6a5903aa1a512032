"""Features of hand-made documents, word by word, and of a real treebank against plain counts."""

from dataclasses import replace

import pytest
from banks import document, sentence, word_level

from interp.errors import TaskError
from interp.tasks.alignment import Windows
from interp.tasks.corpus import Corpus
from interp.tasks.features import features_in, labels_of

KEYS = "Some keys near the cabinet are old"
HEADS = [1, 6, 4, 4, 1, 6, -1]
LABELS = ["det", "nsubj", "case", "det", "nmod", "cop", "root"]
UPOS = ["DET", "NOUN", "ADP", "DET", "NOUN", "AUX", "ADJ"]


def keys(**changes):
    """The sentence, its subject changed."""
    made = sentence(KEYS, HEADS, LABELS, upos=UPOS)
    words = list(made.words)
    words[1] = replace(words[1], lemma="key", feats={"Number": "Plur"}, **changes)
    return replace(made, words=tuple(words))


def labels(text, *features):
    words = [word.form for each in text.sentences for word in each.words]
    (window,) = Windows(word_level(words), 64, both_sides=False).documents(text)
    return labels_of(window, features)


def test_what_a_word_says_of_itself():
    found = labels(document(keys()), "upos", "deprel", "distance", "feats:Number")
    assert {at: each["upos"].value for at, each in found.items()} == dict(enumerate(UPOS))
    assert found[4]["deprel"].value == "nmod"
    assert found[4]["distance"].value == "-3"
    assert found[1]["distance"].value == "5"
    assert "distance" not in found[6]
    assert {at for at, each in found.items() if "feats:Number" in each} == {1}
    assert (found[1]["upos"].carrier, found[1]["upos"].lemma) == ("keys", "key")


def test_the_subject_s_number_is_read_before_its_verb():
    """Before the copula, that is, at the last word of the subject's phrase."""
    found = labels(document(keys()), "number")
    assert {at: each["number"].value for at, each in found.items()} == {4: "plural"}
    assert (found[4]["number"].carrier, found[4]["number"].lemma) == ("keys", "key")


def test_subjects_that_are_joined_or_stand_behind_have_no_number_to_read():
    made = sentence("keys and coats are old", [4, 2, 0, 4, -1], ["nsubj", "cc", "conj", "cop", "root"])
    words = tuple(replace(each, feats={"Number": "Plur"}) for each in made.words)
    assert labels(document(replace(made, words=words)), "number") == {}
    made = sentence("are keys", [1, -1], ["cop", "root"])
    assert labels(document(made), "number") == {}


def test_an_antecedent_s_gender_is_read_before_the_pronoun():
    text = document(
        sentence("Anna met Tom", [1, -1, 1], ["nsubj", "root", "obj"], upos=["PROPN", "VERB", "PROPN"], name="one"),
        sentence("Then she left him", [2, 2, -1, 2], None, upos=["ADV", "PRON", "VERB", "PRON"], name="two"),
        mentions=[
            ("1", "person", 0, (0,), 0),
            ("2", "person", 0, (2,), 2),
            ("1", "person", 1, (1,), 1),
            ("2", "person", 1, (3,), 3),
        ],
    )
    found = labels(text, "gender", "antecedent", "entity")
    genders = {at: (each["gender"].value, each["gender"].carrier) for at, each in found.items() if "gender" in each}
    assert genders == {3: ("feminine", "anna"), 5: ("masculine", "tom")}
    names = {at: each["antecedent"].value for at, each in found.items() if "antecedent" in each}
    assert names == {4: "anna", 6: "tom"}
    assert not any(each["antecedent"].lemma for each in found.values() if "antecedent" in each)
    assert {at for at, each in found.items() if "entity" in each} == {0, 2, 4, 6}


def test_a_pronoun_that_nobody_was_named_for_has_no_antecedent():
    text = document(sentence("she left", upos=["PRON", "VERB"]), mentions=[("1", "person", 0, (0,), 0)])
    assert labels(text, "gender", "antecedent") == {}


def test_senses_are_of_one_lemma_have_no_carrier_and_hold_no_lemma_out():
    made = sentence("the bank near a bank", upos=["DET", "NOUN", "ADP", "DET", "NOUN"])
    words = list(made.words)
    words[1] = replace(words[1], lemma="bank", sense="money")
    words[4] = replace(words[4], lemma="bank", sense="river")
    text = document(replace(made, words=tuple(words)))
    found = labels(text, "sense:bank")
    assert {at: each["sense:bank"].value for at, each in found.items()} == {1: "money", 4: "river"}
    assert {(each["sense:bank"].carrier, each["sense:bank"].lemma) for each in found.values()} == {("", "")}
    assert "sense:bank" in features_in([text])


def test_what_documents_have_anything_of():
    assert features_in([document(keys())]) == ["upos", "deprel", "distance", "feats:Number", "number"]
    bare = replace(sentence("a"), words=(replace(sentence("a").words[0], upos="", deprel=""),))
    assert features_in([document(bare)]) == []


def test_an_unknown_feature_is_told_the_nearest():
    with pytest.raises(TaskError, match=r"feature 'uppos' is not a feature of a treebank; did you mean 'upos'"):
        labels(document(keys()), "uppos")


def test_a_real_treebank_has_as_many_as_its_columns(data_dir):
    path = data_dir / "gum" / "en_gum-ud-test.conllu"
    lines = [line.split("\t") for line in path.read_text().splitlines() if line[:1].isdigit()]
    words = [line for line in lines if line[0].isdigit()]
    tokenizer = word_level([line[1] for line in words])
    cutter, seen = Windows(tokenizer, 4096, both_sides=False), []
    for text in Corpus.of(path):
        for window in cutter.documents(text):
            found = labels_of(window, ["upos", "distance", "feats:Number"])
            seen += [each for at, each in found.items() if at >= window.first_query]
    assert len(seen) == len(words)
    assert sum("distance" in each for each in seen) == sum(line[6] != "0" for line in words)
    far = sum(abs(int(each["distance"].value)) for each in seen if "distance" in each)
    assert far == sum(abs(int(line[6]) - int(line[0])) for line in words if line[6] != "0")
    plural = sum(each["feats:Number"].value == "Plur" for each in seen if "feats:Number" in each)
    assert plural == sum("Number=Plur" in line[5] for line in words)
