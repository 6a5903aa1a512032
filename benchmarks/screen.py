"""How fast is a screened sweep, and what does it miss? Every head at every position, beside TransformerLens.

python benchmarks/screen.py [--write]

GPT-2 small's shape with random weights, 16 prompts of 20 random tokens, fp32, one thread. Takes about two minutes.
Prints a table; with ``--write`` it replaces its section of RESULTS.md.
"""

import argparse
import statistics
import time

import torch
from ours import encoded
from peers import clean_run, installed_peers
from sweeps import RESULTS
from table import show, write_section
from workloads import Cell, Inputs, Workload, random_gpt2, random_inputs, spread

import interp
from interp.tasks.task import Task, Unit

TIMED = 6
"""Forward passes of TransformerLens that are timed; each cell of its sweep is one."""


def paired(inputs: Inputs) -> tuple[Task, Inputs]:
    """A task whose units are two prompts each, and the same for peers: every prompt is patched from its other."""
    prompts, answers = inputs.tokens.tolist(), (int(inputs.right[0]), int(inputs.wrong[0]))
    units, runs, sources = [], [], []
    for number, (one, other) in enumerate(zip(prompts[::2], prompts[1::2], strict=True)):
        units.append(Unit(encoded(one, *answers), encoded(other, *answers[::-1]), f"unit {number}"))
        runs += [other, one]
        sources += [one, other]
    task = Task(
        name="random tokens",
        description="Random tokens.",
        metric="logit_difference",
        query="predicting position",
        units=tuple(units),
        references=(),
        dropped={},
        coverage={},
        hash="random",
    )
    return task, Inputs(torch.tensor(runs), torch.tensor(sources), inputs.right, inputs.wrong)


def main() -> None:
    """Measure, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    module = random_gpt2()
    workload = Workload("head_pos", 16, 20)
    task, inputs = paired(random_inputs(workload, module.config.vocab_size))
    model, peer = interp.load_model(module), installed_peers(module)[0]
    config = model.config
    cells = [
        Cell(layer, head, pos)
        for layer in range(config.n_layers)
        for head in range(config.n_heads)
        for pos in range(workload.tokens)
    ]
    clean = clean_run(module, inputs.clean_tokens)
    forwards = []
    for cell in spread(cells, TIMED):
        start = time.perf_counter()
        with torch.no_grad():
            peer.run_cells(inputs, clean, [cell])
        forwards.append(time.perf_counter() - start)
    start = time.perf_counter()
    result = interp.patch(model, task, site="z", by=("layer", "head", "pos"), screen=True)
    seconds, screen = time.perf_counter() - start, result.screen
    full = len(cells) * statistics.median(forwards)
    recall, measured = screen.recall(), result.examples.groupby(list(result.labels)).ngroups
    rows = [
        ["", ""],
        [f"{peer.name}, all {len(cells):,} cells, from {TIMED} of them", f"{full:,.0f} s"],
        [f"interp, screened: estimates of all, {measured} cells exactly", f"{seconds:,.0f} s"],
        ["ratio", f"{full / seconds:.1f}"],
        [
            f"estimated recall of the {recall.sought} largest effects, with its 95 % interval",
            f"{recall.estimate:.3f} ({recall.low:.3f} to {recall.high:.3f})",
        ],
        ["correlation of estimates and exact effects in the audit", f"{screen.correlation:.3f}"],
    ]
    show("Screen", [rows])
    if options.write:
        write_section(RESULTS, "Screen", [rows])


if __name__ == "__main__":
    main()
