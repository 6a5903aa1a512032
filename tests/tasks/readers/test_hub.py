"""Data sets of the hub, stood for by local folders that `datasets` reads: the same code, without a network."""

import io
import json
import subprocess
import sys

import datasets
import pytest

from analyses.coreference_heads.gap_reader import read_gap
from interp.errors import TaskError
from interp.tasks.readers.blimp import read_blimp
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.readers.sources import DEEPEST, ShallowJson, hub_items, is_hub
from interp.tasks.readers.winobias import read_winobias

BLIMP_ON_THE_HUB = {
    "sentence_good": "The keys are on the table.",
    "sentence_bad": "The keys is on the table.",
    "linguistics_term": "subject_verb_agreement",
    "UID": "keys",
    "one_prefix_method": True,
    "two_prefix_method": False,
    "lexically_identical": False,
    "pair_id": 7,
}
BLANK = BLIMP_ON_THE_HUB | {"sentence_good": " "}
GAP_ON_THE_HUB = {
    **{"ID": "test-1", "Text": "Zoë Ray met Ann Lee. Her dog barked.", "Pronoun": "Her", "Pronoun-offset": 21},
    **{"A": "Zoë Ray", "A-offset": 0, "A-coref": False, "B": "Ann Lee", "B-offset": 12, "B-coref": True},
    "URL": "http://example.org/Ann_Lee",
}


@pytest.fixture
def no_network(monkeypatch):
    """`datasets` as it fails where the hub cannot be reached."""

    def load_dataset(*_args, **_options):
        raise ConnectionError("Couldn't reach 'nobody/nothing' on the Hub\nand more")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)


def test_blimp_s_rows_are_whole_sentences(save):
    (item,) = read_blimp(save(train=[BLIMP_ON_THE_HUB]))
    assert (item.uid, item.pair_id, item.phenomenon) == ("keys", "7", "subject_verb_agreement")
    assert (item.good, item.bad) == (BLIMP_ON_THE_HUB["sentence_good"], BLIMP_ON_THE_HUB["sentence_bad"])
    assert (item.prefix, item.word_good, item.word_bad) == (None, None, None)


def test_blimp_s_own_files_keep_their_prefixes(data_dir, tmp_path):
    path = data_dir / "blimp" / "anaphor_gender_agreement.jsonl"
    (tmp_path / "train.jsonl").write_text("".join(path.open(encoding="utf-8").readlines()[:50]), encoding="utf-8")
    items = list(read_blimp(f"hub:{tmp_path}"))
    published = list(read_blimp(path))[:50]
    assert items == published
    assert all(item.one_prefix for item in items)


def test_gap_s_rows_need_not_be_text(save):
    (item,) = read_gap(save(test=[GAP_ON_THE_HUB]))
    assert (item.pronoun, item.pronoun_span.of(item.text), item.gender) == ("Her", "Her", "feminine")
    assert [(each.name, each.span.of(item.text), each.coreferent) for each in (item.a, item.b)] == [
        ("Zoë Ray", "Zoë Ray", False),
        ("Ann Lee", "Ann Lee", True),
    ]


def test_gap_from_json_is_gap_from_its_table(data_dir, tmp_path):
    path = data_dir / "gap" / "gap-validation.tsv"
    header, *rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    records = [dict(zip(header, row, strict=True)) for row in rows]
    datasets.Dataset.from_list(records).to_json(tmp_path / "validation.jsonl")
    assert list(read_gap(f"hub:{tmp_path}")) == list(read_gap(path))


def test_a_configuration_and_a_split_are_named(tmp_path):
    for config in ("passive_1", "passive_2"):
        for split in ("train", "test"):
            (tmp_path / config).mkdir(exist_ok=True)
            row = BLIMP_ON_THE_HUB | {"UID": f"{config}, {split}"}
            (tmp_path / config / f"{split}.jsonl").write_text(json.dumps(row))
    configs = "".join(f"- config_name: {each}\n  data_dir: {each}\n" for each in ("passive_1", "passive_2"))
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    (item,) = read_blimp(f"hub:{tmp_path}:passive_2:test")
    assert item.uid == "passive_2, test"
    with pytest.raises(TaskError, match=r"cannot be read \(Config name is missing"):
        list(read_blimp(f"hub:{tmp_path}"))
    with pytest.raises(TaskError, match=r"cannot be read \(BuilderConfig 'passive_3' not found"):
        list(read_blimp(f"hub:{tmp_path}:passive_3:test"))


def test_without_a_split_there_must_be_only_one(save):
    name = save(train=[{"number": 1}], test=[{"number": 2}, {"number": 3}])
    assert list(hub_items(f"{name}::test", lambda row: row["number"])) == [2, 3]
    with pytest.raises(TaskError, match="expected a split to be named, got none of 'train', 'test'; give hub:NAME"):
        list(hub_items(name, lambda row: row["number"]))
    with pytest.raises(
        TaskError, match=r"::dev: the data set cannot be read \(Bad split: dev\. Available splits: \['tr"
    ):
        list(hub_items(f"{name}::dev", lambda row: row["number"]))


def test_rows_are_read_one_by_one(save):
    name = save(train=[{"number": number} for number in range(100)])
    seen = []
    items = hub_items(name, lambda row: seen.append(row) or row["number"])
    assert [next(items), next(items)] == [0, 1]
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("read", "rows", "says"),
    [
        (read_blimp, [BLIMP_ON_THE_HUB, BLANK], ", row 2: expected text for 'sentence_good', got ' '"),
        (read_blimp, [{"UID": "keys"}], ", row 1: expected a key 'sentence_good', got ['UID'"),
        (read_gap, [GAP_ON_THE_HUB, GAP_ON_THE_HUB | {"A-offset": 5}], ", row 2: expected 'Zoë Ray' at the text's cha"),
        (read_gap, [GAP_ON_THE_HUB | {"Text": None}], ", row 1: expected text in the column 'Text', got None"),
        (read_gap, [{"ID": "test-1"}], ", row 1: expected text in the column 'Pronoun', got None"),
        (
            read_gap,
            [GAP_ON_THE_HUB | {"B-coref": 2}],
            ", row 1: expected TRUE or FALSE in the column 'B-coref', got '2'",
        ),
    ],
)
def test_a_bad_row_is_named(save, refusal, read, rows, says):
    assert refusal(read, save(train=rows)).startswith(says)


def test_an_error_of_the_project_s_own_is_handed_on(save):
    def parse(_row):
        raise TaskError("as it is")

    with pytest.raises(TaskError, match=r"^as it is$"):
        list(hub_items(save(train=[{"number": 1}]), parse))


@pytest.mark.parametrize("name", ["hub:", "hub::passive_1", "hub:a:b:c:d"])
def test_a_name_of_another_form_is_refused(name):
    with pytest.raises(TaskError, match=r"expected hub:NAME\[:CONFIG\[:SPLIT\]\], got 'hub:"):
        list(read_blimp(name))


def test_what_is_not_there_is_one_clear_line(tmp_path, refusal):
    (tmp_path / "README.md").write_text("Nothing.")
    for name in (f"hub:{tmp_path}", f"hub:{tmp_path}/none"):
        message = refusal(read_gap, name)
        assert message.startswith(": the data set cannot be read (")
        assert (
            "check its name, configuration and split and the network, or download a file and give its path" in message
        )


@pytest.mark.usefixtures("no_network")
def test_without_a_network_it_says_so(refusal):
    says = ": the data set cannot be read (Couldn't reach 'nobody/nothing' on the Hub); check its name"
    assert refusal(read_gap, "hub:nobody/nothing").startswith(says)


def test_a_row_that_cannot_be_fetched_is_the_data_set_s_fault(tmp_path):
    good = json.dumps(GAP_ON_THE_HUB) + "\n"
    (tmp_path / "train.jsonl").write_text(good + "{nonsense\n")
    with pytest.raises(TaskError, match=r": the data set cannot be read \("):
        list(read_gap(f"hub:{tmp_path}"))


def test_no_rows_are_an_error(tmp_path):
    features = datasets.Features({"number": datasets.Value("int64")})
    datasets.Dataset.from_dict({"number": []}, features=features).to_parquet(tmp_path / "train.parquet")
    with pytest.raises(TaskError, match="expected at least one row, got none; name another split"):
        list(hub_items(f"hub:{tmp_path}", lambda row: row["number"]))


def test_datasets_is_imported_only_where_it_is_asked():
    script = "import sys; import interp.tasks.readers.blimp; sys.exit('datasets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("read", "kind", "suffix"),
    [
        (read_blimp, "a BLiMP file", ".jsonl"),
        (read_gap, "a GAP file", ".tsv"),
        (read_winobias, "a WinoBias file", ""),
        (read_conllu, "a CoNLL-U file", ".conllu"),
    ],
)
def test_a_missing_file_and_a_folder_are_clear_errors(tmp_path, refusal, read, kind, suffix):
    assert f": expected {kind}, got no such file; check the path" in refusal(read, tmp_path / "none.file")
    assert f": expected {kind}, got a folder; name one {suffix}" in refusal(read, tmp_path)


def test_only_names_of_the_hub_are(tmp_path):
    assert is_hub("hub:nyu-mll/blimp")
    assert not is_hub("github.jsonl")
    assert not is_hub(tmp_path / "hub:x")


@pytest.mark.parametrize(("left", "right"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
@pytest.mark.parametrize("n", [DEEPEST + 1, 100_000])
def test_deep_json_is_refused(left, right, n):
    line = b'{"x":' + left * (n - 1) + b"1" + right * (n - 1) + b"}\n"
    with pytest.raises(ValueError, match=f"line 2: expected at most 1,000 levels of brackets, got {n:,}"):
        ShallowJson().read_json(io.BytesIO(b'{"x": null}\n' + line))


def test_many_brackets_side_by_side_are_read():
    line = b'{"x":[' + b",".join([b"[1]"] * 5_000) + b"]}\n"
    assert len(ShallowJson().read_json(io.BytesIO(line))["x"][0]) == 5_000


def test_all_else_is_pyarrows():
    assert ShallowJson().ReadOptions(block_size=5).block_size == 5
