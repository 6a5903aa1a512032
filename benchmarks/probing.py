"""How fast are probes of all heads together, beside scikit-learn one by one?

python benchmarks/probing.py [--heads 144] [--examples 10000] [--loop 2] [--threads 2] [--device cuda]

1. Every head has its own made-up activations (64 numbers of uneven spread) from which a label can be read in part.
2. Ours: all heads x 5 penalties x 5 folds, from float32 activations to out-of-fold accuracies.
3. scikit-learn: the same loop over folds and penalties with ``LogisticRegression`` as it comes, on `--loop` heads; the
   time of all heads is scaled up from these. In 32 and in 64 bits, and, for the accuracy, with a tolerance of 1e-8.
4. On a GPU, where one is asked for: the same heads again, the largest difference to the CPU, and the ratio of times.
"""

import argparse
import time

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from interp.methods.probes.logistic import fit_logistic
from interp.methods.probes.problems import Problems
from interp.methods.probes.targets import Target

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


def main() -> None:
    parser = argparse.ArgumentParser(description="Probes of all heads together, beside scikit-learn one by one.")
    parser.add_argument("--heads", type=int, default=144)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--loop", type=int, default=2, help="heads that scikit-learn is timed on")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default=None, help="cuda, to compare it with the CPU")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    x, y = activations(options.heads, options.examples)
    n_fits = options.heads * FOLDS * len(PENALTIES)
    shape = f"{options.heads} heads x {FEATURES} x {options.examples:,} examples"
    print(f"{shape} x {len(PENALTIES)} penalties x {FOLDS} folds")
    ours(x[:1], y, "cpu")
    started = time.perf_counter()
    accuracy, weights = ours(x, y, "cpu")
    seconds = time.perf_counter() - started
    print(f"ours, {n_fits:,} probes, {options.threads} threads: {seconds:.1f} s; accuracy {accuracy.mean():.4f}")
    for dtype in (np.float32, np.float64):
        given = x[: options.loop].numpy().astype(dtype)
        started = time.perf_counter()
        theirs = [loop(each, y.numpy()) for each in given]
        each = (time.perf_counter() - started) / options.loop
        gap = np.abs(np.stack([one for one, _ in theirs]) - accuracy[: options.loop])
        print(
            f"scikit-learn, {np.dtype(dtype).name}, {options.loop} heads timed: {each:.1f} s a head, "
            f"{each * options.heads:,.0f} s for all: {each * options.heads / seconds:.0f} x as long; "
            f"accuracies differ by {gap.max():.4f} at most"
        )
    exact, coefficients = loop(x[0].numpy().astype(float), y.numpy(), tol=1e-8)
    print(
        f"scikit-learn at tol=1e-8, one head: accuracies differ by {np.abs(exact - accuracy[0]).max():.4f} at most, "
        f"coefficients by {np.abs(coefficients - weights[0]).max():.1e} of {np.abs(coefficients).max():.2f}"
    )
    if options.device:
        ours(x[:1], y, options.device)
        torch.cuda.synchronize()
        started = time.perf_counter()
        there, far = ours(x, y, options.device)
        elapsed = time.perf_counter() - started
        print(
            f"{torch.cuda.get_device_name()}: {elapsed:.2f} s, {seconds / elapsed:.0f} x as fast; accuracies differ by "
            f"{np.abs(there - accuracy).max():.4f} at most, weights by {np.abs(far - weights).max():.1e}"
        )


if __name__ == "__main__":
    main()
