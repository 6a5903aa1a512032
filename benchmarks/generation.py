"""How fast is writing with the cache, beside ``transformers``' own generate?

python benchmarks/generation.py [--repeats 5] [--write]

GPT-2 small's shape with random weights, fp32, greedy, one process and one thread, the two in turns. Checks first that
both write the same tokens. Prints a table; with ``--write`` it replaces its section of RESULTS.md.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from table import show, write_section
from transformers import GPT2LMHeadModel
from workloads import random_gpt2

import interp

RESULTS = Path(__file__).with_name("RESULTS.md")
WORKLOADS = ((1, 20, 50), (4, 20, 50), (1, 200, 50))
"""Prompts, tokens of each, tokens that are written."""


def main() -> None:
    """Measure, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    options = parser.parse_args()
    repeats = options.repeats
    torch.set_num_threads(1)
    module = random_gpt2()
    model = interp.load_model(module)
    rows = [_measured(module, model, *workload, repeats=repeats) for workload in WORKLOADS]
    table = [list(rows[0]), *([f"{value}" for value in row.values()] for row in rows)]
    show("Generation", [table])
    if options.write:
        write_section(RESULTS, "Generation", [table])


def _measured(
    module: GPT2LMHeadModel, model: interp.HookedTransformer, prompts: int, tokens: int, new: int, *, repeats: int
) -> dict[str, object]:
    given = torch.randint(module.config.vocab_size, (prompts, tokens), generator=torch.Generator().manual_seed(0))
    options = {"do_sample": False, "max_new_tokens": new, "min_new_tokens": new, "pad_token_id": 0}

    def theirs() -> torch.Tensor:
        with torch.inference_mode():
            return module.generate(given, attention_mask=torch.ones_like(given), **options)

    def ours() -> torch.Tensor:
        return model.generate(given, new)

    assert torch.equal(theirs(), ours()), "the two write other tokens"
    seconds: dict[str, list[float]] = {"transformers": [], "interp": []}
    for _ in range(repeats):
        for name, write in (("transformers", theirs), ("interp", ours)):
            seconds[name].append(_timed(write))
    per_token = {name: 1000 * statistics.median(each) / new for name, each in seconds.items()}
    return {
        "prompts": prompts,
        "tokens of each": tokens,
        "written": new,
        **{f"{name}, ms a step": round(value, 1) for name, value in per_token.items()},
        "ratio": round(per_token["transformers"] / per_token["interp"], 2),
    }


def _timed(write: Callable[[], torch.Tensor]) -> float:
    started = time.perf_counter()
    write()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
