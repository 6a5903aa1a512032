"""What was once found in malformed files of examples: tracebacks of others, and lines that take a day to refuse."""

import json

import pytest
from cases import assert_plain, bounded
from test_task_files import PAIR, TOKENIZER

from interp.errors import LONGEST, InterpError, TaskError, shown
from interp.tasks.catalogue import load_task
from interp.tasks.encoding import encode_task
from interp.tasks.example import Example, MinimalPair
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.readers.winobias import read_winobias

LINE = "{}\t{}\t_\tX\t_\t_\t{}\t{}\t_\t{}\n"


def words(n, *, head=lambda number: number - 1, misc=lambda _number: "_"):
    return "".join(
        LINE.format(number, "a", head(number), "dep" if head(number) else "root", misc(number))
        for number in range(1, n + 1)
    )


def read(tmp_path, text, reader=read_conllu):
    (tmp_path / "file").write_text(text)
    with bounded(5):
        return list(reader(tmp_path / "file"))


def refused(tmp_path, text, message, reader=read_conllu):
    with pytest.raises(TaskError, match=message) as raised:
        read(tmp_path, text, reader)
    assert_plain(str(raised.value))


class TestTreebanks:
    @pytest.mark.parametrize("column", [0, 6])
    def test_a_number_of_thousands_of_digits(self, tmp_path, column):
        fields = words(1).rstrip("\n").split("\t")
        fields[column] = "9" * 5_000
        refused(tmp_path, "\t".join(fields) + "\n", "line 1: expected CoNLL-U, got '.*\\.\\.\\.' .*4300 digits")

    def test_an_empty_column(self, tmp_path):
        refused(tmp_path, words(1)[:-2], "line 1: expected '_' where there is nothing, got an empty column 10")

    def test_a_word_without_a_number(self, tmp_path):
        refused(tmp_path, "_" + words(1)[1:], "line 1: expected a word's number in the first column, got '_'")

    def test_heads_in_a_long_chain(self, tmp_path):
        (document,) = read(tmp_path, words(20_000))
        assert document.sentences[0].words[-1].head == 19_998

    def test_a_long_circle(self, tmp_path):
        n = 20_000
        refused(tmp_path, words(n, head=lambda number: (number - 2) % n + 1), "line 1: .*back to word 1")

    def test_a_long_multiword_token(self, tmp_path):
        n = 20_000
        line = f"1-{n}\t{'a' * n}" + "\t_" * 8 + "\n"
        (document,) = read(tmp_path, line + words(n))
        assert document.sentences[0].words[-1].span.stop == n

    def test_no_brackets_in_a_long_entity(self, tmp_path):
        refused(tmp_path, words(1, misc=lambda _: "Entity=" + "a" * 200_000), "line 1: expected brackets such as")

    def test_thousands_of_open_brackets(self, tmp_path):
        n = 20_000
        opened, closed = ("".join(form.format(number) for number in range(n)) for form in ("({}-a", "{})"))
        (document,) = read(tmp_path, words(2, misc=lambda number: "Entity=" + (opened, closed)[number - 1]))
        assert len(document.mentions) == n

    def test_mentions_that_nest_a_thousandfold(self, tmp_path):
        n = 2_000
        nested = words(n, misc=lambda number: f"Entity=({number}-a" + (")" if number == n else ""))
        closing = "".join(f"{number})" for number in range(1, n))
        refused(tmp_path, nested.rstrip("\n") + closing + "\n", "expected mentions of at most 1,000,000 words")


class TestWinoBias:
    def test_a_bracket_before_thousands_of_spaces(self, tmp_path):
        refused(tmp_path, "1 [" + " " * 20_000 + "a\n", "expected brackets that open", read_winobias)

    def test_spaces_between_words(self, tmp_path):
        refused(tmp_path, "1 a" + " " * 50_000 + "b\n", "expected one person", read_winobias)

    @pytest.mark.parametrize("line", ["", "1", "x The cook", "²  The cook", "1The cook"])
    def test_no_number_and_sentence(self, tmp_path, line):
        refused(tmp_path, line + "\nx\n", "line [12]: expected a number and a sentence", read_winobias)


class TestHalfCharacters:
    """JSON can write down what is no Unicode; Rust's tokenizers then raise a ``TypeError``."""

    @pytest.mark.parametrize("key", ["sentence_bad", "UID", "linguistics_term"])
    def test_in_a_minimal_pair(self, tmp_path, key):
        path = tmp_path / "pairs.jsonl"
        path.write_text(json.dumps(PAIR | {"one_prefix_method": False, key: "\ud800"}))
        with pytest.raises(TaskError, match=f"line 1: expected Unicode text for '{key}', got half of a surrogate"):
            load_task(f"blimp:{path}", tokenizer=TOKENIZER)

    def test_in_an_example_of_ones_own(self):
        pair = MinimalPair(Example("The keys", " \ud800", " is", None, "a", "a"), None, "a")
        with pytest.raises(TaskError, match="expected Unicode text, got half of a surrogate pair"):
            encode_task([pair], tokenizer=TOKENIZER, name="a", description="a", metric="logit_difference")


class TestMessages:
    def test_a_long_one_keeps_its_beginning_and_its_end(self):
        message = str(TaskError("begin" + "a" * 10_000 + "do this"))
        assert len(message) <= LONGEST + len(" ... ")
        assert message.startswith("begin")
        assert message.endswith("do this")

    def test_what_is_no_unicode_is_escaped(self):
        assert str(InterpError("lat\udce4")) == "lat\\udce4"

    def test_values_that_python_does_not_write_out(self):
        deep = []
        for _ in range(100_000):
            deep = [deep]
        assert shown(deep) == "[[[[...]]]]"
        assert shown(10**5_000) == "a number of 16610 bits"
        assert len(shown("a" * 1_000)) == 80
        assert shown({"b": [1], "a": None}) == "{'b': [1], 'a': None}"
        assert shown({at: {0: {0: {0: 0}}} for at in range(9)}).startswith("{0: {0: {0: {...}}}, 1: ")

    def test_lists_that_share_what_is_in_them(self):
        shared = []
        for _ in range(100):
            shared = [shared] * 9
        with bounded(1):
            assert len(shown(shared)) < 200
