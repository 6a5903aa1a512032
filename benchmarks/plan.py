"""How well does `interp model plan` foretell? Its seconds beside measured ones, of small models and of whole runs.

python benchmarks/plan.py [--repeats 5] [--runs] [--model NAME] [--n N] [--write]

Random weights, fp32, one thread: a forward pass over the prompts, and the ablation of every head on them, as a whole
sweep with its base run, its audit and the hash of the weights. The speed that the plan starts from, a product's of
1,024 x 1,024, is measured in the same run. With ``--runs``, in place of these, commands are planned and run, each in a
process of its own: seconds, and the most memory that it held. Prints a table; with ``--write`` it replaces its section
of RESULTS.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from ours import run_sweep
from table import Cells, show, write_section
from timing import median_seconds
from workloads import Cell, Workload, random_inputs

from interp.methods.plan import plan, this_cpu
from interp.model.config import TransformerConfig
from interp.model.presets import GPT2, LLAMA, PRESETS
from interp.model.transformer import HookedTransformer

RESULTS = Path(__file__).with_name("RESULTS.md")
SMALL = {"n_layers": 6, "n_heads": 8, "d_model": 512, "d_head": 64, "d_mlp": 2048}
MODELS = {
    "gpt2": PRESETS["gpt2"].config,
    "GPT-2, 6 layers of 512": TransformerConfig(**{**GPT2, **SMALL}),
    "Llama, 6 layers of 512, 2 key heads": TransformerConfig(**LLAMA, **SMALL, d_vocab=32_000, n_ctx=256, n_kv_heads=2),
}
WORKLOADS = ((16, 20), (4, 64))
"""Prompts, and tokens of each."""


def main() -> None:
    """Measure, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--runs", action="store_true", help="whole commands, once each")
    parser.add_argument("--model", default="default", metavar="NAME", help="of --runs")
    parser.add_argument("--n", type=int, metavar="N", help="units of --runs (the task's own number)")
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.runs:
        title, cells = f"What a plan foretells of whole runs: {given.model}", _whole_runs(given.model, given.n)
    else:
        title, cells = "What a plan foretells", _small_models(given.repeats)
    show(title, [cells])
    if given.write:
        write_section(RESULTS, title, [cells])


def _small_models(repeats: int) -> Cells:
    cells: Cells = [["model", "prompts", "tokens", "", "planned s", "measured s", "measured / planned"]]
    for name, config in MODELS.items():
        model = HookedTransformer(config).eval()
        for prompts, tokens in WORKLOADS:
            cells += [[name, str(prompts), str(tokens), *each] for each in _rows(model, prompts, tokens, repeats)]
    return cells


COMMANDS = {
    "ablate": ["--task", "agreement"],
    "patch": ["--task", "agreement"],
    "probe": ["--task", "agreement", "--feature", "number"],
    "heads": ["--task", "agreement"],
    "heads, ioi": ["--task", "ioi"],
}


def _whole_runs(model: str, n: int | None) -> Cells:
    cells: Cells = [["command", "planned s", "measured s", "measured / planned", "planned GB", "measured GB"]]
    units = [] if n is None else ["--n", str(n)]
    for name, asked in COMMANDS.items():
        command, task = name.partition(",")[0], asked[1]
        line = [sys.executable, "-m", "interp"]
        planned = subprocess.run(  # noqa: S603  # this package
            [*line, "model", "plan", "--model", model, "--task", task, *units, "--json"],
            capture_output=True,
            check=True,
        )
        stages = [each for each in json.loads(planned.stdout)["runs"] if each["run"] == command]
        seconds, held = sum(each["seconds"] for each in stages), stages[0]["gigabytes"]
        with tempfile.TemporaryDirectory() as folder:
            out = [command, "--model", model, *asked, *units, "--runs", folder, "--out", f"{folder}/out"]
            took, peak = _run([*line, *out])
        numbers = [f"{seconds:.1f}", f"{took:.1f}", f"{took / seconds:.2f}", f"{held:.2f}", f"{peak:.2f}"]
        cells.append([" ".join(out[:-4]), *numbers])
    return cells


def _run(line: list[str]) -> tuple[float, float]:
    """Seconds, and the most gigabytes that were held."""
    started = time.perf_counter()
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: S603  # this package
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(line)}: {said.decode()}")
    return time.perf_counter() - started, usage.ru_maxrss * 1024 / 1e9


def _rows(model: HookedTransformer, prompts: int, tokens: int, repeats: int) -> list[list[str]]:
    config = model.config
    inputs = random_inputs(Workload("heads", prompts, tokens), config.d_vocab)
    heads = [Cell(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
    planned = plan(config, this_cpu(), n_prompts=prompts, n_tokens=tokens).seconds
    runs: dict[str, Callable[[], object]] = {
        "forward": lambda: model(inputs.tokens),
        "sweep": lambda: run_sweep(model, inputs, heads),
    }
    measured = {name: median_seconds(run, repeats) for name, run in runs.items()}
    return [
        [name, f"{planned[name]:.3f}", f"{seconds:.3f}", f"{seconds / planned[name]:.2f}"]
        for name, seconds in measured.items()
    ]


if __name__ == "__main__":
    main()
