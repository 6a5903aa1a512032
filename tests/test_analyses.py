"""The analyses run and print what their READMEs report, on fewer items."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from interp.model.loading.load import model_folder

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_head_ablation(tmp_path):
    printed = run("analyses/head_ablation/run.py", "--out", tmp_path, "--n", 40)
    assert "matter under every kind" in printed
    assert (tmp_path / "kinds.png").stat().st_size > 10_000
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
def test_blimp(data_dir):
    assert "anaphor_number_agreement" in run("analyses/blimp/run.py", data_dir / "blimp")


def test_every_analysis_has_a_question_and_a_program():
    folders = [path for path in (ROOT / "analyses").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert folders
    for folder in folders:
        readme = (folder / "README.md").read_text()
        assert (folder / "run.py").is_file()
        assert all(word in readme for word in ("**Question.**", "**Prediction.**", "**Finding.**"))
