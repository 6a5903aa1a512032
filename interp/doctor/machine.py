"""What does this machine offer? Its processors, what torch can compute on, and room for runs."""

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interp.doctor.finding import Finding
from interp.runs.root import root_of

if TYPE_CHECKING:
    import torch

LITTLE_ROOM = 10**9
"""Bytes: a head sweep of a large model keeps more."""


def system() -> Iterator[Finding]:
    """The system, and how many processors this process may use."""
    n_cpus = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else n_cpus
    yield Finding("system", "well", f"{platform.platform()}; {usable} of {n_cpus} processors to be used")


def torch_devices() -> Iterator[Finding]:
    """Whether torch can multiply on each device that it has."""
    import torch

    yield _multiplies(torch.device("cpu"), f"the CPU, on {torch.get_num_threads()} threads unless --threads says")
    for number in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(number)
        says = f"{about.name}, {about.total_memory / 1e9:.0f} GB: --device cuda:{number}"
        yield _multiplies(torch.device("cuda", number), says)
    if not torch.cuda.device_count():
        built = torch.version.cuda or torch.version.hip
        says = f"none is seen, though torch is built for {built}" if built else "none; torch is built for the CPU"
        yield Finding("GPU", "note", says, "needed for large models alone: a driver, and a torch that is built for it")
    if torch.backends.mps.is_available():
        yield Finding("MPS", "note", "Apple's GPU is there; interp does not compute on it", "use --device cpu")


def _multiplies(device: "torch.device", says: str) -> Finding:
    """Whether a product of small whole numbers, which every device makes exactly, is right."""
    import torch

    what = f"torch on {device}"
    numbers = torch.arange(64.0).reshape(8, 8)
    expected = [[sum(row[k] * column[k] for k in range(8)) for column in numbers.tolist()] for row in numbers.tolist()]
    if (numbers.to(device) @ numbers.to(device).T).tolist() == expected:
        return Finding(what, "well", says)
    return Finding(what, "wrong", f"{says}; a matrix product is wrong", "install torch again, in a build for it")


def runs_folder() -> Iterator[Finding]:
    """Whether what is measured can be kept, and how much of it."""
    root = root_of(None)
    place = next(each for each in (root, *root.parents) if each.exists())
    elsewhere = "name another folder with --runs DIR, or with INTERP_RUNS"
    try:
        with tempfile.TemporaryFile(dir=place) as probe:
            probe.write(b"0")
    except OSError as error:
        yield Finding("folder of runs", "wrong", f"{root} cannot be written ({error.strerror or error})", elsewhere)
        return
    free = shutil.disk_usage(place).free
    says = f"{root}, {free / 1e9:,.1f} GB free"
    if free < LITTLE_ROOM:
        yield Finding("folder of runs", "note", says, f"make room (`interp runs rm`), or {elsewhere}")
    else:
        yield Finding("folder of runs", "well", says)
