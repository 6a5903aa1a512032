"""How fast are interp's sweeps, side by side with TransformerLens, transformers and nnsight?

python benchmarks/sweeps.py [--quick] [--case heads] [--repeats 3] [--without-onednn] [--device cuda] [--json FILE]
                            [--write]

GPT-2 small's shape (SmolLM2-135M's for ``llama``) with random weights, fp32, in one process and on one thread; nothing
is downloaded. ``pip install nnsight`` beforehand, or it is left out. Prints tables; with ``--write`` they replace the
sections of RESULTS.md, one a mode and case.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import torch
from matmul import MAKERS, measure_products
from measure import Bench, Row, measure
from peers import installed_peers
from table import peer_table, show, speed_table, sweep_table, write_json, write_section
from transformers.utils import logging
from workloads import CASES, FULL, QUICK, Workload, module_of

import interp
from interp.model import layers

RESULTS = Path(__file__).with_name("RESULTS.md")


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the tables and write them."""
    given = _parse(arguments)
    torch.set_num_threads(1)
    if given.without_onednn:
        layers.ONEDNN = False
    logging.set_verbosity_error()
    chosen = [workload for workload in (QUICK if given.quick else FULL) if workload.case in given.case]
    title = "Quick" if given.quick else "Full"
    title += ", without oneDNN" if given.without_onednn else ""
    title += "" if given.device == "cpu" else f", {torch.cuda.get_device_name(given.device)}"
    rows = []
    for llama in (False, True):  # one module at a time is held
        if own := [workload for workload in chosen if (workload.case == "llama") == llama]:
            rows += _measured(own, given, title)
    if given.json:
        write_json(given.json, rows)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sweeps only, under a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there, too")
    parser.add_argument("--repeats", type=int, metavar="N", help="measurements of each number (3; with --quick 2)")
    parser.add_argument("--case", choices=CASES, nargs="+", default=CASES, help="only these, and only their sections")
    parser.add_argument("--without-onednn", action="store_true", help="interp's products by PyTorch's own choice, too")
    parser.add_argument("--write", action="store_true", help="replace the sections of RESULTS.md")
    parser.add_argument("--device", default="cpu", help="cuda, for sections of that GPU")
    given = parser.parse_args(arguments)
    if given.repeats is not None and given.repeats < 1:
        parser.error(f"--repeats is {given.repeats}; expected at least 1")
    return given


def _measured(workloads: list[Workload], given: argparse.Namespace, title: str) -> list[Row]:
    """The rows of workloads of one module; their tables are printed, and written where that is asked for."""
    module = module_of(workloads[0].case).to(given.device)
    bench = Bench(module, installed_peers(module), interp.load_model(module, device=given.device))
    if "nnsight" not in {peer.name for peer in bench.peers}:
        print("nnsight is not installed and is left out", file=sys.stderr)
    rows = _measure_all(bench, workloads, given.repeats or (2 if given.quick else 3))
    makers = MAKERS if given.device == "cpu" else {}  # products by the CPU's libraries
    speeds = {maker: measure_products(module.config, make) for maker, make in makers.items()}
    for case in dict.fromkeys(workload.case for workload in workloads):
        mine = [row for row in rows if row.workload.case == case]
        tables = [sweep_table(mine), speed_table(mine, speeds), peer_table(bench.peers)]
        show(f"{title}: {case}", tables)
        if given.write:
            write_section(RESULTS, f"{title}: {case}", tables)
    return rows


def _measure_all(bench: Bench, workloads: Iterable[Workload], repeats: int) -> list[Row]:
    rows = []
    for workload in workloads:
        print(f"measuring {workload} ...", file=sys.stderr)
        rows += measure(bench, workload, repeats)
    return rows


if __name__ == "__main__":
    main()
