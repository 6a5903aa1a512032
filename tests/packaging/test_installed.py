"""Does the wheel do the main job by itself, in an environment of its own and away from the checkout?

The libraries are those of this environment, so that they are not installed again; of interp nothing but the wheel is
on the way.
"""

import json
import os
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.unchecked]

ROOT = Path(__file__).resolve().parent.parent.parent
SNIPPET = """\
import interp
from interp.options import PatchOptions
from interp.runs.executors import Processes

model = interp.load_model()
task: interp.Example = interp.load_task("agreement", tokenizer=None)
reveal_type(interp.heads(model))
reveal_type(interp.ablate(model, "ioi", run=interp.Run("runs", Processes(2))).examples)
interp.patch(model, "ioi", PatchOptions(direction="sideways"))
interp.nonsense
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The folder of an environment with the wheel, and its programs."""
    place = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", place, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = place.glob("interp-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    install = [sys.executable, "-m", "pip", "--python", place / "venv", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*install, wheel], check=True)
    (own,) = (place / "venv").glob("lib/python*/site-packages")
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return place / "venv"


@pytest.fixture
def run(environment, tmp_path):
    """A program of the environment, from an empty folder, with nothing of ours in its environment."""

    def run(program, *arguments):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "INTERP"))}
        command = [environment / "bin" / program, *arguments]
        here = tmp_path / "empty"
        here.mkdir(exist_ok=True)
        return subprocess.run(
            command, cwd=here, env=clean | {"INTERP_RUNS": str(tmp_path / "runs")}, capture_output=True, text=True
        )

    return run


def test_what_is_imported_lies_in_the_environment(run, environment):
    code = "import interp; print(interp.__file__); print(interp.load_model().cfg.n_layers)"
    done = run("python", "-I", "-c", code)
    assert done.returncode == 0, done.stderr
    place, layers = done.stdout.splitlines()
    assert Path(place).is_relative_to(environment)
    assert layers == "3"


def test_the_main_job_is_done_from_an_empty_folder(run, tmp_path):
    done = run("interp", "heads", "--task", "agreement", "--n", "40", "--out", "report")
    assert done.returncode == 0, done.stderr
    page = tmp_path / "empty" / "report" / "report.html"
    assert "<style" in page.read_text(encoding="utf-8")
    assert (tmp_path / "empty" / "report" / "heads.csv").is_file()
    assert done.stderr.splitlines()[-1].startswith("next: interp patch ")


def test_the_doctor_finds_it_well(run):
    done = run("interp", "doctor", "--json")
    assert done.returncode == 0, done.stdout
    found = {each["what"]: each for each in json.loads(done.stdout)["checks"]}
    assert found["files"]["state"] == "well"
    assert "each as it was packaged" in found["files"]["says"]
    assert found["interp"]["says"].startswith(version("interp"))


def test_a_file_that_was_changed_is_found(run, environment):
    (style,) = environment.glob("lib/python*/site-packages/interp/report/templates/page.css")
    before = style.read_bytes()
    style.write_bytes(before + b"\n")
    try:
        done = run("interp", "doctor")
    finally:
        style.write_bytes(before)
    assert done.returncode == 1
    assert "1 of " in done.stdout
    assert "not as they were packaged: interp/report/templates/page.css" in done.stdout


def test_what_a_user_writes_is_checked_by_its_types(environment, tmp_path):
    from mypy import api

    (tmp_path / "script.py").write_text(SNIPPET)
    options = ["--python-executable", str(environment / "bin" / "python"), "--ignore-missing-imports", "--strict"]
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    cache = ["--cache-dir", str(tmp_path / "cache")]
    here = Path.cwd()
    os.chdir(tmp_path)  # or mypy would find the checkout
    try:
        said, wrong, _ = api.run([*options, *cache, "script.py"])
    finally:
        os.chdir(here)
    assert wrong == ""
    assert 'Revealed type is "interp.methods.dossier.HeadsReport"' in said
    assert 'Incompatible types in assignment (expression has type "Task", variable has type "Example")' in said
    assert 'Argument "direction" to "PatchOptions" has incompatible type' in said
    assert 'Module has no attribute "nonsense"' in said
    assert "missing library stubs or py.typed" not in said
