import json
from collections import Counter
from pathlib import Path

import pytest

from interp.errors import InputError, TaskError
from interp.model.loading import load_model
from interp.tasks import catalogue
from interp.tasks.catalogue import FILE_TASKS, FileTask, list_tasks, load_task
from interp.tasks.drawing import ALONE
from interp.tasks.encoding import TaskRequest
from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.lexicon import english
from interp.tasks.readers.blimp import read_blimp
from recipes.tokenizer import build_tokenizer

GRAMMAR = ["agreement", "coreference", "reflexive", "ioi", "induction"]
ENGLISH = ["relative_clause", "gendered_pronoun", "successor", "capitals", "greater_than", "retrieval"]
PARADIGM = "distractor_agreement_relational_noun"
TWO_PREFIX = "regular_plural_subject_verb_agreement_2"


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(english().words())


@pytest.fixture
def with_data(data_dir, monkeypatch):
    monkeypatch.setenv("INTERP_DATA", str(data_dir))


@pytest.fixture
def few_references(monkeypatch):
    """Drawing a hundred pairs takes seconds under run-time type checks."""
    monkeypatch.setattr(catalogue, "REFERENCES", 100)


def test_the_list_says_what_each_task_is():
    tasks = list_tasks()
    assert list(tasks.columns) == ["name", "description", "query", "metric", "feature"]
    files = ["blimp", "winobias", "winogender", "agreement", "coreference", "anaphora"]
    assert list(tasks["name"]) == [*GRAMMAR, *ENGLISH, *(f"{name}:PATH" for name in files)]
    assert list(tasks["query"]) == ["predicting position"] * 12 + ["later word"] * 2 + ["predicting position"] * 3
    assert (tasks["metric"] == "logit_difference").tolist() == [True] * 11 + [False] * 3 + [True] * 3
    probed = tasks.dropna(subset="feature").set_index("name")["feature"]
    assert probed.to_dict() == {
        **{"agreement": "number", "coreference": "gender", "reflexive": "gender"},
        **{"relative_clause": "number", "gendered_pronoun": "gender"},
        **{"agreement:PATH": "number", "coreference:PATH": "gender", "anaphora:PATH": "number"},
    }
    for description in tasks["description"]:
        assert description.endswith(".")
        assert description.count(".") == 1


LICENCE = str(Path(__file__).parents[2] / "LICENSE")


@pytest.mark.usefixtures("few_references")
@pytest.mark.parametrize("name", GRAMMAR)
def test_a_generated_task_is_carried_whole_by_the_project_s_tokenizer(tokenizer, name):
    task = load_task(name, n=16, tokenizer=tokenizer, n_ctx=64)
    assert task.dropped == {}
    assert task.coverage == {}
    assert len(task.units) == 16
    assert len(task.examples) == 32
    assert {unit.fold for unit in task.units} == {0}
    (references,) = task.references
    assert len(references) == catalogue.REFERENCES
    assert not {unit.item.prompt for unit in references} & {unit.item.prompt for unit in task.units}
    assert (task.name, task.metric, task.query) == (name, "logit_difference", "predicting position")
    assert task.description in set(list_tasks()["description"])
    for encoded in task.examples:
        assert encoded.query == encoded.critical
        assert encoded.related


@pytest.mark.usefixtures("few_references")
@pytest.mark.parametrize("name", GRAMMAR)
def test_the_seed_decides_the_task(tokenizer, name):
    hashes = [load_task(name, n=4, seed=seed, tokenizer=tokenizer).hash for seed in (0, 0, 1)]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.usefixtures("few_references")
def test_splits_share_no_prompt(tokenizer):
    prompts = [
        {each.prompt for each in load_task("agreement", n=12, tokenizer=tokenizer, split=split).examples}
        for split in ("test", "select", "train")
    ]
    assert not prompts[0] & prompts[1]
    assert not prompts[0] & prompts[2]


@pytest.mark.parametrize(("n", "units"), [(None, 200), (8, 8)])
def test_how_many_pairs_are_drawn(tokenizer, monkeypatch, n, units):
    drawn = Counter()

    def pairs(n, *, seed, split="test", fits=None):
        prompt = "The boy" if split == "test" else "The girl"
        for _ in range(n):
            drawn[seed, split] += 1
            yield MinimalPair(Example(prompt, " likes", " like", None, "t", ""), None, "boy")

    info = catalogue.TaskInfo("one", "One.")
    monkeypatch.setitem(catalogue._GENERATED, "one", (pairs, info))
    assert len(load_task("one", n=n, seed=3, tokenizer=tokenizer).units) == units
    assert drawn == {(3, "test"): units, (3, "reference"): catalogue.REFERENCES}


def test_a_file_is_used_whole_and_says_what_is_covered(tokenizer, data_dir):
    path = data_dir / "blimp" / f"{PARADIGM}.jsonl"
    task = load_task(f"blimp:{path}", tokenizer=tokenizer, n_ctx=64)
    assert len(task.units) + sum(task.dropped.values()) == 1000
    assert len(task.units) >= 990
    assert task.metric == "sentence_log_probability"
    assert set(task.coverage) == {"known words", "related word tagged", "counterfactual"}
    assert task.coverage["known words"] >= 80
    assert abs(len(task.references[0]) - len(task.references[1])) <= 1
    assert sum(map(len, task.references)) == len(task.units)
    assert sum(unit.counterfactual is not None for unit in task.units) >= 700
    for unit in task.units:
        assert unit not in task.references[unit.fold]


@pytest.mark.usefixtures("with_data")
def test_a_paradigm_s_name_finds_its_file(tokenizer, data_dir):
    named = load_task(f"blimp:{PARADIGM}", n=20, tokenizer=tokenizer)
    given = load_task(f"blimp:{data_dir}/blimp/{PARADIGM}.jsonl", n=20, tokenizer=tokenizer)
    assert named.hash == given.hash
    assert (named.name, len(named.units)) == (f"blimp:{PARADIGM}", 20)


def test_a_data_set_of_the_hub_in_place_of_a_path(tokenizer, data_dir, tmp_path):
    """A local folder stands for one."""
    path = data_dir / "blimp" / f"{PARADIGM}.jsonl"
    (tmp_path / "train.jsonl").write_text("".join(path.open(encoding="utf-8").readlines()[:40]), encoding="utf-8")
    ours = load_task(f"blimp:hub:{tmp_path}::train", tokenizer=tokenizer)
    file = load_task(f"blimp:{tmp_path}/train.jsonl", tokenizer=tokenizer)
    assert ours.hash == file.hash
    assert ours.name == f"blimp:hub:{tmp_path}::train"


def test_a_further_task_of_a_file_is_one_row(tokenizer, tmp_path, monkeypatch):
    """Of another prefix, with a loader of its own; without a folder, a name is never looked up."""
    asked = []
    info = catalogue.TaskInfo("verses:PATH", "One.", metric="sentence_log_probability")
    pairs = [MinimalPair(Example("The boy", " likes it", " like it", None, "t", ""), None, "boy")]
    row = FileTask(info, lambda request: asked.append(request) or request.encode(pairs, {"all": 100.0}))
    monkeypatch.setitem(FILE_TASKS, "verses", row)
    task = load_task("verses:some.file", tokenizer=tokenizer, n=3, seed=4, n_ctx=9, known_words_only=True)
    options = {"n": 3, "seed": 4, "n_ctx": 9, "known_words_only": True}
    assert asked == [TaskRequest("verses:some.file", info, tokenizer, info.metric, Path("some.file"), **options)]
    assert (task.name, task.description, task.metric) == ("verses:some.file", "One.", "sentence_log_probability")
    assert task.coverage == {"all": 100}
    assert "verses:PATH" in set(list_tasks()["name"])


@pytest.fixture
def small_file(tmp_path):
    """Sixty items, a third of them with an unknown word."""
    path = tmp_path / "small.jsonl"
    nouns = [noun.plural for noun in english().nouns if " " not in noun.plural][:40]
    nouns += [f"zork{letter}s" for letter in "abcdefghijklmnopqrst"]
    record = {"UID": "small", "linguistics_term": "binding", "one_prefix_method": False}
    with path.open("w") as file:
        for i, noun in enumerate(nouns):
            sentences = {"sentence_good": f"The {noun} are here.", "sentence_bad": f"The {noun} is here."}
            file.write(json.dumps(record | sentences | {"pairID": str(i)}) + "\n")
    return f"blimp:{path}"


def test_a_sample_of_a_file_is_seeded_and_in_its_order(tokenizer, small_file):
    whole = [unit.item.example for unit in load_task(small_file, tokenizer=tokenizer).units]
    samples = [
        [unit.item.example for unit in load_task(small_file, n=20, seed=seed, tokenizer=tokenizer).units]
        for seed in (0, 0, 1)
    ]
    assert len(whole) == 60
    assert samples[0] == samples[1] != samples[2]
    places = [whole.index(example) for example in samples[0]]
    assert places == sorted(set(places))
    assert places[-1] > 30
    assert len(load_task(small_file, n=61, tokenizer=tokenizer).units) == 60


def test_known_words_only_keeps_just_those(tokenizer, small_file):
    assert load_task(small_file, tokenizer=tokenizer).coverage["known words"] == pytest.approx(100 * 40 / 60)
    known = load_task(small_file, tokenizer=tokenizer, known_words_only=True)
    assert known.coverage["known words"] == 100
    assert len(known.units) == 40
    assert not any("zork" in unit.item.example.text for unit in known.units)


@pytest.mark.usefixtures("with_data")
def test_one_prefix_files_also_have_a_logit_difference(tokenizer):
    task = load_task("blimp:anaphor_gender_agreement", n=50, metric="logit_difference", tokenizer=tokenizer)
    assert task.metric == "logit_difference"
    for encoded in task.examples:
        assert len(encoded.right) == len(encoded.wrong) == 1
        assert encoded.query == encoded.critical
    with pytest.raises(TaskError, match="logit_difference needs a critical word after a shared prefix"):
        load_task(f"blimp:{TWO_PREFIX}", n=50, metric="logit_difference", tokenizer=tokenizer)


@pytest.mark.parametrize("paradigm", ["animate_subject_trans", "coordinate_structure_constraint_complex_left_branch"])
def test_a_paradigm_with_space_before_its_words_is_used_or_counted(tokenizer, data_dir, paradigm):
    task = load_task(f"blimp:{data_dir}/blimp_rest/{paradigm}.jsonl", tokenizer=tokenizer)
    assert len(task.units) + sum(task.dropped.values()) == 1000
    assert len(task.units) > 900


@pytest.mark.usefixtures("with_data")
def test_identical_sentences_are_left_out_and_counted(tokenizer, data_dir):
    """The published file has two items whose sentences do not differ."""
    items = list(read_blimp(data_dir / "blimp" / "passive_1.jsonl"))
    identical = sum(item.good == item.bad for item in items)
    dropped = load_task("blimp:passive_1", tokenizer=tokenizer).dropped
    assert identical > 0
    assert dropped == {"right and wrong are the same token": identical}


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("agrement", {}, "unknown task 'agrement'; did you mean 'agreement'"),
        ("zzz", {}, "unknown task 'zzz'; known are 'agreement'"),
        ("agreement,ioi", {}, "unknown task 'agreement,ioi'; several tasks are named one by one"),
        (LICENCE, {}, f"to read the file, say as what: blimp:{LICENCE}, winobias:{LICENCE}"),
        (__file__, {}, f"to run the file, say what in it makes the pairs: {__file__}:NAME"),
        ("agreement", {"n": 0}, "n: expected a whole number of at least 1, got 0"),
        ("agreement", {"n": -3}, "n: expected a whole number of at least 1, got -3"),
        ("agreement", {"seed": -1}, "seed: expected a whole number from 0 to 2**63 - 1, got -1"),
        ("agreement", {"seed": True}, "seed: expected a whole number from 0 to 2**63 - 1, got True"),
        ("agreement", {"tokenizer": None}, "expected a transformers fast tokenizer, got NoneType"),
        ("agreement", {"split": "reference"}, "the split 'reference' gives the replacement values"),
        ("agreement", {"n": 2, "n_ctx": 3}, "none of the 2 pairs (longer than the context: 2)"),
        ("blimp:", {}, "'blimp:' names no file"),
        ("blimp:./none.jsonl", {}, "none.jsonl: expected a BLiMP file, got no such file"),
        ("blimp:none/at_all", {}, "at_all: expected a BLiMP file, got no such file"),
        ("blimp:x.jsonl", {"split": "train"}, "a file has no splits, got split='train'"),
        ("winobias:x", {"split": "train"}, "a file has no splits, got split='train'"),
        ("winogender:", {}, "'winogender:' names no file; expected winogender:PATH with a file's path"),
        ("winobais:x.txt", {}, "unknown task 'winobais:x.txt'; did you mean 'winobias:PATH'"),
        ("agreement:x.txt", {}, "x.txt: expected a CoNLL-U file, got no such file"),
        ("reflexive:x.txt", {}, "unknown task 'reflexive:x.txt'; did you mean 'reflexive'"),
    ],
)
@pytest.mark.usefixtures("few_references")
def test_what_cannot_be_loaded_is_one_clear_line(tokenizer, name, options, says):
    with pytest.raises(InputError if "seed" in options else TaskError) as raised:
        load_task(name, **{"tokenizer": tokenizer, **options})
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_paradigm_that_is_not_there_says_where_it_was_sought(tokenizer, tmp_path, monkeypatch):
    monkeypatch.delenv("INTERP_DATA", raising=False)
    with pytest.raises(TaskError, match="INTERP_DATA is not set"):
        load_task("blimp:passive", tokenizer=tokenizer)
    monkeypatch.setenv("INTERP_DATA", str(tmp_path))
    with pytest.raises(TaskError, match=r"the folder comes from INTERP_DATA.; the folder has no .jsonl files"):
        load_task("blimp:passive", tokenizer=tokenizer)
    (tmp_path / "blimp").mkdir()
    Path(tmp_path / "blimp" / "passive_1.jsonl").touch()
    with pytest.raises(TaskError, match="did you mean 'passive_1'"):
        load_task("blimp:passive", tokenizer=tokenizer)
    for name in ("passive_1", "passive_1.jsonl"):
        with pytest.raises(TaskError, match=f"{tmp_path}.*: expected .*, got an empty file"):
            load_task(f"blimp:{name}", tokenizer=tokenizer)


@pytest.mark.usefixtures("few_references")
def test_pairs_of_unequal_length_are_kept_where_that_is_asked_for():
    """The tokenizer of real English splits some nouns of the generator in one number only."""
    tokenizer = load_model("books").tokenizer
    whole = load_task("coreference", n=20, tokenizer=tokenizer, unequal_lengths=True)
    replaced = load_task("coreference", n=20, tokenizer=tokenizer)
    assert len(whole.units) == len(replaced.units) == 20
    assert set(whole.dropped) <= {ALONE}  # there are few references
    assert set(replaced.dropped) - {ALONE} == {"counterfactual of another length"}
    lengths = [[{len(each.prompt) for each in unit.examples} for unit in task.units] for task in (whole, replaced)]
    assert any(len(each) == 2 for each in lengths[0])
    assert all(len(each) == 1 for each in lengths[1])
