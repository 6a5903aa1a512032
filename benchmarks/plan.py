"""How well does `interp model plan` foretell time? Its seconds beside measured ones, of small models.

python benchmarks/plan.py [--repeats 5]

Random weights, fp32, one thread: a forward pass over the prompts, and the ablation of every head on them, as a whole
sweep with its base run, its audit and the hash of the weights. The speed that the plan starts from, a product's of
1,024 x 1,024, is measured in the same run. Prints a table and replaces its section of RESULTS.md.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from cases import Cell, Workload, random_inputs
from ours import run_sweep
from table import Cells, show, write_section
from timing import median_seconds

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
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    cells: Cells = [["model", "prompts", "tokens", "", "planned s", "measured s", "measured / planned"]]
    for name, config in MODELS.items():
        model = HookedTransformer(config).eval()
        for prompts, tokens in WORKLOADS:
            cells += [[name, str(prompts), str(tokens), *each] for each in _rows(model, prompts, tokens, repeats)]
    title = "What a plan foretells"
    show(title, [cells])
    write_section(RESULTS, title, [cells])


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
