"""The audit of pinned versions, with pip-audit faked: what is said, and whether `make test-all` goes on."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unchecked

ROOT = Path(__file__).resolve().parent.parent
ADVISORY = {"id": "PYSEC-1", "fix_versions": ["2.1"], "description": "", "aliases": []}
KNOWN = {"name": "a", "version": "2.0", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "Dependency not found on PyPI and could not be audited: b (1.0)"}


def audit(tmp_path, source):
    (tmp_path / "pip_audit.py").write_text(source)
    return subprocess.run(
        [sys.executable, ROOT / ".ci" / "audit.py", "constraints.txt"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("packages", "said", "code"),
    [
        ([KNOWN], "audited: 1 packages, 0 advisories", 0),
        ([KNOWN | {"vulns": [ADVISORY]}], "a 2.0: PYSEC-1, mended in 2.1\naudited: 1 packages, 1 advisories", 1),
        ([SKIPPED, SKIPPED], "not audited: service not reachable (it knows none of 2 packages)", 0),
        ([KNOWN, SKIPPED], "audited: 1 packages, 0 advisories; not audited, for nobody answers for them: b", 0),
    ],
)
def test_what_the_service_answers_is_said(tmp_path, packages, said, code):
    run = audit(tmp_path, f"print({json.dumps(json.dumps({'dependencies': packages}))})")
    assert (run.stdout.strip(), run.returncode) == (said, code)


@pytest.mark.parametrize(
    ("error", "said", "code"),
    [
        ("class ConnectionError(Exception): pass\nraise ConnectionError('no route')", "service not reachable", 0),
        ("raise SystemExit('constraints.txt: no such file')", "pip-audit failed (constraints.txt: no such file)", 1),
    ],
)
def test_no_answer_is_no_finding_and_a_failure_is_one(tmp_path, error, said, code):
    run = audit(tmp_path, error)
    assert run.stdout.startswith("not audited: ")
    assert said in run.stdout
    assert run.returncode == code


def test_all_that_is_needed_to_test_everything_is_pinned_and_audited():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(
        r"^test-all:.*\n(\t.*\n)*\t\$\(BIN\)/python \.ci/audit\.py constraints\.txt", makefile, re.MULTILINE
    )
    assert re.search(r"^pip_audit==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
