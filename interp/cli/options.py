"""The options that several commands share, each with its help."""

import os
import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from interp.cli import completing
from interp.errors import InputError, shown

Context = Literal["document", "sentence"]
Pooling = Literal["first", "last", "mean"]
Correction = Literal["max-T", "fdr"]
Ablation = Literal["mean", "zero", "positional_mean", "template_mean", "resample"]
Metric = Literal["logit_difference", "sentence_log_probability", "probability", "kl_divergence", "accuracy"]
LARGEST_SEED = 2**63 - 1
_DIGITS = 30
"""Of an amount of memory; one of hundreds is beyond every number."""
_BYTES = {"": 1, "B": 1} | {
    f"{prefix}{unit}": size**power
    for power, prefix in enumerate("KMGT", start=1)
    for unit, size in (("B", 1000), ("iB", 1024))
}


def no_more_than_cpus(threads: int) -> int:
    """Refuse more threads than this machine runs at once: each waits for the others, and enough of them end it."""
    cpus = os.cpu_count() or 1
    if threads > cpus:
        raise typer.BadParameter(f"expected at most {cpus}, the CPUs of this machine, got {threads}")
    return threads


def no_larger_seed(seed: int | None) -> int | None:
    """Refuse a seed that no generator takes."""
    if seed is not None and seed > LARGEST_SEED:
        raise typer.BadParameter(f"expected at most {LARGEST_SEED}, got {shown(seed)}")
    return seed


def bytes_of(text: str | None) -> str | None:
    """Refuse what names no amount of memory; the bytes, written out."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    units = {name.lower(): size for name, size in _BYTES.items()}
    if found is None or found[2].lower() not in units or len(found[1]) > _DIGITS:
        raise typer.BadParameter(f"expected bytes, or a number with a unit such as 512MB or 2GB, got {shown(text)}")
    return str(int(float(found[1]) * units[found[2].lower()]))


def share(value: float) -> float:
    """Refuse what is no share of a whole; a NaN is none."""
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"expected a number from 0 to 1, got {value:g}")
    return value


def names_in(lists: list[str] | None) -> list[str] | None:
    """The different names in comma-separated lists, in their order; None where there is no list."""
    if lists is None:
        return None
    return list(dict.fromkeys(name for each in lists for name in axes_of(each) if name))


SITE_NAMES = (
    *("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out"),
    *("z", "result", "q", "k", "v", "pattern", "mlp_pre", "mlp_post"),
)
SITES = ", ".join(SITE_NAMES)
BY = "What makes a cell, separated by commas: layer, pos, head, key (of pattern), neuron (of mlp_pre and mlp_post)."


def axes_of(by: str) -> list[str]:
    """The names in a comma-separated list."""
    return [name.strip() for name in by.split(",")]


ABLATIONS = "mean, zero, positional_mean, template_mean or resample"
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A folder or checkpoint file, a hub name, bridge:NAME (by TransformerLens), or an embedded model.",
        show_default="the embedded default",
        metavar="NAME",
        autocompletion=completing.models,
    ),
]
NOption = Annotated[
    int | None,
    typer.Option(
        "--n", help="Units to draw of each task.", show_default="the task's own; a file is used whole", metavar="N"
    ),
]
UnequalOption = Annotated[
    bool,
    typer.Option("--unequal-lengths", help="Keep pairs whose two prompts have different numbers of tokens."),
]
SeedOption = Annotated[
    int, typer.Option(help="Seed of every random draw.", min=0, callback=no_larger_seed, metavar="N")
]
DeviceOption = Annotated[
    str, typer.Option(help="cpu, cuda or auto.", metavar="NAME", autocompletion=completing.DEVICES)
]
DtypeOption = Annotated[
    str, typer.Option(help="float32, bfloat16, float16 or float64.", metavar="NAME", autocompletion=completing.DTYPES)
]
ThreadsOption = Annotated[
    int,
    typer.Option(
        help="CPU threads; another number gives other last bits.", min=1, callback=no_more_than_cpus, metavar="N"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
TaskOption = Annotated[
    str, typer.Option("--task", help="A task of `interp tasks`.", metavar="NAME", autocompletion=completing.TASKS)
]
TasksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--task",
        help="A task of `interp tasks`; repeat it for several.",
        show_default="all generated tasks",
        metavar="NAME",
        autocompletion=completing.TASKS,
    ),
]
MetricOption = Annotated[
    Metric | None,
    typer.Option(
        "--metric",
        help="What is measured: logit_difference, sentence_log_probability, probability, kl_divergence or accuracy.",
        show_default="the task's own",
        metavar="NAME",
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        help="What may be used beside the model's weights, such as 512MB or 2GB, or in bytes.",
        show_default="1GiB on a CPU, 4GiB on a GPU",
        callback=bytes_of,
        metavar="SIZE",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Folder for a page, tables and figures; an older report there is replaced.",
        show_default=False,
        metavar="DIR",
    ),
]
TreebankOption = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        help="A treebank in CoNLL-U, hub:NAME:CONFIG:SPLIT, or senses:bank, senses:run; repeat it for several.",
        show_default=False,
        metavar="FILE",
    ),
]
CorrectionOption = Annotated[
    Correction,
    typer.Option(
        help="max-T bounds the chance of any false claim; fdr (Benjamini & Hochberg) is exploratory.", metavar="NAME"
    ),
]
ExecutorName = Literal["local", "processes", "ray"]
ProcessesOption = Annotated[
    int,
    typer.Option(
        "--processes",
        help="Workers that measure at the same time, each with --threads; they come to the same numbers as one.",
        min=1,
        metavar="N",
    ),
]
ExecutorOption = Annotated[
    ExecutorName | None,
    typer.Option(
        "--executor",
        help="Who measures: local (this process), processes (of this machine) or ray (a cluster; see --address).",
        show_default="processes where --processes is above 1",
        metavar="NAME",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address", help="Of a Ray cluster, such as auto.", show_default="a new one on this machine", metavar="ADDRESS"
    ),
]
GpusOption = Annotated[
    float | None,
    typer.Option(
        "--gpus",
        help="Of every worker of a Ray cluster; a share lets several use one.",
        min=0,
        show_default="1 unless --device is cpu",
        metavar="N",
    ),
]
RunsOption = Annotated[
    Path | None,
    typer.Option(
        "--runs",
        help="Folder of runs, where what is measured is kept at once: the same question goes on, or finds its answer.",
        show_default="$INTERP_RUNS, or ~/.local/share/interp/runs",
        metavar="DIR",
    ),
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Measure anew what is known already; the old answer holds until then.")
]

HeadOption = Annotated[
    str | None,
    typer.Option(
        help="One head: its layer and its number there, both from 0, such as 2.1.",
        show_default="all, one by one",
        metavar="LAYER.HEAD",
    ),
]


def one_head(name: str, layers: int | list[int] | None) -> tuple[int, int]:
    """The head that --head names.

    Raises:
        InputError: It names none, or --layer stands beside it.
    """
    from interp.methods.ablation import parse_head

    head = parse_head(name)
    if layers not in (None, []):
        raise InputError(f"--head {name}: expected no --layer beside it, got {layers}; leave that out")
    return head
