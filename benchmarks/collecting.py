"""What does it cost to store a model's activations, beside running it, and does memory grow with the corpus?

python benchmarks/collecting.py GUM_FOLDER [--threads 1] [--repeats 3] [--write]

1. Seconds of `collect` (passages that are ready, to a complete store) against the model's forward passes alone: the
   same batches, no hooks, no unembedding. In turns; medians. `speed` is their ratio, `CPU` that of the CPU time of all
   threads. What reading the treebank takes is told beside.
2. Peak memory of a process that reads a treebank and stores it, once and six times as long.

Random weights, tokens of the model `books`. Prints tables; with ``--write`` they replace their section of RESULTS.md.
"""

import argparse
import multiprocessing
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from table import Cells, show, write_section
from torch import Tensor

import interp
from interp.model.config import TransformerConfig
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.residual.collecting import batched
from interp.runs.collecting import collect
from interp.runs.shards import shards_of
from interp.runs.store import ActivationStore
from interp.tasks.alignment import Windows
from interp.tasks.corpus import Corpus
from interp.tasks.passages import Context, CorpusPassages, Passage

RESULTS = Path(__file__).with_name("RESULTS.md")
GPT2 = {"n_layers": 12, "n_heads": 12, "d_model": 768, "d_head": 64, "d_mlp": 3072, "n_ctx": 1024}
BOOKS = {"n_layers": 6, "n_heads": 9, "d_model": 288, "d_head": 32, "d_mlp": 1152, "n_ctx": 256}
SMALL = {"n_layers": 3, "n_heads": 4, "d_model": 128, "d_head": 32, "d_mlp": 512, "n_ctx": 64}
FEATURES = ("upos", "deprel", "distance", "entity", "number", "gender", "antecedent")
CASES = (
    ("GPT-2 small's shape", GPT2, ("z",), "document", "last", 12_000),
    ("GPT-2 small's shape", GPT2, ("z", "resid_post"), "sentence", "mean", 8_000),
    ("books' shape", BOOKS, ("z",), "document", "last", 72_000),
    ("books' shape", BOOKS, ("z", "resid_post"), "sentence", "mean", 72_000),
    ("default's shape", SMALL, ("z",), "document", "last", 72_000),
    ("default's shape", SMALL, ("z", "resid_post"), "sentence", "mean", 72_000),
)
"""A model, what is stored of all of its layers and how, and about how many words."""
MEMORY_SHARD = 4 * 2**20


def main() -> None:
    """Measure, print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gum", type=Path)
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    test, train = (options.gum / f"en_gum-ud-{part}.conllu" for part in ("test", "train"))
    memory: Cells = [["treebank", "words", "store, MB", "peak memory, MB"]]
    spawn = multiprocessing.get_context("spawn")
    for times in (1, 6):
        with spawn.Pool(1) as pool:
            memory.append([f"GUM test, {times} x", *pool.apply(_memory, (test, times, options.threads))])
        print(*memory[-1], sep=" | ", flush=True)
    times = ["reading, s", "forward, s", "collect, s", "speed", "CPU"]
    speed: Cells = [["model", "stored", "context", "pooling", "words", *times]]
    for name, shape, sites, context, pooling, n_words in CASES:
        model = _model(shape)
        chosen = [Site(each, layer) for layer in range(model.config.n_layers) for each in sites]
        started = time.perf_counter()
        passages = list(_first(_passages(model, [train], context), n_words))
        reading = time.perf_counter() - started
        found = _throughput(model, passages, chosen, pooling, options.repeats)
        n_read = sum(len(passage.words) for passage in passages)
        speed.append([name, ", ".join(sites), context, pooling, f"{n_read:,}", f"{reading:.1f}", *found])
        print(*speed[-1], sep=" | ", flush=True)
    title = "Collecting activations"
    show(title, [speed, memory])
    if options.write:
        write_section(RESULTS, title, [speed, memory])


def _model(shape: dict) -> HookedTransformer:
    tokenizer = interp.load_model("books").tokenizer
    return HookedTransformer(TransformerConfig(**shape, d_vocab=len(tokenizer)), tokenizer)


def _passages(model: HookedTransformer, paths: Sequence[Path], context: Context) -> CorpusPassages:
    windows = Windows(model.tokenizer, model.config.n_ctx, both_sides=False)
    return CorpusPassages(Corpus.of(list(paths)), windows, FEATURES, context)


def _throughput(
    model: HookedTransformer, passages: Sequence[Passage], sites: Sequence[Site], pooling: str, repeats: int
) -> list[str]:
    """Seconds of the forward passes and of collecting, and their ratios: of seconds, and of all threads' CPU time."""
    forward, collecting = [], []
    with TemporaryDirectory() as folder:
        for number in range(repeats + 1):  # the first is not counted
            place = Path(folder) / str(number)
            collecting.append(_timed(partial(collect, model, passages, sites, place, pooling=pooling, data_hash="")))
            shard_rows = ActivationStore.open(place).manifest.request.shard_rows
            forward.append(_timed(partial(_run, model, list(_batches(passages, shard_rows)))))
            shutil.rmtree(place)
    (bare, bare_cpu), (whole, whole_cpu) = (_medians(each[1:]) for each in (forward, collecting))
    return [f"{bare:.2f}", f"{whole:.2f}", f"{bare / whole:.0%}", f"{bare_cpu / whole_cpu:.0%}"]


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def _medians(times: Sequence[tuple[float, float]]) -> tuple[float, float]:
    wall, cpu = zip(*times, strict=True)
    return statistics.median(wall), statistics.median(cpu)


def _run(model: HookedTransformer, batches: Sequence[Tensor]) -> None:
    with torch.inference_mode():
        for tokens in batches:
            model(tokens, stop_at_layer=model.config.n_layers)


def _first(passages: CorpusPassages, n_words: int) -> Iterator[Passage]:
    """The first ones, with so many words together."""
    total = 0
    for passage in passages:
        yield passage
        total += len(passage.words)
        if total >= n_words:
            return


def _batches(passages: Sequence[Passage], shard_rows: int) -> Iterator[Tensor]:
    """The tokens that ``collect`` runs at once."""
    for shard in shards_of(passages, shard_rows):
        yield from (torch.tensor([piece.passage.ids]) for piece in shard.across if piece.first >= shard.start)
        for batch in batched(piece.passage for piece in shard.inside):
            yield torch.tensor([passage.ids for passage in batch])


def _memory(path: Path, times: int, threads: int) -> list[str]:
    torch.set_num_threads(threads)
    model = _model(SMALL)
    sites = [Site("z", layer) for layer in range(model.config.n_layers)]
    passages = _passages(model, [path] * times, "document")
    with TemporaryDirectory() as folder:
        store = collect(model, passages, sites, f"{folder}/store", data_hash="", shard_bytes=MEMORY_SHARD)
        size = sum(file.stat().st_size for file in store.folder.iterdir())
        ActivationStore.open(store.folder)
    return [f"{store.rows:,}", f"{size / 1e6:,.0f}", f"{_peak() / 1e6:,.0f}"]


def _peak() -> int:
    """Bytes. What ``resource`` tells of a new process can be its parent's."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


if __name__ == "__main__":
    main()
