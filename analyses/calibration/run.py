"""How often is a verdict wrong? See README.md.

python analyses/calibration/run.py --out DIR [--processes 2] [--quick]
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

from interp.calibration.calibrate import FULL, QUICK, Calibration, calibrate
from interp.calibration.rates import decoys, false_tracks, outcomes, recall
from interp.report.calibration import findings
from interp.runs.executors import Local, Processes
from interp.runs.root import root_of
from interp.runs.run import Run


def costs(found: Calibration) -> pd.DataFrame:
    """Seconds that a model takes, by what it is."""
    by_kind = found.examples.groupby(["kind", "job"])["seconds"].first().groupby("kind")
    return by_kind.agg(["count", "median", "max"]).reset_index()


def wrong(found: Calibration) -> pd.DataFrame:
    """The wrong verdicts on planted models at the standard difficulty, by what the head is."""
    planted = found.examples[found.examples["part"] == "planted"]
    bad = planted[outcomes(planted) == "wrong"]
    return bad.groupby(["role", "truth", "verdict"]).size().rename("heads").reset_index()


def main() -> None:
    """Run, print and write everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=root_of(None), help="Where models that are done are kept.")
    parser.add_argument("--seed", type=int, default=100_000, help="Of models that no rule was made on.")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pd.set_option("display.width", 200, "display.max_columns", 20)
    size = QUICK if options.quick else FULL
    run = Run(options.runs, Processes(options.processes) if options.processes > 1 else Local())
    found = calibrate(size, seed=options.seed, run=run)
    found.save(options.out)
    planted = found.examples[found.examples["part"] == "planted"]
    shared = planted[planted["n_kv_heads"].notna()]
    tables = {
        "trackers found": found.recall,
        "false tracks": found.false_tracks,
        "trackers found where heads share keys": recall(shared),
        "false tracks where heads share keys": false_tracks(shared),
        "decoys that get their own verdict where heads share keys": decoys(shared),
        "false claims where nothing is to be found": found.false_discoveries,
        "decoys that get their own verdict": found.decoys,
        "models with something that the others lack": found.special,
        "the only head of trained models": found.single_heads,
        "verdicts by what the head is": found.confusion.reset_index(),
        "wrong verdicts": wrong(found),
        "fewer examples": found.halves,
        **{f"heads by {name}": table for name, table in found.curves.items()},
        "seconds a model": costs(found),
    }
    print("\n".join(findings(found)), end="\n\n")
    for name, table in tables.items():
        print(f"{name}\n\n{table.round(4).to_string(index=False)}\n")


if __name__ == "__main__":
    main()
