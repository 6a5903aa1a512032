"""Which library multiplies faster on a CPU, in 32 bits: oneDNN, or the one that PyTorch takes?

MKL, which PyTorch takes, uses the widest vector instructions on Intel's processors only; oneDNN does on all, but lays
out the weights anew for each product, which is much of a small one. So both are timed once for a shape of weights, with
a few numbers of rows, and what was found is remembered in ``products.json`` below ``$XDG_CACHE_HOME/interp`` (or
``~/.cache/interp``): by processor, version of PyTorch and number of threads. The sums are the same up to their order.
"""

import fcntl
import json
import os
import platform
import re
from functools import cache, partial
from pathlib import Path
from timeit import timeit

import torch

ROWS = (8, 32, 128, 512, 2048)
"""Of the products that are timed."""
NEVER = 1 << 62
"""More rows than there are."""
REPEATS, MOST = 7, 4e9
"""How often each is timed, and operations beyond which no more rows are."""


@cache
def rows_for_onednn(inner: int, outer: int, n_threads: int) -> int:
    """From how many rows on oneDNN is the faster one, for weights of a shape; known, or timed now and remembered."""
    machine, shape = f"{_processor()}, torch {torch.__version__}, {n_threads} threads", f"{inner} x {outer}"
    try:
        folder = cache_root()
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "products.json").open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # whoever comes second takes what the first one found
            file.seek(0)
            known = _read(file.read())
            if shape not in known.setdefault(machine, {}):
                known[machine][shape] = _timed(inner, outer)
                file.truncate(0)
                json.dump(known, file, indent=1)
            return int(known[machine][shape])
    except OSError:  # nothing can be remembered here
        return _timed(inner, outer)


def _processor() -> str:
    """What the processor calls itself."""
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        said = ""
    names = re.findall(r"^(?:vendor_id|model name|cpu family|model)\s*:\s*(.*)$", said, re.MULTILINE)
    return " ".join(dict.fromkeys(names)) or platform.processor() or platform.machine()


def _read(text: str) -> dict[str, dict[str, int]]:
    """What a file has; a damaged one has nothing."""
    try:
        found = json.loads(text or "{}")
        return {name: each for name, each in found.items() if isinstance(each, dict)} if isinstance(found, dict) else {}
    except ValueError:
        return {}


def _timed(inner: int, outer: int) -> int:
    weight, bias, fewest = torch.randn(inner, outer), torch.randn(outer), NEVER
    with torch.inference_mode():
        for rows in reversed(ROWS):
            if rows != ROWS[0] and 2.0 * rows * inner * outer > MOST:
                continue
            x = torch.randn(rows, inner)
            by_onednn = partial(torch.ops.mkldnn._linear_pointwise, x, weight.t(), bias, "none", [], "")
            ways = (by_onednn, partial(torch.addmm, bias, x, weight))
            onednn, other = zip(*([timeit(way, number=1) for way in ways] for _ in range(REPEATS)), strict=True)
            if min(onednn) >= min(other):  # what else the machine does only adds to it
                break
            fewest = rows
    return fewest


def cache_root() -> Path:
    """The user's folder for what can be made again: ``$XDG_CACHE_HOME/interp``, or ``~/.cache/interp``."""
    return Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"), "interp").absolute()
