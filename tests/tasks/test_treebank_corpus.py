"""What counts as a corpus, what its documents are called, and what is in it."""

from dataclasses import replace

import datasets
import pytest
from banks import document, sentence
from conllu_text import PLAIN, rows

from interp.errors import TaskError
from interp.tasks.corpus import Corpus
from interp.tasks.example import Span
from interp.tasks.relations import Direction
from interp.tasks.treebank import Sentence, Word


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "bank.conllu"
    path.write_text(PLAIN)
    return path


OWN = document(sentence("a b", [1, -1]), name="own")


def names(given):
    return [each.id for each in Corpus.of(given)]


def test_a_corpus_is_a_file_a_document_or_several_of_them(path):
    for one in (path, str(path), [path], (str(path),)):
        assert names(one) == ["one", "two"]
    assert names(OWN) == names([OWN]) == ["own"]
    assert names([OWN, path, document(sentence("c"), name="last")]) == ["own", "one", "two", "last"]
    corpus = Corpus.of([path, OWN])
    assert Corpus.of(corpus) is corpus
    assert list(corpus) == list(corpus), "it can be read again"


def test_a_data_set_of_the_hub(tmp_path):
    row = {"idx": "s", "tokens": ["a", "b"], "head": ["2", "0"], "deprel": ["dep", "root"]}
    datasets.Dataset.from_list([row, row | {"idx": "t"}, row]).to_parquet(tmp_path / "train.parquet")
    corpus = Corpus.of([f"hub:{tmp_path}", OWN])
    assert [each.id for each in corpus] == ["s", "t", "s (1)", "own"]
    assert corpus.contents.documents == {"s": 2, "t": 2, "s (1)": 2, "own": 2}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (iter([OWN]), "expected files in CoNLL-U, or a list of documents, which can be read twice, got <list_it"),
        ((each for each in [OWN]), "which can be read twice, got <generator"),
        ([], "corpus: got nothing"),
        ([OWN, 3], "corpus: expected paths or documents, got 3"),
        ([[OWN]], r"corpus: expected paths or documents, got \[Document"),
        (3, "corpus: expected files in CoNLL-U, or a list of documents, which can be read twice, got 3; give the pa"),
    ],
)
def test_what_is_no_corpus_is_refused(given, says):
    with pytest.raises(TaskError, match=says):
        Corpus.of(given)


def test_a_missing_file_is_found_out_when_it_is_read(path, tmp_path):
    corpus = Corpus.of([path, tmp_path / "none.conllu"])
    reading = iter(corpus)
    assert [next(reading).id, next(reading).id] == ["one", "two"]
    with pytest.raises(TaskError, match=r"none\.conllu: expected a CoNLL-U file, got no such file"):
        next(reading)


def test_documents_of_the_same_name_are_told_apart(path, tmp_path):
    other = tmp_path / "other.conllu"
    other.write_text(PLAIN)
    assert names([path, other]) == ["one", "two", "one (2)", "two (2)"]
    texts = [[one.text for one in each.sentences] for each in Corpus.of([path, other])]
    assert texts[:2] == texts[2:] == [["Mary didn't see the dogs.", "She ran"], ["Go"]]


def test_a_name_that_a_file_has_thrice_or_as_if_it_were_numbered(tmp_path):
    path = tmp_path / "bank.conllu"
    path.write_text("".join(f"# newdoc id = {each}\n{rows(0)}" for each in ("a", "a (1)", "a", "a")))
    found = names(path)
    assert found == ["a", "a (1)", "a (2)", "a (3)"]
    assert len(Corpus.of(path).contents.documents) == 4


def test_a_file_that_changes_after_it_was_counted_is_refused(path):
    corpus = Corpus.of([path, OWN])
    assert list(corpus.contents.documents) == [each.id for each in corpus]
    shorter, longer = PLAIN[: PLAIN.index("# newdoc id = two")], f"{PLAIN}\n# newdoc id = three\n{rows(0)}"
    relabelled = PLAIN.replace("nsubj", "obj")
    assert relabelled != PLAIN
    for text, name in ((shorter, "two"), (longer, "three"), (PLAIN.replace("one", "1"), "1"), (relabelled, "one")):
        path.write_text(text)
        with pytest.raises(TaskError, match=f"^{name}: the corpus has changed since its documents were counted"):
            list(corpus)
    path.write_text(PLAIN)
    assert len(list(corpus)) == 3


def test_contents(path):
    there = Corpus.of([path, document(sentence("a b c", [1, -1, 1], ["nsubj", "root", "punct"]))]).contents
    assert there.documents == {"one": 9, "two": 1, "d": 3}
    assert (there.n_sentences, there.n_mentions) == (4, 3)
    # nsubj: Mary and She in the file, a in the document
    assert there.relations[Direction("nsubj", "dependent to head")] == 3
    assert there.relations[Direction("nsubj", "head to dependent")] == 3
    assert there.relations[Direction("punct", "dependent to head")] == 2
    assert there.relations[Direction("coref", "anaphor to antecedent")] == 1
    assert Direction("root", "dependent to head") not in there.relations


def test_the_hash_is_of_what_is_read(path, tmp_path):
    corpus = Corpus.of(path)
    own = corpus.contents.hash
    assert own == corpus.contents.hash == Corpus.of(list(corpus)).contents.hash
    other = tmp_path / "other.conllu"
    changes = {
        "head": ("6\tdet", "4\tdet"),
        "relation": ("6\tdet", "6\tcase"),
        "part of speech": ("see\tVERB", "see\tNOUN"),
        "text": ("Mary didn't see the dogs", "Mary  didn't see the dogs"),
        "entity": ("Entity=(2-animal", "Entity=(2-person"),
        "document": ("newdoc id = two", "newdoc id = three"),
    }
    found = {own}
    for what, (before, after) in changes.items():
        assert PLAIN.count(before) == 1
        other.write_text(PLAIN.replace(before, after))
        assert Corpus.of(other).contents.hash not in found, what
        found.add(Corpus.of(other).contents.hash)


def test_links_count():
    linked = replace(OWN, sentences=(sentence("a b", [1, -1], links=[("agrees", 1, 0)]),))
    there, without = Corpus.of(linked).contents, Corpus.of(OWN).contents
    assert there.relations[Direction("agrees", "query to related")] == 1
    assert there.hash != without.hash


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: sentence("a b", [1, 2]), "s: word 1 has the head 2, expected 0 to 1"),
        (lambda: sentence("a b", [-2, 0]), "s: word 0 has the head -2"),
        (lambda: sentence("a b", links=[("x", 0, 2)]), "names no word of the sentence, expected 0 to 1"),
        (lambda: Sentence("s", "a", (Word("a", Span(0, 2)),)), "expected characters of 'a'"),
        (lambda: Sentence("s", "a", (Word("a", Span(1, 1)),)), "expected characters of 'a'"),
        (lambda: document(sentence("a"), mentions=[("1", "", 1, (0,), 0)]), "d: Mention.* is not there"),
        (lambda: document(sentence("a"), mentions=[("1", "", 0, (0, 1), 0)]), "d: Mention.* is not there"),
    ],
)
def test_what_stands_nowhere_is_refused(build, says):
    with pytest.raises(TaskError, match=says):
        build()
