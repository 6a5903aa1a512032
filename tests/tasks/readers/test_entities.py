import pytest

from interp.errors import TaskError
from interp.tasks.example import Span
from interp.tasks.readers.conllu_sentence import Node, ParsedSentence, head_of, mentions_of
from interp.tasks.treebank import ROOT, Sentence, Word


def words(*heads):
    return tuple(Word(f"w{at}", Span(2 * at, 2 * at + 1), head=head) for at, head in enumerate(heads))


def mentions(*brackets, heads=None, fields=("eid", "etype")):
    said = [(("Entity", each),) if each else () for each in brackets]
    tree = words(*(heads or [ROOT] * len(brackets)))
    nodes = [Node("here", at, word, None, misc) for at, (word, misc) in enumerate(zip(tree, said, strict=True), 1)]
    sentence = Sentence("s", "w " * len(brackets), tree)
    found = mentions_of(ParsedSentence("s", nodes, {}, sentence), 0, fields)
    return [(each.entity, each.type, each.words, each.head) for each in found]


def test_mentions_of_one_word_and_of_several():
    assert mentions("(1-person)", "(2-place", "2)", heads=[1, ROOT, 1]) == [
        ("1", "person", (0,), 0),
        ("2", "place", (1, 2), 1),
    ]


def test_mentions_nest_and_close_in_one_place():
    assert mentions("(1-a(2-b", "(3-c)", "2)1)", heads=[1, 2, ROOT]) == [
        ("1", "a", (0, 1, 2), 2),
        ("2", "b", (0, 1, 2), 2),
        ("3", "c", (1,), 1),
    ]


def test_mentions_may_cross():
    assert mentions("(1-a", "(2-b", "1)", "2)", heads=[ROOT, 0, 0, 0]) == [
        ("1", "a", (0, 1, 2), 0),
        ("2", "b", (1, 2, 3), 1),
    ]


def test_an_entity_within_itself():
    """Its closing bracket is that of the mention that was opened last."""
    assert mentions("(1-a", "(1-a", "1)", "1)", heads=[ROOT, 0, 0, 0]) == [
        ("1", "a", (0, 1, 2, 3), 0),
        ("1", "a", (1, 2), 1),
    ]


def test_the_first_part_says_the_type():
    assert mentions("(7[1/2]-person)", None, "(7[2/2])", heads=[ROOT, 0, 0]) == [("7", "person", (0, 2), 0)]


def test_the_file_names_the_fields():
    assert mentions("(9-new-4-event)", fields=("GRP", "infstat", "minspan", "etype")) == [("9", "event", (0,), 0)]
    assert mentions("(9)") == [("9", "", (0,), 0)]


@pytest.mark.parametrize(
    ("brackets", "says"),
    [
        (("1)",), "expected an opening bracket of entity '1' before its closing one"),
        (("(1-a", None), "expected a closing bracket for entity '1' before the sentence ends"),
        (("person",), "expected brackets such as '(7-person' and '7)' in Entity, got 'person'"),
        (("()",), "expected brackets"),
        (("(7[1/2]-person)",), "expected 2 parts of the discontinuous entity '7', got fewer"),
    ],
)
def test_what_cannot_be_right(brackets, says):
    with pytest.raises(TaskError, match="here: ") as raised:
        mentions(*brackets)
    assert says in str(raised.value)


def test_the_head_is_the_word_whose_head_stands_outside():
    assert head_of((1, 2, 3), words(ROOT, 2, 0, 2)) == 2
    assert head_of((1, 2), words(ROOT, 0, 0)) == 1, "the first of several"
