"""How long does it take to score every head on every relation of a treebank, and does memory grow with it?

python benchmarks/attention.py GUM_FOLDER [--threads 2] [--write]

Random weights, the default relations (every label, coreference) in both directions, tokens of the model `books`. Each
row is a process of its own, so that its peak memory is its own; the first two only read, which is what the libraries,
the tokenizer and the counts take. Prints a table; with ``--write`` it replaces its section of RESULTS.md.
"""

import argparse
import multiprocessing
import resource
import time
from pathlib import Path

import torch
from table import Cells, show, write_section

import interp
from interp.model.config import TransformerConfig
from interp.model.transformer import HookedTransformer
from interp.tasks.corpus import Corpus

RESULTS = Path(__file__).with_name("RESULTS.md")
ENCODER = {"n_layers": 6, "n_heads": 12, "d_model": 384, "d_head": 32, "d_mlp": 1536, "n_ctx": 512, "causal": False}
GPT2 = {"n_layers": 12, "n_heads": 12, "d_model": 768, "d_head": 64, "d_mlp": 3072, "n_ctx": 1024}
ROWS = (
    ("read alone", None, "test"),
    ("read alone", None, "train"),
    ("encoder, 6 layers of 384, 12 heads", ENCODER, "test"),
    ("encoder, 6 layers of 384, 12 heads", ENCODER, "train"),
    ("GPT-2 small's shape", GPT2, "test"),
)


def main() -> None:
    """Measure, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gum", type=Path)
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cells: Cells = [["model", "treebank", "words", "hypotheses", "s", "words a second", "peak memory, MB"]]
    context = multiprocessing.get_context("spawn")
    for name, shape, part in ROWS:
        with context.Pool(1) as pool:
            found = pool.apply(_measure, (shape, options.gum / f"en_gum-ud-{part}.conllu", options.threads))
        cells.append([name, f"GUM {part}", *found])
        print(*cells[-1], sep=" | ", flush=True)
    title = "Heads against relations"
    show(title, [cells])
    if options.write:
        write_section(RESULTS, title, [cells])


def _measure(shape: dict | None, path: Path, threads: int) -> list[str]:
    torch.set_num_threads(threads)
    tokenizer = interp.load_model("books").tokenizer
    started = time.perf_counter()
    n_words, n_hypotheses = sum(Corpus.of(path).contents.documents.values()), 0
    if shape is not None:
        model = HookedTransformer(TransformerConfig(**shape, d_vocab=len(tokenizer)), tokenizer).eval()
        started = time.perf_counter()
        n_hypotheses = len(interp.attend(model, path).summary())
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return [f"{n_words:,}", f"{n_hypotheses:,}", f"{seconds:.1f}", f"{n_words / seconds:,.0f}", f"{peak:,.0f}"]


if __name__ == "__main__":
    main()
