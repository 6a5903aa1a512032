"""`interp probe` on the embedded model, with nothing faked but what must fail."""

import json
import os
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace

import pandas as pd
import pytest

import interp
from interp.tasks.catalogue import load_task

FILES = {
    *("probes.csv", "probes.parquet", "words.csv", "words.parquet", "examples.parquet", "report.html", "manifest.json"),
    *("figures/controls.png", "figures/score.png", "figures/selectivity.png"),
}
NUMBER = ("probe", "--feature", "number", "--task", "agreement", "--kind", "lda")
ONE = ("--n", 12, "--head", "2.2")
NOUNS = ("key", "<script>", "door", "book", "[b]cat[/b]", "dog")
WORDS = (
    ("The", "DET", "", 2, "det"),
    ("{}", "NOUN", "Number=Sing", 4, "nsubj"),
    ("is", "AUX", "", 4, "cop"),
    ("old", "ADJ", "Degree=Pos", 0, "root"),
    (".", "PUNCT", "", 4, "punct"),
)


@cache
def drawn(name, n, seed):
    model = interp.load_model()
    return load_task(name, n=n, seed=seed, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)


@pytest.fixture(autouse=True)
def _real(real, monkeypatch):
    """Each task is drawn once, which takes longer than probing one head."""
    monkeypatch.setattr("interp.tasks.catalogue.load_task", lambda name, *, n, seed, **_options: drawn(name, n, seed))


def sentence(noun):
    lines = [
        f"{number}\t{form.format(noun)}\t{form.format(noun).lower()}\t{upos}\t_\t{feats or '_'}\t{head}\t{label}\t_\t_"
        for number, (form, upos, feats, head, label) in enumerate(WORDS, start=1)
    ]
    return "\n".join(lines) + "\n\n"


def bank(path, n_documents=24):
    texts = [
        f"# newdoc id = d{number}\n{sentence(NOUNS[number % 6])}{sentence(NOUNS[number // 6])}"
        for number in range(n_documents)
    ]
    path.write_text("".join(texts), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path):
    return bank(tmp_path / "bank.conllu")


@pytest.fixture
def loads(monkeypatch):
    """Makes the command load a model without a tokenizer, and notes whether it did."""
    noted = []

    def load(name, **_options):
        noted.append(name)
        return SimpleNamespace(tokenizer=None, cfg=SimpleNamespace(n_ctx=64))

    monkeypatch.setattr("interp.model.loading.load_model", load)
    return noted


def provenance(out):
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))["provenance"]


def test_what_was_found_is_said_and_tabled(run):
    result = run(*NUMBER, "--n", 60, "--layer", 2)
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert text.startswith("Probes: number in z\nModel default · 120 words, 54 clusters · ")
    lines = text.splitlines()
    (headline,) = [line for line in lines if line.startswith("- Head 2.2 encodes number: 100.0 % of 120 words right")]
    assert any(line.startswith("- Of 4 heads, ") for line in lines[lines.index(headline) :])
    for heading in ("head", "verdict", "score", "excess", "selectivity"):
        assert heading in text
    assert "100.0 [100.0, 100.0]" in " ".join(text.split())
    assert "report.html" not in text


def test_a_folder_holds_everything_and_words_stay_text(run, data, tmp_path):
    out = tmp_path / "r"
    asked = ["--feature", "upos", "--data", data, "--layer", 0, "--kind", "lda", "--seed", 3, "--context", "sentence"]
    result = run("probe", *asked, "--out", out)
    assert result.exit_code == 0, result.output
    assert {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} == FILES
    assert result.stdout.splitlines()[-1].startswith(str(out / "report.html"))
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["command"].split()[0] == "interp"  # the rest is the process's own command line
    how = manifest["provenance"]
    assert (how["data"], how["n_documents"], how["seed"], how["context"]) == ([str(data)], 24, 3, "sentence")
    frame = pd.read_parquet(out / "probes.parquet")
    assert frame[["layer", "head"]].to_numpy().tolist() == [[0, head] for head in range(4)]
    words = pd.read_parquet(out / "words.parquet")
    assert set(words["value"]) == {"DET", "NOUN", "AUX", "ADJ", "PUNCT"}
    assert "<script>" in set(words["form"])
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<script>") == 1
    assert "bank.conllu: 24 documents" in page


def test_senses_are_probed_by_their_name(run, tmp_path):
    asked = ["--feature", "sense:bank", "--data", "senses:bank", "--head", "0.0", "--kind", "lda"]
    result = run("probe", *asked, "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "money (48) and river (48)" in page
    assert "senses:bank: 96 documents" in page
    assert provenance(tmp_path / "r")["data"] == ["senses:bank"]


def test_json_has_the_headline_the_best_cells_and_counts_of_verdicts(run, tmp_path):
    result = run(*NUMBER, "--n", 60, "--layer", 2, "--out", tmp_path / "r", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["folder"], printed["page"]) == (str(tmp_path / "r"), str(tmp_path / "r" / "report.html"))
    assert [printed[name] for name in ("feature", "site", "kind", "measure", "task", "data", "store", "n")] == [
        *("number", "z", "lda", "accuracy", "agreement", None, None, 120)
    ]
    assert printed["verdict"] == "encodes"
    assert printed["headline"].startswith("Head 2.2 encodes number: 100.0 % of 120 words right")
    assert sum(printed["verdicts"].values()) == len(printed["best"]) == 4
    best = printed["best"][0]
    assert (best["layer"], best["head"]) == (2, 2)
    assert best["excess"] == pytest.approx(best["score"] - best["score_baseline"])
    saved = pd.read_csv(tmp_path / "r" / "probes.csv")
    assert best["excess"] == pytest.approx(saved["excess"].max())
    assert printed["cautions"] == []
    assert printed["seconds"] > 0


def test_without_a_folder_nothing_is_written(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    printed = json.loads(run(*NUMBER, *ONE, "--json").stdout)
    assert (printed["folder"], printed["page"]) == (None, None)
    assert list(tmp_path.iterdir()) == []


def test_options_reach_the_method(run, tmp_path):
    asked = [
        "--at",
        "related",
        "--pooling",
        "mean",
        "--cv",
        "3",
        "--min-examples",
        "2",
        "--min-effect",
        "0.2",
        "--alpha",
        "0.01",
    ]
    asked += ["--correction", "fdr", "--dtype", "float64", "--kind", "ridge"]
    asked += ["--site", "resid_post", "--layer", 2]
    result = run("probe", "--feature", "number", "--task", "agreement", "--n", 12, *asked, "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    assert "the related word, mean over a word&#39;s tokens" in (tmp_path / "r" / "report.html").read_text(
        encoding="utf-8"
    )
    assert "\nThe word itself gives the feature away: a probe on its embedding alone reaches" in result.stdout
    assert "warning: number: a probe on the embedding of the word" in result.stderr
    how = provenance(tmp_path / "r")
    expected = {"at": "related", "pooling": "mean", "cv": 3, "min_examples": 2, "min_effect": 0.2, "alpha": 0.01}
    expected |= {"correction": "fdr", "dtype": "float64", "kind": "ridge", "site": "resid_post"}
    assert {name: how[name] for name in expected} == expected


def test_layers_can_be_repeated(run):
    result = run(*NUMBER, "--n", 12, "--site", "resid_post", "--layer", 2, "--layer", 0, "--json")
    assert sorted(each["layer"] for each in json.loads(result.stdout)["best"]) == [0, 2]


def test_stored_activations_are_probed(run, tmp_path):
    from interp.model.sites import Site
    from interp.runs.collecting import collect
    from interp.tasks.passages import task_passages

    task = drawn("agreement", 12, 0)
    passages, sites = list(task_passages(task)), [Site("z", 2)]
    folder = collect(interp.load_model(), passages, sites, tmp_path / "acts", data_hash=task.hash).folder
    asked = ["--feature", "number", "--kind", "lda", "--store", folder, "--head", "2.2"]
    result = run("probe", *asked, "--out", tmp_path / "r", "--json")
    assert result.exit_code == 0, result.output
    stored = json.loads(result.stdout)["best"][0]
    assert provenance(tmp_path / "r")["store"] == str(folder)
    assert "stored activations, acts" in (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    (fresh,) = json.loads(run(*NUMBER, *ONE, "--json").stdout)["best"]
    assert stored["score"] == fresh["score"]
    assert (stored["embedding"], stored["untrained"]) == (None, None)
    other = run("probe", *asked, "--model", "sibling-1")
    assert other.exit_code == 2
    assert "expected the model whose activations are stored, model_hash" in other.stderr
    assert other.stderr.count("\n") == 1
    absent = run("probe", *asked[:-2], "--layer", 1)
    assert "nothing is stored of blocks.1.attn.hook_z; did you mean 'blocks.2.attn.hook_z'?" in absent.stderr
    assert "There are: number, congruent" in run("probe", "--feature", "upos", *asked[2:]).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--feature number", "expected one of --task, --data and --store, got none"),
        (
            "--feature number --task agreement --data {data}",
            "one of --task, --data and --store, got --task and --data",
        ),
        ("--feature number --data {data} --store {folder}", "got --data and --store"),
        ("--feature upos --data {data} --at related", "--at: expected it with --task, got --data"),
        ("--feature upos --data {data} --unequal-lengths", "--unequal-lengths: expected it with --task, got --data"),
        ("--feature number --task agreement --context sentence", "--context: expected it with --data, got --task"),
        ("--feature upos --store {folder} --pooling mean", "--pooling: expected it with --task or --data, got --store"),
        (
            "--feature number --task agreement --head 1",
            "head '1': expected a layer and a head, both from 0, such as 2.1",
        ),
        (
            "--feature number --task agreement --head 1.0 --layer 1",
            "--head 1.0: expected no --layer beside it, got",
        ),
        ("--feature upos --data {folder}/none.conllu", "none.conllu: expected a CoNLL-U file, got no such file"),
        ("--feature upos --data {data} --data {data}", "expected different files for --data, got it twice"),
        ("--feature gender --data {data}", "feature 'gender' does not occur in the 24 documents of --data"),
        ("--feature feats:Numbr --data {data}", "of --data; did you mean 'feats:Number'"),
        ("--feature gender --data {data}", "There are: upos, deprel, distance, feats:Degree, feats:Number, number"),
        ("--feature sense:bank --data senses:bnak", "senses of 'bnak': expected a lemma that there are sentences of"),
        ("--feature sense:run --data senses:bank", "in the 96 documents of --data; did you mean 'sense:bank'?"),
        (
            "--feature sense:run --data senses:run --data senses:run",
            "expected different files for --data, got it twice",
        ),
        ("--feature upos --store {folder}/none", "none: expected a store of activations, got no such folder"),
        ("--feature upos --store {folder}", "expected a store of activations, got a folder without manifest.json"),
        ("--feature number --task agreement --out {folder}", "got one with other files (bank.conllu)"),
    ],
)
def test_what_is_wrong_is_one_line_before_a_model_is_loaded(refused, loads, data, arguments, said):
    assert said in refused("probe", *arguments.format(data=data, folder=data.parent).split())
    assert loads == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "--task agreement --n 12 --feature numbr",
            "no labels of it; did you mean 'number'? There are: number, ",
        ),
        (
            "--data {data} --feature feats:Number",
            "feature 'feats:Number': expected two classes at least, got 'Sing'",
        ),
        ("--task agreement --n 12 --feature number --head 2.9", "head 2.9: there are 3 layers (0 to 2) of 4"),
        ("--task agreement --n 12 --feature number --layer 7", "layers: the model has 3 (0 to 2), got [7]"),
        ("--task agreement --n 12 --feature number --site zz", "no site is called 'zz'"),
        ("--task agreement --n 12 --feature number --site pattern", "take z, or a point of the stream"),
        ("--task agreement --n 12 --feature number --site resid_post --head 1.1", "a site that has heads, got"),
        (
            "--task agreement --n 12 --feature number --min-effect 0",
            "min_effect: expected a share between 0 and 1, got 0.0",
        ),
        ("--task agremeent --feature number", "agremeent"),
        ("--task agreement --feature number --model no-such-model", "no-such-model"),
    ],
)
def test_what_is_wrong_with_the_request_is_one_line_and_nothing_is_written(run, data, arguments, said):
    result = run("probe", *arguments.format(data=data).split(), "--out", data.parent / "r")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert said in result.stderr
    assert result.stdout == ""
    assert [path.name for path in data.parent.iterdir()] == ["bank.conllu"]


def test_a_model_needs_a_tokenizer(run, loads, tmp_path):
    result = run("probe", "--feature", "number", "--task", "agreement", "--model", "folder", "--out", tmp_path / "r")
    assert result.exit_code == 2
    assert "expected a tokenizer beside the weights, got none" in result.stderr
    assert loads == ["folder"]
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--task agreement", "Missing option '--feature'"),
        ("--feature x --min-effect nan", "expected a share between 0 and 1, got nan"),
        ("--feature x --alpha 1.5", "expected a share between 0 and 1, got 1.5"),
        ("--feature x --correction holm", "'holm' is not one of 'max-T'"),
        ("--feature x --kind svm", "'svm' is not one of 'logistic'"),
        ("--feature x --at start", "'start' is not one of 'query'"),
        ("--feature x --context book", "'book' is not one of 'document'"),
        ("--feature x --pooling max", "'max' is not one of 'first'"),
        ("--feature x --cv 1", "'--cv'"),
        ("--feature x --n 0", "'--n'"),
        ("--feature x --min-examples 0", "'--min-examples'"),
        ("--feature x --layer -1", "'--layer'"),
        ("--feature x --task ioi --head=-1", "head '-1': expected a layer and a head"),
        ("--feature x --seed -1", "'--seed'"),
    ],
)
def test_options_that_cannot_be_read_are_one_line(refused, arguments, said):
    assert said in refused("probe", *arguments.split())


@pytest.mark.parametrize("target", ["interp.cli.terminal.progress_bar", "interp.report.folder.write_manifest"])
def test_an_interrupt_leaves_nothing_half_written(run, monkeypatch, tmp_path, target):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    @contextmanager
    def impatient(_description):
        yield interrupt

    monkeypatch.setattr(target, impatient if target.endswith("bar") else interrupt)
    result = run(*NUMBER, *ONE, "--out", tmp_path / "r")
    assert result.exit_code == 130
    said = f"interrupted: what is complete is kept in {os.environ['INTERP_RUNS']}; the same command goes on"
    assert result.stderr.splitlines()[-1] == said
    assert list(tmp_path.iterdir()) == []
