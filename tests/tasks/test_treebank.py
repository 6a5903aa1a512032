import pytest
from banks import document, sentence

from interp.errors import TaskError
from interp.tasks.example import Span
from interp.tasks.treebank import Sentence, Word


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
