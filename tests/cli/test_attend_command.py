"""`interp attend` on a treebank written here and the embedded model, with nothing faked but what must fail."""

import json
import os
from contextlib import contextmanager
from types import SimpleNamespace

import pandas as pd
import pytest
from transformers.tokenization_python import PythonBackend

pytestmark = pytest.mark.usefixtures("real")
FILES = {
    *("relations.csv", "relations.parquet", "heads.csv", "heads.parquet", "examples.parquet"),
    *("attention_maps.csv", "attention_maps.parquet", "report.html", "manifest.json"),
    *("figures/relations.png", "figures/baselines.png"),
}
PLAIN = (("The", 2, "det"), ("{0}", 4, "nsubj"), ("are", 4, "cop"), ("old", 0, "root"), (".", 4, "punct"))
PHRASE = (
    *(("The", 2, "det"), ("{0}", 7, "nsubj"), ("to", 5, "case"), ("the", 5, "det"), ("{1}", 2, "nmod")),
    *(("are", 7, "cop"), ("old", 0, "root"), (".", 7, "punct")),
)
NOUNS = ("keys", "<script>", "doors", "books", "[b]cats[/b]", "dogs")


def written(words, *nouns):
    lines = [
        f"{number}\t{form.format(*nouns)}\t_\t{'NOUN' if '{' in form else 'X'}\t_\t_\t{head}\t{label}\t_\t_"
        for number, (form, head, label) in enumerate(words, start=1)
    ]
    return "\n".join(lines) + "\n\n"


def bank(path, n_documents=24, first=0):
    texts = []
    for number in range(first, first + n_documents):
        # Banks that begin elsewhere have other documents.
        one, other = NOUNS[number % 6], NOUNS[(number // 2 + 1 + first // 50) % 6]
        texts.append(f"# newdoc id = d{number}\n{written(PLAIN, one)}{written(PHRASE, one, other)}")
    path.write_text("".join(texts), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path):
    return bank(tmp_path / "bank.conllu")


@pytest.fixture
def loads(monkeypatch):
    """Makes the command load this tokenizer's model, and notes whether it did."""
    noted = []

    def set_up(tokenizer=None):
        def load(*_arguments, **_options):
            noted.append(tokenizer)
            return SimpleNamespace(tokenizer=tokenizer, cfg=SimpleNamespace(n_ctx=64))

        monkeypatch.setattr("interp.model.loading.load_model", load)
        return noted

    return set_up


def test_sentences_and_a_table_say_what_was_found(run, data):
    result = run("attend", "--data", data, "--relation", "nsubj, det", "--relation", "nsubj,pos:NOUN")
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "24 documents, 5 directions" in text
    assert "must not be compared with those of a model that looks both ways" in text
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    (scored,) = [line for line in lines if "nsubj (head to dependent)" in line]
    assert "attends most to the subject in" in scored
    assert "of 48 pairs, against" in scored
    assert "Looking back only: 48 of 48 pairs can be scored, in 24 documents" in scored
    assert "of its attention goes to the subject; another head of its layer" in scored
    (ahead,) = [line for line in lines if "nsubj (dependent to head)" in line]
    assert ahead.startswith("- Not testable: nsubj (dependent to head). Of 48 pairs, none can be scored.")
    assert "not scored: 48 whose related word stands ahead" in ahead
    assert "report.html" not in text


def test_a_folder_holds_everything_and_words_of_the_corpus_stay_text(run, data, tmp_path):
    result = run("attend", "--data", data, "--relation", "nsubj,nmod", "--out", tmp_path / "r", "--seed", 3)
    assert result.exit_code == 0, result.output
    out = tmp_path / "r"
    assert {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} == FILES
    assert result.stdout.splitlines()[-1].startswith(str(out / "report.html"))
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["command"].split()[0] == "interp"  # the rest is the process's own command line
    assert manifest["provenance"]["data"] == [str(data)]
    assert (manifest["provenance"]["n_documents"], manifest["provenance"]["seed"]) == (24, 3)
    assert len(pd.read_parquet(out / "heads.parquet")) == 4 * 12
    maps = pd.read_parquet(out / "attention_maps.parquet")
    assert maps["document"].unique().tolist() == ["d0", "d1"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;" in page
    assert page.count("<script>") == 1
    assert "24 documents, 48 sentences" in page


def test_json_has_every_relation_the_best_heads_and_counts_of_verdicts(run, data, tmp_path):
    result = run("attend", "--data", data, "--relation", "nsubj", "--out", tmp_path / "r", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["folder"], printed["page"]) == (str(tmp_path / "r"), str(tmp_path / "r" / "report.html"))
    assert (printed["n_documents"], printed["n_sentences"], printed["attention_dir"]) == (24, 48, "causal")
    assert [(each["looks"], each["n"], each["ahead"]) for each in printed["relations"]] == [
        ("dependent to head", 0, 48),
        ("head to dependent", 48, 0),
    ]
    (best,) = printed["best"]
    assert best["excess"] == pytest.approx(best["accuracy"] - best["accuracy_baseline"])
    heads = pd.read_csv(tmp_path / "r" / "heads.csv").query("looks == 'head to dependent'")
    assert best["excess"] == pytest.approx(heads["excess"].max())
    assert sum(printed["verdicts"].values()) == 24
    assert printed["verdicts"]["not testable"] == 12
    assert printed["seconds"] > 0
    without = json.loads(run("attend", "--data", data, "--relation", "nsubj", "--json").stdout)
    assert (without["folder"], without["page"]) == (None, None)
    assert without["best"] == printed["best"]


def test_options_reach_the_method(run, data, tmp_path):
    other = bank(tmp_path / "other.conllu", 20, first=100)
    options = ["--choose-on", other, "--min-effect", 0.2, "--alpha", 0.01, "--correction", "fdr", "--max-window", 32]
    flags = ["--include-special", "--include-self"]
    asked = ["--relation", "nsubj", "--out", tmp_path / "r", "--dtype", "float64", "--json"]
    result = run("attend", "--data", data, *options, *flags, *asked)
    assert result.exit_code == 0, result.output
    how = json.loads((tmp_path / "r" / "manifest.json").read_text(encoding="utf-8"))["provenance"]
    assert how["exclude"] == []
    assert (how["min_effect"], how["alpha"], how["correction"], how["max_window"]) == (0.2, 0.01, "fdr", 32)
    assert how["choose_on"] == [str(other)]
    assert how["dtype"] == "float64"
    assert sum(json.loads(result.stdout)["verdicts"].values()) == 2, "only the chosen heads are tested"


def test_several_files_are_one_corpus(run, data, tmp_path):
    other = bank(tmp_path / "other.conllu", 3)
    printed = json.loads(run("attend", "--data", data, "--data", other, "--relation", "det", "--json").stdout)
    assert printed["data"] == [str(data), str(other)]
    assert printed["n_documents"] == 27


def test_sentences_without_words_are_said_once(run, data):
    """The treebank is read several times."""
    with data.open("a", encoding="utf-8") as file:
        file.write("# newdoc id = last\n1\t_\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n")
    result = run("attend", "--data", data, "--relation", "det")
    assert result.exit_code == 0, result.output
    assert "24 documents" in result.stdout
    assert result.stderr.count("warning: ") == 1
    assert (
        f"warning: {data}: 1 of 49 sentences are left out, for they have '_' or empty nodes in place of words"
        in result.stderr
    )


def test_without_relations_every_label_is_scored(run, data):
    printed = json.loads(run("attend", "--data", data, "--json").stdout)
    assert {each["relation"] for each in printed["relations"]} == {"det", "nsubj", "cop", "punct", "case", "nmod"}


def broken(line):
    return f"# newdoc id = d\n{written(PLAIN, 'keys')}{line}\n"


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (None, "", "bank.conllu: expected a CoNLL-U file, got no such file; check the path"),
        ("", "", "bank.conllu: expected sentences in CoNLL-U, got an empty file"),
        (broken("1\tkeys\tnoun"), "", "bank.conllu, line 8: expected 10 columns separated by tabs, got 3 in"),
        (broken("x"), "--relation nsubj", "bank.conllu, line 8: expected 10 columns"),
        (None, "--relation ,", "bank.conllu: expected a CoNLL-U file, got no such file"),
        (broken(""), "--relation ,", "relations: expected names of relations, each once, got []"),
        (broken(""), "--relation nsub", "relation 'nsub' does not occur in the corpus; did you mean 'nsubj'"),
        (broken(""), "--relation nsub", "There are: cop, det, nsubj, pos:NOUN, pos:X, punct"),
        (broken(""), "--choose-on {data}", "expected different files for --data and --choose-on, got it twice"),
        (broken(""), "--data {data}", "expected different files for --data and --choose-on, got it twice"),
        (broken(""), "--out {folder}", "got one with other files (bank.conllu)"),
    ],
)
def test_what_is_wrong_with_the_data_is_one_line_before_a_model_is_loaded(
    refused, loads, tmp_path, content, arguments, said
):
    folder = tmp_path / "banks"
    folder.mkdir()
    path = folder / "bank.conllu"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    loaded = loads()
    assert said in refused("attend", "--data", path, *arguments.format(data=path, folder=folder).split())
    assert loaded == []


class Slow(PythonBackend):
    vocab_size = 0

    def get_vocab(self):
        return {}


def test_a_model_needs_a_tokenizer_that_knows_characters(run, loads, monkeypatch, data, tmp_path):
    loads()
    result = run("attend", "--data", data, "--model", "folder", "--out", tmp_path / "r")
    assert result.exit_code == 2
    assert "expected a tokenizer beside the weights, got none" in result.stderr
    loads(Slow())
    result = run("attend", "--data", data, "--out", tmp_path / "r")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: Slow is a slow tokenizer, which cannot say which characters")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "Missing option '--data'"),
        ("--data x --min-effect nan", "expected a share between 0 and 1, got nan"),
        ("--data x --alpha 1.5", "expected a share between 0 and 1, got 1.5"),
        ("--data x --correction holm", "'holm' is not one of 'max-T'"),
        ("--data x --max-window 1", "'--max-window'"),
        ("--data x --seed -1", "'--seed'"),
    ],
)
def test_options_that_cannot_be_read_are_one_line(refused, arguments, said):
    assert said in refused("attend", *arguments.split())


@pytest.mark.parametrize("target", ["interp.cli.terminal.progress_bar", "interp.report.folder.write_manifest"])
def test_an_interrupt_leaves_nothing_half_written(run, monkeypatch, data, tmp_path, target):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    @contextmanager
    def impatient(_description):
        yield interrupt

    monkeypatch.setattr(target, impatient if target.endswith("bar") else interrupt)
    result = run("attend", "--data", data, "--relation", "nsubj", "--out", tmp_path / "r")
    assert result.exit_code == 130
    said = f"interrupted: what is complete is kept in {os.environ['INTERP_RUNS']}; the same command goes on"
    assert result.stderr.splitlines()[-1] == said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank.conllu"]
