"""Tasks of one's own: minimal pairs in lines of JSON, and Python files that make them."""

import json
import logging

import pytest

import interp
from interp.errors import NotCarriedError, TaskError
from interp.tasks.example import Example, MinimalPair, Span
from interp.tasks.readers.minimal_pairs import read_pairs

KEYS = {"prompt": "Some keys", "right": " are", "wrong": " is", "counterfactual": "Some key", "related": "keys"}
BOOKS = {"prompt": "Some books", "right": " are", "wrong": " is", "counterfactual": "Some book", "related": "books"}


@pytest.fixture(scope="module")
def tokenizer():
    return interp.load_model().tokenizer


def written(path, *records):
    path.write_text("".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in records))
    return path


def one(tmp_path, **fields):
    (pair,) = read_pairs(written(tmp_path / "pairs.jsonl", {**KEYS, **fields}))
    return pair


def loaded(path, tokenizer, **how):
    return interp.load_task(str(path), tokenizer=tokenizer, **how)


class TestLines:
    def test_the_shortest_line(self, tmp_path):
        record = {"prompt": "The sky is", "right": " blue", "wrong": " green"}
        (pair,) = read_pairs(written(tmp_path / "pairs.jsonl", record))
        assert pair == MinimalPair(Example("The sky is", " blue", " green", None, "all", ""), None, "line 1")

    def test_a_counterfactual_has_the_answers_the_other_way_round_and_the_words_at_the_same_places(self, tmp_path):
        pair = one(tmp_path, distractors={"first": "Some"})
        other = pair.counterfactual
        assert (other.prompt, other.right, other.wrong) == ("Some key", " is", " are")
        assert pair.item.relation.related.of(pair.item.text) == "keys"
        assert other.relation.related == other.relation.query == Span(5, 8)
        assert other.relation.distractors == {"first": Span(0, 4)}
        assert (pair.cluster, pair.swaps_answers) == ("keys", True)

    def test_a_counterfactual_may_say_otherwise(self, tmp_path):
        own = {"prompt": "A key there", "right": " was", "wrong": " were", "related": "key", "template": "there"}
        other = one(tmp_path, counterfactual=own).counterfactual
        assert (other.right, other.template, other.relation.related) == (" was", "there", Span(2, 5))
        own = {"prompt": "Some key there", "query": "key", "related": "key"}
        assert one(tmp_path, prompt="Some keys there", counterfactual=own).counterfactual.relation.query == Span(5, 8)

    def test_answers_are_sets_where_they_are_lists(self, tmp_path):
        pair = one(tmp_path, right=[" are", " were"])
        assert (pair.item.rights, pair.counterfactual.wrongs) == ((" are", " were"),) * 2

    @pytest.mark.parametrize(
        ("word", "span"), [("keys", (9, 13)), (["the", -1], (18, 21)), (["the", 0], (5, 8)), ([1, 4], (1, 4))]
    )
    def test_a_word_is_named_by_text_number_or_characters(self, tmp_path, word, span):
        pair = one(tmp_path, prompt="With the keys and the door", related=word, counterfactual=None)
        assert pair.item.relation.related == Span(*span)

    def test_a_query_may_be_a_word_of_the_answer(self, tmp_path):
        pair = one(tmp_path, right=" are here", wrong=" is here", query="here", counterfactual=None)
        assert pair.item.relation.query == Span(14, 18)

    def test_labels(self, tmp_path):
        said = {
            "template": "simple",
            "layout": "two",
            "features": {"number": "plural"},
            "cluster": 7,
            "relation": "subject",
        }
        pair = one(tmp_path, **said)
        item = pair.item
        assert (item.template, item.layout, item.features) == ("simple", "two", {"number": "plural"})
        assert (pair.cluster, item.relation.name, pair.counterfactual.layout) == ("7", "subject", "two")

    def test_several_counterfactuals_have_names(self, tmp_path):
        same = {"prompt": "Few keys", "right": " are", "wrong": " is"}
        pair = one(tmp_path, counterfactuals={"door": "Some door", "same": same})
        prompts = {name: each.prompt for name, each in pair.counterfactuals.items()}
        assert prompts == {"door": "Some door", "same": "Few keys"}
        assert pair.against("door").counterfactual.prompt == "Some door"

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("{", "expected a JSON object, got '{'"),
            ("[1]", r"expected a JSON object, got '\[1\]'"),
            ({"prompt": "a", "right": " b"}, "expected a field 'wrong', got 'prompt', 'right'"),
            ({**KEYS, "rihgt": " b"}, "no field is called 'rihgt'; .*right"),
            ({**KEYS, "prompt": ["a"]}, r"prompt: expected a text, got \['a'\]"),
            ({**KEYS, "right": 3}, "right: expected an answer as text"),
            ({**KEYS, "right": []}, "right: expected an answer as text"),
            ({**KEYS, "right": [" are", " are"]}, "expected different answers, got ' are' twice"),
            ({**KEYS, "template": None}, "template: expected a text, got None"),
            ({**KEYS, "related": "doors"}, "expected the word 'doors' in the text"),
            ({**KEYS, "related": ["keys", "x"]}, r"related: expected a word, \[WORD, WHICH\] or \[START, STOP\]"),
            ({**KEYS, "related": [3, 99]}, r"related: expected \[START, STOP\] within 13 characters, got \[3, 99\]"),
            ({**KEYS, "related": None, "query": "keys"}, "expected the word 'related' beside 'query'"),
            (
                {**KEYS, "counterfactual": "Some old key"},
                "expected as many words as in 'Some keys', got",
            ),
            ({**KEYS, "counterfactual": 3}, "counterfactual: expected a prompt, or an object with one, got 3"),
            ({**KEYS, "counterfactual": {"right": " is"}}, "counterfactual: expected a field 'prompt', got 'right'"),
            ({**KEYS, "counterfactuals": ["Some key"]}, "expected 'counterfactuals' by name"),
            ({**KEYS, "features": {"number": 3}}, "expected 'features' as {NAME: VALUE} in texts"),
            ({**KEYS, "cluster": ["a"]}, r"cluster: expected the name of a lexical draw, got \['a'\]"),
        ],
    )
    def test_a_broken_line_is_refused_by_its_number(self, tmp_path, line, said):
        with pytest.raises(TaskError, match=rf"pairs.jsonl, line 3: .*{said}"):
            list(read_pairs(written(tmp_path / "pairs.jsonl", KEYS, "\n", line)))

    def test_an_empty_file_is_refused(self, tmp_path, tokenizer):
        with pytest.raises(TaskError, match="expected one minimal pair a line, as a JSON object, got an empty file"):
            loaded(written(tmp_path / "pairs.jsonl"), tokenizer)
        with pytest.raises(TaskError, match=r"none.jsonl: expected minimal pairs, got no such file"):
            loaded(tmp_path / "none.jsonl", tokenizer)


class TestLoaded:
    def test_from_lines(self, tmp_path, tokenizer):
        path = written(tmp_path / "pairs.jsonl", KEYS, BOOKS)
        task = loaded(path, tokenizer)
        assert (task.name, task.metric, task.query, task.feature) == (
            str(path),
            "logit_difference",
            "predicting position",
            None,
        )
        assert [unit.cluster for unit in task.units] == ["keys", "books"]
        assert len(loaded(path, tokenizer, n=1).units) == 1

    def test_the_feature_is_what_all_examples_name(self, tmp_path, tokenizer):
        other = {"prompt": "Some key", "features": {"number": "singular"}}
        path = written(tmp_path / "pairs.jsonl", {**KEYS, "features": {"number": "plural"}, "counterfactual": other})
        assert loaded(path, tokenizer).feature == "number"

    def test_answers_of_several_tokens_are_scored_whole_which_is_said(self, tmp_path, tokenizer, caplog):
        path = written(tmp_path / "pairs.jsonl", KEYS, {**BOOKS, "right": " are here", "wrong": " is here"})
        with caplog.at_level(logging.WARNING):
            task = loaded(path, tokenizer)
        assert (task.metric, len(task.units)) == ("sentence_log_probability", 2)
        assert "1 of 2 pairs have answers of several tokens, so all are scored by sentence" in caplog.text
        task = loaded(path, tokenizer, metric="logit_difference")
        assert (task.metric, dict(task.dropped)) == ("logit_difference", {"answer of more than one token": 1})

    def test_answers_that_are_not_swapped_are_counted_once(self, tmp_path, tokenizer, caplog):
        kept = {**KEYS, "counterfactual": {"prompt": "Some key", "right": " are", "wrong": " is"}}
        with caplog.at_level(logging.WARNING):
            loaded(written(tmp_path / "pairs.jsonl", kept, BOOKS), tokenizer)
        (said,) = [each for each in caplog.messages if "swap" in each]
        assert "1 of 2 counterfactuals do not swap the right and the wrong answer ('Some keys': ' are'" in said
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            loaded(written(tmp_path / "pairs.jsonl", KEYS, BOOKS), tokenizer)
        assert not caplog.messages

    def test_of_several_counterfactuals_one_is_chosen_and_the_result_says_which(self, tmp_path, tokenizer):
        path = written(tmp_path / "pairs.jsonl", {**KEYS, "counterfactuals": {"door": "Some door"}}, BOOKS)
        task = loaded(f"{path}#door", tokenizer)
        assert [unit.counterfactual.example.prompt for unit in task.units] == ["Some door"]
        assert (task.counterfactual, dict(task.dropped)) == ("door", {"no counterfactual door": 1})
        result = interp.patch(interp.load_model(), task)
        assert result.provenance["counterfactual"] == "door"
        assert loaded(path, tokenizer).units[0].counterfactual.example.prompt == "Some key"
        with pytest.raises(TaskError, match=r"no pair has a counterfactual called 'dor'; .*door"):
            loaded(f"{path}#dor", tokenizer)
        with pytest.raises(TaskError, match="no pair has a counterfactual called 'x'; they have none with names"):
            loaded(f"{written(tmp_path / 'plain.jsonl', KEYS)}#x", tokenizer)

    def test_of_nothing_that_is_left_the_requirement_and_the_tokens_are_told(self, tmp_path, tokenizer):
        path = written(tmp_path / "pairs.jsonl", {**KEYS, "counterfactual": "Some walrus"})
        with pytest.raises(NotCarriedError, match=r"\(counterfactual of another length: 1\), such as 'Some keys'"):
            loaded(path, tokenizer)
        path = written(tmp_path / "pairs.jsonl", {**KEYS, "right": " are here"})
        with pytest.raises(NotCarriedError, match=r"answer of more than one token: 1\), such as ' are here': .* \+ "):
            loaded(path, tokenizer, metric="logit_difference")

    def test_a_file_has_no_splits(self, tmp_path, tokenizer):
        with pytest.raises(TaskError, match="a file has no splits, got split='select'"):
            loaded(written(tmp_path / "pairs.jsonl", KEYS), tokenizer, split="select")


PYTHON = """
import interp

def pair(noun):
    return interp.MinimalPair(
        interp.Example(f"Some {noun}s", " are", " is", None, "simple", ""),
        interp.Example(f"Some {noun}", " is", " are", None, "simple", ""),
        cluster=noun,
    )

PAIRS = [pair("key"), pair("book")]

def pairs():
    yield from PAIRS

def drawn(n=2, seed=0):
    return [pair(noun) for noun in ("key", "book", "dog")[seed:seed + n]]

def encoded(tokenizer):
    return interp.encode_task(PAIRS, tokenizer=tokenizer, name="own", description="Own.")

def failing():
    return 1 / 0

def nothing():
    return None

none = []

def texts():
    return ["Some keys"]
"""


class TestPython:
    @pytest.fixture
    def file(self, tmp_path):
        return written(tmp_path / "tasks.py", PYTHON)

    @pytest.mark.parametrize("name", ["PAIRS", "pairs", "drawn", "encoded"])
    def test_what_may_be_named(self, file, tokenizer, name):
        task = loaded(f"{file}:{name}", tokenizer)
        assert task.name == f"{file}:{name}"
        assert [unit.cluster for unit in task.units] == ["key", "book"]

    def test_the_files_hash_is_part_of_what_is_asked(self, file, tokenizer):
        first = interp.ablate(interp.load_model(), loaded(f"{file}:PAIRS", tokenizer), replacement="zero").provenance
        file.write_text(PYTHON + "\n# another\n")
        second = interp.ablate(interp.load_model(), loaded(f"{file}:PAIRS", tokenizer), replacement="zero").provenance
        assert first["data_hash"] == second["data_hash"]
        assert first["source_hash"] != second["source_hash"]

    def test_units_are_drawn_by_the_function_or_chosen(self, file, tokenizer):
        assert [unit.cluster for unit in loaded(f"{file}:drawn", tokenizer, n=1, seed=2).units] == ["dog"]
        assert len(loaded(f"{file}:pairs", tokenizer, n=1).units) == 1
        with pytest.raises(TaskError, match="n: expected none, since it makes a task and no pairs, got 1"):
            loaded(f"{file}:encoded", tokenizer, n=1)

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("pars", "expected a function or a list called 'pars', got none; .*PAIRS"),
            ("zzzz", "known are 'pair', 'PAIRS', 'pairs', 'drawn', 'encoded', 'failing', 'nothing', 'none', 'texts'$"),
            ("failing", "the file raised ZeroDivisionError in line [0-9]+: division by zero"),
            ("nothing", "expected minimal pairs or a task, got None"),
            ("texts", "expected minimal pairs .*, got 'Some keys'"),
        ],
    )
    def test_what_cannot_be_used_is_refused(self, file, tokenizer, name, said):
        with pytest.raises(TaskError, match=said):
            loaded(f"{file}:{name}", tokenizer)

    def test_a_file_that_makes_none_is_refused(self, file, tokenizer):
        with pytest.raises(TaskError, match="expected pairs to encode, got none"):
            loaded(f"{file}:none", tokenizer)

    def test_a_file_that_cannot_be_run_is_refused(self, tmp_path, tokenizer, monkeypatch):
        with pytest.raises(TaskError, match="the file raised SyntaxError in line 1"):
            loaded(f"{written(tmp_path / 'a.py', 'def (')}:pairs", tokenizer)
        monkeypatch.chdir(written(tmp_path / "d.py", "\n1 / 0").parent)
        with pytest.raises(TaskError, match="the file raised ZeroDivisionError in line 2: "):
            loaded("d.py:pairs", tokenizer)
        with pytest.raises(TaskError, match="the file raised SystemExit in line 1"):
            loaded(f"{written(tmp_path / 'b.py', 'raise SystemExit(3)')}:pairs", tokenizer)
        with pytest.raises(TaskError, match="expected a Python file, got no such file"):
            loaded(f"{tmp_path / 'c.py'}:pairs", tokenizer)
        with pytest.raises(TaskError, match=r"say what in it makes the pairs: .*b\.py:NAME"):
            loaded(tmp_path / "b.py", tokenizer)


@pytest.mark.unchecked
class TestExamples:
    """What is no text is refused when the example is made."""

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"prompt": ["The keys"]}, r"prompt: expected a text, got \['The keys'\]; give each example its own"),
            ({"right": [" are"]}, r"right: expected an answer as text, .* got \[' are'\]; give a tuple of texts where"),
            ({"wrong": None}, "wrong: expected an answer as text"),
            ({"wrong": ()}, "wrong: expected an answer as text"),
            ({"wrong": ""}, "wrong: expected an answer as text"),
            ({"template": None}, "template: expected a text, got None"),
            ({"layout": 3}, "layout: expected a text, got 3"),
            ({"wrong": (" are", " is")}, "expected different answers, got ' are' twice for 'The keys'"),
        ],
    )
    def test_refused(self, change, said):
        fields = {"prompt": "The keys", "right": " are", "wrong": " is", "template": "t", "layout": ""} | change
        with pytest.raises(TaskError, match=said):
            Example(**fields, relation=None)

    def test_a_pair_of_something_else(self):
        item = Example("The keys", " are", " is", None, "t", "")
        with pytest.raises(TaskError, match=r"counterfactual: expected an interp.Example, got 'The key'"):
            MinimalPair(item, "The key", "key")
        with pytest.raises(TaskError, match=r"door: expected an interp.Example, got None"):
            MinimalPair(item, None, "key", {"door": None})
