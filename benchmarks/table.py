"""Shows what was measured: tables on the terminal, their section of RESULTS.md, and JSON."""

import json
import os
import platform
import re
import statistics
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from matmul import Product, layer_gflops
from measure import Row
from peers import Peer
from rich.console import Console
from rich.table import Table

PACKAGES = ("torch", "interp", "transformer-lens", "transformers", "nnsight")
INTRODUCTION = """# How fast are sweeps?

Written by `python benchmarks/sweeps.py`, each section by its own mode and case, and by `python benchmarks/screen.py`.
Milliseconds a cell: median (lowest to highest); interp's are those of a whole sweep with its audit and the hash of the
weights, but without the tables made of it; a peer's those of a few cells, each of which costs it the same. GFLOP/s
count the packed products of the cells, over all of the time. In the sections *without oneDNN*, interp's products run
through PyTorch's own choice of library, as the peers' do.
"""
WIDTH = 140
"""Of the terminal, at least, so that no number is broken."""
Cells = list[list[str]]
"""A table's rows, the first of them its header."""


def show(title: str, tables: Sequence[Cells]) -> None:
    """Print the tables."""
    console = Console()
    console.width = max(console.width, WIDTH)
    for number, (header, *body) in enumerate(tables):
        table = Table(*header, title=None if number else title, title_justify="left")
        for row in body:
            table.add_row(*row)
        console.print(table)


def sweep_table(rows: Sequence[Row]) -> Cells:
    """A line for every workload and peer."""
    header = ["case", "prompts", "tokens", "shared", "peer", "cells a forward", "ms peer", "ms interp", "ratio"]
    return [header, *([*_workload(row), *_times(row)] for row in rows)]


def speed_table(rows: Sequence[Row], products: Mapping[str, Sequence[Product]]) -> Cells:
    """What the sweeps achieve, where their operations are counted, and the products of a layer by their rows."""
    sweeps = {f"interp, {row.workload}": row.interp_flops / statistics.median(row.interp_ms) / 1e6 for row in rows}
    layers = {
        f"matrix products of a layer, {rows} rows, by {maker}": speed
        for maker, made in products.items()
        for rows, speed in layer_gflops(made).items()
    }
    return [["", "GFLOP/s"], *([name, f"{speed:.0f}"] for name, speed in {**sweeps, **layers}.items())]


def peer_table(peers: Sequence[Peer]) -> Cells:
    """How each library was used."""
    return [["peer", "form"], *([peer.name, peer.form] for peer in peers)]


def write_section(path: Path, title: str, tables: Sequence[Cells], dtype: str = "fp32") -> None:
    """Replace the section called `title`, or add it; other sections stay."""
    text = path.read_text() if path.exists() else INTRODUCTION
    section = "\n\n".join([f"## {title}", conditions(dtype), *map(_markdown, tables)]) + "\n"
    own = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    before, after = text, ""
    if found := own.search(text):
        before, after = text[: found.start()], text[found.end() :]
    path.write_text("\n".join(part.strip("\n") + "\n" for part in (before, section, after) if part.strip()))


def write_json(path: Path, rows: Sequence[Row]) -> None:
    """A list with an object for every workload and peer."""
    path.write_text(json.dumps([_record(row) for row in rows], indent=2) + "\n")


def conditions(dtype: str) -> str:
    """When, where and with what."""
    versions = [f"{package} {_version(package)}" for package in PACKAGES]
    threads = f"{torch.get_num_threads()} thread{'s' if torch.get_num_threads() > 1 else ''} of {os.cpu_count()}"
    return (
        f"{date.today()}, {_processor()}, {threads}, {dtype}, Python {platform.python_version()}, "
        f"{', '.join(versions)}."
    )


def _workload(row: Row) -> list[str]:
    workload = row.workload
    return [workload.case, str(workload.prompts), str(workload.tokens), f"{workload.shared:g}"]


def _times(row: Row) -> list[str]:
    return [row.peer.name, str(row.cells_at_once), _range(row.peer_ms), _range(row.interp_ms), f"{row.ratio:.1f}"]


def _range(ms: Sequence[float]) -> str:
    return f"{statistics.median(ms):.1f} ({min(ms):.1f} to {max(ms):.1f})"


def _record(row: Row) -> dict[str, Any]:
    workload = row.workload
    return {
        "case": workload.case,
        "prompts": workload.prompts,
        "tokens": workload.tokens,
        "shared": workload.shared,
        "peer": row.peer.name,
        "ms_peer": statistics.median(row.peer_ms),
        "ms_interp": statistics.median(row.interp_ms),
        "ratio": row.ratio,
        "ms_peer_range": [min(row.peer_ms), max(row.peer_ms)],
        "ms_interp_range": [min(row.interp_ms), max(row.interp_ms)],
        "repeats": len(row.interp_ms),
    }


def _markdown(table: Cells) -> str:
    header, *body = table
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *body])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    named = re.search(r"^model name\s*: (.+)$", information.read_text(), re.MULTILINE) if information.exists() else None
    return named.group(1) if named else platform.processor() or platform.machine()
