"""A dossier whose process is killed, at whatever moment, goes on to the table of one that was left alone."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from noun_model import noun_model
from test_heads_in_looks import task

from interp.methods.dossier import heads

HERE = Path(__file__).parent
TRIALS = 30
CHILD = f"""
import sys
sys.path[:0] = {[str(HERE), str(HERE.parent)]!r}
import torch
torch.set_num_threads(1)
from test_killed_dossier import judge
print("begun", flush=True)
judge(sys.argv[1])
"""

pytestmark = [
    pytest.mark.unchecked,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*the intervention changed nothing on any example"),
]


def judge(folder=None):
    return heads(noun_model(), [task(), task("b")], probes=False, max_group=0, run=folder)


def begun(folder):
    """A process that judges, and has begun."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, folder], stdout=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert process.stdout.readline() == b"begun\n"
    return process


def test_killed_at_random_moments_it_goes_on_to_the_same_table(tmp_path):
    whole = judge()
    started = time.perf_counter()
    assert begun(tmp_path / "left alone").wait() == 0
    seconds, moments = time.perf_counter() - started, np.random.default_rng(0).uniform(size=TRIALS)
    n_killed, kept = 0, set()
    for number, moment in enumerate(moments):
        folder = tmp_path / str(number)
        process = begun(folder)
        time.sleep(moment * seconds * 0.5)  # imports are part of what was timed
        process.kill()
        n_killed += process.wait() != 0
        kept.add(len(list(folder.glob("*/result.json"))))
        found = judge(folder)
        pd.testing.assert_frame_equal(found.summary(), whole.summary(), check_exact=True)
        pd.testing.assert_frame_equal(found.examples, whole.examples, check_exact=True)
    assert n_killed >= TRIALS / 2
    assert len(kept) >= 3  # answers that were complete: it died in different looks
