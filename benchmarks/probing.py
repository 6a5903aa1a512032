"""How fast are probes of all heads together, beside scikit-learn one by one?

python benchmarks/probing.py [--heads 144] [--examples 10000] [--loop 2] [--threads 2] [--repeats 3]
                             [--device cuda] [--write]

1. Every head has its own made-up activations (64 numbers of uneven spread) from which a label can be read in part.
2. Ours: all heads x 5 penalties x 5 folds, from float32 activations to out-of-fold accuracies.
3. scikit-learn: the same loop over folds and penalties with ``LogisticRegression`` as it comes, on `--loop` heads; the
   time of all heads is scaled up from these. In 32 and in 64 bits, on both threads and on one (which is faster, they
   wait for each other); and to the tolerance at which its coefficients agree with ours. In turns with ours; medians.
4. On a GPU, where one is asked for: the same heads again, the largest difference to the CPU, and the ratio of times.

Prints the tables; with ``--write`` they replace their section of RESULTS.md.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from table import Cells, show, write_section
from threadpoolctl import threadpool_limits

from interp.methods.probes.data import Target
from interp.methods.probes.linear import Problems, fit_logistic

THEIRS = (
    (np.float32, 1e-4, 2),
    (np.float64, 1e-4, 2),
    (np.float32, 1e-4, 1),
    (np.float64, 1e-4, 1),
    (np.float64, 1e-7, 1),
)
"""How scikit-learn is run: in which dtype, to which tolerance (its own is 1e-4), on how many threads."""
RESULTS = Path(__file__).with_name("RESULTS.md")
PENALTIES = (1e3, 1e2, 1e1, 1e0, 1e-1)
FOLDS = 5
FEATURES = 64
HEADS_AT_ONCE = {"cpu": 1, "cuda": 16}


def activations(n_heads: int, n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Heads whose spread falls over a hundredfold, each with some of what makes the label."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.randn(n, generator=generator)
    spread = torch.logspace(0, -2, FEATURES)
    turn = torch.linalg.qr(torch.randn(n_heads, FEATURES, FEATURES, generator=generator)).Q
    x = torch.randn(n_heads, n, FEATURES, generator=generator) * spread
    x += label[:, None] * spread * torch.randn(n_heads, 1, FEATURES, generator=generator) * 0.2
    return x @ turn.mT, (label > 0).long()


def problems(n: int, device: str) -> Problems:
    """Every fold left out, with every penalty."""
    apart = ~torch.eye(FOLDS, dtype=torch.bool)
    penalty = torch.tensor(PENALTIES, dtype=torch.float64).repeat(FOLDS)
    given = Problems(torch.arange(n) % FOLDS, apart.repeat_interleave(len(PENALTIES), dim=0), penalty[None])
    return Problems(*(each.to(device) for each in vars(given).values()))


def ours(x: torch.Tensor, y: torch.Tensor, device: str) -> tuple[np.ndarray, np.ndarray]:
    """Out-of-fold accuracy of every head, fold and penalty, and the weights."""
    target, given = Target(y.to(device), 2), problems(len(y), device)
    tested = 1 - given.mask()
    accuracy, weights = [], []
    for part in x.split(HEADS_AT_ONCE[device]):
        here = part.to(device, torch.float64)
        found = fit_logistic(here, target, given)
        hits = target.hits(found.scores(here)).double()
        accuracy.append(((hits * tested).sum(1) / tested.sum(0)).cpu())
        weights.append(found.weight[..., 0].cpu())
    return torch.cat(accuracy).numpy(), torch.cat(weights).numpy()


def loop(x: np.ndarray, y: np.ndarray, **options: float) -> tuple[np.ndarray, np.ndarray]:
    """The same of one head by scikit-learn."""
    fold = np.arange(len(y)) % FOLDS
    accuracy, weights = [], []
    for number in range(FOLDS):
        train = fold != number
        for penalty in PENALTIES:
            found = LogisticRegression(C=1 / penalty, max_iter=10_000, **options).fit(x[train], y[train])
            accuracy.append(found.score(x[~train], y[~train]))
            weights.append(found.coef_[0])
    return np.array(accuracy), np.array(weights)


def beside(x: torch.Tensor, y: np.ndarray, dtype: type, tol: float, threads: int) -> tuple[float, tuple]:
    """Seconds a head of scikit-learn's loop over some heads; their accuracies and weights."""
    given = x.numpy().astype(dtype)
    with threadpool_limits(threads):
        started = time.perf_counter()
        found = [loop(each, y, tol=tol) for each in given]
        seconds = time.perf_counter() - started
    return seconds / len(x), tuple(np.stack(each) for each in zip(*found, strict=True))


def main() -> None:
    """Measure, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", type=int, default=144)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--loop", type=int, default=2, help="heads that scikit-learn is timed on")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default=None, help="cuda, to compare it with the CPU")
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    x, y = activations(options.heads, options.examples)
    ours(x[:1], y, "cpu")
    of_ours: list[float] = []
    of_theirs: dict[tuple, list] = {each: [] for each in THEIRS}
    for _ in range(options.repeats):
        seconds, accuracy, weights = timed(x, y, "cpu")
        of_ours.append(seconds)
        for each, runs in of_theirs.items():
            runs.append(beside(x[: options.loop], y.numpy(), *each))
    n, whole = options.heads, statistics.median(of_ours)
    header = ["", "threads", "heads timed", "s a head", "s for all", "times ours"]
    table = [[*header, "accuracies differ by", "coefficients differ by"]]
    table.append(["interp, float64", options.threads, n, f"{whole / n:.3f}", f"{whole:.1f}", "1", "", ""])
    for (dtype, tol, threads), runs in of_theirs.items():
        each = statistics.median(seconds for seconds, _ in runs)
        gaps = differ(runs[0][1], (accuracy[: options.loop], weights[: options.loop]))
        times = [f"{each:.2f}", f"{each * n:,.0f} (scaled)", f"{each * n / whole:.0f}"]
        table.append([f"scikit-learn, {np.dtype(dtype).name}, tol={tol:g}", threads, options.loop, *times, *gaps])
    if options.device:
        ours(x[:1], y, options.device)
        elapsed, *found = timed(x, y, options.device)
        times = [f"{elapsed / n:.4f}", f"{elapsed:.2f}", f"{elapsed / whole:.4f}"]
        gaps = differ(found, (accuracy, weights))
        table.append([f"interp, {torch.cuda.get_device_name()}", "", n, *times, *gaps])
    shape = f"{n} heads x {FEATURES} x {options.examples:,} examples x {len(PENALTIES)} penalties x {FOLDS} folds"
    tables: list[Cells] = [[list(map(str, row)) for row in table]]
    title = f"Probes of all heads: {shape}"
    show(title, tables)
    if options.write:
        write_section(RESULTS, title, tables)


def differ(found: Sequence[np.ndarray], ours: Sequence[np.ndarray]) -> list[str]:
    """The largest differences of accuracies and of coefficients, these beside the largest of them."""
    accuracy, weights = (np.abs(one - other).max() for one, other in zip(found, ours, strict=True))
    return [f"{accuracy:.4f}", f"{weights:.1e} of {np.abs(ours[1]).max():.1f}"]


def timed(x: torch.Tensor, y: torch.Tensor, device: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Seconds of ours, accuracies and weights."""
    started = time.perf_counter()
    accuracy, weights = ours(x, y, device)
    return time.perf_counter() - started, accuracy, weights


if __name__ == "__main__":
    main()
