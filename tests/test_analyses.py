"""The analyses run and print what their READMEs report, on fewer items."""

import ast
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from interp.claims.claim import claim
from interp.claims.units import UnitTable
from interp.model.loading.load import model_folder
from interp.tasks.grammar.lexicon import english
from interp.tasks.grammar.phrases import split_of

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_head_ablation(tmp_path):
    printed = run("analyses/head_ablation/run.py", "--out", tmp_path, "--n", 40)
    assert "matter under every replacement" in printed
    assert (tmp_path / "replacements.png").stat().st_size > 10_000
    assert (tmp_path / "effects.csv").is_file()


FOUND = {  # units, the line of the finding up to its number, more than which that is, the figure
    "activation_patching": (40, r"agreement +denoise +2\.2 +last +(\S+)", 0.9, "stream.png"),
    "path_patching": (48, r"0\.0 +2\.1\.k +(\S+)", 0.7, "senders.png"),
}


@pytest.mark.slow
@pytest.mark.parametrize("analysis", FOUND)
def test_patching(analysis, tmp_path):
    n, finding, least, figure = FOUND[analysis]
    printed = run(f"analyses/{analysis}/run.py", "--out", tmp_path, "--n", n)
    found = re.search(finding, printed)
    assert found
    assert float(found[1]) > least
    assert (tmp_path / figure).stat().st_size > 10_000


@pytest.mark.slow
def test_choosing_the_default(tmp_path):
    printed = run("analyses/choosing_the_default/run.py", model_folder("default"), "--out", tmp_path, "--n", 40)
    assert "agreement head" in printed
    assert (tmp_path / "seeds.csv").is_file()


@pytest.mark.slow
def test_induction(tmp_path):
    """A two-layer attention-only model learns induction, a one-layer one does not; its layer 0 looks back for it."""
    run("analyses/induction/run.py", "--out", tmp_path, "--seeds", 1, "--n", 60)
    one, two = pd.read_csv(tmp_path / "scores.csv").to_dict("records")
    assert one["right"] < 0.3 < 0.95 < two["right"]
    assert one["best induction head"] < 0.15 < 0.8 < two["best induction head"]
    assert two["right without them"] < 0.2 < 0.8 < two["right without the others"]
    assert two["induction without them"] < 0.15 < 0.7 < two["induction without the others"]


@pytest.mark.slow
def test_does_it_take_attention(tmp_path):
    """Models that are hardly trained know nothing, and the transformer agrees at every distance."""
    options = ("--out", tmp_path, "--steps", 3, "--recall-steps", 3, "--n", 540)
    printed = run("analyses/does_it_take_attention/run.py", *options)
    assert "longer: accuracy by words from what tells the answer to the answer" in printed
    longer = pd.read_csv(tmp_path / "longer-distance.csv").set_index(["model", "distance"])
    assert sorted(set(longer.index.get_level_values("distance"))) == list(range(1, 27, 3))
    assert (longer.loc["transformer", "accuracy"] > 0.9).all()
    assert longer.loc["LSTM", "accuracy"].mean() == pytest.approx(0.5, abs=0.15)
    assert (longer["low"] <= longer["accuracy"]).all()
    assert (longer["accuracy"] <= longer["high"]).all()
    assert (tmp_path / "longer-distance.png").stat().st_size > 10_000
    assert run("analyses/does_it_take_attention/run.py", *options) == printed  # with what was trained before


def test_long_subjects_are_held_out_and_mislead(monkeypatch):
    """No training text has the subject with a noun in between, and the nearest noun speaks for the wrong verb."""
    monkeypatch.syspath_prepend(ROOT / "analyses" / "does_it_take_attention")
    from long_subjects import long_subjects

    for pair in long_subjects(30, 4):
        shown = []
        for example in (pair.item, pair.counterfactual):
            words = example.prompt.split()
            (subject, number), *between = [noun for word in words if (noun := english().noun_of(word.lower()))]
            assert subject.singular == pair.cluster
            assert len(between) == 4
            assert {split_of(subject.singular, noun.singular) for noun, _ in between} == {"test"}
            assert between[-1][1] != number
            numbers = [each for _, each in between]
            assert int(example.features["attractors"]) == sum(each != number for each in numbers)
            shown.append((number, *numbers))
        assert all(one != other for one, other in zip(*shown, strict=True))
        assert (pair.item.right, pair.item.wrong) == (pair.counterfactual.wrong, pair.counterfactual.right)


@pytest.mark.slow
def test_noisy_channel(tmp_path):
    """With few pairs, a language model of much text makes more sentences right."""
    options = ("--seeds", 1, "--monolingual", 5_000, "--develop", 100, "--test", 150, "--n", 10)
    printed = run("analyses/noisy_channel/run.py", "--out", tmp_path, *options)
    assert "Weights of the language model" in printed
    found = pd.read_csv(tmp_path / "summary.csv").set_index("system")
    assert found.loc["channel x 4-gram", "low"] > 0
    assert (found["accuracy"] <= found.loc["among the proposals", "accuracy"]).all()


@pytest.mark.slow
def test_development(tmp_path):
    for step, name in ((1, "sibling-1"), (2, "default")):
        folder = tmp_path / "training" / "checkpoints" / f"step-{step:08d}"
        shutil.copytree(model_folder(name), folder)
        (folder / "training.json").write_text("{}")
    printed = run("analyses/development/run.py", tmp_path / "training", "--out", tmp_path / "out", "--n", 40)
    assert re.search(r"agreement +2 +2 +2\b", printed)
    assert (tmp_path / "out" / "development.png").stat().st_size > 10_000


@pytest.mark.slow
def test_variants(tmp_path):
    run("analyses/variants/run.py", model_folder("default"), model_folder("sibling-1"), "--out", tmp_path, "--n", 40)
    heads = pd.read_csv(tmp_path / "heads.csv", dtype={"head": str}).set_index(["model", "task"])
    assert heads.loc[("default", "agreement"), "head"] == "2.2"
    assert heads.loc[("sibling-1", "agreement"), "head"] == "2.0"
    assert heads.loc[("default", "agreement"), "effect"] < -0.5
    assert (tmp_path / "heads.png").stat().st_size > 10_000


@pytest.mark.slow
def test_blimp(data_dir):
    assert "anaphor_number_agreement" in run("analyses/blimp/run.py", data_dir / "blimp")


def beginning(path, into, n_documents):
    """The first documents of a treebank, as a file of its own."""
    documents = path.read_text().split("# newdoc")
    into.write_text("# newdoc" + "# newdoc".join(documents[1 : n_documents + 1]))
    return into


@pytest.mark.slow
def test_syntax_heads(data_dir, tmp_path):
    choose = beginning(data_dir / "gum" / "en_gum-ud-dev.conllu", tmp_path / "choose.conllu", 22)
    score = beginning(data_dir / "ewt" / "en_ewt-ud-test.conllu", tmp_path / "score.conllu", 60)
    out = tmp_path / "out"
    printed = run("analyses/syntax_heads/run.py", "--choose-on", choose, "--data", score, "--out", out, "--n", 120)
    assert re.search(r"subject query to related +2\.2 .* attends", printed)
    heads = pd.read_csv(out / "heads.csv")
    (subject,) = heads.query("chosen and relation == 'nsubj' and looks == 'head to dependent'").to_dict("records")
    assert (subject["layer"], subject["head"]) == (4, 0)
    assert subject["accuracy"] > subject["accuracy_baseline"] > 0.4
    assert "towards the root" in printed
    assert "Agreement in real sentences" in printed
    assert (out / "page" / "report.html").is_file()


@pytest.mark.slow
def test_coreference_heads(data_dir, tmp_path):
    gum = data_dir / "gum"
    choose = beginning(gum / "en_gum-ud-dev.conllu", tmp_path / "choose.conllu", 30)
    score = beginning(gum / "en_gum-ud-test.conllu", tmp_path / "score.conllu", 26)
    (tmp_path / "gap").mkdir()
    for part in ("development", "test"):
        lines = (data_dir / "gap" / f"gap-{part}.tsv").read_text().splitlines(keepends=True)
        (tmp_path / "gap" / f"gap-{part}.tsv").write_text("".join(lines[:200]))
    options = ("--gap", tmp_path / "gap", "--out", tmp_path / "out", "--n", 120)
    printed = run("analyses/coreference_heads/run.py", "--choose-on", choose, "--data", score, *options)
    assert re.search(r"antecedent +2\.[0-3] .* attends", printed)
    assert re.search(r"coref:pronoun +\d\.\d", printed)
    assert "f1_feminine" in printed
    assert "Pronouns in real text" in printed


@pytest.mark.slow
def test_head_probing(tmp_path):
    """The head that attends carries the feature and uses it; the decoy carries it."""
    printed = run("analyses/head_probing/run.py", "--out", tmp_path, "--n", 60)
    probes = pd.read_csv(tmp_path / "probes.csv").set_index(["task", "layer", "head"])["score"]
    erased = (
        pd.read_csv(tmp_path / "erasure.csv").query("method == 'leace'").set_index(["task", "layer", "head"])["share"]
    )
    for task in ("agreement", "coreference", "reflexive"):
        assert probes[task, 2, 2] > 0.95
        assert erased[task, 2, 2] < -0.9
        (layer, head), *_ = re.findall(rf"{task} +decoy +(\d)\.(\d)", printed)
        assert probes[task, int(layer), int(head)] > 0.55
        assert abs(erased[task, int(layer), int(head)]) < 0.1
    assert re.search(r"the feature can be read in \d+, and is used in 3\.", printed)
    assert (tmp_path / "used.png").stat().st_size > 10_000


@pytest.mark.slow
def test_structural_probe(data_dir, tmp_path):
    """A few sentences are enough to see that layer 2 holds more of the tree than what is read or a random model."""
    fit_on, score = (data_dir / "ewt" / f"en_ewt-ud-{part}.conllu" for part in ("dev", "test"))
    options = ("--fit-on", fit_on, "--data", score, "--out", tmp_path, "--n", 10)
    printed = run("analyses/structural_probe/run.py", *options)
    assert re.search(r"en_ewt-ud-dev\.conllu: \d+ of 100 sentences are read, in 10 documents", printed)
    layers = pd.read_csv(tmp_path / "layers.csv").set_index("cell")
    assert len(layers) == 1 + 2 * 7
    assert layers.loc["chain", "better"] == 0
    for name in ("uuas", "root_accuracy", "distance_spearman", "depth_spearman"):
        assert layers.loc["layer 2", name] > layers.loc[["embedding", "untrained layer 2"], name].max() + 0.03
    assert layers.loc["layer 2", "uuas"] > layers.loc["chain", "uuas"]
    for name in ("uuas", "better", "root_accuracy"):
        assert (layers[f"{name}_low"] <= layers[name]).all()
        assert (layers[name] <= layers[f"{name}_high"]).all()
    ranks = pd.read_csv(tmp_path / "ranks.csv").set_index("cell")["uuas"]
    assert ranks["rank 1"] < ranks["rank 8"] < ranks["rank 64"]


@pytest.mark.slow
def test_false_claims(tmp_path):
    """On few draws and reports: seldom false at the minimum, and intervals that cover."""
    few = ("--draws", 2, "--runs", 20, "--fresh", 20, "--processes", 2)
    run("analyses/false_claims/run.py", "--out", tmp_path, *few)
    pooled = pd.read_csv(tmp_path / "false-claims-pooled.csv").set_index("truth")
    assert (pooled.loc[:1.0, "false shown"] <= 0.1).all()
    assert (pooled.loc[1.0:, "false absent"] <= 0.1).all()
    assert pd.read_csv(tmp_path / "coverage.csv")["mean coverage"].between(0.9, 1).all()
    assert (pd.read_csv(tmp_path / "power.csv")["median power"] >= 0.8).all()


def test_the_minimum_of_false_claims_has_a_size_where_few_clusters_have_a_base_below_0():
    study = runpy.run_path(str(ROOT / "analyses/false_claims/run.py"))
    rng = np.random.default_rng(0)
    clusters = tuple(str(each) for each in range(40))
    centred = UnitTable(rng.normal(size=(40, 2)), clusters, ("one template",) * 40, pd.RangeIndex(2))
    pool = study["Pool"](centred, np.zeros((40, 2)), base=rng.normal(0.01, 1.0, 40), sign=-1)
    for _ in range(20):
        (found,) = claim([pool.draw(30, 1.0, rng)], resamples=100)
        assert (found.minimum > 0).all()


def test_every_analysis_has_a_question_and_a_program():
    folders = [path for path in (ROOT / "analyses").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert folders
    for folder in folders:
        readme = (folder / "README.md").read_text()
        assert (folder / "run.py").is_file()
        assert all(word in readme for word in ("**Question.**", "**Prediction.**", "**Finding.**"))


PROGRAMS = sorted([*ROOT.glob("analyses/*/*.py"), *ROOT.glob("benchmarks/**/*.py")])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_program_takes_from_interp_is_there(program):
    """Most are run by slow tests alone, or by none; a name that has moved is found at once."""
    taken = [node for node in ast.walk(ast.parse(program.read_text())) if isinstance(node, ast.ImportFrom)]
    for node in taken:
        if node.module.partition(".")[0] == "interp":
            exec(ast.unparse(node))


@pytest.mark.slow
def test_calibration(tmp_path):
    """On fewer models: trackers are found, nothing else is, and what is done is not done again."""
    out, runs = tmp_path / "report", tmp_path / "runs"
    printed = run("analyses/calibration/run.py", "--out", out, "--runs", runs, "--quick", "--processes", 2)
    recall = re.search(r"Of the heads that track, (\d+) of (\d+)", printed)
    assert recall
    assert int(recall[1]) >= 0.95 * int(recall[2])
    assert re.search(r"all +tracks +0\.0+ ", printed)
    kept = {path.stat().st_mtime_ns for path in runs.rglob("*.parquet")}
    assert run("analyses/calibration/run.py", "--out", out, "--runs", runs, "--quick") == printed
    assert {path.stat().st_mtime_ns for path in runs.rglob("*.parquet")} == kept
