"""`interp activations` on a treebank written here and the embedded model, with nothing faked but what must fail."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from interp.cluster.ray import Ray
from interp.model import loading
from interp.model.sites import Site
from interp.model.weights import weights_hash
from interp.runs.executors import Local, Processes
from interp.runs.store import ActivationStore

pytestmark = pytest.mark.usefixtures("real")
NOUNS = ("keys", "doors", "books", "cats")
SENTENCES = """\
# newdoc id = d{number}
# sent_id = d{number}-1
# text = The {noun} are old.
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\t{noun}\t{noun}\tNOUN\t_\tNumber=Plur\t4\tnsubj\t_\tEntity=(1-object)
3\tare\tbe\tAUX\t_\tTense=Pres\t4\tcop\t_\t_
4\told\told\tADJ\t_\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_

# sent_id = d{number}-2
# text = They are here.
1\tThey\tthey\tPRON\t_\tNumber=Plur\t3\tnsubj\t_\tEntity=(1-object)
2\tare\tbe\tAUX\t_\tTense=Pres\t3\tcop\t_\t_
3\there\there\tADV\t_\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

"""
FEATURES = ["upos", "deprel", "distance", "entity", "number", "antecedent"]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "bank.conllu"
    text = "".join(SENTENCES.format(number=number, noun=NOUNS[number % 4]) for number in range(40))
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def collect(run, data, tmp_path):
    """Runs the command on the treebank."""
    return lambda *arguments: run("activations", "collect", "--data", data, "--out", tmp_path / "store", *arguments)


def test_a_store_of_every_word(collect, tmp_path):
    result = collect("--site", "z, resid_post", "--layer", 0, "--layer", 2, "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    sites = [Site(name, layer) for layer in (0, 2) for name in ("resid_post", "z")]
    model = loading.load_model()
    seconds, size, digest = (printed.pop(name) for name in ("seconds", "bytes", "data_hash"))
    assert printed == {
        "folder": str(tmp_path / "store"),
        "rows": 40 * 9,
        "sites": [site.hook_name for site in sites],
        "features": FEATURES,
        "pooling": "last",
        "dtype": "float32",
        "shards": 1,
        "model_hash": weights_hash(model),
        "left_out": {},
    }
    assert seconds > 0
    assert size > 40 * 9 * 4 * 2 * 2 * 128
    assert len(digest) == 64
    store = ActivationStore.open(tmp_path / "store")
    store.require_model(model)
    assert store.sites == tuple(sites)
    assert store.index["form"].tolist()[:9] == ["The", "keys", "are", "old", ".", "They", "are", "here", "."]
    assert store.index["antecedent"].dropna().tolist()[:4] == [*NOUNS]
    assert store.index["number"].dropna().unique().tolist() == ["plural"]
    ids = [model.tokenizer.bos_token_id, *model.tokenizer("The keys are old. They are here.")["input_ids"]]
    _, cache = model.run_with_cache(torch.tensor([ids]))
    keys = store.index["token"][1]
    torch.testing.assert_close(store.read(Site("z", 2), rows=[1])[0], cache["blocks.2.attn.hook_z"][0, keys])


@pytest.mark.slow
def test_several_processes_write_the_same_bytes(collect, run, monkeypatch, tmp_path, data):
    monkeypatch.setattr("interp.runs.collecting.MOST_ROWS", 50)
    assert json.loads(collect("--site", "z", "--json").stdout)["shards"] == 8
    there = run("activations", "collect", "--data", data, "--site", "z", "--out", tmp_path / "2", "--processes", 2)
    assert there.exit_code == 0, there.output
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("store", "2"))
    assert one == two


@pytest.mark.parametrize(
    ("options", "executor"),
    [
        ((), Local()),
        (("--executor", "processes"), Processes(1)),
        (("--executor", "ray", "--processes", 3, "--address", "auto", "--gpus", 0.5), Ray(3, "auto", 0.5)),
    ],
)
def test_who_computes_is_who_was_asked_for(collect, monkeypatch, options, executor):
    asked = []

    def note(*_arguments, **given):
        asked.append(given["executor"])
        raise KeyboardInterrupt

    monkeypatch.setattr("interp.runs.collecting.collect", note)
    assert collect("--site", "z", *options).exit_code == 130
    assert asked == [executor]


def test_options_reach_the_store(collect, tmp_path):
    options = ("--feature", "feats:Tense,upos", "--pooling", "mean", "--context", "sentence", "--dtype", "float64")
    result = collect("--site", "embed", *options)
    assert result.exit_code == 0, result.output
    lines = dict(line.split(": ", 1) for line in result.stdout.splitlines())
    assert lines["sites"] == "hook_embed"
    assert (lines["features"], lines["pooling"], lines["dtype"]) == ("upos, feats:Tense", "mean", "float64")
    index = ActivationStore.open(tmp_path / "store").index
    assert index["feats:Tense"].dropna().unique().tolist() == ["Pres"]
    assert index.groupby("form")["token"].unique()["They"].tolist() == [1], "each sentence is read by itself"
    for change in (("--context", "document"), ("--feature", "entity"), ("--pooling", "last")):
        again = collect("--site", "embed", *options, *change)
        assert again.exit_code == 2
        assert "a store of another request" in again.stderr


def test_asked_again_it_is_there(collect):
    first, again = (json.loads(collect("--site", "z", "--json").stdout) for _ in range(2))
    assert again["left_out"] is None, "nothing was read"
    assert {**first, "seconds": 0, "left_out": None} == {**again, "seconds": 0}


def test_a_task(run, monkeypatch, tmp_path):
    monkeypatch.setattr("interp.tasks.catalogue.REFERENCES", 20)
    arguments = ("--task", "agreement", "--n", 6, "--seed", 1, "--site", "resid_post", "--layer", 1, "--json")
    result = run("activations", "collect", *arguments, "--out", tmp_path / "store")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["rows"] == 12
    assert "number" in printed["features"]
    index = ActivationStore.open(tmp_path / "store").index
    assert index["number"].value_counts().tolist() == [6, 6]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--site z --layer 3", "layers: the model has 3 (0 to 2), got [3]"),
        ("--site z --layer x", "'--layer': expected a whole number"),
        ("--site z --pooling median", "'median' is not one of 'first'"),
        ("--site z --max-window 1", "'--max-window'"),
        ("", "Missing option '--site'"),
    ],
)
def test_bad_options_are_one_line(collect, tmp_path, arguments, said):
    result = collect(*arguments.split())
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--data {data} --site zz", "no site is called 'zz'"),
        ("--data {data} --site z,pattern", "site 'pattern': expected one with an activation for each position"),
        ("--data {data} --site ,", "sites: expected at least one, got none"),
        ("--data {data} --site z --feature numbr", "feature 'numbr': the treebank has none; did you mean 'number'"),
        ("--data {data} --site z --task ioi", "expected either --data or --task, got both"),
        ("--data {data} --data {data} --site z", "expected different files for --data, got it twice; leave one out"),
        ("--site z", "expected either --data or --task, got neither"),
        ("--site z --task ioi --feature upos", "--feature: expected none beside --task, got ['upos']; leave it out"),
        ("--site z --task ioi --context sentence", "--context: expected none beside --task, got 'sentence'"),
        ("--data {data} --site z --address auto", "--address and --gpus: expected them with --executor ray"),
        ("--data {data} --site z --processes 1000000", "--processes: expected at most"),
        ("--data {data} --site z --n 5", "--n: expected none beside --data, got 5"),
        ("--data {data} --site z --unequal-lengths", "--unequal-lengths: expected none beside --data"),
        ("--data {folder}/none.conllu --site z", "none.conllu: expected a CoNLL-U file, got no such file"),
        ("--data {folder}/empty.conllu --site z", "empty.conllu: expected sentences in CoNLL-U, got an empty file"),
        ("--data {data} --site z --out {folder}", "got one with other files (bank.conllu, empty.conllu)"),
        ("--data {data} --site z --out {data}", "expected a folder, got a file; name another"),
    ],
)
def test_what_is_wrong_is_told_before_a_model_is_loaded(refused, monkeypatch, data, tmp_path, arguments, said):
    (tmp_path / "empty.conllu").write_text("")
    monkeypatch.setattr("interp.model.loading.load_model", None)
    out = [] if "--out" in arguments else ["--out", tmp_path / "store"]
    assert said in refused("activations", "collect", *arguments.format(data=data, folder=tmp_path).split(), *out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank.conllu", "empty.conllu"]


def test_a_model_without_a_tokenizer(collect, monkeypatch, tmp_path):
    loaded = SimpleNamespace(tokenizer=None, cfg=SimpleNamespace(n_ctx=64, n_layers=2))
    monkeypatch.setattr("interp.model.loading.load_model", lambda *_arguments, **_options: loaded)
    result = collect("--site", "z", "--model", "folder")
    assert result.exit_code == 2
    assert "expected a tokenizer beside the weights, got none" in result.stderr
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("after", [0, 150])
def test_an_interrupt_keeps_what_is_complete(run, collect, monkeypatch, tmp_path, after):
    def interrupt(done, _total):
        if done > after:
            raise KeyboardInterrupt

    @contextmanager
    def impatient(_description):
        yield interrupt

    monkeypatch.setattr("interp.runs.collecting.MOST_ROWS", 50)
    monkeypatch.setattr("interp.cli.terminal.progress_bar", impatient)
    result = collect("--site", "z")
    assert result.exit_code == 130
    store = tmp_path / "store"
    going_on = f"what is complete is kept in {store}; the same command goes on"
    kept = going_on if after else "no shard was complete, and nothing is kept"
    assert result.stderr.splitlines()[-1] == f"interrupted: {kept}"
    assert store.exists() == bool(after)
    if after:
        verified = run("activations", "verify", store)
        assert (verified.exit_code, "the store is incomplete" in verified.stderr) == (2, True)
    monkeypatch.setattr("interp.cli.terminal.progress_bar", quiet)
    result = collect("--site", "z", "--json")
    assert json.loads(result.stdout)["rows"] == 360
    assert len(pd.read_parquet(store / "index.parquet")) == 360


@contextmanager
def quiet(_description):
    yield lambda _done, _total: None


def test_verify(run, collect, tmp_path):
    store = tmp_path / "store"
    collected = json.loads(collect("--site", "z", "--json").stdout)
    result = run("activations", "verify", store, "--json")
    assert result.exit_code == 0
    assert {**json.loads(result.stdout), "seconds": 0} == {
        name: 0 if name == "seconds" else value for name, value in collected.items() if name != "left_out"
    }
    assert "rows: 360" in run("activations", "verify", store).stdout.splitlines()
    path = store / "shard-00000.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    result = run("activations", "verify", store)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {path}: expected SHA-256 ")
    assert result.stderr.count("\n") == 1
    assert run("activations", "verify", tmp_path / "none").exit_code == 2
